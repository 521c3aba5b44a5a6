//! Owns which card a completed tool of the agent becomes. It looks at what the agent reported, and runs nothing.

mod files;
mod neutral;
mod outcome;
mod search;
mod shell;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Map, Value};

use super::activity::ToolActivity;
use super::card::{Activity, Card, CardBlock, Details, neutral_args};
use super::kind::{ToolKind, web};
use super::lenient;
use super::limits::{self, LABEL, Limit, NAME, TRANSCRIPT};
use super::preview::{IMAGE_BYTES, PreviewFiles, TEXT_BYTES};
use crate::json::RawJson;
use crate::profile::Profile;
use crate::scrub::Scrubber;
use crate::settings::TaskPresentation;
use outcome::Outcome;

/// Where agents write the file that a call is about.
const PATH: [&str; 12] = [
    "path",
    "filePath",
    "file_path",
    "targetFile",
    "target_file",
    "relativePath",
    "relative_workspace_path",
    "notebookPath",
    "notebook_path",
    "targetNotebook",
    "target_notebook",
    "directory",
];

/// What only an edit of a notebook's cell says.
const NOTEBOOK: [&str; 9] = [
    "notebookPath",
    "notebook_path",
    "targetNotebook",
    "target_notebook",
    "cellIdx",
    "cell_idx",
    "cellIndex",
    "cellId",
    "cell_id",
];

/// What cards are made by.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    pub(super) profile: &'a Profile,
    pub(super) scrubber: &'a Scrubber,
    pub(super) cwd: &'a Path,
    pub(super) files: &'a dyn PreviewFiles,
    pub(super) task_presentation: TaskPresentation,
    /// How much a card holds.
    pub(super) limit: Limit,
}

/// A card, and what a trace has instead of its text where that is shorter.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) card: Card,
    pub(super) brief: Option<String>,
}

/// A completed call, read.
#[derive(Debug)]
struct Call {
    kind: ToolKind,
    /// The agent's name of the tool, fit to be shown.
    name: String,
    args: Map<String, Value>,
    outcome: Outcome,
    /// The arguments as they came.
    raw: RawJson,
}

/// What a neutral card says.
#[derive(Debug, Default)]
struct Said {
    title: String,
    summary: String,
    text: String,
    path: Option<String>,
    diff: Option<String>,
    /// Collapsed, the summary is enough.
    summary_only: bool,
    block: Option<CardBlock>,
}

impl Matrix<'_> {
    /// The card of a completed call. `output` is what a command wrote while it ran.
    pub(super) fn card(&self, activity: &ToolActivity, output: Option<&str>) -> Made {
        let args = lenient::object(&activity.args);
        let mut call = Call {
            kind: Self::kind(activity),
            name: self.name(&activity.kind),
            outcome: Outcome::of(activity),
            raw: activity.args.clone(),
            args,
        };
        let card = match call.kind {
            // The host's own look is for calls that have what its tool requires.
            ToolKind::Read if self.path(&call).is_none() => self.neutral(&call),
            ToolKind::Grep if search::pattern(&call).is_none() => self.neutral(&call),
            ToolKind::Glob if search::glob_pattern(&call).is_none() => self.neutral(&call),
            ToolKind::Read => {
                let (card, brief) = self.read(&call);
                return Made { card, brief: Some(brief) };
            }
            ToolKind::Shell => self.shell(&mut call, output),
            ToolKind::Grep => self.grep(&call),
            ToolKind::Glob => self.glob(&call),
            ToolKind::Ls => self.ls(&call),
            ToolKind::Edit | ToolKind::Notebook => self.edit(&call),
            ToolKind::Write => self.write(&call),
            _ => self.neutral(&call),
        };
        Made { card, brief: None }
    }

    /// The file that the card of a completed call would look at, and how much of it.
    pub(super) fn wanted(activity: &ToolActivity) -> Option<(String, usize)> {
        let kind = Self::kind(activity);
        if !matches!(kind, ToolKind::Read | ToolKind::Image) {
            return None;
        }
        let (args, outcome) = (lenient::object(&activity.args), Outcome::of(activity));
        let call = Call { kind, name: String::new(), args, outcome, raw: activity.args.clone() };
        match kind {
            ToolKind::Read => Some((Self::unreported(&call)?.to_owned(), TEXT_BYTES)),
            _ => Some((Self::made_image(&call)?.to_owned(), IMAGE_BYTES + 1)),
        }
    }

    /// The tool; an MCP tool whose name is one of a web search or fetch counts as that, and an edit of a notebook as one of
    /// a notebook.
    pub(super) fn kind(activity: &ToolActivity) -> ToolKind {
        let kind = ToolKind::of(&activity.kind);
        if kind != ToolKind::Mcp && kind != ToolKind::Edit {
            return kind;
        }
        let args = lenient::object(&activity.args);
        if kind == ToolKind::Edit {
            let is_notebook = NOTEBOOK.iter().any(|name| args.contains_key(*name))
                || lenient::text(&args, &PATH).is_some_and(|path| path.to_lowercase().ends_with(".ipynb"));
            return if is_notebook { ToolKind::Notebook } else { kind };
        }
        lenient::text(&args, &neutral::MCP_TOOL).and_then(web).unwrap_or(kind)
    }

    /// What a call is called before anything is known of its result.
    pub(super) fn title(&self, activity: &ToolActivity) -> String {
        let what = match Self::kind(activity) {
            ToolKind::Read => "read",
            ToolKind::Shell => "shell",
            ToolKind::Grep => "grep",
            ToolKind::Glob => "glob",
            ToolKind::Ls => "ls",
            ToolKind::Edit | ToolKind::Notebook => "edit",
            ToolKind::Write => "write",
            ToolKind::Delete => "delete",
            ToolKind::Lints => "diagnostics",
            ToolKind::Todos => "todos",
            ToolKind::Plan => "plan",
            ToolKind::Task if self.task_presentation == TaskPresentation::Task => "task",
            ToolKind::Task => "subagent",
            ToolKind::Image => "image",
            ToolKind::Mcp => "MCP",
            ToolKind::CodeSearch => "code search",
            ToolKind::Screen => "screen recording",
            ToolKind::WebSearch => "web search",
            ToolKind::WebFetch => "web fetch",
            ToolKind::Unknown => return format!("{} {}", self.profile.card_title, self.name(&activity.kind)),
        };
        format!("{} {what}", self.profile.card_title)
    }

    fn name(&self, kind: &str) -> String {
        let kind = kind.strip_suffix("ToolCall").unwrap_or(kind);
        let name = limits::label(self.scrubber, kind, NAME);
        if name.is_empty() { "tool".to_owned() } else { name }
    }

    pub(super) fn label(&self, text: &str) -> String {
        limits::label(self.scrubber, text, LABEL)
    }

    fn block(&self, text: &str) -> String {
        limits::block(self.scrubber, text, self.limit)
    }

    /// The file that the call is about, fit to be shown.
    fn path(&self, call: &Call) -> Option<String> {
        let path = lenient::text(&call.args, &PATH).or_else(|| lenient::text(&call.outcome.value, &PATH))?;
        Some(self.label(&limits::relative(self.cwd, path)))
    }

    /// Why the call failed, in a block.
    fn error(&self, call: &Call) -> String {
        let text = self.block(&call.outcome.error);
        if text.is_empty() { "the agent reported an error without a text".to_owned() } else { text }
    }

    /// A card with the look of a host's own tool.
    fn native(&self, call: &Call, tool: &str, args: &Value, summary: &str, text: String) -> Card {
        let failed = call.outcome.failed;
        Card {
            tool: tool.to_owned(),
            title: format!("{} {}", self.profile.card_title, if tool == "bash" { "shell" } else { tool }),
            summary: if failed { String::new() } else { self.label(summary) },
            args: RawJson::of(args),
            content: vec![CardBlock::Text { text }],
            details: None,
            is_error: failed,
        }
    }

    /// A card of the display tool.
    fn activity(&self, call: &Call, said: Said) -> Card {
        let failed = call.outcome.failed;
        let summary = if failed { String::new() } else { self.label(&said.summary) };
        let source = match (&said.diff, failed) {
            (_, true) => self.error(call),
            (Some(diff), false) if said.text.trim().is_empty() => diff.clone(),
            (_, false) => said.text,
        };
        let shown = self.block(&source);
        let collapsed = (!said.summary_only && !failed && !shown.is_empty())
            .then(|| limits::preview(self.scrubber, &source));
        let activity = Activity {
            source_tool_name: call.name.clone(),
            title: said.title.clone(),
            summary: summary.clone(),
            collapsed_text: collapsed,
            expanded_text: shown.clone(),
            path: said.path,
            diff: said.diff.map(|diff| limits::block(self.scrubber, &diff, limits::DIFF)),
        };
        let details = match call.kind {
            ToolKind::Image => Details::GenerateImage(activity),
            ToolKind::Unknown => Details::GenericFallback(activity),
            _ => Details::Activity(activity),
        };
        // A card without any text would look like one that is still running.
        let text = match (shown.is_empty(), summary.is_empty()) {
            (false, _) => shown,
            (true, false) => summary.clone(),
            (true, true) => "done".to_owned(),
        };
        let mut content = vec![CardBlock::Text { text }];
        content.extend(said.block);
        Card {
            tool: self.profile.display_tool.to_owned(),
            args: neutral_args(&said.title, &summary),
            title: said.title,
            summary,
            content,
            details: Some(details),
            is_error: failed,
        }
    }

    /// A text for the arguments of a card: whole or not at all.
    fn whole(&self, text: &str) -> Option<String> {
        if text.len() > TRANSCRIPT.chars * 4 {
            return None;
        }
        let clean = limits::clean(text);
        let scrubbed = self.scrubber.scrub(&clean);
        (scrubbed.chars().count() <= TRANSCRIPT.chars).then(|| scrubbed.into_owned())
    }
}
