//! Owns which calls of servers' tools an agent has told of and not ended yet: a call that arrives at the front is one of
//! them, and is known by the agent's own id, so that hooks, questions and events name it alike. No I/O.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolway_bridge::RawJson;

use super::names::Meant;

/// So many are known at a time; the oldest are forgotten.
const OPEN: usize = 512;

#[derive(Debug)]
struct Told {
    id: String,
    meant: Meant,
    claimed: bool,
}

#[derive(Debug)]
struct State {
    told: VecDeque<Told>,
    /// Calls that arrived and that nobody had told of.
    strange: u64,
}

/// The calls of one run. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct OpenCalls {
    run: Arc<str>,
    state: Arc<Mutex<State>>,
}

impl OpenCalls {
    pub(super) fn new(run: &str) -> Self {
        let state = State { told: VecDeque::new(), strange: 0 };
        Self { run: run.into(), state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agent tells of a call, or of more of it.
    pub(super) fn told(&self, id: &str, meant: &Meant) {
        let mut state = self.state();
        if let Some(known) = state.told.iter_mut().find(|known| known.id == id) {
            known.meant = meant.clone();
            return;
        }
        if state.told.len() >= OPEN {
            state.told.pop_front();
        }
        state.told.push_back(Told { id: id.to_owned(), meant: meant.clone(), claimed: false });
    }

    /// It has ended.
    pub(super) fn ended(&self, id: &str) {
        self.state().told.retain(|known| known.id != id);
    }

    /// A call arrives: its id. Of several of the same tool it is the first with these arguments, else the first; one that
    /// nobody told of, or not yet, gets an id of its own.
    pub(super) fn claim(&self, server: &str, tool: &str, arguments: &RawJson) -> String {
        let mut state = self.state();
        let fits = |told: &&mut Told| !told.claimed && told.meant.server == server && told.meant.tool == tool;
        let tree = arguments.tree();
        let same = state.told.iter_mut().filter(fits).position(|told| told.meant.arguments.tree() == tree);
        if let Some(told) = state.told.iter_mut().filter(fits).nth(same.unwrap_or_default()) {
            told.claimed = true;
            return told.id.clone();
        }
        state.strange += 1;
        format!("{}-mcp-{}", self.run, state.strange)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_call_that_arrives_is_the_one_that_was_told_of() {
        let calls = OpenCalls::new("run-1");
        let meant = |tool: &str, arguments: &Value| Meant {
            server: "one".to_owned(),
            tool: tool.to_owned(),
            arguments: RawJson::of(arguments),
        };
        let claim = |tool: &str, arguments: &Value| calls.claim("one", tool, &RawJson::of(arguments));
        for (id, n) in [("a", 1), ("b", 2), ("c", 3)] {
            calls.told(id, &meant("echo", &json!({})));
            calls.told(id, &meant("echo", &json!({"n": n})));
        }
        assert_eq!(claim("echo", &json!({"n": 2})), "b");
        assert_eq!(claim("echo", &json!({"n": 9})), "a", "hooks and agents may change arguments");
        calls.ended("c");
        assert_eq!(claim("echo", &json!({"n": 3})), "run-1-mcp-1");
        assert_eq!(claim("other", &json!({})), "run-1-mcp-2");
    }
}
