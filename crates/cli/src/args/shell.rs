//! Owns the arguments of the commands that work with servers from a shell: list, tools, call, read, prompt, ping.

use std::path::PathBuf;

use clap::Args;

/// Which files are read.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Sources")]
pub(crate) struct SourceArgs {
    /// A configuration file; then no other source is read. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Which sources are read: project, user, team, mdm, plugins, or all [default: project,user].
    #[arg(long, value_name = "LIST", conflicts_with = "config")]
    pub(crate) sources: Option<String>,
}

/// A server that no file names.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "A server that no file names (instead of SERVER)")]
pub(crate) struct AdHocArgs {
    /// Its command line, split into words as a shell does it.
    #[arg(long, value_name = "CMD ARGS", conflicts_with_all = ["url", "config", "sources"])]
    pub(crate) command: Option<String>,
    /// Its address.
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "sources"])]
    pub(crate) url: Option<String>,
    /// With --url: a header for every request. In the value `${NAME}` is a variable of ours, `${file:PATH}` a file,
    /// `${keyring:NAME}` a secret of the keyring.
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// With --command: a variable for the server. In the value `${NAME}` is a variable of ours, `${file:PATH}` a file,
    /// `${keyring:NAME}` a secret of the keyring.
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// stdio, http or sse [default: stdio for a command; for a URL http, then sse where http is refused].
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<String>,
}

/// How a server is spoken to, and how much is told.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "General")]
pub(crate) struct TalkArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The most time for a start, and for a request without progress [default: the server's own, 60s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Show what servers log, and the last lines of their stderr; twice: our own log too.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `toolway list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Start nothing: show what the files say.
    #[arg(long)]
    pub(crate) no_start: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// `toolway tools`.
#[derive(Debug, Args)]
#[command(override_usage = "toolway tools [OPTIONS] [SERVER] [TOOL]")]
pub(crate) struct ToolsArgs {
    /// The server [default: all], and one tool of it, to see its arguments.
    #[arg(value_name = "SERVER TOOL", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocArgs,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// `toolway call`.
#[derive(Debug, Args)]
#[command(override_usage = "toolway call [OPTIONS] SERVER TOOL [JSON|@FILE|-] [NAME=VALUE]...
       toolway call [OPTIONS] --command 'CMD ARGS' TOOL [JSON|@FILE|-] [NAME=VALUE]...
       toolway call [OPTIONS] --url URL TOOL [JSON|@FILE|-] [NAME=VALUE]...")]
pub(crate) struct CallArgs {
    /// The server, its tool, and the arguments: a JSON object, a file that holds one, `-` for stdin, or NAME=VALUE with
    /// the type that the tool's schema says; NAME:=JSON takes the value as JSON.
    #[arg(value_name = "SERVER TOOL ARGUMENTS", required = true, num_args = 1.., allow_hyphen_values = false)]
    pub(crate) words: Vec<String>,
    /// Where pictures, sound and binary resources are saved [default: media in our cache directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) save_to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocArgs,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// `toolway read`.
#[derive(Debug, Args)]
#[command(override_usage = "toolway read [OPTIONS] SERVER [URI]
       toolway read [OPTIONS] --command 'CMD ARGS' [URI]")]
pub(crate) struct ReadArgs {
    /// The server, and the resource's URI; without it the resources are listed.
    #[arg(value_name = "SERVER URI", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    /// Where binary resources are saved when a terminal is looking [default: media in our cache directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) save_to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocArgs,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// `toolway prompt`.
#[derive(Debug, Args)]
#[command(override_usage = "toolway prompt [OPTIONS] SERVER [NAME] [JSON|@FILE|-] [NAME=VALUE]...
       toolway prompt [OPTIONS] --command 'CMD ARGS' [NAME] [JSON|@FILE|-] [NAME=VALUE]...")]
pub(crate) struct PromptArgs {
    /// The server, the prompt, and its arguments; without a prompt they are listed.
    #[arg(value_name = "SERVER NAME ARGUMENTS", num_args = 0..)]
    pub(crate) words: Vec<String>,
    /// Where pictures, sound and binary resources are saved [default: media in our cache directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) save_to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocArgs,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// `toolway ping`.
#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// The server [default: all that are enabled].
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHocArgs,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// `toolway completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Whose: bash, zsh, fish or powershell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: String,
}

/// `toolway man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command whose page is printed, as in `call` or `saved list` [default: the program's own].
    #[arg(value_name = "COMMAND", num_args = 0..)]
    pub(crate) command: Vec<String>,
    /// Write all pages into this directory instead.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) dir: Option<PathBuf>,
}
