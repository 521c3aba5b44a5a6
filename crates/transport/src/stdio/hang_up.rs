//! Waiting for the other side of a pipe or socket to close, whatever of its bytes has not been read.

use std::fs::File;
use std::io;

/// Blocks until nobody can write into this pipe or socket any more. For a thread of its own: of a regular file it
/// never returns. An error: this cannot be known here.
#[cfg(unix)]
pub fn wait_for_hang_up(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    #[cfg(target_os = "linux")]
    let wanted = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    let wanted = PollFlags::empty();
    loop {
        let mut waiting = [PollFd::new(file, wanted)];
        match poll(&mut waiting, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [waiting] = waiting;
        if waiting.revents().intersects(PollFlags::HUP | wanted) {
            return Ok(());
        }
        return Err(io::ErrorKind::Unsupported.into());
    }
}

/// See the other one: Windows does not tell.
#[cfg(windows)]
pub fn wait_for_hang_up(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_pipe_hangs_up_although_bytes_are_unread() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"unread").unwrap();
        let file = File::from(OwnedFd::from(reader));
        let waiting = std::thread::spawn(move || wait_for_hang_up(&file).is_ok());
        drop(writer);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn a_socket_hangs_up_when_its_peer_writes_no_more() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(wait_for_hang_up(&File::from(OwnedFd::from(ours))).is_ok());
    }
}
