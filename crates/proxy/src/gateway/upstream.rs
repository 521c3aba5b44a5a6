//! Owns the gateway's side of one server instance: a task that starts it, lists what it has, starts it again when it
//! is lost, and stops it; and the handle on that task. Knows no clients and no other servers.

mod backoff;
mod listing;
mod queue;
mod schedule;
mod session;
mod task;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_transport::{Failure, Outbound};
use toolway_wire::Id;

use super::config::ServerConfig;
use super::connection::{Negotiated, Shared};
use super::lists::RawLists;
use super::message::Message;
use super::state::ServerState;
use queue::Queue;

pub(crate) use listing::{Listed, Listing};
pub use queue::Full;
use task::{Outlet, Task};

/// One instance of a server: of one generation of the configuration and, where it is not shared, of one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamId(pub u32);

/// What an upstream tells the hub.
#[derive(Debug)]
pub enum UpstreamEvent {
    /// What it is now. Comes at each change, `Connected` after the first lists.
    State(ServerState),
    /// It can be called from now on.
    Up(Arc<Negotiated>),
    /// What it offers: once it has answered, and again when that has changed. It is never the same twice in a row,
    /// except after a restart.
    Lists(Arc<RawLists>),
    /// An answer, a request of the server's (never `ping`, which is answered here), or a notification (never
    /// `list_changed`, which leads to new [`UpstreamEvent::Lists`]). Answers have the ids that the hub gave, which
    /// are integers: string ids that begin with `toolway-` are the upstream's own.
    Message(Message),
    /// These requests will not be answered by the server; each is owed this error.
    Failed {
        /// As they were sent.
        ids: Vec<Id>,
        /// The error.
        failure: Failure,
    },
    /// There is room again after [`Upstream::try_send`] said [`Full`].
    Room,
    /// The connection is lost: everything in flight, also what still waited to be sent, gets an error with this
    /// reason. `State` follows, and later `Up` when it could be started again.
    Down {
        /// A sentence that names no server: `the server exited with code 7; its last words: ...`
        reason: String,
    },
    /// The task has ended after [`Upstream::stop`]: no process and no connection is left. Always the last event, but
    /// it is lost when the hub reads no more.
    Stopped,
}

/// The handle on one upstream's task. Dropping it stops the server, as [`Upstream::stop`] does.
#[derive(Debug)]
pub struct Upstream {
    id: UpstreamId,
    queue: Arc<Queue>,
    stop: CancellationToken,
}

impl Upstream {
    /// Starts the task in `tasks`, and with it the server unless it is lazy. Within a tokio runtime with time and
    /// I/O. Never waits.
    pub fn start(
        id: UpstreamId,
        config: Arc<ServerConfig>,
        shared: Shared,
        events: mpsc::Sender<(UpstreamId, UpstreamEvent)>,
        tasks: &TaskTracker,
    ) -> Self {
        let (queue, stop) = (Arc::new(Queue::default()), CancellationToken::new());
        let outlet = Outlet { id, events, stop: stop.clone() };
        tasks.spawn(Task::new(config, shared, outlet, Arc::clone(&queue)).run());
        Self { id, queue, stop }
    }

    /// Which one this is.
    pub fn id(&self) -> UpstreamId {
        self.id
    }

    /// Somebody needs it now: a lazy server is started, and one that failed is tried again at once (at most every
    /// few seconds).
    pub fn wake(&self) {
        self.queue.wake();
    }

    /// Takes a message for the server; never waits. Requests and notes (everything that waits for no answer) have
    /// their own bounds, so that a cancellation does not stand behind calls. Messages for a server that is starting
    /// wait for it; those for one that has failed get [`UpstreamEvent::Failed`].
    ///
    /// # Errors
    /// [`Full`] gives the message back; [`UpstreamEvent::Room`] comes when there is room.
    pub fn try_send(&self, message: Outbound) -> Result<(), Full> {
        self.queue.push(message)
    }

    /// Asks the server for all its lists again, as if it had said that they have changed.
    pub fn list_again(&self) {
        self.queue.list_again();
    }

    /// Stops the server and ends the task: within 5 s the whole process tree is gone. Returns at once;
    /// [`UpstreamEvent::Stopped`] and the end of the tracked task tell when it is done.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
