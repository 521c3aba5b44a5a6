//! Owns what goes on at this moment: which tools run, for how long, what they said last. It draws nothing.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::time::Instant;
use toolway_agent::Delta;
use toolway_bridge::RawJson;

use super::super::agent::summary;
use super::PROFILE;
use crate::show::one_line;

/// No more tools are counted.
const MOST: usize = 100;
/// Characters of what a tool said that are kept.
const SAID: usize = 200;

/// What goes on. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Working(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    since: Option<Instant>,
    tools: Vec<Tool>,
}

#[derive(Debug)]
struct Tool {
    id: String,
    what: String,
    said: String,
    since: Instant,
}

impl Working {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A prompt is worked on from now on.
    pub(super) fn start(&self) {
        *self.lock() = Inner { since: Some(Instant::now()), tools: Vec::new() };
    }

    /// It is not any more.
    pub(super) fn stop(&self) {
        *self.lock() = Inner::default();
    }

    /// A tool runs.
    pub(super) fn begins(&self, id: &str, what: String) {
        let mut inner = self.lock();
        if inner.tools.len() < MOST {
            inner.tools.push(Tool { id: id.to_owned(), what, said: String::new(), since: Instant::now() });
        }
    }

    /// It ended.
    pub(super) fn ended(&self, id: &str) {
        self.lock().tools.retain(|tool| tool.id != id);
    }

    /// What the agent tells of its own tools.
    pub(super) fn delta(&self, delta: &Delta) {
        match delta {
            Delta::ToolCallStarted(call) if !is_of_chat(call.args.as_ref()) => {
                self.begins(&call.call_id, summary(&call.name, call.args.as_ref()));
            }
            Delta::ToolCallCompleted(call) => self.ended(&call.call_id),
            Delta::ToolCallProgress { call_id, message } => self.said(call_id, message),
            Delta::ShellOutput { call_id, text, .. } => {
                if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
                    self.said(call_id, line);
                }
            }
            _ => {}
        }
    }

    fn said(&self, id: &str, text: &str) {
        if let Some(tool) = self.lock().tools.iter_mut().find(|tool| tool.id == id) {
            tool.said = one_line(text, SAID);
        }
    }

    /// All of it in one line; `None`: it has only just begun.
    pub(super) fn line(&self) -> Option<String> {
        let inner = self.lock();
        let seconds = inner.since?.elapsed().as_secs();
        let Some(tool) = inner.tools.last() else {
            return (seconds > 0).then(|| format!("… {seconds} s"));
        };
        let mut line = format!("… {} s · {}", tool.since.elapsed().as_secs(), tool.what);
        if inner.tools.len() > 1 {
            line = format!("… {} tools, {}", inner.tools.len(), line.trim_start_matches("… "));
        }
        if !tool.said.is_empty() {
            write!(line, " · {}", tool.said).unwrap_or_default();
        }
        Some(line)
    }
}

/// The agent's call of a tool that the chat runs, and counts itself.
fn is_of_chat(args: Option<&RawJson>) -> bool {
    let server = args.map(RawJson::tree).unwrap_or_default();
    server.get("providerIdentifier").and_then(Value::as_str) == Some(PROFILE.server_key)
}

#[cfg(test)]
mod tests {
    use toolway_agent::{ToolCallEvent, ToolCallStatus, Truncated};

    use super::*;

    fn call(id: &str, args: &str) -> ToolCallEvent {
        ToolCallEvent {
            call_id: id.to_owned(),
            name: if args.contains("toolName") { "mcp" } else { "shell" }.to_owned(),
            status: ToolCallStatus::Running,
            args: Some(RawJson::new(args.to_owned()).unwrap()),
            result: None,
            truncated: Truncated::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_runs_is_one_line() {
        let working = Working::default();
        assert_eq!(working.line(), None);
        working.start();
        assert_eq!(working.line(), None, "it has only just begun");
        tokio::time::advance(std::time::Duration::from_secs(3)).await;
        assert_eq!(working.line().unwrap(), "… 3 s");
        working.delta(&Delta::ToolCallStarted(call("a", r#"{"command":"cargo test"}"#)));
        let progress = Delta::ToolCallProgress { call_id: "a".to_owned(), message: "half\nway".to_owned() };
        working.delta(&progress);
        assert_eq!(working.line().unwrap(), "… 0 s · shell: cargo test · half way");
        let of_chat = r#"{"providerIdentifier":"host_tools","toolName":"host__todo","args":{}}"#;
        working.delta(&Delta::ToolCallStarted(call("b", of_chat)));
        working.begins("c", "slow".to_owned());
        assert_eq!(working.line().unwrap(), "… 2 tools, 0 s · slow");
        working.ended("c");
        working.delta(&Delta::ToolCallCompleted(call("a", "{}")));
        assert_eq!(working.line().unwrap(), "… 3 s");
        working.stop();
        assert_eq!(working.line(), None);
    }
}
