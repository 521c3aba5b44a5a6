use std::time::UNIX_EPOCH;

use super::*;
use crate::gateway::observe::Outcome;

fn call(target: &str) -> CallRecord<'_> {
    CallRecord {
        session: 1,
        client: "claude-code 2.1",
        server: "fs",
        method: "tools/call",
        target,
        request_bytes: 100,
        response_bytes: 2000,
        duration: Duration::from_micros(1234),
        outcome: Outcome::ERROR,
        code: Some(-32000),
        traceparent: None,
    }
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn older(path: &Path, number: u32) -> PathBuf {
    PathBuf::from(format!("{}.{number}", path.display()))
}

#[tokio::test]
async fn a_call_is_a_line_without_payload() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    fs::write(&path, "before\n").unwrap();
    let audit = Audit::start(&AuditConfig::new(path.clone())).unwrap();
    audit.call(&call("a\n\"b\""), UNIX_EPOCH + Duration::from_millis(1_764_511_506_789));
    audit.close().await;
    assert_eq!(
        lines(&path),
        [
            "before".to_owned(),
            r#"{"time":"2025-11-30T14:05:06.789Z","session":1,"client":"claude-code 2.1","server":"fs","method":"tools/call","target":"a\n\"b\"","requestBytes":100,"responseBytes":2000,"durationMs":1.234,"outcome":"error","code":-32000}"#.to_owned(),
        ]
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    audit.call(&call("late"), SystemTime::now());
    assert_eq!(audit.dropped().load(Ordering::Relaxed), 1, "after the end it is counted");
}

#[test]
fn files_are_put_aside_by_size_and_the_oldest_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = Log::open(AuditConfig { path: path.clone(), max_bytes: 20, keep: 2 }).unwrap();
    for number in 0..8 {
        log.write(&format!("line {number}\n")).unwrap();
    }
    assert_eq!(lines(&path), ["line 6", "line 7"]);
    assert_eq!(lines(&older(&path, 1)), ["line 4", "line 5"]);
    assert_eq!(lines(&older(&path, 2)), ["line 2", "line 3"]);
    assert!(!older(&path, 3).exists());
    let mut log = Log::open(AuditConfig { path: path.clone(), max_bytes: 1, keep: 0 }).unwrap();
    log.write("one line that is too long stands alone\n").unwrap();
    assert_eq!(lines(&path).len(), 1);
}

#[test]
fn a_file_that_was_taken_away_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = Log::open(AuditConfig::new(path.clone())).unwrap();
    log.write("one\n").unwrap();
    fs::rename(&path, older(&path, 1)).unwrap();
    log.write("two\n").unwrap();
    assert_eq!((lines(&older(&path, 1)), lines(&path)), (vec!["one".to_owned()], vec!["two".to_owned()]));
}

#[test]
fn what_cannot_be_a_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = Audit::start(&AuditConfig::new(folder.path().to_owned())).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the audit log"), "{error}");
}

#[test]
fn times_are_dates() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399, "2000-02-28T23:59:59.000Z"),
        (951_782_400, "2000-02-29T00:00:00.000Z"),
        (951_868_800, "2000-03-01T00:00:00.000Z"),
        (1_798_761_599, "2026-12-31T23:59:59.000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000Z"),
    ] {
        assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
    }
}
