//! Owns the pipes of a command: what comes is handed on in order through a bounded queue, what goes in waits for room.

use std::process::{ChildStderr, ChildStdin, ChildStdout};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Pieces that may wait to be read.
const QUEUE: usize = 16;
/// Bytes of a piece.
const PIECE: usize = 32 << 10;

/// A piece of output.
#[derive(Debug)]
pub(super) struct Piece {
    /// `stdout` or `stderr`.
    pub(super) stream: &'static str,
    pub(super) bytes: Vec<u8>,
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;

    use tokio::net::unix::pipe;

    use super::{ChildStderr, ChildStdin, ChildStdout, JoinSet, PIECE, Piece, QUEUE, mpsc};

    /// Reads both until they end.
    pub(in super::super) fn read(
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) -> io::Result<(mpsc::Receiver<Piece>, JoinSet<()>)> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let mut tasks = JoinSet::new();
        for (stream, end) in [("stdout", OwnedFd::from(stdout)), ("stderr", OwnedFd::from(stderr))] {
            let end = pipe::Receiver::from_owned_fd(end)?;
            tasks.spawn(pump(stream, end, sender.clone()));
        }
        Ok((receiver, tasks))
    }

    async fn pump(stream: &'static str, end: pipe::Receiver, sender: mpsc::Sender<Piece>) {
        let mut buffer = vec![0; PIECE];
        while end.readable().await.is_ok() {
            match end.try_read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                    if sender.send(Piece { stream, bytes }).await.is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// The way into a command.
    #[derive(Debug)]
    pub(in super::super) struct Input(pipe::Sender);

    impl Input {
        pub(in super::super) fn new(stdin: ChildStdin) -> io::Result<Self> {
            pipe::Sender::from_owned_fd(OwnedFd::from(stdin)).map(Self)
        }

        /// Writes all of it, as fast as it is taken.
        pub(in super::super) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
            while !bytes.is_empty() {
                self.0.writable().await?;
                match self.0.try_write(bytes) {
                    Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io::{self, Read, Write as _};
    use std::sync::{Arc, Mutex, PoisonError};

    use super::{ChildStderr, ChildStdin, ChildStdout, JoinSet, PIECE, Piece, QUEUE, mpsc};

    /// Reads both until they end.
    pub(in super::super) fn read(
        stdout: ChildStdout,
        stderr: ChildStderr,
    ) -> io::Result<(mpsc::Receiver<Piece>, JoinSet<()>)> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let ends: [(&'static str, Box<dyn Read + Send>); 2] =
            [("stdout", Box::new(stdout)), ("stderr", Box::new(stderr))];
        for (stream, mut end) in ends {
            let sender = sender.clone();
            std::thread::Builder::new().spawn(move || {
                let mut buffer = vec![0; PIECE];
                while let Ok(read @ 1..) = end.read(&mut buffer) {
                    let bytes = buffer.get(..read).unwrap_or_default().to_vec();
                    if sender.blocking_send(Piece { stream, bytes }).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok((receiver, JoinSet::new()))
    }

    /// The way into a command.
    #[derive(Debug)]
    pub(in super::super) struct Input(Arc<Mutex<ChildStdin>>);

    impl Input {
        pub(in super::super) fn new(stdin: ChildStdin) -> io::Result<Self> {
            Ok(Self(Arc::new(Mutex::new(stdin))))
        }

        /// Writes all of it, as fast as it is taken.
        pub(in super::super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            let (stdin, bytes) = (Arc::clone(&self.0), bytes.to_vec());
            let write = move || stdin.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes);
            tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
        }
    }
}

pub(super) use system::{Input, read};
