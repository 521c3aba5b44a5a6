//! Owns the arguments of `toolway saved`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(disable_help_subcommand = true, after_help = AFTER)]
pub(crate) struct SavedArgs {
    /// Where results are saved [default: ~/.cache/cursor-mcp-response-proxy].
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) output_dir: Option<String>,
    #[command(subcommand)]
    pub(crate) command: SavedCommand,
}

const AFTER: &str = "The directory may also be named by TOOLWAY_OUTPUT_DIR, or by \
CURSOR_MCP_RESPONSE_PROXY_OUTPUT_DIR.\n\nExit codes: 0 done; 1 nothing was found, or it could not be read; 2 usage.";

#[derive(Debug, Subcommand)]
pub(crate) enum SavedCommand {
    /// All saved results, the newest first.
    List {
        /// As one JSON array, with every field of the index and full paths.
        #[arg(long)]
        json: bool,
    },
    /// Write a result to stdout: its text, or readable JSON where it is one line of JSON.
    Show(ShowArgs),
    /// The lines of a result that fit a regular expression, with their numbers.
    Search(SearchArgs),
    /// Run a jq filter over the JSON that a result carries.
    Query {
        /// The result's id, or its beginning.
        id: String,
        /// The filter, as in `.rows | length`.
        #[arg(value_name = "JQ")]
        filter: String,
    },
    /// Remove saved results.
    Purge(PurgeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The result's id, or its beginning.
    pub(crate) id: String,
    /// These lines alone, counted from 1: `900-950`, `900-` or `900`.
    #[arg(long, value_name = "FIRST-LAST", conflicts_with_all = ["bytes", "raw"])]
    pub(crate) lines: Option<String>,
    /// These bytes of the exact text alone, counted from 0.
    #[arg(long, value_name = "FIRST-LAST", conflicts_with = "raw")]
    pub(crate) bytes: Option<String>,
    /// The saved message itself, byte for byte.
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// The result's id, or its beginning.
    pub(crate) id: String,
    /// The regular expression; `(?i)` in front of it ignores case.
    pub(crate) regex: String,
    /// Lines to show before and after each find.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) context: usize,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct PurgeArgs {
    /// Those older than this: 90m, 12h, 7d.
    #[arg(long, value_name = "DURATION")]
    pub(crate) older_than: Option<String>,
    /// All of them.
    #[arg(long)]
    pub(crate) all: bool,
}
