//! Owns what doctor has found, as plain data: it becomes text for a person or JSON with a schema. Finds nothing itself.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON form. Members are only ever added within one version.
pub(super) const SCHEMA: &str = "toolway.doctor/1";

/// Everything that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Report {
    /// `toolway.doctor/1`.
    pub(super) schema: &'static str,
    /// Every enabled server is usable, and nothing else that was looked at has a fault.
    pub(super) usable: bool,
    /// The files that were looked at, in order of precedence.
    pub(super) files: Vec<FileReport>,
    /// Every configured entry, those that are not used included.
    pub(super) servers: Vec<ServerReport>,
    /// What `--for CLIENT` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<ClientReport>,
    /// What `--cloud` says of each entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cloud: Option<Vec<CloudReport>>,
}

/// One configuration file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FileReport {
    /// Its path.
    pub(super) path: String,
    /// `project`, `user`, `team`, `mdm`, `plugins` or `explicit`.
    pub(super) source: String,
    /// It is there and could be read.
    pub(super) read: bool,
    /// What is wrong with it as a whole.
    pub(super) checks: Vec<Check>,
}

/// One configured entry.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ServerReport {
    /// Its name as configured.
    pub(super) name: String,
    /// File and line.
    pub(super) source: String,
    /// `connected`, `failed`, `needs_auth`, `needs_input`, `untrusted`, `blocked`, `disabled`, `shadowed`.
    pub(super) state: String,
    /// An agent has its tools. `null`: it is switched off or another entry has its place.
    pub(super) usable: Option<bool>,
    /// Layer by layer, up to the first that fails.
    pub(super) checks: Vec<Check>,
    /// What it offers, when it could be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<ToolsReport>,
}

/// What was found at one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Check {
    /// Which layer.
    pub(super) layer: Layer,
    /// How bad it is.
    pub(super) verdict: Verdict,
    /// What was found, in one line, without secrets.
    pub(super) finding: String,
    /// What to do, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Check {
    /// All is well.
    pub(super) fn ok(layer: Layer, finding: impl Into<String>) -> Self {
        Self { layer, verdict: Verdict::Ok, finding: finding.into(), fix: None }
    }

    /// It works, but somebody should know.
    pub(super) fn warning(layer: Layer, finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { layer, verdict: Verdict::Warning, finding: finding.into(), fix: Some(fix.into()) }
    }

    /// This is why the tools are missing.
    pub(super) fn fault(layer: Layer, finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { layer, verdict: Verdict::Fault, finding: finding.into(), fix: Some(fix.into()) }
    }
}

/// Where on the way from a file to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Layer {
    /// The file was found and parsed, and the entry in it is well-formed.
    File,
    /// Which entry of this name holds.
    Merge,
    /// What a policy says.
    Policy,
    /// Whether somebody approved it.
    Trust,
    /// The variables that it names.
    Variables,
    /// The command on the search path.
    Command,
    /// The process.
    Spawn,
    /// The way the messages go.
    Transport,
    /// The protocol generation.
    Generation,
    /// Whether the server wants a login.
    Authorised,
    /// What it offers.
    Tools,
    /// A sample call.
    Call,
}

impl Layer {
    /// As in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Merge => "merge",
            Self::Policy => "policy",
            Self::Trust => "trust",
            Self::Variables => "variables",
            Self::Command => "command",
            Self::Spawn => "spawn",
            Self::Transport => "transport",
            Self::Generation => "generation",
            Self::Authorised => "authorised",
            Self::Tools => "tools",
            Self::Call => "call",
        }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// All is well.
    Ok,
    /// It works, but somebody should know.
    Warning,
    /// This is why tools are missing.
    Fault,
}

/// What a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ToolsReport {
    /// Tools that an agent gets.
    pub(super) count: usize,
    /// Tools whose name had to be changed to fit: the server's name and the one that is shown.
    pub(super) renamed: Vec<Renamed>,
    /// Tools that no client could take, each with the reason.
    pub(super) quarantined: Vec<Quarantined>,
    /// Tools that a filter of the configuration hides.
    pub(super) hidden: usize,
    /// Tokens that the definitions cost in every request, estimated.
    pub(super) tokens: u64,
}

/// A tool under another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Renamed {
    /// The server's name for it.
    pub(super) tool: String,
    /// The name that is shown.
    pub(super) shown: String,
}

/// A tool that is held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Quarantined {
    /// The server's name for it.
    pub(super) tool: String,
    /// Why.
    pub(super) reason: String,
}

/// How one client would fare.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ClientReport {
    /// Its id.
    pub(super) client: String,
    /// What was found in its own files and against its own limits.
    pub(super) checks: Vec<Check>,
}

/// What would become of one entry in a cloud run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CloudReport {
    /// Its name as configured.
    pub(super) name: String,
    /// `vm`: a process in the worker; `backend`: called by the control plane; `refused`.
    pub(super) placement: &'static str,
    /// Where its secrets travel.
    pub(super) secrets: String,
    /// What is refused or should be changed, and why.
    pub(super) checks: Vec<Check>,
}

impl Report {
    /// Whether anything keeps an agent from a tool.
    pub(super) fn settle(mut self) -> Self {
        let fault = |checks: &[Check]| checks.iter().any(|check| check.verdict == Verdict::Fault);
        let files = self.files.iter().any(|file| fault(&file.checks));
        let servers = self.servers.iter().any(|server| server.usable == Some(false));
        let client = self.client.as_ref().is_some_and(|client| fault(&client.checks));
        self.usable = !(files || servers || client);
        self
    }
}
