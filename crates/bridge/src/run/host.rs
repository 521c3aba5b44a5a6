//! Owns what the host says to a run: results, progress, ends; and what it asks.

use std::sync::{Arc, PoisonError};

use super::{NO_LONGER_PENDING, Progress, Run, Settlement};
use crate::call::{CallId, HostResult, Rejection};
use crate::calls::cancelled;
use crate::json::RawJson;
use crate::result;

impl Run {
    /// The host tells how far a call is. It moves no deadline.
    pub fn progress(&self, id: &CallId, progress: &Progress) {
        let slot = self.lock().calls.reply(id).map(Arc::clone);
        if let Some(slot) = slot {
            slot.progress(Some(progress));
        }
    }

    /// The host gives the result of a call. The first one counts, if anybody waits for it.
    pub fn settle(&self, id: &CallId, result: HostResult) -> Settlement {
        self.settle_with(id, result)
    }

    /// The host ends a call without a result. It is not told to stop it.
    pub fn fail(&self, id: &CallId, rejection: Rejection) -> Settlement {
        let ended = self.lock().calls.end(id);
        let found = if ended.is_some() { Settlement::Delivered } else { Settlement::Unknown };
        self.reject(ended, rejection);
        found
    }

    /// The host's own abort signal ended a call: the agent is told so, and the sink is told to stop it.
    pub fn abort(&self, id: &CallId, reason: &str) -> Settlement {
        let ended = self.lock().calls.cancel(id, reason);
        let found = if ended.is_some() { Settlement::Delivered } else { Settlement::Unknown };
        self.reject(ended, cancelled(reason));
        found
    }

    /// The host asks before it executes a tool call. Refused are ids of bridge calls that nobody waits for (any more);
    /// other ids are none of the bridge's business.
    pub fn admit(&self, id: &CallId) -> Result<(), String> {
        if !id.is_of_bridge() || self.lock().calls.is_pending(id) {
            return Ok(());
        }
        Err(NO_LONGER_PENDING.to_owned())
    }

    /// The id is, or could be, of one of this run's calls.
    pub(crate) fn owns(&self, id: &CallId) -> bool {
        self.lock().calls.ids().owns(id)
    }

    /// Every call is given up, with that reason. The run goes on.
    pub fn cancel_all(&self, reason: &str) {
        let ended = self.lock().calls.cancel_all(reason);
        self.reject_all(ended, reason);
    }

    /// The host removed a tool, by its real name: calls of it, also those on their way, are told so at once.
    pub fn withdraw(&self, real_name: &str) {
        let Some(tool) = self.place_of(real_name) else { return };
        let ended = {
            let mut state = self.lock();
            state.withdrawn.insert(tool);
            state.calls.cancel_tool(tool, "the host removed the tool")
        };
        for ended in ended {
            self.answer(&ended, result::withdrawn_tool(real_name), true);
        }
        self.pump();
    }

    /// The host has a tool again that it had removed.
    pub fn restore(&self, real_name: &str) {
        if let Some(tool) = self.place_of(real_name) {
            self.lock().withdrawn.remove(&tool);
        }
    }

    fn place_of(&self, real_name: &str) -> Option<usize> {
        self.0.snapshot.exposed().iter().position(|tool| tool.tool.name == real_name)
    }

    /// The agent's report of one of its own tools is about a bridge call, which the host shows already.
    pub fn is_own_activity(&self, report: &RawJson) -> bool {
        let known = |name: &str| self.0.snapshot.find(name).is_some();
        let requested = |id: &toolway_wire::Id| self.lock().calls.knows_request(id);
        let mut own = self.0.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.recognise(report, self.0.profile.server_key, &known, &requested)
    }
}
