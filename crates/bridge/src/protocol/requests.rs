//! Owns what a host may ask, as it is written: the `params` of every method. Unknown members are refused.

mod display;
mod prompt;
mod turn;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::json::RawJson;
use crate::tool::{HostTool, Provenance};
pub(crate) use display::{BeginDisplay, DisplayMode, DisplayOutcome, DisplayTool, EndDisplay, TakeReplay};
pub(crate) use prompt::{AgentKey, NextPrompt, PromptSection, PromptSent, ResetCause, ResetPrompts, Section};
pub(crate) use turn::{
    AbortTurn, ActivateSkill, Moment, SessionEvent, StartTurn, SyncWrappers, TellSession, TurnMode,
};

/// The session that is there from the beginning.
pub(crate) const MAIN: &str = "main";

use prompt::no_system;

pub(in crate::protocol) fn main_session() -> String {
    MAIN.to_owned()
}

fn yes() -> bool {
    true
}

/// `initialize`: the first request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Initialize {
    /// The newest version of this protocol that the host speaks.
    #[expect(dead_code, reason = "it is looked at before everything else is read")]
    pub(crate) protocol_version: u32,
    /// Who the host is.
    pub(crate) host: Peer,
    /// The naming profile [default: the one of the command line].
    #[serde(default)]
    pub(crate) profile: Option<ProfileName>,
    /// The host can show a notification to a person: the debug report says so how it is to be shown.
    #[serde(default)]
    pub(crate) ui: bool,
    /// `diagnostic` notifications are wanted.
    #[serde(default)]
    pub(crate) diagnostics: bool,
}

/// A program and its version.
#[derive(Debug, Clone, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Peer {
    /// The program's name.
    pub(crate) name: String,
    /// Its version.
    #[serde(default)]
    pub(crate) version: String,
}

/// A naming profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProfileName {
    /// pi with Cursor's agent.
    Pi,
    /// Every other host.
    Host,
}

/// A request that has nothing to say.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// A request about a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OfSession {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
}

/// `session/open`: a session beside `main`, for a child or a second conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OpenSession {
    /// Its name, chosen by the host; 1 to 128 bytes.
    pub(crate) session: String,
}

/// `session/close`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CloseSession {
    /// Which session.
    pub(crate) session: String,
    /// Why; the agent reads it as the end of its open calls.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// `tools/declare`: the whole registry of the host, as it is now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeclareTools {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// All tools, in the order of their registration.
    pub(crate) tools: Vec<Tool>,
    /// The names of those that are active [default: all]. Names without a tool are of no consequence.
    #[serde(default)]
    pub(crate) active: Option<Vec<String>>,
    /// The tool with the profile's display name is the host's wrapper for replay cards: it is never exposed.
    #[serde(default)]
    pub(crate) own_display_tool: bool,
    /// The tool with the profile's name for activating skills is the host's wrapper of `skill/activate`.
    #[serde(default)]
    pub(crate) own_skill_tool: bool,
}

/// A tool of the host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Tool {
    /// The real name, as the host knows it.
    pub(crate) name: String,
    /// What it does.
    #[serde(default)]
    pub(crate) description: String,
    /// Rules for its use.
    #[serde(default)]
    pub(crate) guidelines: Vec<String>,
    /// JSON Schema of its arguments [default: {}].
    #[serde(default = "RawJson::empty_object")]
    #[schemars(with = "Value")]
    pub(crate) parameters: RawJson,
    /// Who registered it.
    #[serde(default)]
    pub(crate) provenance: Origin,
}

impl From<Tool> for HostTool {
    fn from(tool: Tool) -> Self {
        let Tool { name, description, guidelines, parameters, provenance } = tool;
        let Origin { source, path, scope } = provenance;
        let provenance = Provenance { source, path, scope };
        Self { name, description, guidelines, parameters, provenance }
    }
}

/// Where a tool comes from.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Origin {
    /// `builtin`, `extension`, the name of a package.
    #[serde(default)]
    pub(crate) source: String,
    /// The file that defines it.
    #[serde(default)]
    pub(crate) path: Option<String>,
    /// `user`, `project`, `temporary`.
    #[serde(default)]
    pub(crate) scope: Option<String>,
}

/// `tools/activate`: other tools are active, and the registry is the same.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ActivateTools {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The names of the active tools.
    pub(crate) active: Vec<String>,
}

/// `skills/declare`: all skills that the host has loaded.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeclareSkills {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The skills, in the host's order; of two with one name the first counts.
    pub(crate) skills: Vec<SkillParams>,
    /// The agent's model is selected. With another model there is no catalogue and no activation tool.
    #[serde(default = "yes")]
    pub(crate) agent_model: bool,
}

/// A skill of the host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SkillParams {
    /// Its name.
    pub(crate) name: String,
    /// When it is to be used.
    pub(crate) description: String,
    /// Its file, as an absolute path.
    pub(crate) file_path: String,
    /// Its directory, as an absolute path [default: the file's].
    #[serde(default)]
    pub(crate) base_dir: Option<String>,
    /// It is left out of the catalogue, and no model can activate it.
    #[serde(default)]
    pub(crate) disable_model_invocation: bool,
}

/// `settings/declare`: what the command line or the session of the host says, above the user's file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeclareSettings {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// Members as in the user's file; those that are not named stay as the file has them. `{}` takes all of it back.
    #[serde(deserialize_with = "object")]
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(crate) settings: RawJson,
}

/// `settings/write`: changes the user's file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WriteSettings {
    /// Which session's settings the answer shows.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The new value of each key, by its dotted name as in `tools.bridge.enabled`; `null` takes the key out.
    #[schemars(with = "BTreeMap<String, Value>")]
    pub(crate) changes: BTreeMap<String, Option<RawJson>>,
}

/// `run/open`: an agent is to be created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OpenRun {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// How calls are handed over.
    #[serde(default)]
    pub(crate) calls: CallDelivery,
    /// The host takes calls from now on; else from the first `run/attach`, and calls wait until then.
    #[serde(default = "yes")]
    pub(crate) attach: bool,
}

/// How calls are handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CallDelivery {
    /// Each at once.
    #[default]
    Each,
    /// Together with those that come within 75 ms, and up to 125 ms more until `run/usage`.
    Batch,
}

/// A request about a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OfRun {
    /// The run's id.
    pub(crate) run: String,
}

/// A request that ends something of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EndOfRun {
    /// The run's id.
    pub(crate) run: String,
    /// Why; the agent reads it as the end of its open calls.
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// A request about a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OfCall {
    /// The call's id.
    pub(crate) call: String,
}

/// `call/result`: the tool has ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CallResult {
    /// The call's id.
    pub(crate) call: String,
    /// A list of content blocks, or any other value.
    #[schemars(with = "Value")]
    pub(crate) content: RawJson,
    /// The tool failed, or the host did not allow it.
    #[serde(default)]
    pub(crate) is_error: bool,
}

/// `call/fail`: the host could not run the tool at all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FailCall {
    /// The call's id.
    pub(crate) call: String,
    /// Why; the agent reads it.
    pub(crate) reason: String,
}

/// `call/progress`: the tool is at work.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CallProgress {
    /// The call's id.
    pub(crate) call: String,
    /// How far it is; more each time.
    #[schemars(with = "f64")]
    pub(crate) progress: RawJson,
    /// How far it has to go.
    #[serde(default)]
    #[schemars(with = "Option<f64>")]
    pub(crate) total: Option<RawJson>,
    /// What it does.
    #[serde(default)]
    pub(crate) message: Option<String>,
}

/// An object, byte for byte.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RawJson, D::Error> {
    let value = RawJson::deserialize(deserializer)?;
    if value.is_object() { Ok(value) } else { Err(serde::de::Error::custom("expected an object")) }
}

/// `report/read`, `manifest/read`, about a run or what a new one would have.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct OfSurface {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// What this run was opened with [default: what a run would have that is opened now].
    #[serde(default)]
    pub(crate) run: Option<String>,
}
