//! Torn lines are tolerated, damage is not.

use std::fs::OpenOptions;
use std::io::Write as _;

use super::*;
use crate::store::Presence;
use crate::store::tests::{begin, event, events, started};

fn add(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_torn_last_line_is_taken_for_not_written() {
    for torn in [&b"{\"run\":\"run-0000"[..], b"\0\0\0\0\n", b"\xff\xfe"] {
        let dir = tempfile::tempdir().unwrap();
        let store = Jsonl::open(dir.path()).unwrap();
        let (run, _claim) = started(&store, &begin(&AgentId::local(), Presence::New));
        store.append(&run.id, &events(1..=2)).unwrap();
        for name in ["run_events", "runs", "agents"] {
            add(&dir.path().join(format!("{name}.ndjson")), torn);
        }
        let other = Jsonl::open(dir.path()).unwrap();
        assert_eq!(other.events(&run.id, 0, 9).unwrap(), vec![event(1), event(2)]);
        // The next write takes it away.
        other.append(&run.id, &events(3..=3)).unwrap();
        for store in [&store, &other, &Jsonl::open(dir.path()).unwrap()] {
            assert_eq!(store.events(&run.id, 0, 9).unwrap(), vec![event(1), event(2), event(3)]);
        }
    }
}

#[test]
fn damage_before_the_last_line_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = Jsonl::open(dir.path()).unwrap();
    let (run, _claim) = started(&store, &begin(&AgentId::local(), Presence::New));
    store.append(&run.id, &events(1..=1)).unwrap();
    let path = dir.path().join("run_events.ndjson");
    add(&path, b"{\"run\": broken\n");
    let good = std::fs::read_to_string(&path).unwrap().lines().nth(1).unwrap().to_owned();
    add(&path, format!("{good}\n").as_bytes());
    let before = std::fs::read(&path).unwrap();
    let message = Jsonl::open(dir.path()).unwrap_err().to_string();
    assert!(message.contains("run_events.ndjson is damaged (line 3: "), "{message}");
    assert!(store.append(&run.id, &events(2..=2)).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_newer_layout_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("runs.ndjson"), "{\"toolway\":9,\"writing\":\"x\"}\n").unwrap();
    let message = Jsonl::open(dir.path()).unwrap_err().to_string();
    assert!(message.contains("runs.ndjson was written by a newer version"), "{message}");
}

#[test]
fn old_conversations_do_not_pile_up() {
    let dir = tempfile::tempdir().unwrap();
    let (store, other) = (Jsonl::open(dir.path()).unwrap(), Jsonl::open(dir.path()).unwrap());
    let id = AgentId::local();
    let (run, _claim) = started(&store, &begin(&id, Presence::New));
    for number in 0..30 {
        let checkpoint = Some(Bytes::from(format!("{number} {}", "x".repeat(400_000))));
        let store = if number % 2 == 0 { &store } else { &other };
        store.append(&run.id, &Writes { checkpoint, ..Writes::default() }).unwrap();
    }
    assert!(std::fs::metadata(dir.path().join("checkpoints.ndjson")).unwrap().len() < 6 << 20);
    for store in [&store, &other] {
        assert!(store.checkpoint(&id).unwrap().unwrap().starts_with(b"29 x"));
    }
}
