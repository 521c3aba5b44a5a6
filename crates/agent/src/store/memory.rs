//! Owns agents that are kept in memory alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::book::{self, Book, Decision, Start};
use super::{
    AgentChange, AgentRecord, Begin, Begun, Claim, EventRecord, Kept, Page, RunRecord, Store, Writes,
};
use crate::error::AgentError;
use crate::id::{AgentId, RunId};
use crate::inline::RecordKey;

/// In memory, gone with its last user.
#[derive(Debug)]
pub(crate) struct Memory {
    key: RecordKey,
    kept: Mutex<State>,
    claims: Arc<Mutex<BTreeSet<RunId>>>,
}

#[derive(Debug, Default)]
struct State {
    book: Book,
    events: BTreeMap<RunId, Vec<String>>,
    checkpoints: BTreeMap<AgentId, Bytes>,
    cancels: BTreeSet<RunId>,
}

/// Takes the run out of those that are executed.
struct Held(RunId, Arc<Mutex<BTreeSet<RunId>>>);

impl Drop for Held {
    fn drop(&mut self) {
        locked(&self.1).remove(&self.0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    pub(crate) fn new() -> Result<Self, AgentError> {
        let key = RecordKey::random().map_err(|error| AgentError::Store {
            message: format!("the system has no randomness: {error}"),
        })?;
        Ok(Self { key, kept: Mutex::default(), claims: Arc::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.kept)
    }
}

impl Store for Memory {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn digest_key(&self) -> Result<RecordKey, AgentError> {
        Ok(self.key.clone())
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentRecord>, AgentError> {
        Ok(self.state().book.agents.get(id).cloned())
    }

    fn agents(&self, page: &Page) -> Result<Vec<AgentRecord>, AgentError> {
        Ok(self.state().book.list_agents(page))
    }

    fn change(&self, id: &AgentId, change: &AgentChange) -> Result<bool, AgentError> {
        let mut state = self.state();
        let Some(agent) = state.book.agents.get_mut(id) else { return Ok(false) };
        book::change_agent(agent, change);
        Ok(true)
    }

    fn delete(&self, id: &AgentId) -> Result<bool, AgentError> {
        let mut state = self.state();
        let there = state.book.remove(id).is_some();
        let State { book, events, checkpoints, cancels } = &mut *state;
        events.retain(|run, _| book.runs.contains_key(run));
        cancels.retain(|run| book.runs.contains_key(run));
        checkpoints.remove(id);
        Ok(there)
    }

    fn begin(&self, begin: &Begin) -> Result<Begun, AgentError> {
        let mut state = self.state();
        let known = state.book.known(begin);
        Ok(match book::decide(known, begin) {
            Decision::Start(start) => {
                let Start { expired, agent, run } = *start;
                if let Some((run, event)) = expired {
                    state.events.entry(run.id.clone()).or_default().push(event);
                    state.book.runs.insert(run.id.clone(), run);
                }
                state.book.agents.insert(agent.id.clone(), agent);
                state.book.runs.insert(run.id.clone(), run.clone());
                locked(&self.claims).insert(run.id.clone());
                let claim = Claim::new(Held(run.id.clone(), Arc::clone(&self.claims)));
                Begun::Started { run: Box::new(run), claim }
            }
            Decision::Same(run) => Begun::Known(run),
            Decision::Busy(run) => Begun::Busy { alive: locked(&self.claims).contains(&run), run },
            Decision::Archived => Begun::Archived,
            Decision::NoAgent => Begun::NoAgent,
            Decision::Exists => Begun::Exists,
        })
    }

    fn append(&self, run: &RunId, writes: &Writes) -> Result<Kept, AgentError> {
        let mut state = self.state();
        let State { book, events, checkpoints, .. } = &mut *state;
        let Some(record) = book.runs.get_mut(run).filter(|run| !run.status.is_terminal()) else {
            return Ok(Kept::Over);
        };
        let kept = events.entry(run.clone()).or_default();
        for event in &writes.events {
            if event.offset != kept.len() as u64 + 1 {
                return Err(book::gap(run, kept.len() as u64, event.offset));
            }
            kept.push(event.json.clone());
        }
        if let Some(checkpoint) = &writes.checkpoint {
            checkpoints.insert(record.agent.clone(), checkpoint.clone());
        }
        if let Some(change) = &writes.change {
            book::changed(record, change);
            if change.status.is_terminal()
                && let Some(agent) = book.agents.get_mut(&record.agent)
            {
                book::over(agent, run);
            }
        }
        Ok(Kept::Yes)
    }

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Bytes>, AgentError> {
        Ok(self.state().checkpoints.get(agent).cloned())
    }

    fn run(&self, id: &RunId) -> Result<Option<RunRecord>, AgentError> {
        Ok(self.state().book.runs.get(id).cloned())
    }

    fn runs(&self, agent: &AgentId, page: &Page) -> Result<Vec<RunRecord>, AgentError> {
        Ok(self.state().book.list_runs(agent, page))
    }

    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<EventRecord>, AgentError> {
        let state = self.state();
        let Some(kept) = state.events.get(run) else { return Ok(Vec::new()) };
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        let behind = (after + 1..).zip(kept.iter().skip(skip)).take(most);
        Ok(behind.map(|(offset, json)| EventRecord { offset, json: json.clone() }).collect())
    }

    fn ask_cancel(&self, run: &RunId) -> Result<(), AgentError> {
        self.state().cancels.insert(run.clone());
        Ok(())
    }

    fn is_cancel_asked(&self, run: &RunId) -> Result<bool, AgentError> {
        Ok(self.state().cancels.contains(run))
    }

    fn is_alive(&self, run: &RunId) -> Result<bool, AgentError> {
        Ok(locked(&self.claims).contains(run))
    }
}

/// A store in memory that several handles can share, as [`crate::StoreChoice::Shared`].
pub fn memory_store() -> Result<Arc<dyn Store>, AgentError> {
    Ok(Arc::new(Memory::new()?))
}
