//! Owns what clients ask of a run: to call a tool, to cancel. It knows no HTTP.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::waiter::Slot;
use super::{Began, Run, Waiter};
use crate::call::{CallId, HostCall};
use crate::calls::{NewCall, Origin, cancelled};
use crate::diagnostics::EventKind;
use crate::json::RawJson;
use crate::result;

/// How deep arguments may be nested: every parser in use reads that, within a line that adds a few levels.
const DEEPEST: usize = 100;

impl Run {
    /// A client introduced itself.
    pub(crate) fn connected(&self) {
        self.0.connected.fetch_add(1, Ordering::Relaxed);
        self.0.diagnostics.emit(|| self.event(EventKind::McpInitialized));
    }

    /// A client was given the list of tools.
    pub(crate) fn listed(&self) {
        self.0.listed.fetch_add(1, Ordering::Relaxed);
        let tool_count = self.0.snapshot.exposed().len();
        self.0.diagnostics.emit(|| self.event(EventKind::McpToolsList { tool_count }));
    }

    /// A client calls a tool. `token`: it wants to hear of progress, under that token.
    pub(crate) fn begin(
        &self,
        origin: Origin,
        name: &str,
        arguments: Option<RawJson>,
        token: Option<RawJson>,
    ) -> Began {
        if self.is_disposed() {
            return Began::Rejected(cancelled("the run is over"));
        }
        let exposed = self.0.snapshot.exposed();
        let found = exposed.binary_search_by(|tool| tool.mcp_name.as_str().cmp(name));
        let Some((tool, offered)) = found.ok().and_then(|tool| Some((tool, exposed.get(tool)?))) else {
            return Began::Answer(result::unknown_tool(name, self.0.snapshot.suggestion(name)));
        };
        self.0.called.fetch_add(1, Ordering::Relaxed);
        let arguments = arguments.filter(RawJson::is_object).unwrap_or_else(RawJson::empty_object);
        if !arguments.is_nested_within(DEEPEST) {
            return Began::Answer(result::deep_arguments(DEEPEST));
        }
        // The id is the table's to give.
        let call = HostCall {
            id: CallId::new(""),
            tool: offered.tool.name.clone(),
            mcp_name: offered.mcp_name.clone(),
            arguments,
        };
        let slot = Arc::new(Slot::new(token));
        let request = self.0.diagnostics.is_on().then(|| origin.request.clone());
        let (id, event) = {
            let mut state = self.lock();
            if state.withdrawn.contains(&tool) {
                return Began::Answer(result::withdrawn_tool(&offered.tool.name));
            }
            let now = Instant::now();
            let new = NewCall { origin, tool, call, reply: Arc::clone(&slot) };
            let (n, id) = match state.calls.begin(now, new) {
                Ok(begun) => begun,
                Err(rejection) => return Began::Rejected(rejection),
            };
            if state.alarm.is_none() {
                state.alarm = state.calls.next_deadline();
                self.0.clock.notify_one();
            }
            let event = request.map(|request| {
                let call = self.call_fields(&state, n, &id, tool, &request);
                self.event_of(EventKind::RequestQueued(call), state.calls.len())
            });
            (id, event)
        };
        if let Some(event) = event {
            self.0.diagnostics.emit(|| event);
        }
        self.pump();
        Began::Waiting(Waiter::new(self.clone(), id, slot, self.0.keep_alive))
    }

    /// The client cancels its request. One that it never made is of no consequence.
    pub(crate) fn cancel_request(&self, origin: Origin) {
        let reason = crate::calls::CLIENT_CANCELLED;
        let ended = self.lock().calls.cancel_request(Instant::now(), origin, reason);
        self.give_up(ended);
    }

    /// A client made a request that is answered at once: `initialize`, a list. Cancelling it changes nothing, and must not
    /// meet a later call.
    pub(crate) fn answered(&self, origin: Origin) {
        self.lock().calls.other_request(origin);
    }

    /// As [`Run::cancel_request`], by the host's id.
    pub(super) fn cancelled_by_client(&self, id: &CallId, reason: &str) {
        let ended = self.lock().calls.cancel(id, reason);
        self.give_up(ended);
    }

    /// The client ended its session: nobody is left whom its calls could be answered to, so none is.
    pub(crate) fn cancel_session(&self, session: u64, reason: &str) {
        let ended = self.lock().calls.cancel_session(session, reason);
        for ended in ended {
            self.give_up(Some(ended));
        }
    }
}
