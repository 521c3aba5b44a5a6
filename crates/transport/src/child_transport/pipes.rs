//! A child's pipes for an event loop. Each end is a description of our own, so it can be made not to block without
//! touching the child's. Bytes only.

use std::io;
use std::process::ChildStderr;

use tokio::task::JoinSet;

use crate::stderr_tail::StderrTail;

#[cfg(unix)]
pub(super) use unix::{Sink, Source};
#[cfg(windows)]
pub(super) use windows::{Sink, Source};

/// Reads stderr until it ends, whatever else happens.
#[cfg(unix)]
pub(super) fn drain(stderr: ChildStderr, tail: StderrTail, tasks: &mut JoinSet<()>) -> io::Result<()> {
    use std::os::fd::OwnedFd;
    use tokio::net::unix::pipe::Receiver;

    let source = Receiver::from_owned_fd(OwnedFd::from(stderr))?;
    tasks.spawn(async move {
        // The buffer is not held while nothing comes: most servers are silent.
        while source.readable().await.is_ok() {
            let mut piece = [0; 4096];
            match source.try_read(&mut piece) {
                Ok(0) => break,
                Ok(count) => tail.push(piece.get(..count).unwrap_or_default()),
                Err(error) if is_transient(&error) => {}
                Err(_) => break,
            }
        }
    });
    Ok(())
}

/// Reads stderr until it ends, on a thread of its own.
#[cfg(windows)]
pub(super) fn drain(stderr: ChildStderr, tail: StderrTail, tasks: &mut JoinSet<()>) -> io::Result<()> {
    let (done, ended) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new().name("stderr".to_owned()).spawn(move || {
        tail.drain(stderr, |_| {});
        drop(done);
    })?;
    tasks.spawn(async move { drop(ended.await) });
    Ok(())
}

#[cfg(unix)]
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::process::{ChildStdin, ChildStdout};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::unix::pipe;

    /// The child's standard output.
    #[derive(Debug)]
    pub(in crate::child_transport) struct Source(pipe::Receiver);

    impl Source {
        pub(in crate::child_transport) fn new(stdout: ChildStdout) -> io::Result<Self> {
            pipe::Receiver::from_owned_fd(OwnedFd::from(stdout)).map(Self)
        }

        /// Waits for bytes; 0 is the end. Dropping the future loses nothing.
        pub(in crate::child_transport) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer).await
        }

        pub(in crate::child_transport) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.try_read(buffer)
        }
    }

    /// The child's standard input. Dropping it closes the pipe.
    #[derive(Debug)]
    pub(in crate::child_transport) struct Sink(pipe::Sender);

    impl Sink {
        pub(in crate::child_transport) fn new(stdin: ChildStdin) -> io::Result<Self> {
            pipe::Sender::from_owned_fd(OwnedFd::from(stdin)).map(Self)
        }

        /// Waits for room. Dropping the future has written nothing.
        pub(in crate::child_transport) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes).await
        }

        pub(in crate::child_transport) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.try_write(bytes)
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::fs::File;
    use std::io;
    use std::os::windows::io::OwnedHandle;
    use std::process::{ChildStdin, ChildStdout};

    use crate::stdio::{AsyncInput, AsyncOutput};

    /// The child's standard output, read by a thread.
    #[derive(Debug)]
    pub(in crate::child_transport) struct Source(AsyncInput);

    impl Source {
        pub(in crate::child_transport) fn new(stdout: ChildStdout) -> io::Result<Self> {
            AsyncInput::open(File::from(OwnedHandle::from(stdout))).map(Self)
        }

        pub(in crate::child_transport) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer).await
        }

        pub(in crate::child_transport) fn try_read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// The child's standard input, written by a thread.
    #[derive(Debug)]
    pub(in crate::child_transport) struct Sink(AsyncOutput);

    impl Sink {
        pub(in crate::child_transport) fn new(stdin: ChildStdin) -> io::Result<Self> {
            AsyncOutput::open(File::from(OwnedHandle::from(stdin))).map(Self)
        }

        pub(in crate::child_transport) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes).await
        }

        pub(in crate::child_transport) fn try_write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }
}
