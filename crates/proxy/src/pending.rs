//! Owns the requests of the client that are not yet answered. Knows neither bytes nor transports.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use toolway_guard::CallInfo;
use toolway_wire::{Envelope, Id, IdHasher};

/// How many cancelled requests are remembered, so that a late answer is known for one.
const REMEMBERED: usize = 1024;

/// What is known of a request until its answer comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    method: Method,
    name: Option<Box<str>>,
    uri: Option<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Method {
    Known(&'static str),
    Other(Box<str>),
}

/// Methods that come so often, or matter so much, that their names need not be copied.
const KNOWN: &[&str] = &[
    "tools/call",
    "tools/list",
    "initialize",
    "server/discover",
    "ping",
    "resources/read",
    "resources/list",
    "prompts/get",
    "prompts/list",
];

impl Asked {
    /// What is needed of a request.
    pub(crate) fn of(request: &Envelope) -> Self {
        let method = request.method().unwrap_or_default();
        let known = KNOWN.iter().find(|known| **known == method);
        Self {
            method: known.map_or_else(|| Method::Other(method.into()), |known| Method::Known(known)),
            name: request.name().map(Into::into),
            uri: request.uri().map(Into::into),
        }
    }

    /// Its method.
    pub(crate) fn method(&self) -> &str {
        match &self.method {
            Method::Known(method) => method,
            Method::Other(method) => method,
        }
    }

    /// In the form that the guard wants.
    pub(crate) fn call_info(&self, server: &str, session: &str) -> CallInfo {
        let prompt = self.method() == "prompts/get";
        CallInfo {
            method: self.method().to_owned(),
            tool: if prompt { None } else { self.name.as_deref().map(str::to_owned) },
            uri: if prompt { self.name.as_deref() } else { self.uri.as_deref() }.map(str::to_owned),
            server: server.to_owned(),
            session: session.to_owned(),
        }
    }
}

/// What an answer is to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// A request that waits for it.
    Waiting(Asked),
    /// A request that the client cancelled.
    Cancelled(Asked),
    /// No request, or one that was answered before.
    Nothing,
}

#[derive(Debug)]
struct Entry {
    asked: Asked,
    sequence: u64,
    /// The same id was used again while it was open; each use is owed an answer.
    again: Vec<Asked>,
}

/// The open requests.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    open: HashMap<Id, Entry, BuildHasherDefault<IdHasher>>,
    cancelled: VecDeque<(Id, Asked)>,
    sequence: u64,
}

impl Pending {
    /// A request is on its way to the upstream.
    pub(crate) fn ask(&mut self, id: Id, asked: Asked) {
        self.sequence += 1;
        let sequence = self.sequence;
        match self.open.get_mut(&id) {
            Some(entry) => entry.again.push(asked),
            None => drop(self.open.insert(id, Entry { asked, sequence, again: Vec::new() })),
        }
    }

    /// A mark between the requests so far and those to come.
    pub(crate) fn mark(&self) -> u64 {
        self.sequence
    }

    /// The client cancelled a request: nothing is owed for it any more.
    pub(crate) fn cancel(&mut self, id: &Id) {
        let asked = match self.answer(id) {
            Owed::Waiting(asked) => asked,
            Owed::Cancelled(_) | Owed::Nothing => return,
        };
        if self.cancelled.len() >= REMEMBERED {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back((id.clone(), asked));
    }

    /// An answer with this id has come: what was it to? From now on it is answered.
    pub(crate) fn answer(&mut self, id: &Id) -> Owed {
        if let Some(entry) = self.open.get_mut(id) {
            if !entry.again.is_empty() {
                let next = entry.again.remove(0);
                return Owed::Waiting(std::mem::replace(&mut entry.asked, next));
            }
            return self.open.remove(id).map_or(Owed::Nothing, |entry| Owed::Waiting(entry.asked));
        }
        match self.cancelled.iter().position(|(cancelled, _)| cancelled == id) {
            Some(at) => self.cancelled.remove(at).map_or(Owed::Nothing, |(_, asked)| Owed::Cancelled(asked)),
            None => Owed::Nothing,
        }
    }

    /// No request waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the requests that came after the mark, in their order; each use of an id is one.
    pub(crate) fn take_since(&mut self, mark: u64) -> Vec<Id> {
        let mut taken: Vec<(u64, Id, usize)> = Vec::new();
        self.open.retain(|id, entry| {
            let late = entry.sequence > mark;
            if late {
                taken.push((entry.sequence, id.clone(), entry.again.len() + 1));
            }
            !late
        });
        taken.sort_by_key(|(sequence, _, _)| *sequence);
        taken.into_iter().flat_map(|(_, id, uses)| std::iter::repeat_n(id, uses)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolway_wire::{Scanner, Verdict};

    fn id(json: &str) -> Id {
        Id::from_json(json.as_bytes()).unwrap()
    }

    fn asked(method: &str) -> Asked {
        let json =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"t","uri":"u"}}}}"#);
        let mut scanner = Scanner::new();
        scanner.feed(json.as_bytes());
        match scanner.finish() {
            Verdict::Message(request) => Asked::of(request),
            verdict => panic!("{verdict:?}"),
        }
    }

    #[test]
    fn every_request_is_answered_once() {
        let mut pending = Pending::default();
        pending.ask(id("1"), asked("tools/call"));
        pending.ask(id("\"1\""), asked("x/y"));
        assert_eq!(pending.answer(&id("1.0")), Owed::Waiting(asked("tools/call")));
        assert_eq!(pending.answer(&id("1")), Owed::Nothing);
        assert_eq!(pending.answer(&id("\"1\"")), Owed::Waiting(asked("x/y")));
        assert!(pending.is_empty());
    }

    #[test]
    fn an_id_used_twice_is_owed_two_answers() {
        let mut pending = Pending::default();
        pending.ask(id("1"), asked("ping"));
        pending.ask(id("1"), asked("ping"));
        assert_eq!(pending.take_since(0), [id("1"), id("1")]);
        for method in ["ping", "x/y", "x/z"] {
            pending.ask(id("1"), asked(method));
        }
        for method in ["ping", "x/y", "x/z"] {
            assert_eq!(pending.answer(&id("1")), Owed::Waiting(asked(method)));
        }
        assert_eq!(pending.answer(&id("1")), Owed::Nothing);
    }

    #[test]
    fn a_cancelled_request_is_owed_nothing_and_known_once() {
        let mut pending = Pending::default();
        pending.ask(id("1"), asked("ping"));
        pending.cancel(&id("1"));
        pending.cancel(&id("2"));
        assert!(pending.is_empty());
        assert_eq!(pending.answer(&id("1")), Owed::Cancelled(asked("ping")));
        assert_eq!(pending.answer(&id("1")), Owed::Nothing);
        for n in 0..3000 {
            pending.ask(Id::from_number(n), asked("ping"));
            pending.cancel(&Id::from_number(n));
        }
        assert_eq!(pending.cancelled.len(), REMEMBERED);
    }

    #[test]
    fn requests_after_a_mark_are_taken_in_order() {
        let mut pending = Pending::default();
        pending.ask(id("1"), asked("ping"));
        let mark = pending.mark();
        for n in ["5", "3", "4"] {
            pending.ask(id(n), asked("ping"));
        }
        assert_eq!(pending.take_since(mark), [id("5"), id("3"), id("4")]);
        assert_eq!(pending.open.len(), 1);
    }

    #[test]
    fn the_guard_learns_tool_and_uri() {
        assert_eq!(asked("tools/call").call_info("s", "n").tool.as_deref(), Some("t"));
        assert_eq!(asked("prompts/get").call_info("s", "n").uri.as_deref(), Some("t"));
        assert_eq!(asked("resources/read").call_info("s", "n").uri.as_deref(), Some("u"));
    }
}
