//! Owns the user file: lenient reading with warnings, locked writing, the values that everything else uses. There is
//! no layer below a project and none in the environment. Knows no clamps: numbers stay as they were written.

mod change;
mod lock;
mod place;
mod read;
mod section;
mod warning;
mod write;

use std::collections::BTreeMap;

use crate::snapshot::SurfaceOptions;

pub use change::SettingChange;
pub use place::settings_path;
pub use warning::Warning;

/// Everything of the user file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// `tools`.
    pub tools: ToolSettings,
    /// `local`.
    pub local: LocalSettings,
    /// `models`.
    pub models: ModelSettings,
    /// `debug`.
    pub debug: DebugSettings,
}

impl Settings {
    /// What decides which tools are exposed. `own_display_tool`: the adapter registered the display-only tool itself.
    pub fn surface(&self, own_display_tool: bool) -> SurfaceOptions {
        let bridge = &self.tools.bridge;
        SurfaceOptions {
            enabled: bridge.enabled,
            expose_builtins: bridge.expose_builtins,
            exclude: bridge.exclude.clone(),
            own_display_tool,
        }
    }
}

/// `tools`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSettings {
    /// The bootstrap prompt has the manifest.
    pub manifest: bool,
    /// `tools.bridge`.
    pub bridge: BridgeSettings,
    /// `tools.mcp`.
    pub mcp: McpSettings,
    /// `tools.display`.
    pub display: DisplaySettings,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            manifest: true,
            bridge: BridgeSettings::default(),
            mcp: McpSettings::default(),
            display: DisplaySettings::default(),
        }
    }
}

/// `tools.bridge`.
#[derive(Debug, Clone, PartialEq)]
pub struct BridgeSettings {
    /// The whole bridge.
    pub enabled: bool,
    /// The seven tools that overlap with the agent's own are exposed too.
    pub expose_builtins: bool,
    /// Real names that are never exposed: trimmed, each one once, none empty.
    pub exclude: Vec<String>,
    /// Milliseconds, finite, as they were written.
    pub call_timeout_ms: Option<f64>,
    /// `tools.bridge.debug`.
    pub debug: DiagnosticSettings,
}

impl Default for BridgeSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            expose_builtins: false,
            exclude: Vec::new(),
            call_timeout_ms: None,
            debug: DiagnosticSettings::default(),
        }
    }
}

/// `tools.bridge.debug`: where diagnostics go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiagnosticSettings {
    /// Lines on stderr.
    pub stderr: bool,
    /// A file that they are appended to.
    pub file: Option<String>,
}

/// `tools.mcp`: milliseconds, finite, as they were written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpSettings {
    /// Of every MCP tool call of the agent.
    pub call_timeout_ms: Option<f64>,
    /// Of connecting, initializing and listing.
    pub connect_timeout_ms: Option<f64>,
}

/// `tools.display`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisplaySettings {
    /// Replay cards.
    pub native: NativeDisplay,
    /// How delegated tasks are titled.
    pub task_presentation: TaskPresentation,
}

/// `tools.display.native`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NativeDisplay {
    /// Where somebody sees them.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How the host runs, if it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMode {
    /// A terminal interface.
    Tui,
    /// Events as JSON lines.
    Json,
    /// Driven by another program.
    Rpc,
    /// One answer, printed.
    Print,
}

impl NativeDisplay {
    /// Whether there are replay cards. A host that prints has none by itself, and one that does not say its mode has
    /// them on a terminal.
    pub fn shows(self, mode: Option<HostMode>, is_terminal: bool) -> bool {
        match (self, mode) {
            (Self::Off, _) | (Self::Auto, Some(HostMode::Print)) => false,
            (Self::On, _) | (Self::Auto, Some(HostMode::Tui | HostMode::Json | HostMode::Rpc)) => true,
            (Self::Auto, None) => is_terminal,
        }
    }
}

/// `tools.display.taskPresentation`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskPresentation {
    /// As a task.
    Task,
    /// As a subagent.
    Subagent,
    /// As a subagent, with its kind and model.
    #[default]
    SubagentMeta,
}

/// `local`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each one is a switch of the file")]
pub struct LocalSettings {
    /// Which settings of its own the agent loads: `all` if nothing is said, none if the list is empty. The names are
    /// the agent's, and pass unchecked.
    pub setting_sources: Vec<String>,
    /// Project instructions that the agent loads itself stay in the host's prompt.
    pub preserve_pi_agents_context: bool,
    /// The agent reviews its own actions.
    pub auto_review: bool,
    /// The agent's sandbox.
    pub sandbox: bool,
    /// The agent resumes.
    pub resume: bool,
    /// The agent's version of HTTP.
    pub transport: AgentTransport,
}

impl Default for LocalSettings {
    fn default() -> Self {
        Self {
            setting_sources: vec!["all".to_owned()],
            preserve_pi_agents_context: false,
            auto_review: false,
            sandbox: false,
            resume: true,
            transport: AgentTransport::default(),
        }
    }
}

/// `local.transport`: how the agent speaks to its own service. It chooses nothing for the bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentTransport {
    /// As the agent likes.
    #[default]
    Default,
    /// HTTP/1.1.
    Http1,
}

/// `models`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// For a model, whether it is the fast one by default.
    pub fast_defaults: BTreeMap<String, bool>,
    /// `models.cache`.
    pub cache: CacheSettings,
}

/// `models.cache`.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheSettings {
    /// The list of models is kept.
    pub enabled: bool,
    /// For how many milliseconds, finite, as it was written.
    pub ttl_ms: f64,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { enabled: true, ttl_ms: 86_400_000.0 }
    }
}

/// `debug`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DebugSettings {
    /// `debug.sdkEvents`.
    pub sdk_events: SdkEventSettings,
}

/// `debug.sdkEvents`: the raw events of the agent, captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SdkEventSettings {
    /// They are.
    pub enabled: bool,
    /// Into files in this directory.
    pub directory: String,
    /// And onto stderr.
    pub stderr: bool,
}

impl Default for SdkEventSettings {
    fn default() -> Self {
        Self { enabled: false, directory: ".debug/cursor-sdk-events".to_owned(), stderr: false }
    }
}

#[cfg(test)]
mod tests;
