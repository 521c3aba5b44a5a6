//! Owns the arguments of the commands that look at configuration files and approve what is in them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SourceArgs;

/// `toolway config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every configured server as it came out of all files, and why it may start or not.
    Show(ShowConfigArgs),
    /// Say all that is wrong in the configuration files, with its place; nothing is started.
    Check(CheckArgs),
    /// Print the JSON Schema of Toolway's own files.
    Schema,
    /// Show which files are looked at, in their order, and what became of each.
    Path(PathArgs),
}

/// `toolway config show`.
#[derive(Debug, Args)]
pub(crate) struct ShowConfigArgs {
    /// The servers [default: all].
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Where each field stands, and where the values of its variables come from.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// `toolway config check`.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 nothing is wrong, warnings apart; 2 something is.")]
pub(crate) struct CheckArgs {
    /// These files, as --config names them.
    #[arg(value_name = "FILE", conflicts_with_all = ["config", "sources"])]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// `toolway config path`.
#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// `toolway trust`.
#[derive(Debug, Args)]
#[command(
    after_help = "An approval is bound to what the definition means and to the scripts of the project that its \
command names: after a change it is asked for again. Values of variables are no part of it.\n\nExit codes: 0 done; 2 \
there is no such server; 3 something waits for approval, and nobody can be asked."
)]
pub(crate) struct TrustArgs {
    /// The servers [default: asks about each that waits].
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// List what is approved, and what waits.
    #[arg(long, conflicts_with_all = ["servers", "revoke"])]
    pub(crate) list: bool,
    /// Take approvals back.
    #[arg(long, requires = "servers")]
    pub(crate) revoke: bool,
    /// Which sources are read: project, user, team, mdm, plugins, or all [default: project,user,plugins].
    #[arg(long, value_name = "LIST")]
    pub(crate) sources: Option<String>,
    /// Print JSON, with --list.
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}
