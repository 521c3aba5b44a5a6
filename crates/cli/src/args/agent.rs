//! Owns the arguments of `agent`, and those by which every command makes an agent.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What executes prompts, and on what terms. For every command that makes agents.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RuntimeArgs {
    /// The model: `SERVICE::NAME`, or a name that tells its service.
    #[arg(long, value_name = "ID", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// A parameter of the model, as in temperature=0.2 or baseUrl=http://127.0.0.1:8080/v1; the value is JSON, or a text.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Model")]
    pub(crate) model_param: Vec<String>,
    /// Toolway's own turn loop, or an agent of the Agent Client Protocol [default: native, or acp where an agent is named].
    #[arg(long, value_name = "native|acp", help_heading = "Runtime")]
    pub(crate) runtime: Option<String>,
    /// A known agent of the protocol: cursor, opencode, codex, claude, gemini or qwen.
    #[arg(long, value_name = "PRESET", conflicts_with = "acp_command", help_heading = "Runtime")]
    pub(crate) acp: Option<String>,
    /// Any other one, by its command line, split into words as a shell does it.
    #[arg(long, value_name = "CMD ARGS", help_heading = "Runtime")]
    pub(crate) acp_command: Option<String>,
    /// How to sign in to it, by the id that the agent gives the way. Without it the agent is taken as signed in already.
    #[arg(long, value_name = "ID", help_heading = "Runtime")]
    pub(crate) acp_auth: Option<String>,
    /// A variable of ours that this agent's process gets too.
    #[arg(long, value_name = "NAME", help_heading = "Runtime")]
    pub(crate) acp_env: Vec<String>,
    /// The folder that the agent works in [default: this one].
    #[arg(long, value_name = "DIR", help_heading = "Runtime")]
    pub(crate) cwd: Option<PathBuf>,
    /// Another folder that it may work in.
    #[arg(long, value_name = "DIR", help_heading = "Runtime")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Whose servers, rules, skills, hooks and subagents it has: project, user, team, mdm, plugins, all, or none
    /// [default: project,user].
    #[arg(long, value_name = "LIST", help_heading = "Runtime")]
    pub(crate) setting_sources: Option<String>,
    /// A JSON file with more servers under mcpServers. Named here, they need no approval. May be repeated.
    #[arg(long, value_name = "FILE", help_heading = "Runtime")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Agents, runs and events are kept in this folder: DIR or sqlite:DIR, jsonl:DIR, or `memory` for not at all
    /// [default: Toolway's state directory].
    #[arg(long, value_name = "PLACE", help_heading = "Runtime")]
    pub(crate) store: Option<String>,
    /// A call that is done unasked: 'Shell(git status)', 'Write(src/**)', 'Mcp(github:*)'. May be repeated.
    #[arg(long, value_name = "RULE", help_heading = "Permission")]
    pub(crate) allow: Vec<String>,
    /// A call that is never done, whatever else allows it. May be repeated.
    #[arg(long, value_name = "RULE", help_heading = "Permission")]
    pub(crate) deny: Vec<String>,
    /// Everything is done unasked that no rule denies.
    #[arg(long, help_heading = "Permission")]
    pub(crate) yes: bool,
    /// Shell commands and servers over stdio run in a sandbox; where there is none, they do not run.
    #[arg(long, help_heading = "Permission")]
    pub(crate) sandbox: bool,
    /// The most calls to the model.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) limit_turns: Option<String>,
    /// The most tokens, read and written.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) limit_tokens: Option<String>,
    /// The most time of a run.
    #[arg(long, value_name = "DURATION", help_heading = "Limits")]
    pub(crate) limit_time: Option<String>,
    /// The most money of a run, in US dollars, where prices are known.
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    pub(crate) limit_cost: Option<String>,
    /// What is logged on stderr: off, error, warn, info, debug or trace [default: warn].
    #[arg(long, value_name = "LEVEL", help_heading = "General")]
    pub(crate) log: Option<String>,
}

/// What the model has and is told.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OfferArgs {
    /// The only tools that the model has: shell, read, write, edit, delete, grep, glob, ls, task, updateTodos, readTodos,
    /// webFetch, askQuestion, mcp (all tools of servers); separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Model")]
    pub(crate) tools: Option<Vec<String>>,
    /// Tools that it does not have. Without mcp no server is started.
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Model")]
    pub(crate) disallowed_tools: Vec<String>,
    /// In place of Toolway's own words to the model: a text, or @FILE.
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) system_prompt: Option<String>,
    /// A plan only: nothing is changed.
    #[arg(long, help_heading = "Model")]
    pub(crate) plan: bool,
}

/// `toolway agent`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true, after_help = AFTER)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

const AFTER: &str = "Keys of models are taken from the environment alone (OPENAI_API_KEY, ANTHROPIC_API_KEY, ...). What \
nothing allows is asked on a terminal; without one it is denied, and the model is told so.\n\nExit codes: 0 the run \
finished; 1 it failed, reached a limit, or something was not found; 2 usage or configuration; 4 the model or the agent could \
not be reached; 5 not signed in; 130 it was cancelled; 129, 143 by SIGHUP, SIGTERM.";

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Send a prompt: the answer goes to stdout, what the agent does to stderr.
    #[command(after_help = AFTER)]
    Run(Box<RunArgs>),
    /// Send a prompt to an agent that was sent one before.
    #[command(after_help = AFTER)]
    Resume(Box<ResumeArgs>),
    /// Show agents, the youngest first.
    List {
        /// Those that are archived, too.
        #[arg(long)]
        all: bool,
        /// At most so many.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        #[command(flatten)]
        kept: KeptArgs,
    },
    /// Show what an agent and its user said, its runs, and their tokens.
    Show {
        /// The agent.
        agent: String,
        /// One run of it, with all its events.
        #[arg(value_name = "RUN")]
        run: Option<String>,
        #[command(flatten)]
        kept: KeptArgs,
    },
    /// Cancel what an agent does, in whatever process.
    Cancel {
        /// The agent.
        agent: String,
        /// One run of it [default: the one on its way].
        #[arg(value_name = "RUN")]
        run: Option<String>,
        #[command(flatten)]
        kept: KeptArgs,
    },
    /// Take an agent out of the list; it takes no prompts then.
    Archive(OneArgs),
    /// Put an agent back.
    Unarchive(OneArgs),
    /// Cancel what an agent does, and remove all that is kept of it.
    Delete(OneArgs),
}

/// Which agent.
#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// The agent.
    pub(crate) agent: String,
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
}

/// Where agents are kept.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeptArgs {
    /// Agents are kept in this folder: DIR or sqlite:DIR, or jsonl:DIR [default: Toolway's state directory].
    #[arg(long, value_name = "PLACE")]
    pub(crate) store: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `toolway agent run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What the agent is to do; `-` reads it from stdin.
    pub(crate) prompt: String,
    /// An agent that was sent a prompt before, as with `resume`.
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// What people call the agent.
    #[arg(long, value_name = "NAME", conflicts_with = "agent")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) sending: SendArgs,
}

/// `toolway agent resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The agent.
    pub(crate) agent: String,
    /// What it is to do; `-` reads it from stdin.
    pub(crate) prompt: String,
    #[command(flatten)]
    pub(crate) sending: SendArgs,
}

/// How a prompt is sent, and how is told what comes of it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct SendArgs {
    /// A picture that goes with the prompt: PNG, JPEG, GIF or WebP. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,
    /// Give up a run of the agent that is still on its way.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print every event as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// With --json: what happens between events, too.
    #[arg(long, requires = "json")]
    pub(crate) stream: bool,
    /// Tell nothing on stderr of what the agent does.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) offer: OfferArgs,
    #[command(flatten)]
    pub(crate) runtime: RuntimeArgs,
}
