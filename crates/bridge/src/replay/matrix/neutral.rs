//! Owns the cards of tools that no host has a look for, the unknown ones among them.

use serde_json::{Map, Value};

use super::super::lenient;
use super::super::limits::{self, ARGS};
use super::super::preview;
use super::{Call, Card, CardBlock, Matrix, Said, TaskPresentation, ToolActivity, ToolKind};
use crate::json::RawJson;

/// Where the tool of an MCP call is named.
pub(super) const MCP_TOOL: [&str; 4] = ["toolName", "tool_name", "tool", "name"];

impl Matrix<'_> {
    pub(super) fn neutral(&self, call: &Call) -> Card {
        let activity = ToolActivity {
            id: String::new(),
            kind: call.name.clone(),
            args: call.raw.clone(),
            result: None,
            status: super::super::activity::ToolStatus::Completed,
        };
        let title = self.title(&activity);
        let summary = self.summary(call.kind, &call.args, &call.outcome.value, &call.raw);
        let mut said = Said { title, summary, ..Said::default() };
        match call.kind {
            ToolKind::Delete => said.path = self.path(call),
            ToolKind::Lints => said.text = lints(&call.outcome.value),
            ToolKind::Todos => said.text = todos(call),
            ToolKind::Plan => {
                let names = ["plan", "overview", "content", "text"];
                let plan = lenient::text(&call.args, &names).or(call.outcome.text.as_deref());
                plan.unwrap_or_default().clone_into(&mut said.text);
            }
            ToolKind::Image => self.image(call, &mut said),
            ToolKind::WebSearch | ToolKind::WebFetch => {
                said.text = text(call);
                said.summary_only = true;
            }
            _ => said.text = text(call),
        }
        self.activity(call, said)
    }

    /// One line on a call. Also what is said while it runs, when there is no result yet.
    pub(in crate::replay) fn summary(
        &self,
        kind: ToolKind,
        args: &Map<String, Value>,
        value: &Map<String, Value>,
        raw: &RawJson,
    ) -> String {
        let arg = |names: &[&str]| lenient::text(args, names).unwrap_or_default();
        let shown = match kind {
            ToolKind::Shell => arg(&["command", "cmd"]).to_owned(),
            ToolKind::Delete => limits::relative(self.cwd, arg(&super::PATH)),
            ToolKind::Lints => {
                let many = lenient::count(value, &["totalDiagnostics"])
                    .unwrap_or_else(|| lints(value).lines().count());
                limits::plural(many, "diagnostic")
            }
            ToolKind::Todos => match list(args, value, "todos").len() {
                0 => String::new(),
                many => limits::plural(many, "item"),
            },
            ToolKind::Plan => arg(&["name", "title", "overview"]).to_owned(),
            ToolKind::Task => self.task(args, value),
            ToolKind::Image => arg(&["description", "prompt", "filename"]).to_owned(),
            ToolKind::Mcp => {
                let server = arg(&["providerIdentifier", "serverName", "server"]);
                let tool = limits::label(self.scrubber, arg(&MCP_TOOL), limits::NAME);
                if server.is_empty() { tool } else { format!("{tool} ({server})") }
            }
            ToolKind::Screen => arg(&["mode", "action", "name"]).to_owned(),
            ToolKind::CodeSearch | ToolKind::WebSearch => {
                self.asked(args, &["query", "searchTerm", "search_term", "q"])
            }
            ToolKind::WebFetch => self.asked(args, &["url", "uri"]),
            _ if args.is_empty() => String::new(),
            _ => limits::label(self.scrubber, raw.text(), ARGS),
        };
        self.label(&shown)
    }

    /// What a search asks, also within the arguments of an MCP call.
    fn asked(&self, args: &Map<String, Value>, names: &[&str]) -> String {
        let inner = ["args", "arguments", "input"].iter().find_map(|name| args.get(*name)?.as_object());
        let asked = lenient::text(args, names).or_else(|| lenient::text(inner?, names)).unwrap_or_default();
        self.label(asked)
    }

    fn task(&self, args: &Map<String, Value>, value: &Map<String, Value>) -> String {
        let of = |names: &[&str]| lenient::text(args, names).or_else(|| lenient::text(value, names));
        let mut parts = vec![of(&["description", "title", "name", "prompt"]).unwrap_or_default().to_owned()];
        if self.task_presentation == TaskPresentation::SubagentMeta {
            let kind = of(&["subagentType", "subagent_type", "agentType"]).or_else(|| {
                // Newer agents have it as an object whose kind is its name or its only key.
                let kind = args.get("subagentType")?.as_object()?;
                lenient::text(kind, &["name", "kind", "type"])
                    .or_else(|| kind.keys().next().map(String::as_str))
            });
            parts.extend(kind.map(str::to_owned));
            parts.extend(of(&["model", "modelId"]).map(str::to_owned));
            parts.extend(of(&["agentId", "agent_id", "taskId", "task_id", "subagentId"]).map(short_id));
        }
        parts.retain(|part| !part.trim().is_empty());
        parts.join(" · ")
    }

    /// The file of an image that was made.
    pub(super) fn made_image(call: &Call) -> Option<&str> {
        Self::image_path(call).filter(|_| !call.outcome.failed)
    }

    fn image_path(call: &Call) -> Option<&str> {
        lenient::text(&call.outcome.value, &["filePath", "path", "imagePath", "file_path"])
            .or_else(|| lenient::text(&call.args, &["filePath", "path", "filename"]))
    }

    fn image(&self, call: &Call, said: &mut Said) {
        let path = Self::image_path(call);
        said.path = path.map(|path| self.label(&limits::relative(self.cwd, path)));
        said.block = Self::made_image(call).and_then(|path| preview::image(self.files, self.cwd, path));
        said.text = match (&said.path, &said.block) {
            (Some(path), Some(CardBlock::Image { .. })) => path.clone(),
            (Some(path), _) => format!("{path} (cannot be shown here)"),
            (None, _) => String::new(),
        };
    }
}

/// At most 12 characters, else the first 8.
fn short_id(id: &str) -> String {
    if id.chars().count() <= 12 { id.to_owned() } else { id.chars().take(8).collect() }
}

fn list<'a>(
    args: &'a Map<String, Value>,
    value: &'a Map<String, Value>,
    name: &str,
) -> Vec<&'a Map<String, Value>> {
    let of =
        |map: &'a Map<String, Value>| map.get(name).and_then(Value::as_array).filter(|list| !list.is_empty());
    of(value).or_else(|| of(args)).into_iter().flatten().filter_map(Value::as_object).collect()
}

fn todos(call: &Call) -> String {
    let items = list(&call.args, &call.outcome.value, "todos");
    let lines: Vec<String> = items
        .iter()
        .take(limits::ITEMS)
        .map(|item| {
            let status = lenient::text(item, &["status"]).unwrap_or_default().to_lowercase();
            let mark = if status.contains("complete") {
                "x"
            } else if status.contains("progress") {
                ">"
            } else if status.contains("cancel") {
                "-"
            } else {
                " "
            };
            let text = lenient::text(item, &["content", "text", "title"]).unwrap_or_default();
            format!("[{mark}] {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect();
    limits::list(&lines, items.len())
}

fn lints(value: &Map<String, Value>) -> String {
    let mut lines = Vec::new();
    let files =
        ["fileDiagnostics", "files", "diagnostics"].iter().find_map(|name| value.get(*name)?.as_array());
    for file in files.into_iter().flatten().filter_map(Value::as_object) {
        let name = lenient::text(file, &["path", "file"]).unwrap_or_default();
        let inner = file.get("diagnostics").and_then(Value::as_array);
        let one = |diagnostic: &Map<String, Value>| {
            let text = lenient::text(diagnostic, &["message", "text"]).unwrap_or_default();
            format!("{name}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        match inner {
            Some(inner) => lines.extend(inner.iter().filter_map(Value::as_object).map(one)),
            None => lines.push(one(file)),
        }
    }
    limits::list(&lines, lines.len())
}

/// What a tool gave: its text, its blocks, or else its result as the agent wrote it.
fn text(call: &Call) -> String {
    let outcome = &call.outcome;
    if let Some(blocks) = outcome.value.get("content").and_then(Value::as_array) {
        return blocks.iter().map(block_text).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
    }
    let names = ["markdown", "results", "content", "text", "output", "result", "message", "references"];
    match (outcome.text_of(&names), &outcome.raw) {
        (Some(text), _) => text.to_owned(),
        (None, Some(raw)) if !matches!(raw.text(), "{}" | "null" | "[]") => raw.text().to_owned(),
        _ => String::new(),
    }
}

/// A block of MCP, or of the command line tool, which wraps each in its kind.
fn block_text(block: &Value) -> String {
    let Some(map) = block.as_object() else { return block.as_str().unwrap_or_default().to_owned() };
    let inner = |name: &str| map.get(name).and_then(Value::as_object);
    let text = lenient::any_text(map, &["text"]).or_else(|| lenient::any_text(inner("text")?, &["text"]));
    if let Some(text) = text {
        return text.to_owned();
    }
    let kind = map.get("type").and_then(Value::as_str).or_else(|| map.keys().next().map(String::as_str));
    let resource = inner("resource").and_then(|resource| lenient::text(resource, &["text", "uri"]));
    resource.map_or_else(|| format!("[{}]", kind.unwrap_or("block")), str::to_owned)
}
