//! Owns the tool `glob`: files by the pattern of their path, the newest first where there are not too many.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Gathering, Walk, by_path, search};
use crate::engine::BoxFuture;
use crate::policy::Action;
use crate::tools::arguments::fault;
use crate::tools::{Arguments, Capability, Tool, ToolContext, ToolOutput};

const ARGUMENTS: [&str; 5] = ["pattern", "path", "limit", "hidden", "noIgnore"];
/// Files that are shown where no number is named.
const LIMIT: u64 = 200;
const MOST: u64 = 1000;
/// Of more files it is not looked when each was changed: that takes as long as to find them.
const LOOKED_AT: usize = 2000;

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
        "Finds files by a pattern: `*.rs` in every folder, `src/**/*.ts`, `{a,b}*`. The files changed last come first; of \
         more than 2000 files, those first by path. Hidden and ignored files are left out unless hidden or noIgnore is set."
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
        let found: Mutex<Vec<PathBuf>> = Mutex::default();
        let walked = walk.files(|| {
            let mut found = Gathering::into(&found);
            move |entry: ignore::DirEntry| found.push(entry.into_path())
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let total = found.len();
        (first(found, limit), total, walked)
    };
    let ((found, total, walked), cut) = search(context, walk, work).await?;
    let mut notes = walked.notes;
    if cut {
        notes.insert(0, "the search took too long and is not complete: name a folder".to_owned());
    }
    if total > LOOKED_AT {
        let many = format!("the first {} of {total} files by path are shown", found.len());
        notes.insert(0, format!("{many}: name a folder or a narrower pattern to see those changed last"));
    } else if total > limit {
        notes.insert(0, format!("the {limit} files changed last of {total} are shown"));
    }
    let lines: Vec<String> = found.iter().map(|path| shown.short(path)).collect();
    let mut text = if lines.is_empty() { format!("No file fits {pattern}.") } else { lines.join("\n") };
    if !notes.is_empty() {
        text = format!("{text}\n[{}]", notes.join("; "));
    }
    Ok(ToolOutput::text(text).with_details(&json!({"files": total, "shown": lines.len()})))
}

/// Those that are shown, in their order.
fn first(mut found: Vec<PathBuf>, limit: usize) -> Vec<PathBuf> {
    if found.len() > LOOKED_AT {
        // All but the first are in no order.
        found.select_nth_unstable_by(limit, |one, other| by_path(one, other));
        found.truncate(limit);
        found.sort_unstable_by(|one, other| by_path(one, other));
        return found;
    }
    let changed = |path: &PathBuf| path.symlink_metadata().and_then(|about| about.modified());
    let dated = |path: PathBuf| (changed(&path).unwrap_or(SystemTime::UNIX_EPOCH), path);
    let mut dated: Vec<(SystemTime, PathBuf)> = found.into_iter().map(dated).collect();
    dated.sort_unstable_by(|one, other| other.0.cmp(&one.0).then_with(|| by_path(&one.1, &other.1)));
    dated.into_iter().take(limit).map(|(_, path)| path).collect()
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
