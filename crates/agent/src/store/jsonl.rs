//! Owns agents that are kept as lines of JSON: four files, each only added to, under one lock for all processes. A last
//! line that was torn off is taken for not written; damage before it is an error.

mod log;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::log::Log;
use super::book::{self, Book, Decision, Start};
use super::place::{self, StorePlace, damaged, private};
use super::{AgentChange, AgentRecord, Begin, Begun, EventRecord, Kept, Page, RunRecord, Store, Writes};
use crate::error::AgentError;
use crate::id::{AgentId, RunId};
use crate::inline::RecordKey;

/// Four files in a folder.
#[derive(Debug)]
pub(super) struct Jsonl {
    place: StorePlace,
    state: Mutex<State>,
}

/// What this process knows of the files.
#[derive(Debug)]
struct State {
    agents: Log,
    runs: Log,
    run_events: Log,
    checkpoints: Log,
    book: Book,
    /// Where each event's line stands: its start and its length.
    events: BTreeMap<RunId, Vec<(u64, usize)>>,
    conversations: BTreeMap<AgentId, (u64, usize)>,
}

#[derive(Serialize, Deserialize)]
struct EventLine<'a> {
    run: RunId,
    seq: u64,
    #[serde(borrow)]
    event: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct CheckpointLine {
    agent: AgentId,
    conversation: String,
}

impl Jsonl {
    /// Opens it, or makes it.
    pub(super) fn open(dir: &Path) -> Result<Self, AgentError> {
        let place = StorePlace::open(dir)?;
        let log = |name: &str| Log::new(dir.join(name));
        let state = State {
            agents: log("agents.ndjson"),
            runs: log("runs.ndjson"),
            run_events: log("run_events.ndjson"),
            checkpoints: log("checkpoints.ndjson"),
            book: Book::default(),
            events: BTreeMap::new(),
            conversations: BTreeMap::new(),
        };
        let store = Self { place, state: Mutex::new(state) };
        store.with(|_| Ok(()))?;
        Ok(store)
    }

    /// Does something with all files read to their ends, while no other process touches them.
    fn with<T>(&self, work: impl FnOnce(&mut State) -> Result<T, AgentError>) -> Result<T, AgentError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = self.lock()?;
        state.catch_up()?;
        work(&mut state)
    }

    fn lock(&self) -> Result<File, AgentError> {
        let path = self.place.dir().join("store.lock");
        let file = private()
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| place::fault(&path, &error))?;
        if place::take(&file).map_err(|error| place::fault(&path, &error))? {
            return Ok(file);
        }
        Err(place::locked(&path))
    }
}

impl State {
    /// Reads what other processes wrote.
    fn catch_up(&mut self) -> Result<(), AgentError> {
        let Self { agents, runs, run_events, checkpoints, book, events, conversations } = self;
        if [&mut *agents, &mut *runs, &mut *run_events, &mut *checkpoints]
            .into_iter()
            .try_fold(false, |any, log| Ok::<_, AgentError>(log.is_replaced()? || any))?
        {
            (*book, *events, *conversations) = Default::default();
            for log in [&mut *agents, &mut *runs, &mut *run_events, &mut *checkpoints] {
                log.forget();
            }
        }
        agents.read(|line, _| {
            let agent: AgentRecord = serde_json::from_str(line)?;
            book.agents.insert(agent.id.clone(), agent);
            Ok(())
        })?;
        runs.read(|line, _| {
            let run: RunRecord = serde_json::from_str(line)?;
            book.runs.insert(run.id.clone(), run);
            Ok(())
        })?;
        run_events.read(|line, at| {
            let event: EventLine<'_> = serde_json::from_str(line)?;
            events.entry(event.run).or_default().push((at, line.len()));
            Ok(())
        })?;
        checkpoints.read(|line, at| {
            let line_of: CheckpointLine = serde_json::from_str(line)?;
            conversations.insert(line_of.agent, (at, line.len()));
            Ok(())
        })
    }

    fn put_agent(&mut self, agent: AgentRecord) -> Result<(), AgentError> {
        self.agents.append(&lines([&agent]))?;
        self.book.agents.insert(agent.id.clone(), agent);
        Ok(())
    }

    fn put_run(&mut self, run: RunRecord) -> Result<(), AgentError> {
        self.runs.append(&lines([&run]))?;
        self.book.runs.insert(run.id.clone(), run);
        Ok(())
    }

    fn put_events(&mut self, run: &RunId, events: &[EventRecord]) -> Result<(), AgentError> {
        let last = self.events.get(run).map_or(0, |kept| kept.len() as u64);
        let mut text = String::new();
        let mut places = Vec::new();
        for (expected, event) in (last + 1..).zip(events) {
            if event.offset != expected {
                return Err(book::gap(run, expected - 1, event.offset));
            }
            let raw: &RawValue = serde_json::from_str(&event.json)
                .map_err(|error| AgentError::Store { message: format!("an event is no JSON: {error}") })?;
            let line = lines([&EventLine { run: run.clone(), seq: event.offset, event: raw }]);
            places.push((text.len() as u64, line.len() - 1));
            text.push_str(&line);
        }
        let start = self.run_events.append(&text)?;
        let kept = self.events.entry(run.clone()).or_default();
        kept.extend(places.into_iter().map(|(at, length)| (start + at, length)));
        Ok(())
    }

    fn put_checkpoint(&mut self, agent: &AgentId, conversation: &Bytes) -> Result<(), AgentError> {
        let conversation = String::from_utf8_lossy(conversation).into_owned();
        let line = lines([&CheckpointLine { agent: agent.clone(), conversation }]);
        let length = line.len() - 1;
        let at = self.checkpoints.append(&line)?;
        self.conversations.insert(agent.clone(), (at, length));
        let live: usize = self.conversations.values().map(|(_, length)| length + 1).sum();
        if self.checkpoints.is_worth_rewriting(live) {
            self.rewrite_checkpoints()?;
        }
        Ok(())
    }

    fn rewrite_checkpoints(&mut self) -> Result<(), AgentError> {
        let mut text = String::new();
        for (at, length) in self.conversations.values_mut() {
            let line = self.checkpoints.line(*at, *length)?;
            // Behind the first line, which the log writes itself.
            *at = text.len() as u64;
            text.push_str(&line);
            text.push('\n');
        }
        let start = self.checkpoints.rewrite(&text)?;
        self.conversations.values_mut().for_each(|(at, _)| *at += start);
        Ok(())
    }

    /// All files anew, without what is not in the book.
    fn rewrite_all(&mut self) -> Result<(), AgentError> {
        self.agents.rewrite(&lines(self.book.agents.values()))?;
        self.runs.rewrite(&lines(self.book.runs.values()))?;
        let mut text = String::new();
        self.events.retain(|run, _| self.book.runs.contains_key(run));
        for places in self.events.values_mut() {
            for (at, length) in places {
                let line = self.run_events.line(*at, *length)?;
                *at = text.len() as u64;
                text.push_str(&line);
                text.push('\n');
            }
        }
        let start = self.run_events.rewrite(&text)?;
        self.events.values_mut().flatten().for_each(|(at, _)| *at += start);
        self.conversations.retain(|agent, _| self.book.agents.contains_key(agent));
        self.rewrite_checkpoints()
    }
}

/// Records are texts, numbers and lists of these: nothing can fail.
fn lines<'a, T: Serialize + 'a>(records: impl IntoIterator<Item = &'a T>) -> String {
    let mut text = String::new();
    for record in records {
        text.push_str(&serde_json::to_string(record).unwrap_or_default());
        text.push('\n');
    }
    text
}

impl Store for Jsonl {
    fn place(&self) -> String {
        self.place.dir().display().to_string()
    }

    fn digest_key(&self) -> Result<RecordKey, AgentError> {
        self.place.digest_key()
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentRecord>, AgentError> {
        self.with(|state| Ok(state.book.agents.get(id).cloned()))
    }

    fn agents(&self, page: &Page) -> Result<Vec<AgentRecord>, AgentError> {
        self.with(|state| Ok(state.book.list_agents(page)))
    }

    fn change(&self, id: &AgentId, change: &AgentChange) -> Result<bool, AgentError> {
        self.with(|state| {
            let Some(mut agent) = state.book.agents.get(id).cloned() else { return Ok(false) };
            book::change_agent(&mut agent, change);
            state.put_agent(agent)?;
            Ok(true)
        })
    }

    fn delete(&self, id: &AgentId) -> Result<bool, AgentError> {
        self.with(|state| {
            if state.book.remove(id).is_none() {
                return Ok(false);
            }
            state.rewrite_all()?;
            Ok(true)
        })
    }

    fn begin(&self, begin: &Begin) -> Result<Begun, AgentError> {
        // The claim is there before anybody can see the run.
        let claim = self.place.claim(&begin.run)?;
        self.with(|state| {
            let known = state.book.known(begin);
            Ok(match book::decide(known, begin) {
                Decision::Start(start) => {
                    let Start { expired, agent, run } = *start;
                    if let Some((run, json)) = expired {
                        let offset = state.events.get(&run.id).map_or(0, |kept| kept.len() as u64) + 1;
                        state.put_events(&run.id, &[EventRecord { offset, json }])?;
                        if !self.place.is_alive(&run.id)? {
                            self.place.clear(&run.id);
                        }
                        state.put_run(run)?;
                    }
                    state.put_run(run.clone())?;
                    state.put_agent(agent)?;
                    Begun::Started { run: Box::new(run), claim }
                }
                Decision::Same(run) => Begun::Known(run),
                Decision::Busy(run) => Begun::Busy { alive: self.place.is_alive(&run)?, run },
                Decision::Archived => Begun::Archived,
                Decision::NoAgent => Begun::NoAgent,
                Decision::Exists => Begun::Exists,
            })
        })
    }

    fn append(&self, run: &RunId, writes: &Writes) -> Result<Kept, AgentError> {
        self.with(|state| {
            let record = state.book.runs.get(run).filter(|run| !run.status.is_terminal()).cloned();
            let Some(mut record) = record else { return Ok(Kept::Over) };
            if !writes.events.is_empty() {
                state.put_events(run, &writes.events)?;
            }
            if let Some(checkpoint) = &writes.checkpoint {
                state.put_checkpoint(&record.agent, checkpoint)?;
            }
            if let Some(change) = &writes.change {
                book::changed(&mut record, change);
                let agent = record.agent.clone();
                state.put_run(record)?;
                if change.status.is_terminal()
                    && let Some(mut agent) = state.book.agents.get(&agent).cloned()
                {
                    book::over(&mut agent, run);
                    state.put_agent(agent)?;
                }
            }
            Ok(Kept::Yes)
        })
    }

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Bytes>, AgentError> {
        self.with(|state| {
            let Some(&(at, length)) = state.conversations.get(agent) else { return Ok(None) };
            let line: CheckpointLine = serde_json::from_str(&state.checkpoints.line(at, length)?)
                .map_err(|error| damaged(state.checkpoints.path(), &error.to_string()))?;
            Ok(Some(line.conversation.into_bytes().into()))
        })
    }

    fn run(&self, id: &RunId) -> Result<Option<RunRecord>, AgentError> {
        self.with(|state| Ok(state.book.runs.get(id).cloned()))
    }

    fn runs(&self, agent: &AgentId, page: &Page) -> Result<Vec<RunRecord>, AgentError> {
        self.with(|state| Ok(state.book.list_runs(agent, page)))
    }

    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<EventRecord>, AgentError> {
        self.with(|state| {
            let Some(kept) = state.events.get(run) else { return Ok(Vec::new()) };
            let skip = usize::try_from(after).unwrap_or(usize::MAX);
            let mut events = Vec::new();
            for (offset, (at, length)) in (after + 1..).zip(kept.iter().skip(skip).take(most)) {
                let line = state.run_events.line(*at, *length)?;
                let line: EventLine<'_> = serde_json::from_str(&line)
                    .map_err(|error| damaged(state.run_events.path(), &error.to_string()))?;
                events.push(EventRecord { offset, json: line.event.get().to_owned() });
            }
            Ok(events)
        })
    }

    fn ask_cancel(&self, run: &RunId) -> Result<(), AgentError> {
        self.place.ask_cancel(run)
    }

    fn is_cancel_asked(&self, run: &RunId) -> Result<bool, AgentError> {
        Ok(self.place.is_cancel_asked(run))
    }

    fn is_alive(&self, run: &RunId) -> Result<bool, AgentError> {
        self.place.is_alive(run)
    }
}
