//! Owns the params of the `display/*` methods and of `replay/take`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolway_secret::Secret;

use super::main_session;
use crate::json::RawJson;

/// `display/begin`: a turn of the host starts to show what the agent does.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BeginDisplay {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The agent's run; without one there are no cards.
    #[serde(default)]
    pub(crate) run: Option<String>,
    /// The session's working directory: paths are shown relative to it.
    #[serde(default)]
    pub(crate) cwd: String,
    /// How the host shows things.
    #[serde(default)]
    pub(crate) mode: DisplayMode,
    /// The names under which the host has registered wrappers for cards.
    #[serde(default)]
    pub(crate) wrappers: Vec<String>,
    /// The host names of the tools in the turn's context.
    #[serde(default)]
    pub(crate) context_tools: Vec<String>,
    /// Texts that nothing may show: the API key in use.
    #[serde(default, deserialize_with = "secrets")]
    #[schemars(with = "Vec<String>")]
    pub(crate) secrets: Vec<Secret>,
}

fn secrets<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Secret>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(Secret::new).collect())
}

/// How the host shows things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DisplayMode {
    /// A terminal interface.
    Tui,
    /// Events as JSON lines.
    Json,
    /// Driven by another program.
    #[default]
    Rpc,
    /// One answer, printed: no cards.
    Print,
}

/// `display/tool`: the agent has told something of one of its own tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DisplayTool {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The agent's event, as it came.
    #[schemars(with = "Value")]
    pub(crate) event: RawJson,
}

/// `display/end`: the agent's run is over.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EndDisplay {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// How.
    pub(crate) outcome: DisplayOutcome,
}

/// How an agent's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DisplayOutcome {
    /// Well, with a text for the user.
    Answered,
    /// Well, without a text.
    Silent,
    /// With an error.
    Failed,
    /// Somebody gave it up.
    Aborted,
    /// It was let go before it ended.
    Drained,
}

/// `replay/take`: a wrapper was called, and wants the recorded result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TakeReplay {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The id of the tool call.
    pub(crate) id: String,
    /// The name of the wrapper.
    pub(crate) tool: String,
}
