//! A message of the client on its way to be sent: what it is to the session, and what it waits for. It must not know how
//! it is sent.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;
use toolway_wire::Id;

use super::body::Message;
use super::flight::Flight;
use super::shared::Slot;

/// What a message means to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Begins a session of the legacy era.
    Initialize,
    /// `notifications/initialized`.
    Initialized,
    Other,
}

/// The headers of a modern request.
#[derive(Debug)]
pub(crate) struct Modern {
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// `params.name` of a `tools/call`.
    pub(crate) tool: Option<String>,
    pub(crate) lists_tools: bool,
}

/// A message and how it is to be sent.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) message: Message,
    /// Requests in it.
    pub(crate) ids: Vec<Id>,
    pub(crate) role: Role,
    pub(crate) modern: Option<Modern>,
    pub(crate) repeatable: bool,
    /// Its stream is idle by nature: `subscriptions/listen`.
    pub(crate) listens: bool,
    /// What must have happened before it is sent.
    pub(crate) after: Option<CancellationToken>,
    /// What later messages wait for.
    pub(crate) opens: Option<CancellationToken>,
    /// The request that it cancels: it must not overtake it.
    pub(crate) behind: Option<Arc<Flight>>,
    pub(crate) flight: Arc<Flight>,
    pub(crate) slot: Option<Slot>,
}
