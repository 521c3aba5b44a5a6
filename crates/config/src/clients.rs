//! Every client whose files Toolway reads and writes: where they are, how an entry looks there, and the way into
//! Toolway's own files and back. Nothing is started, and no approval of another client's counts.

mod change;
mod codex;
mod export;
mod files;
mod find;
mod import;
mod notes;
mod placeholders;
mod reading;
mod same;
mod shape;
mod shapes;
mod writing;

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::dialect::Dialect;
use crate::environment::Environment;

pub use change::{plan_removal, plan_switch};
pub use export::{ExportLine, ExportOutcome, ExportPlan, plan_export};
pub use files::{ClientFile, Scope};
pub use find::{Found, Home, InFile, find};
pub use import::{ImportLine, ImportOutcome, ImportPlan, plan_import};

use files::Roots;
use shape::Shape;

/// A client.
#[derive(Debug)]
pub struct Client {
    /// The word for it on the command line and in notes.
    pub id: &'static str,
    /// Its name.
    pub title: &'static str,
    /// Whose placeholders its files hold.
    pub dialect: Dialect,
    /// Whether it refuses comments and trailing commas.
    pub strict_json: bool,
    /// What it can take.
    pub limits: Limits,
    shape: &'static Shape,
    files: fn(&Roots<'_>) -> Vec<ClientFile>,
}

/// What a client can take, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most tools of all servers together.
    pub tools: Option<u32>,
    /// The most characters of a tool's name, as the client shows it to the model.
    pub name: u32,
}

impl Client {
    /// The client of that id.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.id == id)
    }

    /// All files it may have, those that it reads in preference first. `project` is the project's root.
    pub fn files(&self, env: &Environment, project: &Path) -> Vec<ClientFile> {
        (self.files)(&Roots { env, project })
    }

    /// The file that is written for it: of those that it writes the first that is there, else the first.
    pub fn file_to_write(&self, env: &Environment, project: &Path, scope: Scope) -> Option<ClientFile> {
        let mut files = self.files(env, project);
        files.retain(|file| file.scope == scope && file.is_written);
        let there = files.iter().position(|file| file.path.exists()).unwrap_or(0);
        (there < files.len()).then(|| files.swap_remove(there))
    }
}

const fn limits(tools: Option<u32>, name: u32) -> Limits {
    Limits { tools, name }
}

/// Names of 64 characters are what the models' interfaces take.
const MODELS: Limits = limits(None, 64);

macro_rules! client {
    ($id:literal, $title:literal, $dialect:ident, $strict:literal, $limits:expr, $shape:ident, $files:ident) => {
        Client {
            id: $id,
            title: $title,
            dialect: Dialect::$dialect,
            strict_json: $strict,
            limits: $limits,
            shape: &shapes::$shape,
            files: files::$files,
        }
    };
}

/// All of them.
pub static CLIENTS: &[Client] = &[
    client!("cursor", "Cursor", Cursor, false, limits(Some(80), 60), CURSOR, cursor),
    // Before the others that read its `.mcp.json`.
    client!("claude-code", "Claude Code", ClaudeCode, true, MODELS, CLAUDE_CODE, claude_code),
    client!("vscode", "VS Code", VsCode, false, limits(Some(128), 64), VSCODE, vscode),
    client!("copilot-cli", "GitHub Copilot CLI", CopilotCli, true, MODELS, COPILOT_CLI, copilot_cli),
    client!("claude-desktop", "Claude Desktop", ClaudeDesktop, true, MODELS, CLAUDE_DESKTOP, claude_desktop),
    client!("codex", "Codex", Codex, false, MODELS, CODEX, codex),
    client!("gemini", "Gemini CLI", Gemini, false, MODELS, GEMINI, gemini),
    client!("qwen", "Qwen Code", Qwen, false, MODELS, GEMINI, qwen),
    client!("windsurf", "Windsurf", Windsurf, false, limits(Some(100), 64), WINDSURF, windsurf),
    client!(
        "antigravity",
        "Antigravity",
        Antigravity,
        false,
        limits(Some(100), 64),
        ANTIGRAVITY,
        antigravity
    ),
    client!("cline", "Cline", Cline, false, MODELS, CLINE, cline),
    client!("roo", "Roo Code", Roo, false, MODELS, ROO, roo),
    client!("zed", "Zed", Zed, false, MODELS, ZED, zed),
    client!("opencode", "OpenCode", OpenCode, false, MODELS, OPENCODE, opencode),
    client!("goose", "Goose", Goose, false, MODELS, GOOSE, goose),
    client!("kiro", "Kiro", Kiro, true, MODELS, KIRO, kiro),
    client!("amazon-q", "Amazon Q Developer", AmazonQ, true, MODELS, KIRO, amazon_q),
    client!("factory", "Factory Droid", Factory, false, MODELS, FACTORY, factory),
    client!("crush", "Crush", Crush, false, MODELS, CRUSH, crush),
    client!("pi", "Pi", Pi, false, MODELS, PI, pi),
    client!("agent-plugin", "Agent Plugins package", AgentPlugin, false, MODELS, PACKAGE, agent_plugin),
    client!("continue", "Continue", Continue, false, MODELS, CONTINUE, continue_dev),
    client!("mcporter", "MCPorter", Mcporter, false, MODELS, PLAIN, mcporter),
    client!("lm-studio", "LM Studio", LmStudio, false, MODELS, LIKE_CURSOR, lm_studio),
    client!("junie", "Junie", Junie, false, MODELS, LIKE_CURSOR, junie),
];
