//! Standard input for an event loop. Cancel-safe: a read that is dropped has taken nothing.

use std::fs::File;
use std::io::{self, Read};

use bytes::{Buf, Bytes, BytesMut};
use tokio::sync::mpsc;
#[cfg(unix)]
use tokio::task::coop::cooperative;

use super::CHUNK_BYTES;
use super::blocking::{Input, standard_input};
use super::descriptor::{Access, Direction, access};
#[cfg(unix)]
use super::descriptor::{is_emptied_by_a_short_read, watch};

/// How many chunks the reading thread is ahead.
const AHEAD: usize = 2;

/// A byte source for a tokio task: pipes and sockets are waited for, everything else is read by a thread. That
/// thread ends with its input or with the process; nothing waits for it.
#[derive(Debug)]
pub struct AsyncInput {
    source: Source,
}

#[derive(Debug)]
enum Source {
    #[cfg(unix)]
    Pipe(Ready),
    #[cfg(unix)]
    Socket(Ready),
    Thread(Ahead),
}

impl AsyncInput {
    /// Our standard input. A tokio runtime with I/O must be entered.
    pub fn stdin() -> io::Result<Self> {
        Self::open(standard_input()?)
    }

    /// Any file, pipe or socket.
    pub fn open(file: File) -> io::Result<Self> {
        #[cfg(unix)]
        let emptied = is_emptied_by_a_short_read(&file);
        let source = match access(file, Direction::In)? {
            #[cfg(unix)]
            Access::Pipe(file) => Source::Pipe(Ready::new(file, emptied)?),
            #[cfg(unix)]
            Access::Socket(file) => Source::Socket(Ready::new(file, false)?),
            Access::Blocking(file) => Source::Thread(Ahead::start(file)?),
        };
        Ok(Self { source })
    }

    /// Reads what is there, waiting for the first byte; 0 is the end, or an empty buffer. Dropping the future
    /// loses nothing.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            #[cfg(unix)]
            Source::Pipe(ready) => ready.read(buffer.len(), |mut file| file.read(buffer)).await,
            #[cfg(unix)]
            Source::Socket(ready) => ready.read(buffer.len(), |file| receive(file, buffer)).await,
            Source::Thread(ahead) => ahead.read(buffer).await,
        }
    }
}

#[cfg(unix)]
#[derive(Debug)]
struct Ready {
    file: tokio::io::unix::AsyncFd<File>,
    /// The end of a pipe that was closed before it was opened again is told by a read only, never by an event.
    tried: bool,
    /// A read that does not fill the buffer has emptied it: the next one waits for an event, and need not be tried.
    emptied: bool,
}

#[cfg(unix)]
impl Ready {
    fn new(file: File, emptied: bool) -> io::Result<Self> {
        Ok(Self { file: watch(file, Direction::In)?, tried: false, emptied })
    }

    async fn read(
        &mut self,
        room: usize,
        mut read: impl FnMut(&File) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if !self.tried {
            self.tried = true;
            match read(self.file.get_ref()) {
                Err(error) if transient(&error) => {}
                result => return result,
            }
        }
        loop {
            let mut ready = cooperative(self.file.readable()).await?;
            match ready.try_io(|file| read(file.get_ref())) {
                Ok(Err(error)) if transient(&error) => {}
                Ok(Ok(count)) => {
                    if self.emptied && (1..room).contains(&count) {
                        ready.clear_ready();
                    }
                    return Ok(count);
                }
                Ok(result) => return result,
                Err(_) => {}
            }
        }
    }
}

#[cfg(unix)]
fn transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(unix)]
fn receive(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let (read, _) = rustix::net::recv(file, buffer, rustix::net::RecvFlags::DONTWAIT)?;
    Ok(read)
}

/// What a thread has read ahead.
#[derive(Debug)]
struct Ahead {
    chunk: Bytes,
    chunks: mpsc::Receiver<io::Result<Bytes>>,
}

impl Ahead {
    fn start(file: File) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(AHEAD);
        let thread = std::thread::Builder::new().name("stdin".to_owned());
        thread.spawn(move || read_ahead(Input::from(file), &sender))?;
        Ok(Self { chunk: Bytes::new(), chunks })
    }

    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() {
            match self.chunks.recv().await {
                Some(chunk) => self.chunk = chunk?,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.chunk.len());
        self.chunk.split_to(count).copy_to_slice(buffer.split_at_mut(count).0);
        Ok(count)
    }
}

/// Ends with the input, with the first error, or when nobody wants more.
fn read_ahead(mut input: Input, sender: &mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let mut chunk = BytesMut::zeroed(CHUNK_BYTES);
        let read = input.read(&mut chunk);
        let last = !matches!(read, Ok(1..));
        let message = read.map(|count| chunk.split_to(count).freeze());
        let at_end = message.as_ref().is_ok_and(Bytes::is_empty);
        if at_end || sender.blocking_send(message).is_err() || last {
            return;
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
