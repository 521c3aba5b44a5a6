//! Owns the accept loop: each connection is a task of its own, their number is bounded, and none outlives the loop. Knows
//! no protocol.

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Pause after a connection could not be accepted (no descriptors).
const PAUSE: Duration = Duration::from_millis(100);

/// The bounds of an accept loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptLimits {
    /// Connections at the same time. When there is one more, the oldest that has not shown a request yet makes room.
    pub max_connections: usize,
    /// What connections get to finish at the end.
    pub grace: Duration,
}

/// Whether a connection has earned its place.
#[derive(Debug, Clone, Default)]
pub struct Standing(Arc<Place>);

#[derive(Debug, Default)]
struct Place {
    admitted: AtomicBool,
    evicted: CancellationToken,
}

impl Standing {
    /// A request that may come in has come: the connection is not closed for the sake of others any more.
    pub fn admit(&self) {
        self.0.admitted.store(true, Ordering::Relaxed);
    }

    /// [`Standing::admit`] was called.
    pub fn is_admitted(&self) -> bool {
        self.0.admitted.load(Ordering::Relaxed)
    }

    /// Resolves when the place is needed for another connection.
    pub async fn evicted(&self) {
        self.0.evicted.cancelled().await;
    }

    /// Nobody but the loop knows of it: its connection has ended.
    fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// A connection that was accepted.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: TcpStream,
    /// Who has connected.
    pub peer: SocketAddr,
    /// Cancelled when the connection is to finish.
    pub stop: CancellationToken,
    /// For the connection to keep while it lives.
    pub standing: Standing,
}

/// Accepts until `end`, then stops listening, tells the connections to finish and waits for them within bounds. No
/// connection is left afterwards.
pub async fn accept_all<C>(
    listener: TcpListener,
    limits: AcceptLimits,
    end: impl Future<Output = ()>,
    connection: impl Fn(Accepted) -> C,
) where
    C: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(limits.max_connections));
    let mut newcomers = Newcomers::default();
    let mut connections = JoinSet::new();
    let mut waiting: Option<(TcpStream, SocketAddr)> = None;
    let stop = CancellationToken::new();
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            biased;
            () = end.as_mut() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            permit = Arc::clone(&room).acquire_owned(), if waiting.is_some() => {
                let (Some((stream, peer)), Ok(permit)) = (waiting.take(), permit) else { continue };
                let standing = newcomers.add(limits.max_connections);
                let serving = connection(Accepted { stream, peer, stop: stop.clone(), standing });
                connections.spawn(keeping(permit, serving));
            }
            accepted = listener.accept(), if waiting.is_none() => match accepted {
                Ok(one) => {
                    waiting = Some(one);
                    if room.available_permits() == 0 {
                        newcomers.evict();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    newcomers.evict();
                    sleep(PAUSE).await;
                }
            },
        }
    }
    drop((listener, waiting));
    stop.cancel();
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.grace, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn keeping(permit: OwnedSemaphorePermit, serving: impl Future<Output = ()>) {
    serving.await;
    drop(permit);
}

/// Connections that may have shown nothing yet, oldest first.
#[derive(Debug, Default)]
struct Newcomers(VecDeque<Standing>);

impl Newcomers {
    fn add(&mut self, most: usize) -> Standing {
        if self.0.len() >= most.saturating_mul(2) {
            self.0.retain(|standing| !standing.is_admitted() && !standing.is_over());
        }
        let standing = Standing::default();
        self.0.push_back(standing.clone());
        standing
    }

    /// The oldest of them makes room.
    fn evict(&mut self) {
        while let Some(standing) = self.0.pop_front() {
            if !standing.is_admitted() && !standing.is_over() {
                standing.0.evicted.cancel();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Echoes bytes; the first one admits the connection.
    async fn echo(accepted: Accepted) {
        let Accepted { mut stream, stop, standing, .. } = accepted;
        let mut byte = [0];
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = standing.evicted() => return,
                read = stream.read_exact(&mut byte) => {
                    standing.admit();
                    if read.is_err() || stream.write_all(&byte).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    async fn says(stream: &mut TcpStream) -> Option<u8> {
        let mut byte = [0];
        stream.write_all(b"x").await.ok()?;
        stream.read_exact(&mut byte).await.ok()?;
        Some(byte[0])
    }

    #[tokio::test]
    async fn silent_connections_make_room_and_others_stay() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let end = CancellationToken::new();
        let limits = AcceptLimits { max_connections: 4, grace: Duration::from_secs(1) };
        let mut tasks = JoinSet::new();
        let ended = end.clone();
        tasks.spawn(async move { accept_all(listener, limits, ended.cancelled(), echo).await });
        let mut talker = TcpStream::connect(address).await.unwrap();
        assert_eq!(says(&mut talker).await, Some(b'x'));
        let mut silent = Vec::new();
        for _ in 0..50 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut late = TcpStream::connect(address).await.unwrap();
        assert_eq!(says(&mut late).await, Some(b'x'));
        assert_eq!(says(&mut talker).await, Some(b'x'));
        let mut byte = [0];
        assert_eq!(silent[0].read(&mut byte).await.unwrap_or(0), 0, "the oldest was closed");
        end.cancel();
        tasks.join_next().await.unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err());
        assert_eq!(talker.read(&mut byte).await.unwrap_or(0), 0);
    }
}
