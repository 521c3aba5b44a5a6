//! Owns the command line as the user types it. Values stay text here: `compose` gives them their meaning, with the
//! environment beneath them.

mod acp;
mod agent;
mod auth;
mod bridge;
mod chat;
mod config;
mod doctor;
mod manage;
mod saved;
mod serve;
mod shell;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub(crate) use acp::AcpArgs;
pub(crate) use agent::{
    AgentArgs, AgentCommand, KeptArgs, OfferArgs, OneArgs, ResumeArgs, RunArgs, RuntimeArgs, SendArgs,
};
pub(crate) use auth::{
    AuthArgs, AuthCommand, LoginArgs, LogoutArgs, SecretCommand, SignInArgs, StatusArgs, TokenArgs,
};
pub(crate) use bridge::BridgeArgs;
pub(crate) use chat::ChatArgs;
pub(crate) use config::{CheckArgs, ConfigArgs, ConfigCommand, PathArgs, ShowConfigArgs, TrustArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use manage::{AddArgs, ExportArgs, ImportArgs, ScopeArgs, ServerArgs};
pub(crate) use saved::{PurgeArgs, SavedArgs, SavedCommand, SearchArgs, ShowArgs};
pub(crate) use serve::{DaemonArgs, GatewayArgs, HttpArgs, ServeArgs};
pub(crate) use shell::{
    AdHocArgs, CallArgs, CompletionsArgs, ListArgs, ManArgs, PingArgs, PromptArgs, ReadArgs, SourceArgs,
    TalkArgs, ToolsArgs,
};

/// The name under which the program is a drop-in for another one.
const DROP_IN: &str = "cursor-mcp-response-proxy";

/// Carries MCP tools to coding agents whole: results too large for the client are saved and previewed.
#[derive(Debug, Parser)]
#[command(name = "toolway", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Stand in front of a server that is started as a child process.
    Stdio(StdioArgs),
    /// Stand in front of a server with the older HTTP+SSE transport (2024-11-05).
    Sse(RemoteArgs),
    /// Stand in front of a Streamable HTTP server.
    StreamableHttp(RemoteArgs),
    /// Serve all configured servers behind one front: stdin and stdout, or HTTP.
    Serve(Box<ServeArgs>),
    /// Run servers for all gateways of this user that are started with `serve --shared`; they start it by themselves.
    Daemon(DaemonArgs),
    /// Offer the tools of a host application to the agent that it drives; the host speaks at stdin and stdout.
    Bridge(BridgeArgs),
    /// Send prompts to agents that have these servers, and look at what they did.
    Agent(AgentArgs),
    /// Talk with an agent in a terminal; it can call this chat's own tools.
    Chat(Box<ChatArgs>),
    /// Be an agent for an editor that speaks the Agent Client Protocol at stdin and stdout.
    Acp(Box<AcpArgs>),
    /// List, read, search and remove saved results.
    Saved(SavedArgs),
    /// Show every configured server and its state, also those that are not started, and why.
    List(ListArgs),
    /// Show the tools of a server, or of all.
    Tools(ToolsArgs),
    /// Call a tool, and show its result.
    Call(CallArgs),
    /// Read a resource, or list them.
    Read(ReadArgs),
    /// Get a prompt, or list them.
    Prompt(PromptArgs),
    /// Ask servers for a sign of life.
    Ping(PingArgs),
    /// Take over the servers that other clients have.
    Import(ImportArgs),
    /// Write Toolway's servers to the file of a client.
    Export(ExportArgs),
    /// Add a server.
    Add(AddArgs),
    /// Remove a server.
    Remove(ServerArgs),
    /// Switch a server on.
    Enable(ServerArgs),
    /// Switch a server off.
    Disable(ServerArgs),
    /// Sign in to a server: opens the browser, and keeps the token for every process of this user.
    Login(LoginArgs),
    /// Sign out of a server: its tokens are given up and forgotten.
    Logout(LogoutArgs),
    /// Look at sign-ins, print a token, keep secrets that files name.
    Auth(AuthArgs),
    /// Say why an agent does not have a tool, layer by layer, and what to do.
    Doctor(DoctorArgs),
    /// Look at the configuration files: what they say, what is wrong in them, where they are.
    Config(ConfigArgs),
    /// Approve servers of projects and plugins, which start nothing before.
    Trust(TrustArgs),
    /// Print what makes a shell complete this program's commands.
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them to a directory.
    Man(ManArgs),
    /// See on one screen what Toolway does, with a demonstration server; takes a few seconds.
    Quickstart(QuickstartArgs),
    /// The demonstration server of `quickstart`: MCP over stdio.
    #[command(name = "__demo", hide = true)]
    Demo,
    /// One query of a relay's read-back tool, in a process that bounds itself.
    #[command(name = toolway_guard::QUERY_COMMAND, hide = true)]
    Query(QueryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// Seconds of processor time.
    pub(crate) seconds: u64,
    /// The directory of saved results.
    pub(crate) dir: PathBuf,
    /// The session that saved the result.
    pub(crate) session: String,
    /// The result's id.
    pub(crate) id: String,
    /// The jq filter.
    pub(crate) filter: String,
}

#[derive(Debug, Args)]
pub(crate) struct QuickstartArgs {
    /// Where the demonstration's results are saved [default: ~/.cache/cursor-mcp-response-proxy].
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StdioArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Working directory of the server.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<String>,
    /// A variable for the server, on top of a safe base set. In the value `${NAME}` is a variable of ours, `${file:PATH}`
    /// a file, `${keyring:NAME}` a secret of the keyring.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Give the server our whole environment.
    #[arg(long)]
    pub(crate) inherit_env: bool,
    /// The server's command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) upstream: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// The server's address.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A header for every request. In the value `${NAME}` is a variable of ours, `${file:PATH}` a file, `${keyring:NAME}`
    /// a secret of the keyring.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
    /// For connecting, for response headers, and for silence inside a JSON body [default: 120].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<String>,
    /// For silence on an event stream that a request waits for [default: 300].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) sse_read_timeout: Option<String>,
    #[command(flatten)]
    pub(crate) oauth: OAuthArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct OAuthArgs {
    /// Sign in to the server with OAuth when it asks for that: once, in the browser, for all processes of this user.
    #[arg(long)]
    pub(crate) oauth: bool,
    /// A client that is registered with the authorization server; its secret, if it has one, is in the variable
    /// `TOOLWAY_CLIENT_SECRET` or in a file.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The file that the client's secret is in.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_secret_file: Option<String>,
    /// A scope to ask for, or several with spaces between them [default: those that the server names].
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// The port of the redirect to this machine, where the authorization server knows it [default: a free one].
    #[arg(long, value_name = "PORT")]
    pub(crate) redirect_port: Option<String>,
    /// Print the address of the login only, and open no browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct CommonArgs {
    /// The most characters of a result, at least 1000 [default: the client's profile].
    #[arg(long, value_name = "N")]
    pub(crate) max_response_chars: Option<String>,
    /// The most characters of a preview [default: the client's profile, or 40% of a lower limit].
    #[arg(long, value_name = "N")]
    pub(crate) preview_chars: Option<String>,
    /// Where results are saved [default: ~/.cache/cursor-mcp-response-proxy].
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<String>,
    /// Whose limits hold: cursor, claude-code, codex, vscode or generic [default: cursor].
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// A rule for tools: another limit, always save, or never save. The first that fits decides.
    #[arg(long, value_name = "GLOB=N|save|pass")]
    pub(crate) tool_limit: Vec<String>,
    /// Images and audio below this together count nothing and stay as they are [default: 1MiB].
    #[arg(long, value_name = "BYTES")]
    pub(crate) media_limit: Option<String>,
    /// What becomes of a tool's outputSchema: relax moves it to `_meta` [default: relax].
    #[arg(long, value_name = "relax|keep")]
    pub(crate) output_schema: Option<String>,
    /// Large results of methods that no specification knows [default: error].
    #[arg(long, value_name = "error|pass")]
    pub(crate) unknown_results: Option<String>,
    /// Offer the client a tool that reads saved results [default: off].
    #[arg(long, value_name = "off|session|user")]
    pub(crate) read_back: Option<String>,
    /// Tools whose arguments may name a saved result, to be replaced by its text.
    #[arg(long, value_name = "GLOB")]
    pub(crate) pass_saved: Vec<String>,
    /// How the client sees a path, for clients in containers.
    #[arg(long, value_name = "FROM=TO")]
    pub(crate) path_map: Vec<String>,
    /// A file of regular expressions, one a line: what fits is taken out of previews and saved results.
    #[arg(long, value_name = "FILE")]
    pub(crate) redact: Option<String>,
    /// Saved results older than this are removed [default: 7d].
    #[arg(long, value_name = "DURATION")]
    pub(crate) keep_for: Option<String>,
    /// The most bytes of saved results; the oldest are removed first [default: 1GiB].
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_saved: Option<String>,
    /// No saved result younger than this is removed [default: 10m].
    #[arg(long, value_name = "DURATION")]
    pub(crate) keep_at_least: Option<String>,
    /// The most bytes of one message; a larger one fails alone [default: 4GiB].
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_message_bytes: Option<String>,
    /// How long answers are awaited after the client has closed [default: 10s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) drain: Option<String>,
    /// Record the session as JSON lines, secrets taken out.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<String>,
    /// What is logged on stderr: off, error, warn, info, debug or trace [default: warn].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
}

const AFTER: &str = "Every option with one value has an environment variable: TOOLWAY_ and its name, as in \
TOOLWAY_MAX_RESPONSE_CHARS. Older names are read too: CURSOR_MCP_RESPONSE_PROXY_MAX_RESPONSE_CHARS, _PREVIEW_CHARS, \
_OUTPUT_DIR, _TIMEOUT_SECONDS, _SSE_READ_TIMEOUT_SECONDS. A flag wins over TOOLWAY_*, which wins over the older \
name.\n\nExit codes: 0 done, or the client closed; 1 the server ended by itself, a tool failed, or something was not found; \
2 usage or configuration; 3 not approved (toolway trust); 4 the server could not be started or reached; 5 not signed \
in; 129, 130, 143 by SIGHUP, SIGINT, SIGTERM.";

/// Reads the arguments, the program's name first.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = definition();
    if arguments.first().is_some_and(is_drop_in) {
        command = command.name(DROP_IN).bin_name(DROP_IN);
    }
    Cli::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// The definition of the whole command line.
pub(crate) fn definition() -> clap::Command {
    Cli::command().after_help(AFTER)
}

fn is_drop_in(name: &OsString) -> bool {
    Path::new(name).file_stem().is_some_and(|stem| stem == DROP_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Cli, clap::Error> {
        parse(line.iter().map(OsString::from))
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_the_dashes_belongs_to_the_server() {
        let cli = parsed(&["toolway", "stdio", "--env", "A=b=c", "--", "npx", "-y", "--log", "x"]).unwrap();
        let Command::Stdio(args) = cli.command else { panic!() };
        assert_eq!(args.upstream, ["npx", "-y", "--log", "x"]);
        assert_eq!(args.env, ["A=b=c"]);
        assert!(parsed(&["toolway", "stdio"]).is_err());
    }

    #[test]
    fn a_link_of_the_older_name_shows_that_name() {
        for name in ["/usr/bin/cursor-mcp-response-proxy", "cursor-mcp-response-proxy.exe"] {
            let help = parsed(&[name, "stdio", "--help"]).unwrap_err().to_string();
            assert!(help.contains("Usage: cursor-mcp-response-proxy stdio"), "{help}");
        }
    }
}
