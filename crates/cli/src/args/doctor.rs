//! Owns the arguments of `toolway doctor`.

use clap::Args;

use super::{SourceArgs, TalkArgs};

/// `toolway doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Servers to look at [default: all].
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Look at this client's own files and limits too.
    #[arg(long = "for", value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Say what would become of each server in a cloud run.
    #[arg(long)]
    pub(crate) cloud: bool,
    /// Start nothing and call nothing: look at the files only.
    #[arg(long, conflicts_with = "call")]
    pub(crate) no_start: bool,
    /// Call this tool of the one SERVER, to see whether calls work.
    #[arg(long, value_name = "TOOL")]
    pub(crate) call: Option<String>,
    /// The arguments of that call: a JSON object.
    #[arg(long, value_name = "JSON", requires = "call", default_value = "{}")]
    pub(crate) arguments: String,
    /// Print the JSON Schema of what --json prints.
    #[arg(long, hide = true, exclusive = true)]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}
