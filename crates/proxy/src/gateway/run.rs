//! Owns the gateway's task: it waits for what happens, hands it to the hub, and does what the hub wants. Decides
//! nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::config::GatewayConfig;
use super::hub::{ClientEvent, Command, SessionOptions};
use super::message::{Message, SessionId};
use super::outlet::{Outlet, outlet};
use super::status::Status;

/// A running gateway, for its fronts and its owner. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GatewayHandle {
    pub(super) clients: mpsc::Sender<ClientEvent>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) closings: Arc<Notify>,
    pub(super) sessions: Arc<AtomicU64>,
    pub(super) tasks: TaskTracker,
}

/// One client's connection to the gateway: a front owns it.
#[derive(Debug)]
pub struct ClientSession {
    id: SessionId,
    clients: mpsc::Sender<ClientEvent>,
    /// What comes for the client.
    pub outlet: Outlet,
}

impl GatewayHandle {
    /// Opens a session. It ends when it is dropped. `None`: the gateway has ended.
    pub async fn open(&self, options: SessionOptions) -> Option<ClientSession> {
        let session = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed));
        let (sink, outlet) = outlet(Arc::clone(&self.closings));
        self.clients.send(ClientEvent::Opened { session, sink, options }).await.ok()?;
        Some(ClientSession { id: session, clients: self.clients.clone(), outlet })
    }

    /// New settings: unchanged servers are left alone, calls in flight end on what they began with.
    pub async fn reload(&self, config: GatewayConfig) {
        self.commands.send(Command::Reload(Box::new(config))).await.ok();
    }

    /// The state of every configured entry. Empty after the end.
    pub async fn status(&self) -> Vec<Status> {
        let (answer, status) = oneshot::channel();
        if self.commands.send(Command::Status(answer)).await.is_err() {
            return Vec::new();
        }
        status.await.unwrap_or_default()
    }

    /// Ends all servers and waits until nothing is left.
    pub async fn shutdown(&self) {
        self.commands.send(Command::Shutdown).await.ok();
        self.tasks.wait().await;
    }
}

impl ClientSession {
    /// Its id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Hands over a message of the client; false: the gateway has ended. Dropping the future before it ends loses the
    /// message.
    pub async fn send(&self, message: Message) -> bool {
        self.clients.send(ClientEvent::Message { session: self.id, message }).await.is_ok()
    }

    /// As [`ClientSession::send`], without waiting; an error gives the message back.
    #[expect(clippy::result_large_err, reason = "the message itself comes back")]
    pub fn try_send(&self, message: Message) -> Result<(), Message> {
        match self.clients.try_reserve() {
            Ok(permit) => {
                permit.send(ClientEvent::Message { session: self.id, message });
                Ok(())
            }
            Err(_) => Err(message),
        }
    }

    /// Hands over a batch; its answers come as one message.
    pub async fn send_batch(&self, messages: Vec<Message>) -> bool {
        self.clients.send(ClientEvent::Batch { session: self.id, messages }).await.is_ok()
    }

    /// Gives a request up: its stream was closed.
    pub async fn drop_request(&self, request: toolway_wire::Id) -> bool {
        self.clients.send(ClientEvent::Dropped { session: self.id, request }).await.is_ok()
    }
}
