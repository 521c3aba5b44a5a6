//! Owns the tool `glob`: files by the pattern of their path, the newest first.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Walk, search};
use crate::engine::BoxFuture;
use crate::policy::Action;
use crate::tools::arguments::fault;
use crate::tools::{Arguments, Capability, Tool, ToolContext, ToolOutput};

const ARGUMENTS: [&str; 5] = ["pattern", "path", "limit", "hidden", "noIgnore"];
/// Files that are shown where no number is named.
const LIMIT: u64 = 200;
const MOST: u64 = 1000;

/// `glob`.
#[derive(Debug)]
pub(in crate::tools) struct Glob;

impl Tool for Glob {
    fn name(&self) -> &'static str {
        "glob"
    }

    fn capability(&self) -> Capability {
        Capability::Glob
    }

    fn description(&self) -> String {
        "Finds files by a pattern: `*.rs` in every folder, `src/**/*.ts`, `{a,b}*`. The files changed last come first. \
         Hidden and ignored files are left out unless hidden or noIgnore is set."
            .to_owned()
    }

    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The pattern, relative to `path`"},
                "path": {"type": "string", "description": "The folder; without it the working folder"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many files are shown (default 200)"},
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
        let want = Want::read(args)?;
        Ok(vec![context.place(&want.path)?.read()])
    }

    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(context, &args).await.unwrap_or_else(|error| error) })
    }
}

struct Want {
    path: String,
    pattern: String,
    limit: usize,
}

impl Want {
    fn read(args: &Arguments) -> Result<Self, ToolOutput> {
        args.only(&ARGUMENTS)?;
        let path = args.text("path")?.unwrap_or_else(|| ".".to_owned());
        let limit = match args.count("limit")?.unwrap_or(LIMIT) {
            0 => return Err(fault("limit", "must be at least 1")),
            limit => usize::try_from(limit.min(MOST)).unwrap_or(usize::MAX),
        };
        let pattern = args.required("pattern")?;
        // An absolute pattern, or one that begins above, names its folder itself.
        if Path::new(&pattern).is_absolute() || pattern.starts_with("../") {
            let (folder, rest) = split(&pattern);
            let path = Path::new(&path).join(folder).display().to_string();
            return Ok(Self { path, pattern: rest, limit });
        }
        Ok(Self { path, pattern: pattern.strip_prefix("./").unwrap_or(&pattern).to_owned(), limit })
    }
}

/// The folders before the first part that is a pattern, and the rest.
fn split(pattern: &str) -> (PathBuf, String) {
    let parts: Vec<Component<'_>> = Path::new(pattern).components().collect();
    let plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let fixed = parts.iter().take_while(|part| plain(part)).count().min(parts.len().saturating_sub(1));
    let folder = parts.iter().take(fixed).collect();
    let rest: Vec<String> =
        parts.iter().skip(fixed).map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    // With a slash before it, it counts from that folder.
    (folder, format!("/{}", rest.join("/")))
}

async fn run(context: &ToolContext, args: &Arguments) -> Result<ToolOutput, ToolOutput> {
    let Want { path, pattern, limit } = Want::read(args)?;
    let args = args.with("path", &path);
    let walk = Arc::new(Walk::read(context, &args, std::slice::from_ref(&pattern))?);
    let shown = Arc::clone(&walk);
    let work = move |walk: &Walk| {
        let found: Mutex<Vec<(SystemTime, PathBuf)>> = Mutex::default();
        let walked = walk.files(|| {
            |entry: &ignore::DirEntry| {
                let changed = entry.metadata().ok().and_then(|about| about.modified().ok());
                let file = (changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path().to_owned());
                found.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            }
        });
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        (found, walked)
    };
    let ((found, walked), cut) = search(context, walk, work).await?;
    let mut notes = walked.notes;
    if cut {
        notes.insert(0, "the search took too long and is not complete: name a folder".to_owned());
    }
    if found.len() > limit {
        notes.insert(0, format!("the {limit} files changed last of {} are shown", found.len()));
    }
    let total = found.len();
    let lines: Vec<String> = found.iter().take(limit).map(|(_, path)| shown.short(path)).collect();
    let mut text = if lines.is_empty() { format!("No file fits {pattern}.") } else { lines.join("\n") };
    if !notes.is_empty() {
        text = format!("{text}\n[{}]", notes.join("; "));
    }
    Ok(ToolOutput::text(text).with_details(&json!({"files": total, "shown": lines.len()})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_names_its_folder_is_split_there() {
        let table = [
            ("/a/b/*.rs", "/a/b", "/*.rs"),
            ("/a/**/c/d.rs", "/a", "/**/c/d.rs"),
            ("/a/b.rs", "/a", "/b.rs"),
            ("../x/[ab]/c", "../x", "/[ab]/c"),
        ];
        for (pattern, folder, rest) in table {
            assert_eq!(split(pattern), (PathBuf::from(folder), rest.to_owned()), "{pattern}");
        }
    }
}
