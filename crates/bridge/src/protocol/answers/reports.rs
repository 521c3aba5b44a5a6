//! Owns what a host is told of surfaces and their use.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The answer to `run/facts`: four facts, none of which follows from the one before.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FactsShown {
    /// Tools that the agent may call.
    pub(crate) exposed: usize,
    /// How often a client has introduced itself.
    pub(crate) connected: u64,
    /// How often a client has read the list of tools.
    pub(crate) listed: u64,
    /// How many calls came.
    pub(crate) called: u64,
}

/// The answer to `report/read`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportShown {
    /// The report as a person reads it.
    pub(crate) text: String,
    /// How the host is to show it: `notification` (of level info) where it has a UI, else `stdout`.
    pub(crate) show: &'static str,
    /// The same for programs.
    pub(crate) data: Value,
}

/// The answer to `manifest/read`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ManifestShown {
    /// The manifest.
    pub(crate) text: String,
    /// The names that can be called: those of `tools/list`.
    pub(crate) names: Vec<String>,
}

/// The answer to `selftest/run`: four facts, none of which follows from the one before.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelfTestShown {
    /// All four hold.
    pub(crate) passed: bool,
    /// The host's tools are offered.
    pub(crate) exposed: FindingShown,
    /// A client reaches the server and introduces itself.
    pub(crate) connected: FindingShown,
    /// The client is given exactly the tools that are offered.
    pub(crate) listed: FindingShown,
    /// A call goes to the host's side, and its result comes back.
    pub(crate) called: FindingShown,
    /// All of it for people, in four lines.
    pub(crate) text: String,
}

/// One fact of the self-test.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FindingShown {
    /// It holds.
    pub(crate) holds: bool,
    /// What was seen, or why it does not hold.
    pub(crate) seen: String,
}
