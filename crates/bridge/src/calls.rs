//! Owns the calls of one run: ids, queue, settlement, cancellation. A plain table, driven without a runtime: `now` is
//! passed in, what the host is to be told comes out as orders, who waits for the answer is any value. It knows neither
//! HTTP nor how a result is made.

mod ids;
mod seen;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolway_wire::Id;

use crate::call::{CallId, HostCall, Rejection, RejectionKind};
pub(crate) use ids::{Ids, random_uuid};
use seen::Seen;

/// Calls that may wait for the host at once.
pub(crate) const MOST_CALLS: usize = 10_000;

/// Whose request a call is: the MCP session that the server counts, and the JSON-RPC id within it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// The session's number.
    pub(crate) session: u64,
    /// The request's id.
    pub(crate) request: Id,
}

/// A call that begins. `W` is whoever waits for its answer.
#[derive(Debug)]
pub(crate) struct NewCall<W> {
    /// Whose it is.
    pub(crate) origin: Origin,
    /// Which of the run's tools.
    pub(crate) tool: usize,
    /// Fills in the id.
    pub(crate) call: HostCall,
    /// Who waits.
    pub(crate) reply: W,
}

/// A call that has left the table: it gets its answer now, and never again.
#[derive(Debug)]
pub(crate) struct Ended<W> {
    /// Its number.
    pub(crate) n: u64,
    /// Its id.
    pub(crate) id: CallId,
    /// Which of the run's tools.
    pub(crate) tool: usize,
    /// Whose it was.
    pub(crate) origin: Origin,
    /// Who waits.
    pub(crate) reply: W,
    /// It had not been handed to the host.
    pub(crate) queued: bool,
}

/// What the host is to be told, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Run this.
    Start(HostCall),
    /// Nobody waits for that any more.
    Cancelled(CallId, Arc<str>),
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The host has not been told.
    Queued,
    /// The host has been told.
    Started,
    /// The host gave its result, of which an answer is being made.
    Settling,
}

#[derive(Debug)]
struct Entry<W> {
    id: CallId,
    tool: usize,
    origin: Origin,
    /// Until the host is told.
    call: Option<HostCall>,
    stage: Stage,
    deadline: Instant,
    reply: W,
}

#[derive(Debug)]
enum Note {
    Start(u64),
    Cancelled(CallId, Arc<str>),
}

/// Who is handed the calls.
#[derive(Debug, PartialEq, Eq)]
enum Handler {
    /// Nobody yet: calls queue.
    Awaited,
    Bound,
    /// Nobody any more: calls are refused.
    Gone,
}

/// The calls of one run.
#[derive(Debug)]
pub(crate) struct Calls<W> {
    ids: Ids,
    deadline: Duration,
    most: usize,
    last: u64,
    entries: BTreeMap<u64, Entry<W>>,
    requests: HashMap<Origin, u64>,
    seen: Seen,
    notes: VecDeque<Note>,
    handler: Handler,
    closed: Option<Arc<str>>,
}

impl<W> Calls<W> {
    /// None yet. Each may take `deadline` from its arrival; at most `most` may wait at once.
    pub(crate) fn new(ids: Ids, deadline: Duration, most: usize) -> Self {
        Self {
            ids,
            deadline,
            most,
            last: 0,
            entries: BTreeMap::new(),
            requests: HashMap::new(),
            seen: Seen::default(),
            notes: VecDeque::new(),
            handler: Handler::Awaited,
            closed: None,
        }
    }

    /// The ids.
    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Calls without an answer.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A call arrives. It gets its number and id, and waits; or it is refused at once.
    pub(crate) fn begin(&mut self, now: Instant, new: NewCall<W>) -> Result<(u64, CallId), Rejection> {
        let NewCall { origin, tool, mut call, reply } = new;
        let cancelled_before = self.seen.request(&origin, now);
        if let Some(reason) = &self.closed {
            return Err(cancelled(reason));
        }
        if cancelled_before {
            return Err(cancelled(CLIENT_CANCELLED));
        }
        if self.handler == Handler::Gone {
            return Err(cancelled(NO_LIVE_RUN));
        }
        if self.entries.len().max(self.notes.len()) >= self.most {
            return Err(failed(format!("{} calls wait for the host already, no more are taken", self.most)));
        }
        let n = self.last + 1;
        let Some(id) = self.ids.call(n) else {
            return Err(failed("this run has no ids left for calls".to_owned()));
        };
        self.last = n;
        call.id = id.clone();
        self.requests.insert(origin.clone(), n);
        let deadline = now + self.deadline;
        let entry =
            Entry { id: id.clone(), tool, origin, call: Some(call), stage: Stage::Queued, deadline, reply };
        self.entries.insert(n, entry);
        if self.handler == Handler::Bound {
            self.notes.push_back(Note::Start(n));
        }
        Ok((n, id))
    }

    /// Somebody takes calls now. Those that queued are handed over in order.
    pub(crate) fn bind(&mut self) {
        if self.handler != Handler::Bound {
            self.handler = Handler::Bound;
            let queued = self.entries.iter().filter(|(_, entry)| entry.stage == Stage::Queued);
            self.notes.extend(queued.map(|(n, _)| Note::Start(*n)));
        }
    }

    /// Nobody takes calls any more.
    pub(crate) fn detach(&mut self) -> Vec<Ended<W>> {
        self.handler = Handler::Gone;
        self.cancel_all(NO_LIVE_RUN)
    }

    /// Whether somebody takes calls.
    pub(crate) fn is_bound(&self) -> bool {
        self.handler == Handler::Bound
    }

    /// The run is over. What comes later is refused with that reason.
    pub(crate) fn close(&mut self, reason: &str) -> Vec<Ended<W>> {
        if self.closed.is_none() {
            self.closed = Some(reason.into());
        }
        self.handler = Handler::Gone;
        self.cancel_all(reason)
    }

    /// There may be something to tell the host.
    pub(crate) fn has_orders(&self) -> bool {
        !self.notes.is_empty()
    }

    /// The next thing to tell the host. Starts of calls that are gone meanwhile are left out.
    pub(crate) fn order(&mut self) -> Option<Order> {
        while let Some(note) = self.notes.pop_front() {
            match note {
                Note::Cancelled(id, reason) => return Some(Order::Cancelled(id, reason)),
                Note::Start(n) => {
                    let Some(entry) = self.entries.get_mut(&n) else { continue };
                    if let Some(call) = entry.call.take() {
                        entry.stage = Stage::Started;
                        return Some(Order::Start(call));
                    }
                }
            }
        }
        None
    }

    /// The host could not be told to run that call.
    pub(crate) fn not_started(&mut self, id: &CallId) -> Option<Ended<W>> {
        self.notes.retain(|note| !matches!(note, Note::Cancelled(cancelled, _) if cancelled == id));
        let n = self.ids.number(id)?;
        self.remove(n, None)
    }

    /// The host gives a result of a call that was started: the call is taken out of the others' reach, but for
    /// cancellation and deadline. `None`: nobody waits for that id, or its result is here already.
    pub(crate) fn claim(&mut self, id: &CallId) -> Option<usize> {
        let entry = self.entries.get_mut(&self.ids.number(id)?)?;
        if entry.stage == Stage::Settling {
            return None;
        }
        entry.stage = Stage::Settling;
        entry.call = None;
        Some(entry.tool)
    }

    /// The answer of a claimed call is made.
    pub(crate) fn finish(&mut self, id: &CallId) -> Option<Ended<W>> {
        let n = self.ids.number(id)?;
        if self.entries.get(&n)?.stage == Stage::Settling { self.remove(n, None) } else { None }
    }

    /// The host ends a call: it need not be told. `None`: nobody waits for that id.
    pub(crate) fn end(&mut self, id: &CallId) -> Option<Ended<W>> {
        let n = self.ids.number(id)?;
        if self.entries.get(&n)?.stage == Stage::Settling { None } else { self.remove(n, None) }
    }

    /// A call is given up by another than the host.
    pub(crate) fn cancel(&mut self, id: &CallId, reason: &str) -> Option<Ended<W>> {
        let n = self.ids.number(id)?;
        self.remove(n, Some(&reason.into()))
    }

    /// The client cancels its request.
    pub(crate) fn cancel_request(&mut self, now: Instant, origin: Origin, reason: &str) -> Option<Ended<W>> {
        if let Some(n) = self.requests.get(&origin) {
            return self.remove(*n, Some(&reason.into()));
        }
        self.seen.cancelled(origin, now);
        None
    }

    /// The client made a request that is no call.
    pub(crate) fn other_request(&mut self, origin: Origin) {
        self.seen.other(origin);
    }

    /// Every call is given up.
    pub(crate) fn cancel_all(&mut self, reason: &str) -> Vec<Ended<W>> {
        self.cancel_where(reason, |_| true)
    }

    /// Every call of a session is given up.
    pub(crate) fn cancel_session(&mut self, session: u64, reason: &str) -> Vec<Ended<W>> {
        self.cancel_where(reason, |entry| entry.origin.session == session)
    }

    /// Every call of a tool is given up.
    pub(crate) fn cancel_tool(&mut self, tool: usize, reason: &str) -> Vec<Ended<W>> {
        self.cancel_where(reason, |entry| entry.tool == tool && entry.stage != Stage::Settling)
    }

    /// Every call whose deadline is over, with the error that says so.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Ended<W>> {
        let reason = self.deadline_reason();
        self.cancel_where(&reason, |entry| entry.deadline <= now)
    }

    /// What an expired call is answered with.
    pub(crate) fn deadline_reason(&self) -> String {
        format!(
            "the host gave no result within {} ms, the bridge's deadline for a call",
            self.deadline.as_millis()
        )
    }

    /// When the next call expires.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        // Calls come in the order of their deadlines, all of which are equally far from their arrival.
        self.entries.values().next().map(|entry| entry.deadline)
    }

    /// The host may still run this call: somebody waits for its result.
    pub(crate) fn is_pending(&self, id: &CallId) -> bool {
        let entry = self.ids.number(id).and_then(|n| self.entries.get(&n));
        entry.is_some_and(|entry| entry.stage != Stage::Settling)
    }

    /// Who waits for the result of that call, if it has none yet.
    pub(crate) fn reply(&self, id: &CallId) -> Option<&W> {
        let entry = self.entries.get(&self.ids.number(id)?)?;
        (entry.stage != Stage::Settling).then_some(&entry.reply)
    }

    /// A call came with that request id.
    pub(crate) fn knows_request(&self, id: &Id) -> bool {
        self.seen.knows(id)
    }

    fn cancel_where(&mut self, reason: &str, mut which: impl FnMut(&Entry<W>) -> bool) -> Vec<Ended<W>> {
        let numbers: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| which(entry)).map(|(n, _)| *n).collect();
        let reason: Arc<str> = reason.into();
        numbers.into_iter().filter_map(|n| self.remove(n, Some(&reason))).collect()
    }

    /// The one way out of the table. With a reason, a host that was told of the call, and did not give its result, is
    /// told of the end.
    fn remove(&mut self, n: u64, cancelled: Option<&Arc<str>>) -> Option<Ended<W>> {
        let Entry { id, tool, origin, stage, reply, .. } = self.entries.remove(&n)?;
        if self.requests.get(&origin) == Some(&n) {
            self.requests.remove(&origin);
        }
        if let Some(reason) = cancelled.filter(|_| stage == Stage::Started) {
            self.notes.push_back(Note::Cancelled(id.clone(), Arc::clone(reason)));
        }
        if self.entries.is_empty() {
            self.notes.retain(|note| matches!(note, Note::Cancelled(..)));
        }
        Some(Ended { n, id, tool, origin, reply, queued: stage == Stage::Queued })
    }
}

/// Why calls are refused while nobody takes them.
/// Why a call ends that its own client has given up: no answer is owed to it.
pub(crate) const CLIENT_CANCELLED: &str = "the client cancelled the request";
pub(crate) const NO_LIVE_RUN: &str = "no active live run: the host takes no calls for this agent now";

pub(crate) fn cancelled(reason: &str) -> Rejection {
    Rejection { kind: RejectionKind::Cancelled, reason: reason.to_owned() }
}

pub(crate) fn failed(reason: String) -> Rejection {
    Rejection { kind: RejectionKind::Error, reason }
}

#[cfg(test)]
mod tests;
