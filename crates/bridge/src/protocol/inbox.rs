//! Owns the way from the runs to the task that talks to the host: calls that start and end, on whatever thread they do.
//! Bounded: what the host does not take in time is refused there and then.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

use crate::call::{CallId, HostCall};
use crate::diagnostics::{DiagnosticSink, Event};
use crate::host_port::NoticeLevel;
use crate::json::RawJson;
use crate::run::CallSink;

/// Calls that the host has not read of.
const MOST_CALLS: usize = 4096;
/// Diagnostics that nobody has looked at.
const MOST_DIAGNOSTICS: usize = 1024;
/// Bytes of their arguments.
const MOST_BYTES: usize = 64 << 20;

/// Something that a run has to tell.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A call starts.
    Started { run: Arc<str>, call: HostCall },
    /// A call is over, and not by the host.
    Cancelled { run: Arc<str>, call: CallId, reason: String },
    /// Something happened to a run or to a call.
    Diagnostic(Value),
    /// A call of a turn is over, and not by the host. `opened` is the conversation's number.
    Aborted { session: String, opened: u64, call: CallId, reason: String },
    /// The user is to be told.
    Notice { session: String, level: NoticeLevel, text: String },
    /// An entry of the host's log.
    Entry { session: String, kind: String, data: RawJson },
    /// Tools are to be active, or not.
    SetActive { session: String, tools: Vec<String>, active: bool },
}

/// What the runs have told, in order.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    arrivals: VecDeque<Arrival>,
    /// Calls that the host has not been told of, wherever they wait.
    calls: usize,
    bytes: usize,
    diagnostics: usize,
}

impl Inbox {
    /// Waits until something is there. Dropping it loses nothing.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// All that is there.
    pub(super) fn take(&self) -> VecDeque<Arrival> {
        let mut state = self.lock();
        state.diagnostics = 0;
        std::mem::take(&mut state.arrivals)
    }

    /// The host was told of this call, or will never be: its place is free.
    pub(super) fn left(&self, call: &HostCall) {
        let mut state = self.lock();
        state.calls = state.calls.saturating_sub(1);
        state.bytes = state.bytes.saturating_sub(call.arguments.bytes().len());
    }

    fn start(&self, run: Arc<str>, call: HostCall) -> Result<(), String> {
        {
            let mut state = self.lock();
            let bytes = state.bytes.saturating_add(call.arguments.bytes().len());
            if state.calls >= MOST_CALLS || (bytes > MOST_BYTES && state.calls > 0) {
                return Err("it does not read what it is sent".to_owned());
            }
            state.calls += 1;
            state.bytes = bytes;
            state.arrivals.push_back(Arrival::Started { run, call });
        }
        self.changed.notify_one();
        Ok(())
    }

    fn cancel(&self, run: Arc<str>, call: CallId, reason: String) {
        self.lock().arrivals.push_back(Arrival::Cancelled { run, call, reason });
        self.changed.notify_one();
    }

    /// The end of a call, which is never lost: each call has one at most.
    pub(super) fn call_over(&self, arrival: Arrival) {
        self.lock().arrivals.push_back(arrival);
        self.changed.notify_one();
    }

    /// Something that the host is told, unless too much of that kind waits.
    pub(super) fn tell_host(&self, arrival: Arrival) {
        {
            let mut state = self.lock();
            if state.diagnostics >= MOST_DIAGNOSTICS {
                tracing::warn!("the host is not told of something: it has too much to read");
                return;
            }
            state.diagnostics += 1;
            state.arrivals.push_back(arrival);
        }
        self.changed.notify_one();
    }

    /// Says whether there was room.
    fn tell(&self, event: Value) -> bool {
        {
            let mut state = self.lock();
            if state.diagnostics >= MOST_DIAGNOSTICS {
                return false;
            }
            state.diagnostics += 1;
            state.arrivals.push_back(Arrival::Diagnostic(event));
        }
        self.changed.notify_one();
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands diagnostics on to the host.
#[derive(Debug)]
pub(super) struct DiagnosticTap(Arc<Inbox>);

impl DiagnosticTap {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Self {
        Self(Arc::clone(inbox))
    }
}

impl DiagnosticSink for DiagnosticTap {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let event = serde_json::from_str(&event.to_json())?;
        if self.0.tell(event) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

/// The end of an inbox that a run holds.
#[derive(Debug)]
pub(super) struct Sink {
    inbox: Arc<Inbox>,
    run: Arc<str>,
}

impl Sink {
    pub(super) fn new(inbox: &Arc<Inbox>, run: &str) -> Self {
        Self { inbox: Arc::clone(inbox), run: run.into() }
    }
}

impl CallSink for Sink {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        self.inbox.start(Arc::clone(&self.run), call)
    }

    fn cancelled(&mut self, id: &CallId, reason: &str) {
        self.inbox.cancel(Arc::clone(&self.run), id.clone(), reason.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(n: usize, size: usize) -> HostCall {
        HostCall {
            id: CallId::new(&format!("c{n}")),
            tool: "t".to_owned(),
            mcp_name: "host__t".to_owned(),
            arguments: RawJson::new(format!("{{\"a\":\"{}\"}}", "x".repeat(size))).unwrap(),
        }
    }

    #[test]
    fn a_host_that_does_not_read_has_a_bound_of_calls() {
        let inbox = Arc::new(Inbox::default());
        let mut sink = Sink::new(&inbox, "run");
        for n in 0..MOST_CALLS {
            sink.started(call(n, 1)).unwrap();
        }
        assert!(sink.started(call(0, 1)).is_err());
        // An end is never lost.
        sink.cancelled(&CallId::new("c1"), "why");
        assert_eq!(inbox.take().len(), MOST_CALLS + 1);
        assert!(sink.started(call(0, 1)).is_err(), "taken is not yet told");
        inbox.left(&call(1, 1));
        sink.started(call(0, 1)).unwrap();
    }

    #[test]
    fn and_a_bound_of_bytes() {
        let inbox = Arc::new(Inbox::default());
        let mut sink = Sink::new(&inbox, "run");
        let large = call(0, 15 << 20);
        for _ in 0..4 {
            sink.started(large.clone()).unwrap();
        }
        assert!(sink.started(large.clone()).is_err());
        inbox.left(&large);
        sink.started(large).unwrap();
    }
}
