//! Owns what a host is told: the results of its requests, and the notifications that nobody asked for.

mod display;
mod reports;
mod turn;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::requests::Peer;
use crate::json::RawJson;
pub(crate) use display::{
    DisplayItem, DisplayShown, ImageShown, PromptShown, RecordShown, SectionShown, ToolTaken,
};
pub(crate) use reports::{FactsShown, FindingShown, ManifestShown, ReportShown, SelfTestShown};
pub(crate) use turn::{
    EntryAppended, ModelShown, ModelsShown, Notice, SetActive, SkillGiven, TurnAborted, TurnShown,
    TurnStarted, TurnTold, WrappersShown, level_name,
};

/// The answer to `initialize`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    /// The version that both speak from now on.
    pub(crate) protocol_version: u32,
    /// This program.
    pub(crate) bridge: Peer,
    /// The names of the profile.
    pub(crate) profile: ProfileNames,
    /// What is bounded.
    pub(crate) limits: Limits,
    /// There is an agent behind the bridge: `turn/start` is served.
    pub(crate) turns: bool,
    /// The user's file, which need not exist.
    pub(crate) settings_file: Option<String>,
    /// What is wrong with it.
    pub(crate) warnings: Vec<String>,
}

/// The names that a host needs of a naming profile.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileNames {
    /// `pi` or `host`.
    pub(crate) id: &'static str,
    /// What names of bridged tools begin with.
    pub(crate) tool_prefix: &'static str,
    /// The key of the loopback server.
    pub(crate) server_key: &'static str,
    /// The tool that activates a skill, by its host name.
    pub(crate) skill_tool: &'static str,
    /// The tool of neutral cards, by its host name.
    pub(crate) display_tool: &'static str,
    /// What ids of replayed calls begin with.
    pub(crate) replay_prefix: &'static str,
    /// What ids of runs and of calls begin with.
    pub(crate) run_prefix: &'static str,
    /// The command that shows the debug report.
    pub(crate) debug_command: &'static str,
}

/// What is bounded.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limits {
    /// The most bytes of a line that the host sends, its line ending apart.
    pub(crate) line_bytes: usize,
    /// The most sessions, `main` among them.
    pub(crate) sessions: usize,
    /// The most runs that are open at once, in all sessions.
    pub(crate) runs: usize,
}

/// Nothing to tell.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Done {}

/// How many calls were rejected by it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    /// Calls that were open.
    pub(crate) rejected_calls: usize,
}

/// The answer to `tools/declare` and `tools/activate`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolsDeclared {
    /// The signature that a run would have that is opened now. Another one than the agent's run has asks for a new agent.
    pub(crate) signature: String,
    /// Tools that were there and are no more: calls of them in open runs fail.
    pub(crate) removed: Vec<String>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// The answer to `skills/declare`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillsDeclared {
    /// The skills that the catalogue shows.
    pub(crate) visible: Vec<String>,
    /// A run that is opened now has the activation tool.
    pub(crate) tool_active: bool,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// The answer to the `settings/*` methods.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsShown {
    /// The user's file, which need not exist.
    pub(crate) file: Option<String>,
    /// What holds for this session: every key with its value.
    pub(crate) settings: Value,
    /// What was ignored, and why.
    pub(crate) warnings: Vec<String>,
    /// The deadlines that follow.
    pub(crate) deadlines: DeadlinesShown,
}

/// Deadlines in milliseconds.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct DeadlinesShown {
    /// The agent's own timeout for every MCP tool call.
    #[serde(rename = "toolMs")]
    pub(crate) tool: u64,
    /// The bridge's deadline for a call, from its arrival.
    #[serde(rename = "bridgeMs")]
    pub(crate) bridge: u64,
    /// The agent's timeout for connecting, initialize and lists.
    #[serde(rename = "connectMs")]
    pub(crate) connect: u64,
}

/// The answer to `run/open`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunOpened {
    /// The run's id, or null where there is nothing to serve.
    pub(crate) run: Option<String>,
    /// What the agent is to be created with, or null where there is nothing to serve.
    pub(crate) server: Option<ServerDefinition>,
    /// Why there is none: `disabled` or `no_exposed_tools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The signature of the surface.
    pub(crate) signature: String,
    /// What the agent can call, sorted by name.
    pub(crate) exposed: Vec<ExposedShown>,
    /// What it cannot call, and why.
    pub(crate) hidden: Vec<HiddenShown>,
    /// The deadlines of its calls.
    pub(crate) deadlines: DeadlinesShown,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
}

/// An MCP server for the agent: `{key: {type, url}}` in most agents' configurations.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerDefinition {
    /// Its key among the agent's MCP servers.
    pub(crate) key: String,
    /// `http`: Streamable HTTP.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// Its address. Whoever knows it can call: it belongs into no log, file or command line.
    pub(crate) url: String,
}

/// A tool that the agent can call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExposedShown {
    /// The name by which the agent calls it.
    pub(crate) name: String,
    /// Its real name.
    pub(crate) tool: String,
}

/// A tool that the agent cannot call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HiddenShown {
    /// Its real name.
    pub(crate) tool: String,
    /// Why, as a word.
    pub(crate) reason: &'static str,
    /// Why, for people.
    pub(crate) text: String,
}

/// The answer to `call/result` and `call/fail`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Settled {
    /// It was the end of this call. `false`: there is no open call of this id; nothing has changed.
    pub(crate) settled: bool,
}

/// The answer to `call/progress`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgressTaken {
    /// The call is open.
    pub(crate) accepted: bool,
}

/// The answer to `call/admit`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Admitted {
    /// The host may run it.
    pub(crate) admitted: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// The notification `calls/started`: the host is to run these, each once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallsStarted {
    /// Of which session.
    pub(crate) session: String,
    /// Of which run.
    pub(crate) run: String,
    /// The calls, in the order in which they came.
    pub(crate) calls: Vec<CallStarted>,
}

/// A call that the host is to run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallStarted {
    /// The call's id: at most 64 characters, never used again.
    pub(crate) call: String,
    /// The real name of the tool.
    pub(crate) tool: String,
    /// The name by which the agent called it.
    pub(crate) name: String,
    /// The arguments, byte for byte as the agent wrote them; always an object, and not checked against `parameters`.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(crate) arguments: RawJson,
}

/// The notification `call/cancelled`: the host is to stop this call. Nobody waits for its result any more.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallCancelled {
    /// Of which session.
    pub(crate) session: String,
    /// Of which run.
    pub(crate) run: String,
    /// The call's id.
    pub(crate) call: String,
    /// Why.
    pub(crate) reason: String,
}

/// The notification `skill/activated`: the agent has activated a skill. Toolway has answered it; the host may show it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillActivated {
    /// Of which session.
    pub(crate) session: String,
    /// Of which run.
    pub(crate) run: String,
    /// The call's id.
    pub(crate) call: String,
    /// What the agent asked for.
    pub(crate) skill: String,
    /// It failed.
    pub(crate) is_error: bool,
    /// Name, file, directory, resources and the names of all skills, or null.
    pub(crate) details: Value,
}

/// The notification `diagnostic`, if it was asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiagnosticShown {
    /// Of which session, where it is about a run.
    pub(crate) session: Option<String>,
    /// The event.
    pub(crate) event: Value,
    /// How many were left out before it, because the host read too slowly.
    pub(crate) left_out: u64,
}

/// The notification `bridge/closing`: the last one. All calls have been rejected.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Closing {
    /// Why.
    pub(crate) reason: String,
}
