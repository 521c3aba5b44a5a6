//! Owns what a host with turns is told beside what these say: calls that nobody waits for, words for its user, its log.

use super::answers::{CallCancelled, EntryAppended, Notice, SetActive, level_name};
use super::connection::Connection;
use super::inbox::Arrival;

impl Connection {
    pub(super) fn told_by_turns(&mut self, told: Arrival) {
        match told {
            Arrival::Aborted { session, opened, call, reason } => {
                // A conversation that is over has no run any more, and the host still has its call.
                let run = self.turns.run_of(&session, opened).unwrap_or_default();
                let cancelled = CallCancelled { session, run, call: call.to_string(), reason };
                self.notify("call/cancelled", &cancelled);
            }
            Arrival::Notice { session, level, text } => {
                self.notify("notice", &Notice { session, level: level_name(level), text });
            }
            Arrival::Entry { session, kind, data } => {
                self.notify("entry/append", &EntryAppended { session, entry: kind, data });
            }
            Arrival::SetActive { session, tools, active } => {
                self.notify("tools/setActive", &SetActive { session, tools, active });
            }
            Arrival::Started { .. } | Arrival::Cancelled { .. } | Arrival::Diagnostic(_) => {}
        }
    }
}
