//! Owns the ends of calls: each request that waited gets its answer, diagnostics hear of it.

use std::sync::Arc;

use bytes::Bytes;
use toolway_wire::Id;

use super::waiter::{Slot, Update};
use super::{Run, State};
use crate::call::{CallId, Rejection, RejectionKind};
use crate::calls::{Ended, cancelled};
use crate::diagnostics::{CallFields, Event, EventKind};

impl Run {
    /// Rejects one, and tells the host what it is to be told.
    pub(super) fn reject(&self, ended: Option<Ended<Arc<Slot>>>, rejection: Rejection) {
        if let Some(ended) = ended {
            self.end_with(&ended, rejection);
        }
        self.pump();
    }

    /// Ends one that its client gave up, and tells the host what it is to be told.
    pub(super) fn give_up(&self, ended: Option<Ended<Arc<Slot>>>) {
        if let Some(ended) = ended {
            ended.reply.end(Update::GivenUp);
            self.ended(&ended, |call| EventKind::RequestRejected(call, RejectionKind::Cancelled));
        }
        self.pump();
    }

    /// Rejects all of them as cancelled, and tells the host what it is to be told.
    pub(super) fn reject_all(&self, ended: Vec<Ended<Arc<Slot>>>, reason: &str) {
        if !ended.is_empty() {
            let queued_count = ended.iter().filter(|ended| ended.queued).count();
            let cancelled_request_count = ended.len();
            self.0
                .diagnostics
                .emit(|| self.event(EventKind::RunCancelled { queued_count, cancelled_request_count }));
        }
        for ended in ended {
            self.end_with(&ended, cancelled(reason));
        }
        self.pump();
    }

    /// Rejects one.
    pub(super) fn end_with(&self, ended: &Ended<Arc<Slot>>, rejection: Rejection) {
        let kind = rejection.kind;
        ended.reply.end(Update::Rejected(rejection));
        self.ended(ended, |call| EventKind::RequestRejected(call, kind));
    }

    /// Answers one with a result.
    pub(super) fn answer(&self, ended: &Ended<Arc<Slot>>, result: Bytes, is_error: bool) {
        ended.reply.end(Update::Result(result));
        self.ended(ended, |call| EventKind::RequestResolved(call, is_error));
    }

    fn ended(&self, ended: &Ended<Arc<Slot>>, kind: impl FnOnce(CallFields) -> EventKind) {
        let event = {
            let state = self.lock();
            if state.calls.len() == 0 {
                self.0.idle.notify_waiters();
            }
            if !self.0.diagnostics.is_on() {
                return;
            }
            let call = self.call_fields(&state, ended.n, &ended.id, ended.tool, &ended.origin.request);
            self.event_of(kind(call), state.calls.len())
        };
        self.0.diagnostics.emit(|| event);
    }

    pub(super) fn call_fields(
        &self,
        state: &State,
        n: u64,
        id: &CallId,
        tool: usize,
        request: &Id,
    ) -> CallFields {
        let tool = self.0.snapshot.exposed().get(tool);
        CallFields {
            bridge_call_id: state.calls.ids().internal(n),
            host_call_id: id.as_str().to_owned(),
            host_tool_name: tool.map(|tool| tool.tool.name.clone()).unwrap_or_default(),
            mcp_tool_name: tool.map(|tool| tool.mcp_name.clone()).unwrap_or_default(),
            mcp_request_id: crate::diagnostics::hashed_request(&self.0.profile, request.raw()),
        }
    }

    /// An event of this run.
    pub(super) fn event(&self, kind: EventKind) -> Event {
        let pending = self.pending();
        self.event_of(kind, pending)
    }

    pub(super) fn event_of(&self, kind: EventKind, pending_count: usize) -> Event {
        Event {
            run_id: Some(self.0.id.clone()),
            enabled: true,
            exposed_tool_count: self.0.snapshot.exposed().len(),
            pending_count,
            kind,
        }
    }
}
