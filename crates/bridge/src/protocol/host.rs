//! Owns the host as the coordinator sees it: the registry that was declared last; what it is told becomes notifications.

use std::sync::{Arc, Mutex, PoisonError};

use super::inbox::{Arrival, Inbox};
use crate::call::CallId;
use crate::host_port::{HostPort, NoticeLevel};
use crate::json::RawJson;
use crate::tool::HostTools;

/// A session of a host at the other end of the protocol.
#[derive(Debug)]
pub(super) struct ProtocolHost {
    session: String,
    /// Which of the conversations that the session has had.
    opened: u64,
    inbox: Arc<Inbox>,
    tools: Mutex<HostTools>,
}

impl ProtocolHost {
    pub(super) fn new(session: &str, opened: u64, inbox: &Arc<Inbox>, tools: HostTools) -> Self {
        Self { session: session.to_owned(), opened, inbox: Arc::clone(inbox), tools: Mutex::new(tools) }
    }

    /// The registry is another one.
    pub(super) fn set_tools(&self, tools: HostTools) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
    }
}

impl HostPort for ProtocolHost {
    fn tools(&self) -> HostTools {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_active(&self, names: &[String], active: bool) {
        let (session, tools) = (self.session.clone(), names.to_vec());
        self.inbox.tell_host(Arrival::SetActive { session, tools, active });
    }

    fn abort_call(&self, id: &CallId, reason: &str) {
        let (session, opened) = (self.session.clone(), self.opened);
        let (call, reason) = (id.clone(), reason.to_owned());
        self.inbox.call_over(Arrival::Aborted { session, opened, call, reason });
    }

    fn append_entry(&self, kind: &str, data: RawJson) {
        let (session, kind) = (self.session.clone(), kind.to_owned());
        self.inbox.tell_host(Arrival::Entry { session, kind, data });
    }

    fn notify(&self, level: NoticeLevel, text: &str) {
        let (session, text) = (self.session.clone(), text.to_owned());
        self.inbox.tell_host(Arrival::Notice { session, level, text });
    }
}
