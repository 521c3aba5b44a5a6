//! Owns what an agent's updates come to: pieces of text put together to messages, thinking, calls, plans and what it has
//! used. Synchronous, with the time passed in; it sends nothing.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolway_bridge::RawJson;

use super::calls::{Calls, Told};
use super::names::Names;
use super::open_calls::OpenCalls;
use crate::event::{AssistantBlock, Delta, EventKind, Usage};

/// A message is told at the latest when it has so many bytes; what follows is another.
const MESSAGE: usize = 256 << 10;
/// The most bytes of the final text.
const RESULT: usize = 1 << 20;

/// What a prompt has come to so far.
#[derive(Debug)]
pub(super) struct Telling {
    session: String,
    pub(super) calls: Calls,
    text: String,
    message: Option<String>,
    thinking: String,
    thinking_since: Option<Instant>,
    /// The text of the last message.
    result: String,
    /// A call came after it.
    superseded: bool,
    /// What the session has cost, where the agent tells it in US dollars.
    cost: Option<f64>,
    /// The same before this prompt, as far as it was told.
    before: Option<f64>,
    /// Updates for sessions that are not ours.
    pub(super) strange: u64,
}

/// What an update says beside what is told on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Mode(String),
    Settings(RawJson),
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(rename = "sessionId", borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: &'a RawValue,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "sessionUpdate", borrow)]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    content: Value,
    message_id: Option<String>,
}

impl Telling {
    /// `before`: what the session had cost, as it was told.
    pub(super) fn new(session: &str, names: Names, shared: OpenCalls, before: Option<f64>) -> Self {
        Self {
            session: session.to_owned(),
            calls: Calls::new(names, shared),
            text: String::new(),
            message: None,
            thinking: String::new(),
            thinking_since: None,
            result: String::new(),
            superseded: false,
            cost: None,
            before,
            strange: 0,
        }
    }

    /// Takes the parameters of `session/update`. What cannot be read says nothing.
    pub(super) fn update(
        &mut self,
        params: &RawJson,
        now: Instant,
        terminal: &dyn Fn(&str) -> Option<String>,
    ) -> (Vec<Told>, Said) {
        let nothing = (Vec::new(), Said::Nothing);
        let Ok(update) = serde_json::from_str::<Update<'_>>(params.text()) else { return nothing };
        if update.session_id != self.session {
            self.strange += 1;
            return nothing;
        }
        let Ok(Kind { kind }) = serde_json::from_str(update.update.get()) else { return nothing };
        let Ok(raw) = RawJson::new(update.update.get().to_owned()) else { return nothing };
        match kind.as_ref() {
            "agent_message_chunk" => (self.said(&raw, now), Said::Nothing),
            "agent_thought_chunk" => (self.thought(&raw, now), Said::Nothing),
            "tool_call" | "tool_call_update" => {
                let mut told = self.flush(now);
                self.superseded = true;
                told.extend(self.calls.update(&raw, terminal));
                (told, Said::Nothing)
            }
            "plan" => (self.told_plan(&raw, now), Said::Nothing),
            "usage_update" => {
                self.used(&raw.tree());
                nothing
            }
            "notice" => (notice(&raw.tree()), Said::Nothing),
            "available_commands_update" => (commands(&raw.tree()), Said::Nothing),
            "current_mode_update" => mode(&raw.tree()),
            "config_option_update" => (Vec::new(), Said::Settings(raw)),
            "compaction_update" => (compaction(&raw.tree()), Said::Nothing),
            other => {
                tracing::debug!(target: "toolway::acp", "an update of the kind {other:?} is not shown");
                nothing
            }
        }
    }

    fn said(&mut self, raw: &RawJson, now: Instant) -> Vec<Told> {
        let Some((chunk, text)) = chunk(raw) else { return Vec::new() };
        let mut told = self.end_thinking(now);
        if self.message.is_some() && chunk.message_id.is_some() && self.message != chunk.message_id {
            told.extend(self.end_message());
            self.superseded = true;
        }
        if chunk.message_id.is_some() {
            self.message = chunk.message_id;
        }
        if std::mem::take(&mut self.superseded) {
            self.result.clear();
        }
        self.text.push_str(&text);
        let room = text.floor_char_boundary(RESULT.saturating_sub(self.result.len()));
        self.result.push_str(text.get(..room).unwrap_or_default());
        told.push(Told::Delta(Delta::Text(text)));
        if self.text.len() >= MESSAGE {
            told.extend(self.end_message());
        }
        told
    }

    fn thought(&mut self, raw: &RawJson, now: Instant) -> Vec<Told> {
        let Some((_, text)) = chunk(raw) else { return Vec::new() };
        let mut told = Vec::from_iter(self.end_message());
        self.thinking_since.get_or_insert(now);
        self.thinking.push_str(&text);
        told.push(Told::Delta(Delta::Thinking(text)));
        if self.thinking.len() >= MESSAGE {
            told.extend(self.end_thinking(now));
        }
        told
    }

    fn end_message(&mut self) -> Option<Told> {
        let text = std::mem::take(&mut self.text);
        (!text.is_empty())
            .then(|| Told::Event(EventKind::Assistant { content: vec![AssistantBlock::Text(text)] }))
    }

    fn end_thinking(&mut self, now: Instant) -> Vec<Told> {
        let text = std::mem::take(&mut self.thinking);
        let since = self.thinking_since.take();
        if text.is_empty() {
            return Vec::new();
        }
        let took = since.map(|since| now.saturating_duration_since(since).as_millis());
        let duration_ms = took.and_then(|took| u64::try_from(took).ok()).unwrap_or_default();
        vec![
            Told::Delta(Delta::ThinkingCompleted { duration_ms }),
            Told::Event(EventKind::Thinking { text, thinking_duration_ms: Some(duration_ms) }),
        ]
    }

    fn flush(&mut self, now: Instant) -> Vec<Told> {
        let mut told = self.end_thinking(now);
        told.extend(self.end_message());
        told
    }

    fn told_plan(&mut self, raw: &RawJson, now: Instant) -> Vec<Told> {
        let plan = raw.tree();
        let entries = plan.get("entries").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let line = |entry: &Value| {
            let mark = match entry.get("status").and_then(Value::as_str) {
                Some("completed") => "[x]",
                Some("in_progress") => "[~]",
                _ => "[ ]",
            };
            Some(format!("{mark} {}", entry.get("content")?.as_str()?))
        };
        let lines: Vec<String> = entries.iter().filter_map(line).collect();
        let mut told = self.flush(now);
        told.push(task("plan", lines.join("\n")));
        told
    }

    fn used(&mut self, update: &Value) {
        let cost = update.get("cost");
        let is_dollars = cost.and_then(|cost| cost.get("currency")).is_some_and(|currency| currency == "USD");
        if is_dollars {
            self.cost = cost.and_then(|cost| cost.get("amount")).and_then(Value::as_f64).or(self.cost);
        }
    }

    /// What the session has cost, for the next prompt.
    pub(super) fn session_cost(&self) -> Option<f64> {
        self.cost.or(self.before)
    }

    /// What this prompt has cost in US dollars, as far as the agent tells it.
    pub(super) fn spent(&self) -> Option<f64> {
        Some((self.cost? - self.before.unwrap_or_default()).max(0.0))
    }

    /// The prompt is over: what is still open is told, calls as failed for this reason.
    pub(super) fn finish(&mut self, why: &str, now: Instant) -> Vec<Told> {
        let mut told = self.flush(now);
        told.extend(self.calls.finish(why));
        told
    }

    /// The text of the last message.
    pub(super) fn result(&self) -> Option<String> {
        (!self.result.is_empty()).then(|| self.result.clone())
    }
}

fn chunk(raw: &RawJson) -> Option<(Chunk, String)> {
    let chunk: Chunk = serde_json::from_slice(raw.bytes()).ok()?;
    let part = |name: &str| chunk.content.get(name).and_then(Value::as_str);
    let text = match part("type") {
        Some("text") | None => part("text")?.to_owned(),
        Some("resource_link") => format!("[{}]({})", part("name").unwrap_or("resource"), part("uri")?),
        Some("resource") => chunk.content.get("resource")?.get("text")?.as_str()?.to_owned(),
        Some(other) => format!("[{other}]"),
    };
    (!text.is_empty()).then_some((chunk, text))
}

fn task(status: &str, text: String) -> Told {
    Told::Event(EventKind::Task { status: Some(status.to_owned()), text: Some(text) })
}

fn notice(update: &Value) -> Vec<Told> {
    let text = |name: &str| update.get(name).and_then(Value::as_str);
    let Some(title) = text("title") else { return Vec::new() };
    vec![task("notice", text("description").map_or(title.to_owned(), |more| format!("{title}: {more}")))]
}

fn commands(update: &Value) -> Vec<Told> {
    let list = update.get("availableCommands").and_then(Value::as_array);
    let names = list.into_iter().flatten().filter_map(|one| Some(format!("/{}", one.get("name")?.as_str()?)));
    let names: Vec<String> = names.collect();
    if names.is_empty() { Vec::new() } else { vec![task("commands", names.join(" "))] }
}

fn mode(update: &Value) -> (Vec<Told>, Said) {
    let id = update.get("currentModeId").or_else(|| update.get("modeId")).and_then(Value::as_str);
    match id {
        Some(id) => (vec![task("mode", id.to_owned())], Said::Mode(id.to_owned())),
        None => (Vec::new(), Said::Nothing),
    }
}

fn compaction(update: &Value) -> Vec<Told> {
    match update.get("status").and_then(Value::as_str) {
        Some("in_progress" | "pending") => vec![Told::Delta(Delta::SummaryStarted)],
        Some(status) => vec![task("compaction", status.to_owned())],
        None => Vec::new(),
    }
}

/// The tokens that the answer to a prompt tells. What an agent counts as input may hold what came from a cache: where its
/// total shows that, it is taken out.
pub(super) fn usage(answer: &Value) -> Option<Usage> {
    let told = answer.get("usage").filter(|usage| usage.is_object())?;
    let number = |names: &[&str]| names.iter().find_map(|name| told.get(*name)?.as_u64());
    let of = |names: &[&str]| number(names).unwrap_or_default();
    let mut usage = Usage {
        input: of(&["inputTokens", "input_tokens"]),
        output: of(&["outputTokens", "output_tokens"]),
        cache_read: of(&["cachedReadTokens", "cached_read_tokens"]),
        cache_write: of(&["cachedWriteTokens", "cached_write_tokens"]),
        reasoning: number(&["thoughtTokens", "thought_tokens"]),
    };
    let total = number(&["totalTokens", "total_tokens"]).unwrap_or_default();
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    if cached > 0 && total == usage.input.saturating_add(usage.output) && cached <= usage.input {
        usage.input -= cached;
    }
    Some(usage)
}

#[cfg(test)]
mod tests;
