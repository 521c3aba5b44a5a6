//! Owns what an editor is told of a run, piece by piece: what is known of it so far, and the updates that follow. Synchronous;
//! it sends nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::calls::{self, ToolUpdate};
use crate::event::{
    AssistantBlock, Delta, EventKind, ServerReport, SystemInit, ToolCallEvent, ToolCallStatus,
};

/// The most bytes of a running call's output that are shown: its end.
const OUTPUT: usize = 16 << 10;
/// Output is told at most so often: each time all of it is told again.
const OFTEN: Duration = Duration::from_millis(100);
/// The tool whose calls are shown as the plan that comes of them.
const PLANNER: &str = "updateTodos";

/// An update, as it is sent.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Update {
    Plain(Value),
    Call(Box<ToolUpdate>),
}

#[derive(Debug, Default)]
struct Open {
    output: String,
    is_new: bool,
}

/// A run as the editor knows it.
#[derive(Debug)]
pub(super) struct Showing {
    cwd: PathBuf,
    /// Calls that were told of and have not ended.
    open: BTreeMap<String, Open>,
    /// When output that waits is told.
    due: Option<Instant>,
}

impl Showing {
    pub(super) fn new(cwd: PathBuf) -> Self {
        Self { cwd, open: BTreeMap::new(), due: None }
    }

    /// When [`Showing::output`] has something.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What is told of a delta.
    pub(super) fn delta(&mut self, delta: Delta, now: Instant) -> Vec<Update> {
        match delta {
            Delta::Text(text) => vec![Update::Plain(message(&text))],
            Delta::Thinking(text) => vec![Update::Plain(thought(&text))],
            Delta::PartialToolCall { name, .. } if name == PLANNER => Vec::new(),
            Delta::PartialToolCall { call_id, name, .. } => {
                if self.open.contains_key(&call_id) {
                    return Vec::new();
                }
                self.open.insert(call_id.clone(), Open::default());
                vec![Update::Call(Box::new(calls::partial(call_id, &name)))]
            }
            Delta::ToolCallStarted(call) | Delta::ToolCallCompleted(call) => self.call(&call),
            Delta::ToolCallProgress { call_id, message } => {
                self.wrote(&call_id, &format!("{message}\n"), now)
            }
            Delta::ShellOutput { call_id, text, .. } => self.wrote(&call_id, &text, now),
            _ => Vec::new(),
        }
    }

    /// What is told again of an event that was kept.
    pub(super) fn repeated(&mut self, event: EventKind) -> Vec<Update> {
        match event {
            EventKind::User { text } => vec![Update::Plain(chunk("user_message_chunk", &text))],
            EventKind::Thinking { text, .. } => vec![Update::Plain(thought(&text))],
            EventKind::Assistant { content } => content
                .into_iter()
                .filter_map(|block| match block {
                    AssistantBlock::Text(text) => Some(Update::Plain(message(&text))),
                    AssistantBlock::ToolUse { .. } => None,
                })
                .collect(),
            EventKind::ToolCall(call) => self.call(&call),
            EventKind::Task { status: Some(status), text: Some(text) } if status == "plan" => {
                vec![Update::Plain(plan(&text))]
            }
            _ => Vec::new(),
        }
    }

    fn call(&mut self, call: &ToolCallEvent) -> Vec<Update> {
        if call.name == PLANNER {
            return call.result.as_ref().and_then(calls::plan).map(Update::Plain).into_iter().collect();
        }
        let is_known = if call.status == ToolCallStatus::Running {
            self.open.insert(call.call_id.clone(), Open::default()).is_some()
        } else {
            self.open.remove(&call.call_id).is_some()
        };
        vec![Update::Call(Box::new(calls::update(call, is_known, &self.cwd)))]
    }

    fn wrote(&mut self, call_id: &str, text: &str, now: Instant) -> Vec<Update> {
        let Some(open) = self.open.get_mut(call_id) else { return Vec::new() };
        open.output.push_str(text);
        open.is_new = true;
        if open.output.len() > 2 * OUTPUT {
            let from = open.output.ceil_char_boundary(open.output.len() - OUTPUT);
            open.output.drain(..from);
        }
        self.due.get_or_insert(now + OFTEN);
        Vec::new()
    }

    /// What calls have written since it was told last.
    pub(super) fn output(&mut self) -> Vec<Update> {
        self.due = None;
        let news = self.open.iter_mut().filter_map(|(id, open)| {
            std::mem::take(&mut open.is_new).then(|| Box::new(calls::output(id, &open.output)))
        });
        news.map(Update::Call).collect()
    }

    /// Nothing more comes: calls that are open have failed for this reason.
    pub(super) fn finish(&mut self, why: &str) -> Vec<Update> {
        self.due = None;
        let open = std::mem::take(&mut self.open);
        open.keys().map(|id| Update::Call(Box::new(calls::given_up(id, why)))).collect()
    }
}

/// What is wrong with servers and files, a line each.
pub(super) fn problems(init: &SystemInit) -> Vec<String> {
    let servers = init.mcp_servers.iter().filter(|server| is_wrong(server)).map(|server| {
        let reason = server.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("The server {} is not there: {}{reason}", server.name, server.state)
    });
    servers.chain(init.diagnostics.iter().cloned()).collect()
}

/// Whether the user wants to know: not of a server that is on its way, or that the user has switched off.
fn is_wrong(server: &ServerReport) -> bool {
    !matches!(
        server.state.as_str(),
        "connected" | "starting" | "connecting" | "handed_over" | "disabled" | "shadowed"
    )
}

pub(super) fn message(text: &str) -> Value {
    chunk("agent_message_chunk", text)
}

pub(super) fn thought(text: &str) -> Value {
    chunk("agent_thought_chunk", text)
}

/// What is no part of the conversation: a notice where the editor shows such, elsewhere a piece of thinking.
pub(super) fn aside(title: &str, text: &str, notices: bool) -> Update {
    Update::Plain(if notices {
        let title = format!("Toolway: {title}");
        json!({"sessionUpdate": "notice", "severity": "warning", "title": title, "description": text})
    } else {
        thought(&format!("Toolway: {text}\n\n"))
    })
}

/// A note about the work. The plan and the commands of an agent behind the protocol are shown as the plan and the commands
/// that they are.
pub(super) fn task(status: Option<&str>, text: Option<String>, notices: bool) -> Vec<Update> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Vec::new() };
    let title = match status {
        Some("plan") => return vec![Update::Plain(plan(&text))],
        Some("commands") => return vec![Update::Plain(commands(&text))],
        // What the editor chose, or what it shows by itself.
        Some("mode" | "compaction") => return Vec::new(),
        Some("refused") => "something was refused",
        Some("new_session") => "the conversation is a new one",
        Some("servers") => "the servers are not used",
        Some("subagent") => "a subagent",
        _ => "a note",
    };
    vec![aside(title, &text, notices)]
}

/// The entries of a plan, of the lines that it is told as: `[x] dig`.
fn plan(text: &str) -> Value {
    let entry = |line: &str| {
        let (mark, content) = line.split_once("] ")?;
        let status = match mark {
            "[x" => "completed",
            "[~" => "in_progress",
            "[ " => "pending",
            _ => return None,
        };
        Some(json!({"content": content, "priority": "medium", "status": status}))
    };
    json!({"sessionUpdate": "plan", "entries": text.lines().filter_map(entry).collect::<Vec<_>>()})
}

fn commands(text: &str) -> Value {
    let command = |word: &str| json!({"name": word.trim_start_matches('/'), "description": ""});
    let commands: Vec<Value> = text.split_whitespace().map(command).collect();
    json!({"sessionUpdate": "available_commands_update", "availableCommands": commands})
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Truncated;

    fn running(id: &str, name: &str) -> ToolCallEvent {
        ToolCallEvent {
            call_id: id.to_owned(),
            name: name.to_owned(),
            status: ToolCallStatus::Running,
            args: None,
            result: None,
            truncated: Truncated::default(),
        }
    }

    fn told(updates: &[Update]) -> Vec<(String, Option<String>)> {
        let values = updates.iter().map(|update| serde_json::to_value(update).unwrap());
        values
            .map(|value| {
                let kind = value["sessionUpdate"].as_str().unwrap().to_owned();
                (kind, value["status"].as_str().map(str::to_owned))
            })
            .collect()
    }

    fn pair(kind: &str, status: &str) -> (String, Option<String>) {
        (kind.to_owned(), Some(status.to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_begun_once_and_ended_once() {
        let mut showing = Showing::new("/w".into());
        let now = Instant::now();
        let partial = || Delta::PartialToolCall {
            call_id: "c".to_owned(),
            name: "read".to_owned(),
            arguments: String::new(),
        };
        assert_eq!(told(&showing.delta(partial(), now)), [pair("tool_call", "pending")]);
        assert!(showing.delta(partial(), now).is_empty());
        let started = Delta::ToolCallStarted(running("c", "read"));
        assert_eq!(told(&showing.delta(started, now)), [pair("tool_call_update", "in_progress")]);
        let done = ToolCallEvent { status: ToolCallStatus::Completed, ..running("c", "read") };
        let completed = Delta::ToolCallCompleted(done);
        assert_eq!(told(&showing.delta(completed, now)), [pair("tool_call_update", "completed")]);
        showing.delta(Delta::ToolCallStarted(running("d", "shell")), now);
        assert_eq!(told(&showing.finish("cancelled")), [pair("tool_call_update", "failed")]);
        assert!(showing.finish("cancelled").is_empty());
    }

    #[test]
    fn notes_are_told_as_what_they_are() {
        let shown = |status: &str, text: &str, notices| {
            serde_json::to_value(task(Some(status), Some(text.to_owned()), notices)).unwrap()
        };
        let plan = shown("plan", "[x] dig\n[~] fill\n[ ] rest [x] more\nodd", false);
        let entries: Vec<_> = plan[0]["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (&one["content"], &one["status"]))
            .collect();
        let pair = |content: &'static str, status: &'static str| (json!(content), json!(status));
        let expected =
            [pair("dig", "completed"), pair("fill", "in_progress"), pair("rest [x] more", "pending")];
        assert_eq!(entries, expected.each_ref().map(|(content, status)| (content, status)));
        let commands = shown("commands", "/init /review", false);
        assert_eq!(commands[0]["availableCommands"][1]["name"], "review");
        for update in [&plan[0], &commands[0]] {
            serde_json::from_value::<agent_client_protocol::v1::schema::SessionUpdate>(update.clone())
                .unwrap();
        }
        assert_eq!(shown("refused", "no", true)[0]["sessionUpdate"], "notice");
        assert_eq!(shown("refused", "no", false)[0]["content"]["text"], "Toolway: no\n\n");
        assert_eq!(shown("mode", "plan", true), json!([]));
    }

    #[tokio::test(start_paused = true)]
    async fn output_is_told_now_and_then_and_its_end_is_kept() {
        let mut showing = Showing::new("/w".into());
        let now = Instant::now();
        showing.delta(Delta::ToolCallStarted(running("c", "shell")), now);
        for _ in 0..5000 {
            let text = "a line of twenty lette\n".to_owned();
            let delta = Delta::ShellOutput { call_id: "c".to_owned(), stream: "stdout", text };
            assert!(showing.delta(delta, now).is_empty());
        }
        assert_eq!(showing.due(), Some(now + OFTEN));
        let updates = showing.output();
        let bytes = serde_json::to_string(&updates).unwrap();
        assert!(updates.len() == 1 && bytes.len() < 3 * OUTPUT, "{}", bytes.len());
        assert!(showing.output().is_empty() && showing.due().is_none());
    }
}
