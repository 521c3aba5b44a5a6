//! Owns agents that are kept in a `SQLite` database: one file, several processes.

mod fault;
mod opening;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::opening::connected;
use super::book::{self, Decision, Known, Start};
use super::place::{StorePlace, damaged};
use super::{AgentChange, AgentRecord, Begin, Begun, EventRecord, Kept, Page, RunRecord, Store, Writes};
use crate::error::AgentError;
use crate::id::{AgentId, RunId};
use crate::inline::RecordKey;

/// A database in a folder.
#[derive(Debug)]
pub(super) struct Sqlite {
    place: StorePlace,
    file: PathBuf,
    /// `None` while it rests.
    connection: Mutex<Option<Connection>>,
}

impl Sqlite {
    /// Opens it, or makes it.
    pub(super) fn open(dir: &Path) -> Result<Self, AgentError> {
        let place = StorePlace::open(dir)?;
        let file = dir.join("agents.db");
        let connection = connected(&file)?;
        Ok(Self { place, file, connection: Mutex::new(Some(connection)) })
    }

    fn held(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the connection, which is made again where it rested.
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T, AgentError>) -> Result<T, AgentError> {
        let mut held = self.held();
        let connection = match &mut *held {
            Some(connection) => connection,
            none => none.insert(connected(&self.file)?),
        };
        work(connection)
    }

    /// One step: all of it is kept, or nothing.
    fn step<T>(&self, work: impl FnOnce(&Rows<'_>) -> Result<T, AgentError>) -> Result<T, AgentError> {
        let broken = |error| fault::of(&self.file, &error);
        self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
            let done = work(&Rows { connection: &transaction, file: &self.file })?;
            transaction.commit().map_err(broken)?;
            Ok(done)
        })
    }

    fn look<T>(&self, work: impl FnOnce(&Rows<'_>) -> Result<T, AgentError>) -> Result<T, AgentError> {
        self.with(|connection| work(&Rows { connection, file: &self.file }))
    }
}

/// The tables, inside or outside of a step.
struct Rows<'a> {
    connection: &'a Connection,
    file: &'a Path,
}

impl Rows<'_> {
    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<usize, AgentError> {
        let done = self.connection.prepare(sql).and_then(|mut statement| statement.execute(values));
        done.map_err(|error| fault::of(self.file, &error))
    }

    fn texts(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<String>, AgentError> {
        let read = self.connection.prepare(sql).and_then(|mut statement| {
            statement.query_map(values, |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        });
        read.map_err(|error| fault::of(self.file, &error))
    }

    fn one<T: DeserializeOwned>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Option<T>, AgentError> {
        self.texts(sql, values)?.first().map(|text| self.record(text)).transpose()
    }

    fn all<T: DeserializeOwned>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
    ) -> Result<Vec<T>, AgentError> {
        self.texts(sql, values)?.iter().map(|text| self.record(text)).collect()
    }

    fn record<T: DeserializeOwned>(&self, text: &str) -> Result<T, AgentError> {
        serde_json::from_str(text).map_err(|error| damaged(self.file, &format!("a record: {error}")))
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentRecord>, AgentError> {
        self.one("SELECT record FROM agents WHERE id = ?1", [id.as_str()])
    }

    fn run_record(&self, id: &RunId) -> Result<Option<RunRecord>, AgentError> {
        self.one("SELECT record FROM runs WHERE id = ?1", [id.as_str()])
    }

    fn number(&self, sql: &str, values: impl rusqlite::Params) -> Result<u64, AgentError> {
        let read = self.connection.prepare(sql).and_then(|mut statement| {
            statement.query_row(values, |row| row.get::<_, Option<i64>>(0)).optional()
        });
        let read = read.map_err(|error| fault::of(self.file, &error))?.flatten();
        Ok(read.and_then(|number| u64::try_from(number).ok()).unwrap_or_default())
    }

    fn last_event(&self, run: &RunId) -> Result<u64, AgentError> {
        self.number("SELECT max(seq) FROM run_events WHERE run = ?1", [run.as_str()])
    }

    fn known(&self, begin: &Begin) -> Result<Known, AgentError> {
        let id = begin.agent.id.as_str();
        let agent = self.agent(&begin.agent.id)?;
        let active = match agent.as_ref().and_then(|agent| agent.active_run.as_ref()) {
            Some(run) => self.run_record(run)?,
            None => None,
        };
        let same = match &begin.idempotency {
            Some(key) => self.one("SELECT record FROM runs WHERE agent = ?1 AND key = ?2", [id, key])?,
            None => None,
        };
        let turn = self.number("SELECT max(turn) FROM runs WHERE agent = ?1", [id])?;
        Ok(Known { agent, active, same, turn })
    }

    fn put_agent(&self, agent: &AgentRecord) -> Result<(), AgentError> {
        let at = agent.cursor().at;
        self.run(
            "INSERT INTO agents (id, created, archived, record) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET archived = ?3, record = ?4",
            params![agent.id.as_str(), at, agent.archived, json(agent)],
        )?;
        Ok(())
    }

    fn put_run(&self, run: &RunRecord) -> Result<(), AgentError> {
        self.run(
            "INSERT INTO runs (id, agent, turn, key, record) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET record = ?5",
            params![run.id.as_str(), run.agent.as_str(), int(run.turn), run.idempotency, json(run)],
        )?;
        Ok(())
    }

    fn put_events<'e>(
        &self,
        run: &RunId,
        events: impl IntoIterator<Item = (u64, &'e str)>,
    ) -> Result<(), AgentError> {
        let sql = "INSERT INTO run_events (run, seq, event) VALUES (?1, ?2, ?3)";
        let done = self.connection.prepare(sql).and_then(|mut statement| {
            events.into_iter().try_for_each(|(offset, event)| {
                statement.execute(params![run.as_str(), int(offset), event]).map(drop)
            })
        });
        done.map_err(|error| fault::of(self.file, &error))
    }
}

/// Records are texts, numbers and lists of these: nothing can fail.
fn json(record: &impl Serialize) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Store for Sqlite {
    fn place(&self) -> String {
        self.file.display().to_string()
    }

    fn rest(&self) {
        self.held().take();
    }

    fn digest_key(&self) -> Result<RecordKey, AgentError> {
        self.place.digest_key()
    }

    fn agent(&self, id: &AgentId) -> Result<Option<AgentRecord>, AgentError> {
        self.look(|rows| rows.agent(id))
    }

    fn agents(&self, page: &Page) -> Result<Vec<AgentRecord>, AgentError> {
        let after = page.after.clone().unwrap_or(super::Cursor { at: i64::MAX, id: String::new() });
        self.look(|rows| {
            rows.all(
                "SELECT record FROM agents WHERE (created, id) < (?1, ?2) AND (archived = 0 OR ?3)
                 ORDER BY created DESC, id DESC LIMIT ?4",
                params![after.at, after.id, page.include_archived, int(page.limit as u64)],
            )
        })
    }

    fn change(&self, id: &AgentId, change: &AgentChange) -> Result<bool, AgentError> {
        self.step(|rows| {
            let Some(mut agent) = rows.agent(id)? else { return Ok(false) };
            book::change_agent(&mut agent, change);
            rows.put_agent(&agent)?;
            Ok(true)
        })
    }

    fn delete(&self, id: &AgentId) -> Result<bool, AgentError> {
        self.step(|rows| Ok(rows.run("DELETE FROM agents WHERE id = ?1", [id.as_str()])? > 0))
    }

    fn begin(&self, begin: &Begin) -> Result<Begun, AgentError> {
        // The claim is there before anybody can see the run.
        let claim = self.place.claim(&begin.run)?;
        let (begun, left) = self.step(|rows| {
            Ok(match book::decide(rows.known(begin)?, begin) {
                Decision::Start(start) => {
                    let Start { expired, agent, run } = *start;
                    let mut left = None;
                    if let Some((run, event)) = expired {
                        let offset = rows.last_event(&run.id)? + 1;
                        rows.put_events(&run.id, [(offset, event.as_str())])?;
                        rows.put_run(&run)?;
                        left = Some(run.id);
                    }
                    rows.put_agent(&agent)?;
                    rows.put_run(&run)?;
                    (Begun::Started { run: Box::new(run), claim }, left)
                }
                Decision::Same(run) => (Begun::Known(run), None),
                Decision::Busy(run) => (Begun::Busy { alive: self.place.is_alive(&run)?, run }, None),
                Decision::Archived => (Begun::Archived, None),
                Decision::NoAgent => (Begun::NoAgent, None),
                Decision::Exists => (Begun::Exists, None),
            })
        })?;
        if let Some(run) = left.filter(|run| self.place.is_alive(run).is_ok_and(|alive| !alive)) {
            self.place.clear(&run);
        }
        Ok(begun)
    }

    fn append(&self, run: &RunId, writes: &Writes) -> Result<Kept, AgentError> {
        self.step(|rows| {
            let Some(mut record) = rows.run_record(run)?.filter(|run| !run.status.is_terminal()) else {
                return Ok(Kept::Over);
            };
            if !writes.events.is_empty() {
                let mut last = rows.last_event(run)?;
                for event in &writes.events {
                    if event.offset != last + 1 {
                        return Err(book::gap(run, last, event.offset));
                    }
                    last = event.offset;
                }
                rows.put_events(run, writes.events.iter().map(|event| (event.offset, event.json.as_str())))?;
            }
            if let Some(checkpoint) = &writes.checkpoint {
                rows.run(
                    "INSERT INTO checkpoints (agent, conversation) VALUES (?1, ?2)
                     ON CONFLICT (agent) DO UPDATE SET conversation = ?2",
                    params![record.agent.as_str(), &checkpoint[..]],
                )?;
            }
            if let Some(change) = &writes.change {
                book::changed(&mut record, change);
                rows.put_run(&record)?;
                if change.status.is_terminal()
                    && let Some(mut agent) = rows.agent(&record.agent)?
                {
                    book::over(&mut agent, run);
                    rows.put_agent(&agent)?;
                }
            }
            Ok(Kept::Yes)
        })
    }

    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Bytes>, AgentError> {
        let sql = "SELECT conversation FROM checkpoints WHERE agent = ?1";
        self.with(|connection| {
            let read = connection.query_row(sql, [agent.as_str()], |row| row.get::<_, Vec<u8>>(0)).optional();
            Ok(read.map_err(|error| fault::of(&self.file, &error))?.map(Bytes::from))
        })
    }

    fn run(&self, id: &RunId) -> Result<Option<RunRecord>, AgentError> {
        self.look(|rows| rows.run_record(id))
    }

    fn runs(&self, agent: &AgentId, page: &Page) -> Result<Vec<RunRecord>, AgentError> {
        let after = page.after.as_ref().map_or(i64::MAX, |after| after.at);
        self.look(|rows| {
            rows.all(
                "SELECT record FROM runs WHERE agent = ?1 AND turn < ?2 ORDER BY turn DESC LIMIT ?3",
                params![agent.as_str(), after, int(page.limit as u64)],
            )
        })
    }

    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<EventRecord>, AgentError> {
        self.look(|rows| {
            let texts = rows.texts(
                "SELECT event FROM run_events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                params![run.as_str(), int(after), int(most as u64)],
            )?;
            // Numbers have no gaps: `append` sees to it.
            Ok((after + 1..).zip(texts).map(|(offset, json)| EventRecord { offset, json }).collect())
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
