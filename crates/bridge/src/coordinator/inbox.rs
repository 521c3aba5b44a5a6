//! Owns the way of calls from a run's threads to the session's task: bounded, in order, and never waiting.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::call::{CallId, HostCall};
use crate::run::CallSink;

/// How many calls may wait for the task. More are rejected, each by itself.
const WAITING: usize = 4096;

/// What a run tells of its calls.
#[derive(Debug)]
pub(super) enum CallEvent {
    /// The host is to run it.
    Started(HostCall),
    /// Nobody waits for it any more.
    Cancelled(CallId, String),
}

/// Calls of all runs of a session, each with the number of the agent that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    events: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<(u64, CallEvent)>,
    started: usize,
}

impl Inbox {
    /// What came since the last time.
    pub(super) fn take(&self) -> VecDeque<(u64, CallEvent)> {
        let mut waiting = self.lock();
        waiting.started = 0;
        std::mem::take(&mut waiting.events)
    }

    /// Until something came.
    pub(super) async fn came(&self) {
        self.wake.notified().await;
    }

    /// The end at which the run of that agent puts its calls.
    pub(super) fn sink(self: &Arc<Self>, agent: u64) -> Box<dyn CallSink> {
        Box::new(Sink { agent, inbox: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sink {
    agent: u64,
    inbox: Arc<Inbox>,
}

impl CallSink for Sink {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        {
            let mut waiting = self.inbox.lock();
            if waiting.started >= WAITING {
                return Err("too many calls wait for the host".to_owned());
            }
            waiting.started += 1;
            waiting.events.push_back((self.agent, CallEvent::Started(call)));
        }
        self.inbox.wake.notify_one();
        Ok(())
    }

    fn cancelled(&mut self, id: &CallId, reason: &str) {
        // As many as calls were started, so these need no bound of their own.
        self.inbox.lock().events.push_back((self.agent, CallEvent::Cancelled(id.clone(), reason.to_owned())));
        self.inbox.wake.notify_one();
    }
}
