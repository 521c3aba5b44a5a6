//! Owns what happens to the hub, and what it wants done. Decides nothing.

use std::sync::Arc;

use toolway_transport::Outbound;

use super::event::{ClientEvent, Command};
use super::work::{Done, Work};
use crate::gateway::config::ServerConfig;
use crate::gateway::message::{ClientMessage, SessionId};
use crate::gateway::upstream::{UpstreamEvent, UpstreamId};

/// Everything that happens to the hub.
#[derive(Debug)]
pub(in crate::gateway) enum Event {
    /// From a front.
    Client(ClientEvent),
    /// From a server.
    Upstream(UpstreamId, UpstreamEvent),
    /// Work that was done off the hub's task.
    Done(Done),
    /// From the owner.
    Command(Command),
    /// Some front has dropped its outlet.
    Sweep,
    /// The time that [`super::Hub::wake_at`] named has come.
    Tick,
}

/// What the hub wants done.
#[derive(Debug)]
pub(in crate::gateway) enum Effect {
    /// A message for a client.
    ToClient(SessionId, ClientMessage),
    /// A question for a client: as any other message, but not to be dropped.
    Ask(SessionId, ClientMessage),
    /// News for a client, which it hears once when it comes to read them.
    Tell(SessionId, ClientMessage),
    /// A message for a server.
    ToServer(UpstreamId, Outbound),
    /// Start a server, or prepare a lazy one.
    Start(UpstreamId, Arc<ServerConfig>),
    /// Start a lazy server now, or try a failed one again.
    Wake(UpstreamId),
    /// Stop a server; it is known no more.
    Stop(UpstreamId),
    /// Do this off the hub's task and come back with [`Event::Done`].
    Work(Work),
    /// All is over.
    Finish,
}
