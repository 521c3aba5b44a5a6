//! Owns what an agent is made with and sent, as types and as JSON. It starts nothing.

mod agent;
mod agents;
mod check;
mod cloud;
mod json;
mod local;
mod machine;
mod tools;

pub use agent::{AgentOptions, CloudSend, LocalSend, Mode, Place, SendOptions, SendPlace, ServerChange};
pub use agents::{AgentDefinition, SubagentServers};
pub use check::cloud_servers;
pub use cloud::{CloudEnv, CloudOptions, CloudRepo};
pub use local::{
    AcpOptions, EngineChoice, GuardOptions, LocalOptions, PermissionOptions, Retries, SandboxOptions,
    ServerTimeouts, SkillsBy, Trust,
};
pub use machine::Machine;
pub use tools::{TOOL_NAMES, offers, offers_mcp};

use std::time::Duration;

/// What the user says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Pictures.
    pub images: Vec<PromptImage>,
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self { text: text.into(), images: Vec::new() }
    }
}

/// A picture in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptImage {
    /// `image/png`.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// Which model, and how.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelChoice {
    /// Its id, as the runtime names models: `gpt-5`, `anthropic::claude-opus-4-5`.
    pub id: String,
    /// Parameters: temperature, reasoning effort, ...
    pub params: Vec<(String, serde_json::Value)>,
}

impl<T: Into<String>> From<T> for ModelChoice {
    fn from(id: T) -> Self {
        Self { id: id.into(), params: Vec::new() }
    }
}

/// When a run stops by itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limits {
    /// Calls to the model.
    pub turns: Option<u32>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Time.
    pub time: Option<Duration>,
    /// Money, in US dollars, where prices are known.
    pub cost: Option<f64>,
}
