//! Owns the tool `grep`: lines of files by a regular expression.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use serde_json::{Value, json};

use super::matches::{FileMatches, Taking};
use super::{Gathering, Walk, by_path, search};
use crate::engine::BoxFuture;
use crate::policy::Action;
use crate::tools::arguments::fault;
use crate::tools::{Arguments, Capability, Tool, ToolContext, ToolOutput};

const ARGUMENTS: [&str; 13] = [
    "pattern",
    "path",
    "glob",
    "outputMode",
    "ignoreCase",
    "literal",
    "multiline",
    "before",
    "after",
    "context",
    "limit",
    "hidden",
    "noIgnore",
];
const MODES: [&str; 3] = ["content", "files", "count"];
/// Finds that are shown where no number is named.
const LIMIT: u64 = 200;
const MOST: u64 = 2000;
/// Finds after which no more is looked for.
const ENOUGH: usize = 50_000;
/// Lines around a find.
const MOST_CONTEXT: u64 = 50;
/// Characters that are shown in all.
const CHARS: usize = 36_000;
/// Bytes of the longest line, or of the longest find over several.
const HEAP: usize = 64 << 20;

/// `grep`.
#[derive(Debug)]
pub(in crate::tools) struct Grep;

impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn capability(&self) -> Capability {
        Capability::Grep
    }

    fn description(&self) -> String {
        "Searches files for a regular expression (Rust syntax; literal=true takes the pattern as it is). outputMode \
         content (default) shows the lines, files only the files, count how often in each. glob limits the files (`*.rs`, \
         `!*.min.js`). Hidden, ignored and binary files are left out unless hidden or noIgnore is set."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression"},
                "path": {"type": "string", "description": "The folder or file; without it the working folder"},
                "glob": {"type": "array", "items": {"type": "string"}, "description": "Patterns of files that count"},
                "outputMode": {"type": "string", "enum": MODES},
                "ignoreCase": {"type": "boolean"},
                "literal": {"type": "boolean", "description": "The pattern is no expression"},
                "multiline": {"type": "boolean", "description": "The expression may span lines"},
                "before": {"type": "integer", "minimum": 0, "description": "Lines before each find"},
                "after": {"type": "integer", "minimum": 0, "description": "Lines after each find"},
                "context": {"type": "integer", "minimum": 0, "description": "Lines before and after each find"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many lines or files are shown (default 200)"},
                "hidden": {"type": "boolean", "description": "Hidden files too"},
                "noIgnore": {"type": "boolean", "description": "Ignored files too"},
            },
            "required": ["pattern"],
        })
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput> {
        Want::read(args)?;
        Ok(vec![context.place(&args.text("path")?.unwrap_or_else(|| ".".to_owned()))?.read()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

#[derive(Debug, Clone)]
struct Want {
    matcher: RegexMatcher,
    mode: &'static str,
    before: usize,
    after: usize,
    multiline: bool,
    limit: usize,
}

impl Want {
    fn read(args: &Arguments) -> Result<Self, ToolOutput> {
        args.only(&ARGUMENTS)?;
        let pattern = args.text("pattern")?.filter(|pattern| !pattern.is_empty());
        let pattern = pattern.ok_or_else(|| fault("pattern", "is missing"))?;
        let multiline = args.flag("multiline")?;
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(args.flag("ignoreCase")?).fixed_strings(args.flag("literal")?);
        builder.multi_line(true);
        if multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(b'\n')).crlf(true);
        }
        let matcher = builder.build(&pattern).map_err(|error| {
            fault(
                "pattern",
                format!("is no regular expression ({error}); with literal=true it is taken as it is"),
            )
        })?;
        let lines = |name: &str, both: Option<u64>| -> Result<usize, ToolOutput> {
            let lines = args.count(name)?.or(both).unwrap_or(0).min(MOST_CONTEXT);
            Ok(usize::try_from(lines).unwrap_or(0))
        };
        let both = args.count("context")?;
        let limit = match args.count("limit")?.unwrap_or(LIMIT) {
            0 => return Err(fault("limit", "must be at least 1")),
            limit => usize::try_from(limit.min(MOST)).unwrap_or(usize::MAX),
        };
        let mode = args.word("outputMode", &MODES)?.unwrap_or("content");
        Ok(Self {
            matcher,
            mode,
            before: lines("before", both)?,
            after: lines("after", both)?,
            multiline,
            limit,
        })
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        if !self.multiline {
            builder.line_terminator(LineTerminator::crlf());
        }
        builder
            .line_number(true)
            .before_context(self.before)
            .after_context(self.after)
            .multi_line(self.multiline)
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never())
            .heap_limit(Some(HEAP))
            .build()
    }
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let want = Want::read(args)?;
    let walk = Arc::new(Walk::read(context, args, &args.texts("glob")?)?);
    let shown = Arc::clone(&walk);
    let asked = want.clone();
    let work = move |walk: &Walk| {
        let files: Mutex<Vec<FileMatches>> = Mutex::default();
        let total = AtomicUsize::new(0);
        let walked = walk.files(|| {
            let (want, total) = (&asked, &total);
            let mut files = Gathering::into(&files);
            let mut searcher = want.searcher();
            let matcher = want.matcher.clone();
            move |entry: ignore::DirEntry| {
                let keep = if want.mode == "content" { want.limit } else { 0 };
                let mut taking = Taking::new(keep, want.mode == "files");
                if let Err(error) = searcher.search_path(&matcher, entry.path(), &mut taking) {
                    walk.fault(format!("{}: {error}", walk.short(entry.path())));
                }
                if let Some(found) = taking.done(entry.path()) {
                    if total.fetch_add(found.finds, Ordering::Relaxed) > ENOUGH {
                        walk.stop();
                    }
                    files.push(found);
                }
            }
        });
        let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_unstable_by(|one, other| by_path(&one.path, &other.path));
        (files, walked, total.into_inner() > ENOUGH)
    };
    let ((files, walked, enough), cut) = search(context, walk, work).await?;
    let mut notes = walked.notes;
    if enough {
        notes
            .insert(0, format!("the search ended after more than {ENOUGH} finds: make the pattern narrower"));
    } else if cut {
        notes.insert(0, "the search took too long and is not complete: name a folder or a glob".to_owned());
    }
    Ok(show(&want, &files, notes, &shown))
}

fn show(want: &Want, files: &[FileMatches], mut notes: Vec<String>, walk: &Walk) -> ToolOutput {
    let finds: usize = files.iter().map(|file| file.finds).sum();
    let (mut text, mut chars, mut shown) = (String::new(), 0, 0);
    let entries = files.iter().flat_map(|file| file.entries(want.mode, &walk.short(&file.path)));
    for entry in entries {
        chars += entry.text.chars().count() + 1;
        if chars > CHARS || (entry.counts && shown >= want.limit) {
            break;
        }
        shown += usize::from(entry.counts);
        text.push_str(&entry.text);
        text.push('\n');
    }
    let (total, word) = if want.mode == "content" { (finds, "lines") } else { (files.len(), "files") };
    if shown < total {
        notes.insert(0, format!("{shown} of {total} {word} with finds are shown, in {} files", files.len()));
    }
    let mut text = match text.trim_end_matches('\n') {
        "" if files.is_empty() => "Nothing was found.".to_owned(),
        text => text.to_owned(),
    };
    if !notes.is_empty() {
        text = format!("{text}\n[{}]", notes.join("; "));
    }
    ToolOutput::text(text).with_details(&json!({"files": files.len(), "finds": finds, "shown": shown}))
}
