//! Owns what belongs to an agent on this machine alone. It reads nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toolway_config::SettingSource;
use toolway_secret::Secret;

use crate::custom_tools::CustomTool;
use crate::inline::DirectServer;
use crate::person::Person;
use crate::store::StoreChoice;

/// An agent on this machine.
#[derive(Debug, Clone, Default)]
pub struct LocalOptions {
    /// The folder it works in; without it, where the machine stands.
    pub cwd: Option<PathBuf>,
    /// Further folders that it may work in. They bring no servers.
    pub dirs: Vec<PathBuf>,
    /// Whose files it reads: servers, rules, skills, hooks, agents. None by default.
    pub setting_sources: Vec<SettingSource>,
    /// Whether a project's and a plugin's servers must have been approved by a person.
    pub trust: Trust,
    /// Where shell commands and stdio servers run.
    pub sandbox: SandboxOptions,
    /// A reviewer looks at every call before it is made; what nobody allows is refused.
    pub auto_review: bool,
    /// Which calls are allowed or denied, as rules: `Shell(git status)`, `Mcp(github:*)`.
    pub permissions: PermissionOptions,
    /// Who is asked for permission, and who answers the model's questions.
    pub person: Person,
    /// Functions of this program, as tools of the server `custom-user-tools`.
    pub custom_tools: Vec<CustomTool>,
    /// Loopback servers of this program, whose tools keep their own names.
    pub direct_servers: Vec<DirectServer>,
    /// Where agents, runs and their events are kept.
    pub store: StoreChoice,
    /// Whether a step that failed for a passing reason is tried again.
    pub agent_retries: Retries,
    /// What executes prompts.
    pub engine: EngineChoice,
    /// The tools that the model has, by name or group; `None`: all.
    pub tools: Option<Vec<String>>,
    /// The tools that it does not have, whatever the above says.
    pub disallowed_tools: Vec<String>,
    /// In place of Toolway's own words to the model.
    pub system_prompt: Option<String>,
    /// In plan mode the model is offered only those tools of servers that say that they only read. Otherwise it has all
    /// of them there, and is told to change nothing.
    pub plan_reads_only: bool,
    /// Who tells the model of skills.
    pub skills: SkillsBy,
    /// The size of results.
    pub guard: GuardOptions,
    /// Bounds of time for servers whose definition says nothing of them.
    pub timeouts: ServerTimeouts,
    /// A resume fails where servers that were given before are not given again.
    pub require_servers: bool,
    /// How long the first call to the model waits for servers that are not `required`. Without it: 5 s where no
    /// server is `required`, and not at all where one is.
    pub server_patience: Option<Duration>,
    /// The number of tools above which the model gets a tool that searches, and one that calls, in place of all of
    /// them. `None`: 100.
    pub search_above: Option<usize>,
}

/// Whether a project's and a plugin's servers must have been approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// The program that names the sources has approved them.
    #[default]
    Given,
    /// A person has to: `toolway trust`.
    Ask,
}

/// Who tells a model of skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SkillsBy {
    /// The agent: of those that the chosen sources have.
    #[default]
    Agent,
    /// The host of the agent, with its prompts. The agent tells its subagents alone.
    Host,
}

/// Where shell commands and stdio servers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SandboxOptions {
    /// In a sandbox; where there is none, nothing runs.
    pub enabled: bool,
}

/// Rules in their text form. Deny stands above allow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionOptions {
    /// What may be done.
    pub allow: Vec<String>,
    /// What may not.
    pub deny: Vec<String>,
}

/// Whether a step that failed for a passing reason is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retries {
    /// Yes.
    #[default]
    On,
    /// No.
    Off,
}

/// What executes prompts.
#[derive(Debug, Clone, Default)]
pub enum EngineChoice {
    /// Toolway's own turn loop over a model's API.
    #[default]
    Native,
    /// An agent that speaks the Agent Client Protocol.
    Acp(AcpOptions),
}

/// An agent behind the Agent Client Protocol.
#[derive(Debug, Clone, Default)]
pub struct AcpOptions {
    /// A known agent by name, in place of a command.
    pub preset: Option<String>,
    /// The program.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside the safe base set.
    pub env: BTreeMap<String, Secret>,
    /// The way to sign in that it is asked to take before its first session, by the id that it offers it under. None:
    /// it is signed in, or signs in by itself.
    pub authenticate: Option<String>,
}

/// The size of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardOptions {
    /// The most characters of a result; what has more is saved and shown in part.
    pub max_response_chars: u64,
    /// The most characters of what is shown of it.
    pub preview_chars: usize,
    /// Where such results are saved; without it, Toolway's usual place.
    pub output_dir: Option<PathBuf>,
}

impl Default for GuardOptions {
    fn default() -> Self {
        Self { max_response_chars: 40_000, preview_chars: 4000, output_dir: None }
    }
}

/// Bounds of time for servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerTimeouts {
    /// From the start to the answer to `initialize`; 60 s.
    pub startup: Option<Duration>,
    /// For one page of a list; 60 s.
    pub list: Option<Duration>,
    /// A call without progress; 60 s. Progress starts it again...
    pub call: Option<Duration>,
    /// ...up to this in all; one hour.
    pub call_max: Option<Duration>,
}
