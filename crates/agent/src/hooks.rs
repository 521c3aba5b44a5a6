//! Owns hooks: programs of the user's, the project's or the administrator's that see tool calls before and after they
//! are made. It knows no rules and no models.

/// Whose call a hook is told about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookFacts {
    /// The agent's id.
    pub conversation_id: String,
    /// The run's id.
    pub generation_id: String,
    /// The model.
    pub model: String,
    /// The agent's folder.
    pub cwd: std::path::PathBuf,
    /// The roots it works in.
    pub roots: Vec<std::path::PathBuf>,
}

/// The hooks of the chosen sources.
#[derive(Debug, Clone, Default)]
pub struct Hooks {}
