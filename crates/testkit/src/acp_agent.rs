//! A scripted agent of the Agent Client Protocol, over stdin and stdout. It really connects to the servers that it is given
//! and really asks its client; what it says and does is in its script. It knows no client.
//!
//! The script is a JSON object, all of its members optional:
//! - `initialize`: members over those of the usual answer, for capabilities true or false.
//! - `session`: members over those of the answers to `session/new`, `session/load` and `session/resume`.
//! - `replay`: updates that `session/load` tells before it answers.
//! - `start`: steps before anything is read.
//! - `methods`: by method, steps in place of the usual answer. `{"answer": ...}` and `{"error": ...}` answer.
//! - `prompts`: a list of `{"when": "text", "do": [steps]}`: the first that has no `when` and was not used yet, or whose
//!   text is in the prompt. After all of its steps a prompt is answered with `end_turn`.
//! - `ignores_servers`: it takes the servers that it is given and does nothing with them.
//! - `ignores_cancel`, `deaf`: what the words say; the deaf one stays when stdin ends, and after SIGTERM.
//!
//! Steps are objects with one of these members, see `steps`: `say`, `think`, `update`, `ask`, `permission`, `mcp`, `at_once`, `line`,
//! `stderr`, `sleep`, `hang`, `die`, `flood`, `huge`, `await_cancel`, `end`, `error`, `answer`, `twice`.

mod servers;
mod steps;
mod wire;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use self::servers::Servers;
use self::wire::Wire;
use crate::journal::Journal;

/// What an agent does.
#[derive(Debug, Clone, Default)]
pub struct AcpScript(Value);

impl AcpScript {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self> {
        let script: Value = serde_json::from_str(text).context("the script is no JSON")?;
        Ok(Self(script))
    }

    fn member(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    fn is(&self, name: &str) -> bool {
        self.member(name) == &Value::Bool(true)
    }
}

/// A scripted agent.
#[derive(Debug)]
pub struct AcpAgent {
    script: AcpScript,
    wire: Wire,
    journal: Journal,
    sessions: Mutex<BTreeMap<String, Servers>>,
    used: Mutex<Vec<usize>>,
    cancelled: (Mutex<bool>, Condvar),
}

impl AcpAgent {
    /// Serves stdin and stdout until stdin ends. The journal, one line of JSON for each event, goes to the file.
    pub fn serve(script: AcpScript, journal: Option<File>) -> Result<()> {
        let deaf = script.is("deaf");
        if deaf {
            crate::fake::ignore_signals()?;
        }
        let agent = Arc::new(Self {
            script,
            wire: Wire::default(),
            journal: Journal::new(journal, None),
            sessions: Mutex::default(),
            used: Mutex::default(),
            cancelled: (Mutex::new(false), Condvar::new()),
        });
        agent.journal.event(
            "start",
            json!({"pid": std::process::id(), "args": std::env::args().collect::<Vec<_>>(), "env": variables()}),
        );
        agent.steps(agent.script.member("start"), None)?;
        let mut input = BufReader::new(std::io::stdin());
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line)? > 0 {
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                agent.take(message);
            }
            line.clear();
        }
        agent.journal.event("stdin ended", json!({}));
        if deaf {
            loop {
                std::thread::park();
            }
        }
        Ok(())
    }

    fn take(self: &Arc<Self>, message: Value) {
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let Some(method) = method else {
            self.journal.event("answer", json!({"message": message}));
            self.wire.answered(&message);
            return;
        };
        self.journal.event("message", json!({"method": method, "params": message.get("params")}));
        if method == "session/cancel" {
            *self.cancelled.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.cancelled.1.notify_all();
            return;
        }
        let Some(id) = message.get("id").cloned() else { return };
        let agent = Arc::clone(self);
        // One thread for each request: a prompt must not keep a cancellation from being read.
        std::thread::spawn(move || {
            let params = message.get("params").cloned().unwrap_or_default();
            if let Err(error) = agent.request(&method, &id, &params) {
                agent.journal.event("failed", json!({"error": format!("{error:#}")}));
                agent.wire.error(&id, -32603, &format!("{error:#}"));
            }
        });
    }

    fn request(&self, method: &str, id: &Value, params: &Value) -> Result<()> {
        let steps = self.script.member("methods").get(method).unwrap_or(&Value::Null);
        if !steps.is_null() && self.steps(steps, Some((id, params)))? {
            return Ok(());
        }
        let session = params.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        match method {
            "initialize" => {
                let usual = json!({
                    "protocolVersion": 1,
                    "agentInfo": {"name": "scripted", "version": "1.0.0"},
                    "agentCapabilities": {
                        "loadSession": true,
                        "mcpCapabilities": {"http": true, "sse": false},
                        "promptCapabilities": {"image": true},
                    },
                    "authMethods": [],
                });
                self.wire.answer(id, &merged(usual, self.script.member("initialize")));
            }
            "session/new" => {
                let count = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).len() + 1;
                let session = format!("session-{}-{count}", std::process::id());
                self.open(&session, params);
                let usual = json!({"sessionId": session});
                self.wire.answer(id, &merged(usual, self.script.member("session")));
            }
            "session/load" | "session/resume" => {
                self.open(session, params);
                if method == "session/load" {
                    for update in self.script.member("replay").as_array().into_iter().flatten() {
                        self.wire.update(session, update);
                    }
                }
                self.wire.answer(id, &merged(json!({}), self.script.member("session")));
            }
            "session/prompt" => self.prompt(id, params)?,
            "session/set_mode" | "session/set_model" | "authenticate" => self.wire.answer(id, &json!({})),
            "session/set_config_option" => {
                self.wire.answer(
                    id,
                    &json!({"configOptions": self.script.member("session").get("configOptions")}),
                );
            }
            other => self.wire.error(id, -32601, &format!("no method {other}")),
        }
        Ok(())
    }

    fn open(&self, session: &str, params: &Value) {
        let given = params.get("mcpServers").filter(|_| !self.script.is("ignores_servers"));
        let servers = Servers::connect(given, &self.journal);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), servers);
    }

    fn prompt(&self, id: &Value, params: &Value) -> Result<()> {
        *self.cancelled.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
        let text: Vec<&str> = params
            .get("prompt")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|block| block.get("text")?.as_str())
            .collect();
        let steps = self.chosen(&text.join("\n"));
        if !self.steps(&steps, Some((id, params)))? {
            self.wire.answer(id, &json!({"stopReason": "end_turn"}));
        }
        Ok(())
    }

    fn chosen(&self, text: &str) -> Value {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let prompts = self.script.member("prompts").as_array().map(Vec::as_slice).unwrap_or_default();
        let fits = |(index, prompt): &(usize, &Value)| match prompt.get("when").and_then(Value::as_str) {
            Some(when) => text.contains(when),
            None => !used.contains(index),
        };
        let Some((index, prompt)) = prompts.iter().enumerate().find(fits) else {
            return json!([{"say": format!("You said: {text}")}]);
        };
        used.push(index);
        prompt.get("do").cloned().unwrap_or_default()
    }
}

fn merged(usual: Value, over: &Value) -> Value {
    match (usual, over) {
        (Value::Object(mut usual), Value::Object(over)) => {
            for (name, value) in over {
                let before = usual.remove(name).unwrap_or_default();
                usual.insert(name.clone(), merged(before, value));
            }
            Value::Object(usual)
        }
        (usual, Value::Null) => usual,
        (_, over) => over.clone(),
    }
}

fn variables() -> Map<String, Value> {
    let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value).into())).collect()
}
