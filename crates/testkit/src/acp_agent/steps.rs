//! Owns what the steps of a script do.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::AcpAgent;

impl AcpAgent {
    /// Executes steps for a request: its id and parameters. Gives whether one of them answered it.
    pub(super) fn steps(&self, steps: &Value, request: Option<(&Value, &Value)>) -> Result<bool> {
        let mut answered = false;
        for step in steps.as_array().into_iter().flatten() {
            answered |= self.step(step, request)?;
        }
        Ok(answered)
    }

    fn step(&self, step: &Value, request: Option<(&Value, &Value)>) -> Result<bool> {
        let (name, value) =
            step.as_object().and_then(|step| step.iter().next()).context("a step is an object")?;
        let (id, params) = request.unwrap_or((&Value::Null, &Value::Null));
        let session = params.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        let chunk = |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": value}});
        match name.as_str() {
            "say" => self.wire.update(session, &chunk("agent_message_chunk")),
            "think" => self.wire.update(session, &chunk("agent_thought_chunk")),
            "update" => self.wire.update(session, value),
            "ask" => {
                self.ask(session, value)?;
            }
            "at_once" => self.at_once(value, request)?,
            "permission" => self.permission(session, value)?,
            "mcp" => self.mcp(session, value)?,
            "line" => self.wire.line(value.as_str().unwrap_or_default().as_bytes()),
            "stderr" => std::io::Write::write_all(
                &mut std::io::stderr(),
                value.as_str().unwrap_or_default().as_bytes(),
            )?,
            "sleep" => pause(Duration::from_millis(value.as_u64().unwrap_or_default())),
            "hang" => loop {
                std::thread::park();
            },
            "die" => die(i32::try_from(value.as_i64().unwrap_or(1))?),
            "flood" => {
                for number in 0..value.as_u64().unwrap_or(1) {
                    let text = format!("{number} ");
                    let content = json!({"type": "text", "text": text});
                    self.wire.update(
                        session,
                        &json!({"sessionUpdate": "agent_message_chunk", "content": content}),
                    );
                }
            }
            "huge" => {
                let text = "x".repeat(usize::try_from(value.as_u64().unwrap_or_default())?);
                let content = json!({"type": "text", "text": text});
                self.wire
                    .update(session, &json!({"sessionUpdate": "agent_message_chunk", "content": content}));
            }
            "await_cancel" => self.await_cancel(),
            "twice" => {
                self.wire.answer(id, value);
                self.wire.answer(id, value);
                return Ok(true);
            }
            "end" => {
                let answer = if value.is_object() { value.clone() } else { json!({"stopReason": value}) };
                self.wire.answer(id, &answer);
                return Ok(true);
            }
            "answer" => {
                self.wire.answer(id, value);
                return Ok(true);
            }
            "error" => {
                self.wire.fault(id, value);
                return Ok(true);
            }
            other => bail!("there is no step {other:?}"),
        }
        Ok(false)
    }

    /// Each of these steps on its own thread; all have ended afterwards.
    fn at_once(&self, steps: &Value, request: Option<(&Value, &Value)>) -> Result<()> {
        std::thread::scope(|scope| {
            let all = steps.as_array().into_iter().flatten();
            let begun: Vec<_> =
                all.map(|step| scope.spawn(move || self.step(step, request).map(drop))).collect();
            begun.into_iter().try_for_each(|one| one.join().unwrap_or_else(|_| bail!("a step panicked")))
        })
    }

    fn await_cancel(&self) {
        let mut cancelled = self.cancelled.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !*cancelled {
            cancelled = self.cancelled.1.wait(cancelled).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// `{"method": ..., "params": {...}, "say": true}`: the session's id is added. With `say` the answer is said.
    fn ask(&self, session: &str, value: &Value) -> Result<Value> {
        let method = value.get("method").and_then(Value::as_str).context("ask needs a method")?;
        let mut params = value.get("params").cloned().unwrap_or_else(|| json!({}));
        if let Some(params) = params.as_object_mut() {
            params.entry("sessionId").or_insert_with(|| session.into());
        }
        let answer = self.wire.ask(method, &params)?;
        let outcome = answer.get("result").or_else(|| answer.get("error")).cloned().unwrap_or_default();
        self.journal.event("asked", json!({"method": method, "answer": answer}));
        if value.get("say") == Some(&Value::Bool(true)) {
            let content = json!({"type": "text", "text": outcome.to_string()});
            self.wire.update(session, &json!({"sessionUpdate": "agent_message_chunk", "content": content}));
        }
        Ok(outcome)
    }

    /// `{"toolCall": {...}, "options": [...], "allowed": [steps], "refused": [steps]}`.
    fn permission(&self, session: &str, value: &Value) -> Result<()> {
        let usual = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let options = value.get("options").cloned().unwrap_or(usual);
        let params = json!({"toolCall": value.get("toolCall"), "options": options});
        let outcome =
            self.ask(session, &json!({"method": "session/request_permission", "params": params}))?;
        let chosen = outcome.pointer("/outcome/optionId").and_then(Value::as_str);
        let allowed = matches!(chosen, Some("yes" | "always"));
        let then = value.get(if allowed { "allowed" } else { "refused" }).cloned().unwrap_or_default();
        self.steps(&then, Some((&Value::Null, &json!({"sessionId": session})))).map(|_| ())
    }

    /// `{"server": ..., "tool": ..., "arguments": {...}, "id": "call-1"}`, or a list of them, which are called at once: calls
    /// tools of servers that it was given, and tells of it as agents do. A cancelled prompt gives its calls up.
    fn mcp(&self, session: &str, value: &Value) -> Result<()> {
        let one = std::slice::from_ref(value);
        let mut flights = Vec::new();
        for value in value.as_array().map_or(one, Vec::as_slice) {
            let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
            let (server, tool) = (text("server"), text("tool"));
            let arguments = value.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let id = if text("id").is_empty() { "call-1" } else { text("id") };
            let title = format!("{server}_{tool}");
            let begun = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "other", "status": "pending", "rawInput": {}});
            self.wire.update(session, &begun);
            let runs = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress", "rawInput": arguments});
            self.wire.update(session, &runs);
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            let servers = sessions.get_mut(session).context("no such session")?;
            flights.push((id.to_owned(), server, tool, servers.call(server, tool, &arguments)));
        }
        let is_cancelled = || *self.cancelled.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, server, tool, flight) in flights {
            let (status, output) = match flight.and_then(|flight| flight.land(is_cancelled)) {
                Ok(result) => ("completed", result),
                Err(error) => (
                    "failed",
                    json!({"content": [{"type": "text", "text": format!("{error:#}")}], "isError": true}),
                ),
            };
            self.journal.event("called", json!({"server": server, "tool": tool, "result": output}));
            let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "rawOutput": output});
            self.wire.update(session, &ended);
        }
        Ok(())
    }
}

fn pause(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        std::thread::park_timeout(left);
    }
}

#[expect(clippy::exit, reason = "an agent that dies in the middle is what is asked for")]
fn die(code: i32) -> ! {
    std::process::exit(code)
}
