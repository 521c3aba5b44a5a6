//! Standard output for an event loop. A client that never reads makes writes wait, and nothing else: no thread
//! and no runtime is kept from ending.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use super::CHUNK_BYTES;
use super::blocking::{Output, standard_output};
#[cfg(unix)]
use super::descriptor::watch;
use super::descriptor::{Access, Direction, access};

/// How many chunks may wait for the writing thread.
const BEHIND: usize = 2;

/// A byte sink for a tokio task: pipes and sockets are waited for, everything else is written by a thread. That
/// thread ends when this is dropped and it has written what it was given, or with the process.
#[derive(Debug)]
pub struct AsyncOutput {
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    #[cfg(unix)]
    Pipe(tokio::io::unix::AsyncFd<File>),
    #[cfg(unix)]
    Socket(tokio::io::unix::AsyncFd<File>),
    Thread(Behind),
}

impl AsyncOutput {
    /// Our standard output. A tokio runtime with I/O must be entered.
    pub fn stdout() -> io::Result<Self> {
        Self::open(standard_output()?)
    }

    /// Any file, pipe or socket.
    pub fn open(file: File) -> io::Result<Self> {
        let sink = match access(file, Direction::Out)? {
            #[cfg(unix)]
            Access::Pipe(file) => Sink::Pipe(watch(file, Direction::Out)?),
            #[cfg(unix)]
            Access::Socket(file) => Sink::Socket(watch(file, Direction::Out)?),
            Access::Blocking(file) => Sink::Thread(Behind::start(file)?),
        };
        Ok(Self { sink })
    }

    /// Writes as much as there is room for, waiting for the first byte's. Dropping the future has written
    /// nothing.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            #[cfg(unix)]
            Sink::Pipe(file) => when_writable(file, |mut file| file.write(bytes)).await,
            #[cfg(unix)]
            Sink::Socket(file) => when_writable(file, |file| send(file, bytes)).await,
            Sink::Thread(behind) => behind.write(bytes).await,
        }
    }

    /// Writes all of it. Dropping the future may have written a part: whoever does that writes nothing more.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Waits until what was written has left this process.
    pub async fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            #[cfg(unix)]
            Sink::Pipe(_) | Sink::Socket(_) => Ok(()),
            Sink::Thread(behind) => behind.flush().await,
        }
    }
}

#[cfg(unix)]
async fn when_writable(
    file: &tokio::io::unix::AsyncFd<File>,
    mut write: impl FnMut(&File) -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match file.async_io(tokio::io::Interest::WRITABLE, |file| write(file)).await {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(unix)]
fn send(file: &File, bytes: &[u8]) -> io::Result<usize> {
    use rustix::net::SendFlags;
    Ok(rustix::net::send(file, bytes, SendFlags::DONTWAIT)?)
}

#[derive(Debug)]
enum Order {
    Write(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

/// What a thread has still to write.
#[derive(Debug)]
struct Behind {
    orders: mpsc::Sender<Order>,
    /// Why the thread gave up.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Behind {
    fn start(file: File) -> io::Result<Self> {
        let (orders, receiver) = mpsc::channel(BEHIND);
        let failure = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&failure);
        let thread = std::thread::Builder::new().name("stdout".to_owned());
        thread.spawn(move || {
            if let Err(error) = write_behind(Output::from(file), receiver) {
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        })?;
        Ok(Self { orders, failure })
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.orders.reserve().await.map_err(|_| self.failure())?;
        let piece = bytes.get(..CHUNK_BYTES).unwrap_or(bytes);
        room.send(Order::Write(piece.to_vec()));
        Ok(piece.len())
    }

    async fn flush(&mut self) -> io::Result<()> {
        let (done, flushed) = oneshot::channel();
        self.orders.send(Order::Flush(done)).await.map_err(|_| self.failure())?;
        flushed.await.map_err(|_| self.failure())
    }

    fn failure(&self) -> io::Error {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

fn write_behind(mut output: Output, mut orders: mpsc::Receiver<Order>) -> io::Result<()> {
    while let Some(order) = orders.blocking_recv() {
        match order {
            Order::Write(bytes) => output.write_all(&bytes)?,
            // Whoever asked may have stopped waiting.
            Order::Flush(done) => drop(done.send(())),
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
