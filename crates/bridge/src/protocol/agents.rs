//! Owns what turns need of agents of whatever kind: a coordinator behind one type.

use std::pin::Pin;
use std::sync::Arc;

use crate::agent_port::{AgentFailure, AgentModel, AgentPort};
use crate::coordinator::{Coordinator, Session, SessionOptions};
use crate::error::BridgeError;
use crate::host_port::HostPort;

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The agents of a connection. Implemented by the coordinator of any [`AgentPort`]; called by the task of the connection.
pub(super) trait Agents: Send + Sync {
    /// See [`Coordinator::open`].
    fn open(&self, host: Arc<dyn HostPort>, options: SessionOptions) -> Result<Session, BridgeError>;

    /// See [`Coordinator::models`].
    fn models(&self) -> Later<'_, Result<Vec<AgentModel>, AgentFailure>>;

    /// See [`Coordinator::shutdown`].
    fn shutdown<'a>(&'a self, reason: &'a str) -> Later<'a, ()>;
}

impl<P: AgentPort> Agents for Coordinator<P> {
    fn open(&self, host: Arc<dyn HostPort>, options: SessionOptions) -> Result<Session, BridgeError> {
        Self::open(self, host, options)
    }

    fn models(&self) -> Later<'_, Result<Vec<AgentModel>, AgentFailure>> {
        Box::pin(Self::models(self))
    }

    fn shutdown<'a>(&'a self, reason: &'a str) -> Later<'a, ()> {
        Box::pin(Self::shutdown(self, reason))
    }
}
