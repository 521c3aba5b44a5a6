//! Owns how a database is opened, and its layout.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::fault;
use crate::error::AgentError;
use crate::store::place::{self, PATIENCE, damaged, newer, private};

/// The layout that this version writes.
const LAYOUT: i64 = 1;
/// What tells our databases from others: `TwAg`.
const APPLICATION: i64 = 0x5477_4167;

const SCHEMA: &str = "
CREATE TABLE agents (
    id TEXT PRIMARY KEY, created INTEGER NOT NULL, archived INTEGER NOT NULL, record TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE runs (
    id TEXT PRIMARY KEY, agent TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE, turn INTEGER NOT NULL,
    key TEXT, record TEXT NOT NULL, UNIQUE (agent, turn)
) WITHOUT ROWID;
CREATE UNIQUE INDEX runs_by_key ON runs (agent, key) WHERE key IS NOT NULL;
CREATE TABLE run_events (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, seq INTEGER NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE TABLE checkpoints (
    agent TEXT PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE, conversation BLOB NOT NULL
);
";

/// Opens it, or makes it.
pub(super) fn connected(file: &Path) -> Result<Connection, AgentError> {
    // SQLite gives its other files the rights of this one.
    private().create(true).truncate(false).open(file).map_err(|error| place::fault(file, &error))?;
    let mut connection = Connection::open(file).map_err(|error| fault::of(file, &error))?;
    prepare(&mut connection, file)?;
    Ok(connection)
}

fn prepare(connection: &mut Connection, file: &Path) -> Result<(), AgentError> {
    let broken = |error| fault::of(file, &error);
    connection.busy_timeout(PATIENCE).map_err(broken)?;
    let number = |connection: &Connection, name: &str| -> Result<i64, AgentError> {
        connection.pragma_query_value(None, name, |row| row.get(0)).map_err(broken)
    };
    let layout = |connection: &Connection| -> Result<i64, AgentError> {
        let layout = number(connection, "user_version")?;
        if layout > LAYOUT && number(connection, "application_id")? == APPLICATION {
            return Err(newer(file, layout, LAYOUT));
        }
        Ok(layout)
    };
    let found = layout(connection)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(broken)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(broken)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(broken)?;
    connection.pragma_update(None, "cache_size", -512).map_err(broken)?;
    if found == 0 {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
        // Another process may have been faster.
        if layout(&step)? == 0 {
            step.execute_batch(SCHEMA).map_err(broken)?;
            step.pragma_update(None, "application_id", APPLICATION).map_err(broken)?;
            step.pragma_update(None, "user_version", LAYOUT).map_err(broken)?;
        }
        step.commit().map_err(broken)?;
    }
    if number(connection, "application_id")? != APPLICATION {
        return Err(damaged(file, "it is a database of another program"));
    }
    Ok(())
}
