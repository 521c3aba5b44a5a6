//! Owns the arguments of `bridge`.

use clap::Args;

/// `toolway bridge`.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    /// The names in use: pi, or host for every other host application [default: pi, or what the host asks for].
    #[arg(long, value_name = "pi|host")]
    pub(crate) profile: Option<String>,
    /// The agent behind turns, for a host that drives none itself: native, acp:NAME for a known agent, or acp with its
    /// command at the end of the line [default: none].
    #[arg(long, value_name = "native|acp:NAME|acp")]
    pub(crate) agent: Option<String>,
    /// With an agent of the protocol: how to sign in to it, by the id that it gives the way.
    #[arg(long, value_name = "ID", requires = "agent")]
    pub(crate) acp_auth: Option<String>,
    /// What the agent may do by itself, as Shell(git status) or Mcp(github:*). With any of these, everything else is
    /// refused that changes something.
    #[arg(long, value_name = "RULE", requires = "agent")]
    pub(crate) allow: Vec<String>,
    /// What the agent may not do, whatever is allowed.
    #[arg(long, value_name = "RULE", requires = "agent")]
    pub(crate) deny: Vec<String>,
    /// The settings file [default: ~/.pi/agent/cursor-sdk.json, or toolway/bridge.json in the configuration directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<String>,
    /// Whose limits hold for results: cursor, claude-code, codex, vscode or generic [default: cursor].
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// The most characters of a result, at least 1000 [default: the client's profile].
    #[arg(long, value_name = "N")]
    pub(crate) max_response_chars: Option<String>,
    /// The most characters of a preview [default: the client's profile, or 40% of a lower limit].
    #[arg(long, value_name = "N")]
    pub(crate) preview_chars: Option<String>,
    /// A rule for tools: another limit, always save, or never save. The first that fits decides.
    #[arg(long, value_name = "GLOB=N|save|pass")]
    pub(crate) tool_limit: Vec<String>,
    /// Where results are saved [default: ~/.cache/cursor-mcp-response-proxy].
    #[arg(long, value_name = "DIR")]
    pub(crate) output_dir: Option<String>,
    /// What is logged on stderr: off, error, warn, info, debug or trace [default: warn].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// With --agent acp: the agent's program and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) agent_command: Vec<String>,
}
