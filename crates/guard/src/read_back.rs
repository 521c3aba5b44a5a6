//! Owns reading saved results over MCP itself: the tool `toolway_saved`, the resources `toolway://saved/ID`, and
//! arguments that name a saved result. Every answer obeys the size limit.

mod outputs;
mod page;
mod process;
mod reference;

use serde::Deserialize;
use serde_json::Value;
use toolway_wire::{Scanner, Verdict, push_string};

pub use outputs::{QUERY_COMMAND, answer_query};
pub use process::{bound_query, query_process};
pub use reference::MAX_REFERENCED;

use crate::config::ReadBack;
use crate::saved::{SavedEntry, Store};
use crate::{Guard, GuardError};
use outputs::Outputs;
use page::{Page, Want};

/// The name of the tool.
pub const TOOL: &str = "toolway_saved";
/// What the URI of a saved result begins with.
pub(crate) const SCHEME: &str = "toolway://saved/";
/// Results that a list of resources names.
const LISTED: usize = 50;

/// The tool as `tools/list` shows it, JSON.
pub fn definition() -> String {
    serde_json::json!({
        "name": TOOL,
        "title": "Read a saved result",
        "description": "Reads on in a tool result that was too large and was saved. Give its id and exactly one of: lines (\"900-950\"), bytes (\"0-4095\"), search (a regular expression), query (a jq filter for JSON results). Long answers come in pages and say how to go on.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id that the notice of the saved result names"},
                "lines": {"type": "string", "description": "FIRST-LAST, FIRST- or FIRST, counted from 1"},
                "bytes": {"type": "string", "description": "FIRST-LAST, FIRST- or FIRST, counted from 0"},
                "search": {"type": "string", "description": "A regular expression; fitting lines are shown with their numbers"},
                "context": {"type": "integer", "minimum": 0, "maximum": 50, "description": "With search: lines around each find (default 2)"},
                "from": {"type": "integer", "minimum": 1, "description": "With search: the line to begin at (default 1)"},
                "query": {"type": "string", "description": "A jq filter over the JSON of the result, such as .rows[0:10]"}
            },
            "required": ["id"],
            "additionalProperties": false
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}
    })
    .to_string()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArguments {
    id: String,
    lines: Option<Value>,
    bytes: Option<Value>,
    search: Option<String>,
    context: Option<usize>,
    from: Option<u64>,
    query: Option<String>,
}

impl RawArguments {
    fn want(self) -> Result<(String, Want), GuardError> {
        let text = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let mut wants = Vec::new();
        wants.extend(self.lines.map(|lines| Want::lines(&text(lines))));
        wants.extend(self.bytes.map(|bytes| Want::bytes(&text(bytes))));
        let (context, from) = (self.context.unwrap_or(2).min(50), self.from.unwrap_or(1));
        wants.extend(self.search.map(|pattern| Ok(Want::Search { pattern, context, from })));
        wants.extend(self.query.map(|filter| Ok(Want::Query { filter, outputs: Outputs::default() })));
        if wants.len() != 1 {
            let error = format!("give exactly one of lines, bytes, search and query, not {}", wants.len());
            return Err(GuardError::Arguments(error));
        }
        let want = wants.swap_remove(0)?;
        Ok((self.id.strip_prefix(SCHEME).map_or(self.id.clone(), str::to_owned), want))
    }
}

impl Guard {
    /// Answers `tools/call` of `toolway_saved`: a complete response without a line ending, within the limit. `id`
    /// is the request's id and `arguments` its `params.arguments`, raw JSON. May read a whole saved result.
    /// A query takes at most the time that [`GuardConfig::query_process`](crate::GuardConfig) gives.
    pub fn call_read_back(&self, id: &[u8], arguments: &[u8], session: &str) -> Vec<u8> {
        let wanted = serde_json::from_slice::<RawArguments>(arguments)
            .map_err(|error| GuardError::Arguments(format!("bad arguments: {error}")))
            .and_then(RawArguments::want);
        let found = wanted.and_then(|(saved, mut want)| {
            let entry = self.seen(&saved, session)?;
            if let Want::Query { filter, outputs } = &mut want {
                let (config, page) = (self.config(), self.largest_page());
                *outputs = Outputs::take(self.store(), &entry, filter, page, config.query_process.as_ref())?;
            }
            Ok((entry, want))
        });
        self.fitting(|budget| {
            let page = found.as_ref().map_err(ToString::to_string).and_then(|(entry, want)| {
                page::page(self.store(), entry, want, budget).map_err(|error| error.to_string())
            });
            let (text, is_error) = match page {
                Ok(Page { text }) => (text, false),
                Err(error) => (error.chars().take(budget).collect(), true),
            };
            let mut out = begin(id);
            out.extend_from_slice(b"{\"content\":[{\"type\":\"text\",\"text\":");
            push_string(&text, &mut out);
            out.extend_from_slice(format!("}}],\"isError\":{is_error}}}}}").as_bytes());
            out
        })
    }

    /// Answers `resources/read` of `toolway://saved/ID`: the beginning of its text, within the limit. `None`: the
    /// URI is not one of ours, and the request is the upstream's.
    pub fn read_saved_resource(&self, id: &[u8], uri: &str, session: &str) -> Option<Vec<u8>> {
        let saved = uri.strip_prefix(SCHEME)?;
        let entry = match self.seen(saved, session) {
            Ok(entry) => entry,
            Err(error) => {
                let code = toolway_wire::INVALID_PARAMS;
                return Some(toolway_wire::error_response(id, code, &error.to_string(), None));
            }
        };
        let whole = Want::Lines(crate::Span { first: 1, last: None });
        Some(self.fitting(|budget| {
            let text = match page::page(self.store(), &entry, &whole, budget) {
                Ok(page) => page.text,
                Err(error) => error.to_string(),
            };
            let mut out = begin(id);
            out.extend_from_slice(b"{\"contents\":[{\"uri\":");
            push_string(uri, &mut out);
            out.extend_from_slice(b",\"mimeType\":\"text/plain\",\"text\":");
            push_string(&text, &mut out);
            out.extend_from_slice(b"}]}}");
            out
        }))
    }

    /// Adds the newest saved results that the session may see to a complete `resources/list` response that is the
    /// last page. `None`: there are none, or there is no list.
    pub fn add_saved_resources(&self, message: &[u8], session: &str) -> Option<Vec<u8>> {
        use toolway_wire::find::{Step, elements, find};
        let list = find(message, &[Step::Key("result"), Step::Key("resources")])?;
        let entries = self.store().list().ok()?;
        let seen = entries.iter().filter(|entry| self.may_see(entry, session)).take(LISTED);
        let resources: Vec<String> = seen.map(resource).collect();
        if resources.is_empty() || message.get(list.start) != Some(&b'[') {
            return None;
        }
        let last = elements(message, list.clone()).last();
        let at = last.as_ref().map_or(list.start + 1, |last| last.end);
        let comma = if last.is_some() { "," } else { "" };
        let (before, after) = message.split_at(at);
        Some([before, comma.as_bytes(), resources.join(",").as_bytes(), after].concat())
    }

    fn may_see(&self, entry: &SavedEntry, session: &str) -> bool {
        match self.config().read_back {
            ReadBack::User => true,
            ReadBack::Session | ReadBack::Off => entry.session == session,
        }
    }

    /// The saved result, if the session may see it.
    fn seen(&self, id: &str, session: &str) -> Result<SavedEntry, GuardError> {
        let session = match self.config().read_back {
            ReadBack::User => None,
            ReadBack::Session | ReadBack::Off => Some(session),
        };
        self.store().find(id, session)
    }

    fn largest_page(&self) -> usize {
        usize::try_from(self.config().max_response_chars).unwrap_or(usize::MAX)
    }

    /// What `make` gives for the largest budget, in characters, that keeps the message under the limit.
    fn fitting(&self, make: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
        let limit = self.config().max_response_chars;
        let mut budget = self.largest_page();
        loop {
            let message = make(budget);
            let over = chars(&message).saturating_sub(limit);
            if over == 0 || budget == 0 {
                return message;
            }
            // Escapes may take up to six characters each: a sixth of what is over is sure to go, in a few rounds.
            let less = usize::try_from(over / 2).unwrap_or(usize::MAX).max(budget / 64).max(16);
            budget = budget.saturating_sub(less);
        }
    }
}

fn begin(id: &[u8]) -> Vec<u8> {
    [b"{\"jsonrpc\":\"2.0\",\"id\":".as_slice(), id, b",\"result\":"].concat()
}

fn chars(message: &[u8]) -> u64 {
    let mut scanner = Scanner::new();
    scanner.feed(message);
    match scanner.finish() {
        Verdict::Message(envelope) => envelope.size().chars,
        _ => u64::MAX,
    }
}

fn resource(entry: &SavedEntry) -> String {
    let what = entry.tool.as_deref().or(entry.uri.as_deref()).unwrap_or(&entry.method);
    let name: String = format!("{what} at {}", entry.at).chars().take(200).collect();
    serde_json::json!({
        "uri": format!("{SCHEME}{}", entry.id),
        "name": name,
        "description": format!("Saved result of {} characters, {} lines", entry.chars, entry.lines),
        "mimeType": "text/plain",
        "size": Store::text_bytes(entry),
    })
    .to_string()
}

#[cfg(test)]
mod tests;
