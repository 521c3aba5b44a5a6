//! The legacy HTTP+SSE transport: one event stream down, one POST for each message up. It owns the queue between its
//! user and the session's task; it must not know what the messages ask for.
//!
//! Specification 2024-11-05, "Transports", "HTTP with SSE".

mod session;
mod shared;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::session::Session;
use self::shared::Shared;
use crate::http::shared::Slot;
use crate::http::{Head, HttpConfig};
use crate::limits::INBOUND_QUEUE;
use crate::transport::{Inbound, Life, Outbound, Transport, TransportError};

/// A message that waits for the session's task.
#[derive(Debug)]
struct Queued {
    message: Outbound,
    slot: Slot,
}

/// A legacy HTTP+SSE server as upstream.
///
/// The stream is opened with the first message. When it ends, the requests that wait for answers fail at once, and
/// the next message opens it again, repeating the client's own handshake so that the new session works. Must be
/// used within a tokio runtime with time and I/O.
#[derive(Debug)]
pub struct SseTransport {
    shared: Arc<Shared>,
    inbound: mpsc::Receiver<Inbound>,
    queue: mpsc::Sender<Queued>,
    /// Taken by the session's task when it starts.
    waiting: Option<mpsc::Receiver<Queued>>,
    tasks: JoinSet<()>,
    life: Life,
}

impl SseTransport {
    /// Checks the configuration; nothing is sent.
    pub fn new(config: &HttpConfig) -> Result<Self, TransportError> {
        let (events, inbound) = mpsc::channel(INBOUND_QUEUE);
        let (queue, waiting) = mpsc::channel(config.max_in_flight.saturating_mul(2).max(1));
        let shared = Arc::new(Shared::new(config, events)?);
        let tasks = JoinSet::new();
        Ok(Self { shared, inbound, queue, waiting: Some(waiting), tasks, life: Life::Open })
    }

    /// How the server answered the first requests.
    pub fn heads(&self) -> Vec<Head> {
        self.shared.client.heads.first()
    }
}

impl Transport for SseTransport {
    fn ready(&self) -> bool {
        self.life == Life::Open && self.queue.capacity() > 0 && self.shared.slots.free()
    }

    fn ready_for_note(&self) -> bool {
        self.life == Life::Open && self.queue.capacity() > 0
    }

    fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        if self.life != Life::Open {
            return Err(TransportError::Closed);
        }
        if let Some(waiting) = self.waiting.take() {
            let pool = Arc::clone(&self.shared.client.pool);
            self.tasks.spawn(async move { pool.tidy().await });
            self.tasks.spawn(Session::new(Arc::clone(&self.shared)).run(waiting));
        }
        let slot = self.shared.slots.take();
        self.queue.try_send(Queued { message, slot }).map_err(|_| TransportError::Busy)
    }

    async fn receive(&mut self) -> Option<Inbound> {
        if self.life != Life::Open {
            return self.life.end();
        }
        self.inbound.recv().await
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        self.inbound.try_recv().ok()
    }

    async fn close(&mut self) {
        if self.life != Life::Open {
            return;
        }
        self.life = Life::Closed;
        self.tasks.shutdown().await;
        self.shared.client.pool.clear();
        self.inbound.close();
        while self.inbound.try_recv().is_ok() {}
    }
}
