//! Owns the guard's settings as plain values with their defaults. Reads no files and no environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolway_secret::Redactor;

use crate::glob::Glob;

/// What happens with a tool's `outputSchema` in `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputSchema {
    /// It moves to `_meta["toolway/outputSchema"]`, so that a replaced result stays valid.
    Relax,
    /// The list is left alone.
    Keep,
}

/// What happens with a too large result of a method that the specification does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownResults {
    /// It is saved, and answered with the error -32000 that names the file.
    Error,
    /// It is handed on whole.
    Pass,
}

/// Who may read saved results through `toolway_saved`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBack {
    /// There is no such tool.
    Off,
    /// Results of the same session only.
    Session,
    /// Results of every session of this user.
    User,
}

/// A rule for tools whose name fits a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolRule {
    /// Another limit, in characters.
    Limit(u64),
    /// Save and preview, whatever the size.
    Save,
    /// Hand on whole, whatever the size.
    Pass,
}

/// A prefix of paths as this machine sees them, and what the client sees in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// Prefix on this machine.
    pub from: String,
    /// Prefix for the client.
    pub to: String,
}

impl PathMap {
    /// Parses `FROM=TO`; both must be there.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('=')?;
        if from.is_empty() || to.is_empty() {
            return None;
        }
        Some(Self { from: from.to_owned(), to: to.to_owned() })
    }
}

/// The path as the client sees it: the longest `from` that is a whole-component prefix decides.
pub(crate) fn shown_path(path: &Path, maps: &[PathMap]) -> String {
    let text = path.to_string_lossy().into_owned();
    let best = maps
        .iter()
        .filter_map(|map| {
            let from = map.from.trim_end_matches(['/', '\\']);
            let rest = text.strip_prefix(from)?;
            (rest.is_empty() || rest.starts_with(['/', '\\'])).then_some((from.len(), map, rest))
        })
        .max_by_key(|(length, ..)| *length);
    match best {
        Some((_, map, rest)) => format!("{}{rest}", map.to.trim_end_matches(['/', '\\'])),
        None => text,
    }
}

/// Where results are saved, and for how long.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The directory; made when first needed.
    pub dir: PathBuf,
    /// Results older than this are removed; `None` keeps them.
    pub keep_for: Option<Duration>,
    /// Bytes that all results may take together; `None` sets no bound.
    pub max_saved: Option<u64>,
    /// A result younger than this is never removed.
    pub keep_at_least: Duration,
}

impl StoreConfig {
    /// The defaults: 7 days, 1 GiB, at least 10 minutes.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            keep_for: Some(Duration::from_hours(7 * 24)),
            max_saved: Some(1 << 30),
            keep_at_least: Duration::from_mins(10),
        }
    }
}

/// A process of its own for each query of the read-back tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryProcess {
    /// Our own binary: with [`QUERY_COMMAND`](crate::QUERY_COMMAND) it bounds itself, then calls
    /// [`answer_query`](crate::answer_query).
    pub program: PathBuf,
    /// How long it may take; then it is ended.
    pub time: Duration,
}

impl QueryProcess {
    /// The default: 10 seconds.
    pub fn new(program: PathBuf) -> Self {
        Self { program, time: Duration::from_secs(10) }
    }
}

/// Everything the guard needs to know. Plain values; `new` has the documented defaults.
#[derive(Debug, Clone)]
pub struct GuardConfig {
    /// The most characters that a message may have; at least 1000.
    pub max_response_chars: u64,
    /// The most characters of the preview's two pieces together.
    pub preview_chars: usize,
    /// Decoded bytes: images and audio that together are under this count nothing and stay as they are.
    pub media_limit: u64,
    /// What happens with `outputSchema`.
    pub output_schema: OutputSchema,
    /// What happens with too large results of unknown methods.
    pub unknown_results: UnknownResults,
    /// Rules for tools; the first that fits decides.
    pub tool_rules: Vec<(Glob, ToolRule)>,
    /// Tools whose arguments may name saved results.
    pub pass_saved: Vec<Glob>,
    /// The read-back tool.
    pub read_back: ReadBack,
    /// Where its queries run; `None`: in this process, without bounds of time and memory.
    pub query_process: Option<QueryProcess>,
    /// What a person types to read saved results, as the notices say it: `toolway saved`, and `--output-dir` where
    /// the directory is not the default one.
    pub saved_command: String,
    /// Paths as the client sees them.
    pub path_map: Vec<PathMap>,
    /// Applied to what is saved and shown of too large results.
    pub redaction: Option<Arc<Redactor>>,
    /// Bytes of a message that are held in memory before it goes to a file.
    pub memory: usize,
    /// Bytes that a message may have at all.
    pub max_message_bytes: u64,
    /// The saved results.
    pub store: StoreConfig,
}

impl GuardConfig {
    /// The defaults with this directory.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            max_response_chars: 10_000,
            preview_chars: 4000,
            media_limit: 1 << 20,
            output_schema: OutputSchema::Relax,
            unknown_results: UnknownResults::Error,
            tool_rules: Vec::new(),
            pass_saved: Vec::new(),
            read_back: ReadBack::Off,
            query_process: None,
            saved_command: "toolway saved".to_owned(),
            path_map: Vec::new(),
            redaction: None,
            memory: 4 << 20,
            max_message_bytes: 4 << 30,
            store: StoreConfig::new(dir),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_whole_component_prefix_maps_a_path() {
        let maps =
            [PathMap::parse("/home/me=/host").unwrap(), PathMap::parse("/home/me/.cache/=/saved").unwrap()];
        for (path, shown) in [
            ("/home/me/.cache/x.json", "/saved/x.json"),
            ("/home/me/x", "/host/x"),
            ("/home/merry/x", "/home/merry/x"),
            ("/else", "/else"),
        ] {
            assert_eq!(shown_path(Path::new(path), &maps), shown);
        }
        assert_eq!(PathMap::parse("=x"), None);
        assert_eq!(PathMap::parse("x"), None);
    }
}
