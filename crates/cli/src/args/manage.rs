//! Owns the arguments of the commands that change configuration files: import, export, add, remove, enable, disable.

use std::path::PathBuf;

use clap::Args;

/// Which of Toolway's own files.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ScopeArgs {
    /// The user's file, for every project.
    #[arg(long, conflicts_with = "project")]
    pub(crate) user: bool,
    /// The project's file, for everybody who works on it.
    #[arg(long)]
    pub(crate) project: bool,
}

/// `toolway import`.
#[derive(Debug, Args)]
#[command(
    after_help = "What a user's file holds is added to the user's file, what a project's file holds to the \
project's, unless --user or --project says otherwise. Nothing is started, approved or removed."
)]
pub(crate) struct ImportArgs {
    /// Whose servers: cursor, vscode, claude-code, codex and so on, or all [default: all].
    #[arg(long, value_name = "CLIENT|all")]
    pub(crate) from: Option<String>,
    /// This file, in the way of that client, and no other.
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) file: Option<PathBuf>,
    /// Show what would be added, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// `toolway export`.
#[derive(Debug, Args)]
#[command(after_help = "Only the client's servers are touched, and none is removed.")]
pub(crate) struct ExportArgs {
    /// The servers [default: all of Toolway's own file].
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// The client: cursor, vscode, claude-code, codex and so on.
    #[arg(long, value_name = "CLIENT")]
    pub(crate) to: String,
    /// This file, in the way of that client.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace other servers of the same name.
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// `toolway add`.
#[derive(Debug, Args)]
#[command(override_usage = "toolway add [OPTIONS] NAME -- COMMAND [ARGS]...
       toolway add [OPTIONS] NAME --url URL")]
pub(crate) struct AddArgs {
    /// The server's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Its address.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// With --url: a header for every request. `${NAME}` and `${keyring:NAME}` are kept, and replaced at each start.
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// With --url: http or sse [default: http, then sse where http is refused].
    #[arg(long, value_name = "TRANSPORT", requires = "url")]
    pub(crate) transport: Option<String>,
    /// With a command: a variable for the server. `${NAME}` and `${keyring:NAME}` are kept, and replaced at each start.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// With a command: a file of variables for the server.
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) env_file: Option<String>,
    /// With a command: its working directory.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) cwd: Option<String>,
    /// Replace the server of that name.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Write the file of this client instead.
    #[arg(long = "in", value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Its command and arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `toolway remove`, `enable` and `disable`.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server's name.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Change the file of this client instead.
    #[arg(long = "in", value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
}
