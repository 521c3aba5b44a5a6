//! What kind of thing a descriptor is and how to wait for it without touching what others share.

use std::fs::File;
use std::io;

/// A way to use a descriptor from an event loop.
#[derive(Debug)]
pub(super) enum Access {
    /// A pipe, opened once more: a description of our own, which does not block.
    #[cfg(unix)]
    Pipe(File),
    /// A socket, asked not to wait on each call.
    #[cfg(unix)]
    Socket(File),
    /// Anything else: a thread that blocks.
    Blocking(File),
}

/// Which end is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Reading.
    In,
    /// Writing.
    Out,
}

#[cfg(unix)]
pub(super) fn access(file: File, direction: Direction) -> io::Result<Access> {
    use rustix::fs::{FileType, fstat};
    Ok(match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::Fifo => match reopen(&file, direction) {
            Some(own) => Access::Pipe(own),
            None => Access::Blocking(file),
        },
        FileType::Socket => Access::Socket(file),
        _ => Access::Blocking(file),
    })
}

#[cfg(windows)]
pub(super) fn access(file: File, _direction: Direction) -> io::Result<Access> {
    Ok(Access::Blocking(file))
}

/// Opens the same pipe once more. Fails where `/proc` is not mounted and when the pipe belongs to another user;
/// elsewhere than on Linux the new descriptor would share its flags with the old one.
#[cfg(target_os = "linux")]
fn reopen(file: &File, direction: Direction) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd;
    let way = if direction == Direction::In { OFlags::RDONLY } else { OFlags::WRONLY };
    let flags = way | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    open(format!("/proc/self/fd/{}", file.as_raw_fd()), flags, Mode::empty()).ok().map(File::from)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn reopen(_file: &File, _direction: Direction) -> Option<File> {
    None
}

/// A read that takes less than it could has taken all: so it is with a pipe, unless it keeps packets apart.
#[cfg(target_os = "linux")]
pub(super) fn is_emptied_by_a_short_read(pipe: &File) -> bool {
    use rustix::fs::{OFlags, fcntl_getfl};
    fcntl_getfl(pipe).is_ok_and(|flags| !flags.contains(OFlags::DIRECT))
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn is_emptied_by_a_short_read(_pipe: &File) -> bool {
    false
}

/// Waits for a descriptor by events. A tokio runtime with I/O must be entered.
#[cfg(unix)]
#[expect(
    deprecated,
    reason = "the new name is unsafe for types whose descriptor may change; a file's never does"
)]
pub(super) fn watch(file: File, direction: Direction) -> io::Result<tokio::io::unix::AsyncFd<File>> {
    use tokio::io::Interest;
    let interest = if direction == Direction::In { Interest::READABLE } else { Interest::WRITABLE };
    tokio::io::unix::AsyncFd::with_interest(file, interest)
}
