//! What events say, and that sinks cost nothing.

use std::io::{self, Write};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn call() -> CallFields {
    CallFields {
        bridge_call_id: "run-bridge-1".to_owned(),
        host_call_id: "run-t1".to_owned(),
        host_tool_name: "read".to_owned(),
        mcp_tool_name: "pi__read".to_owned(),
        mcp_request_id: hashed_request(&Profile::PI, b"1"),
    }
}

fn event(kind: EventKind) -> Event {
    Event { run_id: Some("run".to_owned()), enabled: true, exposed_tool_count: 2, pending_count: 1, kind }
}

#[test]
fn events_have_their_documented_fields_and_no_others() {
    let run = json!({"runId": "run", "enabled": true, "exposedToolCount": 2, "pendingCount": 1});
    let call_fields = json!({
        "bridgeCallId": "run-bridge-1", "hostCallId": "run-t1", "hostToolName": "read", "mcpToolName": "pi__read",
        "mcpRequestId": "cursor-mcp-call-6b86b273",
    });
    let pairs = vec![("read".to_owned(), "pi__read".to_owned())];
    for (kind, name, more) in [
        (EventKind::RunCreated, "run_created", json!({})),
        (
            EventKind::RunSkipped(SkipReason::NoExposedTools),
            "run_skipped",
            json!({"reason": "no_exposed_tools"}),
        ),
        (EventKind::RunSkipped(SkipReason::Disabled), "run_skipped", json!({"reason": "disabled"})),
        (EventKind::ToolsExposed { pairs }, "tools_exposed", json!({"pairs": [["read", "pi__read"]]})),
        (
            EventKind::RunCancelled { queued_count: 1, cancelled_request_count: 3 },
            "run_cancelled",
            json!({"queuedCount": 1, "cancelledRequestCount": 3}),
        ),
        (EventKind::RunDisposed, "run_disposed", json!({})),
        (EventKind::RequestQueued(call()), "request_queued", call_fields.clone()),
        (
            EventKind::RequestResolved(call(), true),
            "request_resolved",
            with(&call_fields, json!({"isError": true})),
        ),
        (
            EventKind::RequestRejected(call(), RejectionKind::Cancelled),
            "request_rejected",
            with(&call_fields, json!({"rejectionKind": "cancelled"})),
        ),
        (EventKind::McpInitialized, "mcp_initialized", json!({})),
        (EventKind::McpToolsList { tool_count: 2 }, "mcp_tools_list", json!({"toolCount": 2})),
    ] {
        let line: Value = serde_json::from_str(&event(kind).to_json()).unwrap();
        assert_eq!(line, with(&with(&run, more), json!({ "event": name })));
    }
}

fn with(one: &Value, other: Value) -> Value {
    let mut all = one.as_object().unwrap().clone();
    let Value::Object(other) = other else { panic!("{other}") };
    all.extend(other);
    all.into()
}

#[tokio::test]
async fn lines_go_to_stderr_with_the_tag_and_to_the_end_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("bridge.log");
    std::fs::write(&file, "before\n").unwrap();
    let stderr = Shared::default();
    let diagnostics = Diagnostics::new(DiagnosticsConfig {
        stderr: Some((Profile::PI, Box::new(stderr.clone()))),
        file: Some(file.clone()),
        sinks: Vec::new(),
    });
    diagnostics.emit(|| event(EventKind::RunCreated));
    diagnostics.emit(|| event(EventKind::RunDisposed));
    diagnostics.flush(Duration::from_mins(1)).await;
    let (created, disposed) =
        (event(EventKind::RunCreated).to_json(), event(EventKind::RunDisposed).to_json());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("before\n{created}\n{disposed}\n"));
    let written = String::from_utf8(stderr.0.lock().unwrap().clone()).unwrap();
    assert_eq!(written, format!("[pi-cursor-sdk:bridge] {created}\n[pi-cursor-sdk:bridge] {disposed}\n"));
    assert_eq!(diagnostics.last().len(), 2);
}

/// Fails, breaks off, then waits until it may go on.
struct Bad {
    go_on: mpsc::Receiver<()>,
    recorded: usize,
}

impl DiagnosticSink for Bad {
    fn record(&mut self, _: &Event) -> io::Result<()> {
        self.recorded += 1;
        match self.recorded {
            1 => Err(io::Error::other("the disk is full")),
            2 => panic!("the recorder broke"),
            3 => {
                self.go_on.recv().ok();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_sink_that_fails_breaks_or_hangs_holds_nobody_up() {
    let (go_on, wait) = mpsc::channel();
    let (bad, stderr) = (Bad { go_on: wait, recorded: 0 }, Shared::default());
    let diagnostics = Diagnostics::new(DiagnosticsConfig {
        stderr: Some((Profile::HOST, Box::new(stderr.clone()))),
        file: Some("/nonexistent/folder/file".into()),
        sinks: vec![Box::new(bad)],
    });
    for _ in 0..100_000 {
        diagnostics.emit(|| event(EventKind::RunCreated));
    }
    assert_eq!(diagnostics.last().len(), 64, "memory is bounded");
    diagnostics.flush(Duration::from_millis(1)).await;
    go_on.send(()).unwrap();
    let mut lines = 0;
    while lines < 1000 {
        tokio::task::yield_now().await;
        lines = stderr.0.lock().unwrap().split(|byte| *byte == b'\n').count() - 1;
    }
    assert!(lines < 5000, "what could not be kept was dropped: {lines}");
}

#[test]
fn off_costs_nothing_and_keeps_nothing() {
    let diagnostics = Diagnostics::default();
    diagnostics.emit(|| panic!("nobody listens"));
    assert!(!diagnostics.is_on() && diagnostics.last().is_empty());
}
