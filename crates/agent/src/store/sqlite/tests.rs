//! A database that cannot be used says why and what to do.

use super::*;
use crate::event::RunStatus;
use crate::store::Presence;
use crate::store::tests::{begin, end, events, started};

fn refusal(dir: &Path) -> String {
    Sqlite::open(dir).unwrap_err().to_string()
}

#[test]
fn a_newer_layout_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    drop(Sqlite::open(dir.path()).unwrap());
    let other = Connection::open(dir.path().join("agents.db")).unwrap();
    other.pragma_update(None, "user_version", 7).unwrap();
    let message = refusal(dir.path());
    assert!(message.contains("agents.db was written by a newer version of Toolway (layout 7"), "{message}");
}

#[test]
fn what_is_no_database_or_another_programs_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agents.db");
    std::fs::write(&file, "this is not a database, and long enough to be read as one".repeat(40)).unwrap();
    let message = refusal(dir.path());
    assert!(message.contains("agents.db is damaged") && message.contains("move it away"), "{message}");
    assert!(std::fs::read(&file).unwrap().starts_with(b"this is not"));

    std::fs::remove_file(&file).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE t (a); PRAGMA user_version = 1;").unwrap();
    drop(other);
    assert!(refusal(dir.path()).contains("a database of another program"));
}

#[test]
fn a_damaged_page_is_told_and_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path()).unwrap();
    let agent = AgentId::local();
    let (run, _claim) = started(&store, &begin(&agent, Presence::New));
    for from in 0..200 {
        store.append(&run.id, &events(from * 20 + 1..=from * 20 + 20)).unwrap();
    }
    drop(store);
    let file = dir.path().join("agents.db");
    let mut bytes = std::fs::read(&file).unwrap();
    let length = bytes.len();
    assert!(length > 100_000);
    bytes[8192..length - 4096].fill(0xff);
    std::fs::write(&file, &bytes).unwrap();
    let message = match Sqlite::open(dir.path()) {
        Err(error) => error.to_string(),
        Ok(store) => store.events(&run.id, 0, 10_000).unwrap_err().to_string(),
    };
    assert!(message.contains("agents.db is damaged"), "{message}");
}

#[test]
fn a_store_that_rests_holds_no_file_and_works_again_when_it_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path()).unwrap();
    let (run, _claim) = started(&store, &begin(&AgentId::local(), Presence::New));
    store.append(&run.id, &events(1..=3)).unwrap();
    store.rest();
    assert!(store.held().is_none());
    assert_eq!(store.events(&run.id, 0, 100).unwrap().len(), 3);
    store.rest();
    store.append(&run.id, &events(4..=5)).unwrap();
    assert_eq!(store.events(&run.id, 0, 100).unwrap().len(), 5);
}

#[test]
fn a_full_disk_is_told_and_what_was_kept_stays() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path()).unwrap();
    let (run, _claim) = started(&store, &begin(&AgentId::local(), Presence::New));
    store.append(&run.id, &events(1..=3)).unwrap();
    let pages: i64 =
        store.held().as_ref().unwrap().pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.held().as_ref().unwrap().pragma_update(None, "max_page_count", pages).unwrap();
    let message = store.append(&run.id, &events(4..=3000)).unwrap_err().to_string();
    assert!(message.contains("agents.db: the disk is full: make room"), "{message}");
    assert_eq!(store.events(&run.id, 0, 100).unwrap().len(), 3);
    store.held().as_ref().unwrap().pragma_update(None, "max_page_count", 1_000_000).unwrap();
    store.append(&run.id, &events(4..=3000)).unwrap();
    store.append(&run.id, &end(RunStatus::Finished)).unwrap();
}

#[test]
fn a_database_that_another_process_holds_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path()).unwrap();
    store.held().as_ref().unwrap().busy_timeout(std::time::Duration::from_millis(20)).unwrap();
    let other = Connection::open(dir.path().join("agents.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let message = store.begin(&begin(&AgentId::local(), Presence::New)).unwrap_err().to_string();
    assert!(message.contains("agents.db has been locked by another process"), "{message}");
    assert!(std::fs::read_dir(dir.path().join("running")).unwrap().next().is_none());
}

#[test]
fn a_database_that_may_only_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(dir.path()).unwrap();
    store.held().as_ref().unwrap().pragma_update(None, "query_only", true).unwrap();
    let message = store.begin(&begin(&AgentId::local(), Presence::New)).unwrap_err().to_string();
    assert!(
        message.contains("agents.db cannot be written") && message.contains("check its rights"),
        "{message}"
    );
}
