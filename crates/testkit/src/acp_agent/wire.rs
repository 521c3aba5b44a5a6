//! Owns the agent's way to its client: lines on stdout, and the answers to what it asks.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// How long an answer of the client is waited for: a question for permission may take its time.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug, Default)]
pub(super) struct Wire {
    asked: Mutex<(u64, BTreeMap<u64, Sender<Value>>)>,
}

impl Wire {
    #[expect(clippy::unused_self, reason = "stdout is the wire's")]
    pub(super) fn line(&self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        // A client that has gone reads nothing.
        out.write_all(bytes)
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| out.flush())
            .unwrap_or_default();
    }

    fn send(&self, message: &Value) {
        self.line(message.to_string().as_bytes());
    }

    pub(super) fn answer(&self, id: &Value, result: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(super) fn error(&self, id: &Value, code: i64, message: &str) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    pub(super) fn fault(&self, id: &Value, error: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    pub(super) fn update(&self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// Asks the client and waits: the whole answer.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Result<Value> {
        let (sender, answers) = channel();
        let id = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.0 += 1;
            let id = asked.0;
            asked.1.insert(id, sender);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        answers.recv_timeout(PATIENCE).with_context(|| format!("{method} was not answered"))
    }

    pub(super) fn answered(&self, message: &Value) {
        let Some(id) = message.get("id").and_then(Value::as_u64) else { return };
        let waiting = self.asked.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&id);
        if let Some(waiting) = waiting {
            waiting.send(message.clone()).unwrap_or_default();
        }
    }
}
