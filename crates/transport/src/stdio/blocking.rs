//! Standard input and output as plain files: one system call a read or write, no lock, no line buffer.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};

/// Our standard input, unbuffered and blocking.
#[derive(Debug)]
pub struct Input {
    file: File,
}

/// Our standard output, unbuffered and blocking: what was written has left.
#[derive(Debug)]
pub struct Output {
    file: File,
}

impl Input {
    /// A handle of its own on standard input.
    pub fn stdin() -> io::Result<Self> {
        standard_input().map(Self::from)
    }
}

impl Output {
    /// A handle of its own on standard output.
    pub fn stdout() -> io::Result<Self> {
        standard_output().map(Self::from)
    }
}

impl From<File> for Input {
    fn from(file: File) -> Self {
        Self { file }
    }
}

impl From<File> for Output {
    fn from(file: File) -> Self {
        Self { file }
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if retry(&error, &self.file, true)? => {}
                result => return result,
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(bytes) {
                Err(error) if retry(&error, &self.file, false)? => {}
                result => return result,
            }
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            match self.file.write_vectored(pieces) {
                Err(error) if retry(&error, &self.file, false)? => {}
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether to try again. The client may have made its end, and so ours, non-blocking: then this waits.
#[cfg(unix)]
fn retry(error: &io::Error, file: &File, input: bool) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, poll};
    match error.kind() {
        io::ErrorKind::Interrupted => Ok(true),
        io::ErrorKind::WouldBlock => {
            let wanted = if input { PollFlags::IN } else { PollFlags::OUT };
            match poll(&mut [PollFd::new(file, wanted)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
                Err(error) => Err(error.into()),
            }
        }
        _ => Ok(false),
    }
}

#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "on Unix it can fail")]
fn retry(error: &io::Error, _file: &File, _input: bool) -> io::Result<bool> {
    Ok(error.kind() == io::ErrorKind::Interrupted)
}

#[cfg(unix)]
pub(super) fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

#[cfg(unix)]
pub(super) fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// The handle itself and not the console's text mode: bytes pass as they are, whatever the code page.
#[cfg(windows)]
pub(super) fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// The handle itself and not the console's text mode: bytes pass as they are, whatever the code page.
#[cfg(windows)]
pub(super) fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};

    use super::*;

    fn non_blocking(end: impl Into<OwnedFd>) -> io::Result<File> {
        let end = end.into();
        let flags = rustix::fs::fcntl_getfl(end.as_fd())?;
        rustix::fs::fcntl_setfl(end.as_fd(), flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(File::from(end))
    }

    #[test]
    fn ends_that_the_client_made_non_blocking_still_wait() -> io::Result<()> {
        let (read, write) = io::pipe()?;
        let mut input = Input::from(non_blocking(read)?);
        let mut output = Output::from(non_blocking(write)?);
        let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        let received = std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut received = Vec::new();
                input.read_to_end(&mut received).map(|_| received)
            });
            // More than a pipe holds, so both sides have to wait for each other.
            output.write_all(&sent)?;
            drop(output);
            reader.join().map_err(|_| io::Error::other("the reader failed"))?
        })?;
        assert_eq!(received, sent);
        Ok(())
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error() -> io::Result<()> {
        let (read, write) = io::pipe()?;
        drop(read);
        let mut output = Output::from(File::from(OwnedFd::from(write)));
        assert_eq!(output.write(b"x").map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
        Ok(())
    }
}
