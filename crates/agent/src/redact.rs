//! Owns what is taken out of everything that is told or kept of an agent: the values that its servers and its model are
//! reached with, and well-known shapes of secrets. Numbers and all other bytes stay as they are.

mod given;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use toolway_bridge::RawJson;
use toolway_secret::{REDACTED, Redactor, Secret};

pub(crate) use given::{Given, given};

use crate::event::{AssistantBlock, Delta, EventKind, SystemInit, ToolCallEvent};

/// A shorter text is no secret: replacing it would tear every text apart.
const SHORTEST: usize = 4;

/// The two redactors of a run: for what is told to its program, which knows where its servers are, and for what is kept.
#[derive(Debug)]
pub(crate) struct Redactors {
    pub(crate) told: AgentRedactor,
    pub(crate) kept: AgentRedactor,
}

impl Redactors {
    pub(crate) fn new(given: Given) -> Self {
        let Given { secrets, addresses, hosts } = given;
        let told = AgentRedactor::new(secrets.iter().cloned());
        let mut kept = AgentRedactor::new(secrets.into_iter().chain(addresses));
        kept.hosts = AgentRedactor::new(hosts).given;
        Self { told, kept }
    }
}

/// Takes secrets out of what an agent tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentRedactor {
    /// The longest first: an address goes as a whole, not its token out of it.
    given: Vec<Secret>,
    /// The same for reports of servers alone.
    hosts: Vec<Secret>,
}

impl AgentRedactor {
    /// Knows these texts beside the shapes.
    pub(crate) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut given = BTreeMap::new();
        for secret in secrets {
            let text = secret.expose().trim();
            if text.len() >= SHORTEST {
                // Inside of JSON that is itself a text.
                let quoted = serde_json::Value::from(text).to_string();
                let inner = quoted.trim_matches('"').to_owned();
                given.insert(inner.clone(), Secret::new(inner));
                given.insert(text.to_owned(), Secret::new(text));
            }
        }
        let mut given: Vec<Secret> = given.into_values().collect();
        given.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self { given, hosts: Vec::new() }
    }

    /// A text.
    pub(crate) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.without_given(text) {
            Cow::Borrowed(text) => Redactor::known().redact(text),
            Cow::Owned(text) => Cow::Owned(Redactor::known().redact(&text).into_owned()),
        }
    }

    fn without_given<'a>(&self, text: &'a str) -> Cow<'a, str> {
        without(&self.given, text)
    }

    /// What is said of servers.
    fn report(&self, text: String) -> String {
        let text = self.owned(text);
        without(&self.hosts, &text).into_owned()
    }

    /// A JSON value: its texts alone, and the names of its members.
    pub(crate) fn json(&self, json: &RawJson) -> RawJson {
        match self.json_text(json.text()) {
            Cow::Borrowed(_) => json.clone(),
            Cow::Owned(text) => RawJson::new(text).unwrap_or_else(|_| RawJson::of(&REDACTED.into())),
        }
    }

    fn json_text<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let by_text = self.each_text(json);
        // Shapes that reach over several texts: a name and its value. What would no longer be JSON is left.
        match Redactor::known().redact(&by_text) {
            Cow::Owned(text) if is_json(&text) => Cow::Owned(text),
            _ => by_text,
        }
    }

    fn each_text<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let mut out = String::new();
        let (mut kept, mut at) = (0, 0);
        while let Some(start) = find(json, at, |byte| byte == b'"') {
            let Some(end) = end_of_text(json, start + 1) else { break };
            at = end + 1;
            let Some(token) = json.get(start..at) else { break };
            let inner = token.get(1..token.len() - 1).unwrap_or_default();
            let changed = if inner.contains('\\') {
                let decoded: String = serde_json::from_str(token).unwrap_or_default();
                match self.text(&decoded) {
                    Cow::Owned(changed) => Some(changed),
                    Cow::Borrowed(_) => None,
                }
            } else {
                match self.text(inner) {
                    Cow::Owned(changed) => Some(changed),
                    Cow::Borrowed(_) => None,
                }
            };
            if let Some(changed) = changed {
                out.push_str(json.get(kept..start).unwrap_or_default());
                out.push_str(&serde_json::Value::from(changed).to_string());
                kept = at;
            }
        }
        if kept == 0 {
            return Cow::Borrowed(json);
        }
        out.push_str(json.get(kept..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// A conversation as an engine keeps it: JSON, lines of JSON, or any other text.
    pub(crate) fn checkpoint(&self, bytes: &Bytes) -> Bytes {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Bytes::from(self.text(&String::from_utf8_lossy(bytes)).into_owned());
        };
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let clean = if is_json(text) {
            self.json_text(text)
        } else if lines.iter().all(|line| is_json(line)) {
            Cow::Owned(lines.into_iter().map(|line| self.json_text(line)).collect::<String>())
        } else {
            self.text(text)
        };
        if *clean == *text { bytes.clone() } else { Bytes::from(clean.into_owned()) }
    }

    /// What a message says.
    pub(crate) fn event(&self, kind: EventKind) -> EventKind {
        match kind {
            EventKind::System(init) => EventKind::System(Box::new(self.init(*init))),
            EventKind::User { text } => EventKind::User { text: self.owned(text) },
            EventKind::Assistant { content } => {
                let block = |block| match block {
                    AssistantBlock::Text(text) => AssistantBlock::Text(self.owned(text)),
                    AssistantBlock::ToolUse { id, name, input } => {
                        AssistantBlock::ToolUse { id, name, input: self.json(&input) }
                    }
                };
                EventKind::Assistant { content: content.into_iter().map(block).collect() }
            }
            EventKind::Thinking { text, thinking_duration_ms } => {
                EventKind::Thinking { text: self.owned(text), thinking_duration_ms }
            }
            EventKind::ToolCall(call) => EventKind::ToolCall(self.call(call)),
            EventKind::Status { status, message } => {
                EventKind::Status { status, message: message.map(|message| self.owned(message)) }
            }
            EventKind::Task { status, text } => {
                EventKind::Task { status, text: text.map(|text| self.owned(text)) }
            }
            EventKind::Request { .. } | EventKind::Usage(_) => kind,
        }
    }

    /// What happens between messages. A secret that is cut by two of them is not seen: they are not kept.
    pub(crate) fn delta(&self, delta: Delta) -> Delta {
        match delta {
            Delta::Text(text) => Delta::Text(self.owned(text)),
            Delta::Thinking(text) => Delta::Thinking(self.owned(text)),
            Delta::PartialToolCall { call_id, name, arguments } => {
                Delta::PartialToolCall { call_id, name, arguments: self.owned(arguments) }
            }
            Delta::ToolCallStarted(call) => Delta::ToolCallStarted(self.call(call)),
            Delta::ToolCallCompleted(call) => Delta::ToolCallCompleted(self.call(call)),
            Delta::ToolCallProgress { call_id, message } => {
                Delta::ToolCallProgress { call_id, message: self.owned(message) }
            }
            Delta::ShellOutput { call_id, stream, text } => {
                Delta::ShellOutput { call_id, stream, text: self.owned(text) }
            }
            Delta::UserMessageAppended(text) => Delta::UserMessageAppended(self.owned(text)),
            other => other,
        }
    }

    fn init(&self, mut init: SystemInit) -> SystemInit {
        for server in &mut init.mcp_servers {
            server.reason = server.reason.take().map(|reason| self.report(reason));
        }
        init.diagnostics = init.diagnostics.into_iter().map(|text| self.report(text)).collect();
        init
    }

    fn call(&self, mut call: ToolCallEvent) -> ToolCallEvent {
        call.args = call.args.map(|args| self.json(&args));
        call.result = call.result.map(|result| self.json(&result));
        call
    }

    pub(crate) fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }
}

fn without<'a>(given: &[Secret], text: &'a str) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for secret in given {
        if text.contains(secret.expose()) {
            text = Cow::Owned(text.replace(secret.expose(), REDACTED));
        }
    }
    text
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text.trim()).is_ok()
}

fn find(text: &str, from: usize, what: impl Fn(u8) -> bool) -> Option<usize> {
    text.as_bytes().get(from..)?.iter().position(|byte| what(*byte)).map(|at| from + at)
}

/// Where the text that begins there has its closing quote.
fn end_of_text(json: &str, mut at: usize) -> Option<usize> {
    loop {
        let found = find(json, at, |byte| matches!(byte, b'"' | b'\\'))?;
        if json.as_bytes().get(found) == Some(&b'"') {
            return Some(found);
        }
        at = found + 2;
    }
}
