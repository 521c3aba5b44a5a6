//! Owns where each client's files are, for each platform. Where sources disagree all candidates are named, and those
//! that are written come in the order in which the client prefers them.

use std::path::{Path, PathBuf};

use crate::environment::{Environment, Platform};
use crate::tree::Format;

/// No more are looked at in a directory of profiles or extensions.
const MOST: usize = 1000;

/// Whom a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The user, in every project.
    User,
    /// Everybody who works on the project.
    Project,
}

/// A file that a client may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFile {
    /// Where.
    pub path: PathBuf,
    /// For whom.
    pub scope: Scope,
    /// How it is written.
    pub format: Format,
    /// Whether Toolway writes it: the client reads it, and it is nobody else's.
    pub is_written: bool,
}

/// What paths begin with.
#[derive(Debug)]
pub(super) struct Roots<'a> {
    pub(super) env: &'a Environment,
    pub(super) project: &'a Path,
}

impl Roots<'_> {
    fn home(&self, rest: &str) -> ClientFile {
        file(self.env.home.join(rest), Scope::User)
    }

    fn support(&self, rest: &str) -> ClientFile {
        file(self.env.app_support().join(rest), Scope::User)
    }

    /// `$XDG_CONFIG_HOME` or `~/.config`, on macOS too; `None` on Windows.
    fn xdg(&self, rest: &str) -> Option<ClientFile> {
        let set = self.env.set_var("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = set.unwrap_or_else(|| self.env.home.join(".config"));
        (self.env.platform != Platform::Windows).then(|| file(base.join(rest), Scope::User))
    }

    /// Below a directory that a variable names, if it is set; else below the home directory.
    fn named(&self, variable: &str, default: &str, rest: &str) -> ClientFile {
        let base = self.env.set_var(variable).map_or_else(|| self.env.home.join(default), PathBuf::from);
        file(base.join(rest), Scope::User)
    }

    fn local_app_data(&self) -> PathBuf {
        self.env.set_var("LOCALAPPDATA").map_or_else(|| self.env.home.join("AppData/Local"), PathBuf::from)
    }

    fn project(&self, rest: &str) -> ClientFile {
        file(self.project.join(rest), Scope::Project)
    }
}

/// A file of that name in each directory below `base`, in the order of their names.
fn each_below(base: &Path, rest: &str) -> Vec<ClientFile> {
    let found = inside(base).into_iter().map(|path| path.join(rest)).filter(|path| path.is_file());
    found.map(|path| file(path, Scope::User).read_only()).collect()
}

/// What is in a directory, in the order of names; nothing if it cannot be read.
fn inside(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.take(MOST).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn file(path: PathBuf, scope: Scope) -> ClientFile {
    let format = Format::of_path(&path).unwrap_or(Format::Jsonc);
    ClientFile { path, scope, format, is_written: true }
}

impl ClientFile {
    /// A file that Toolway reads and never writes.
    fn read_only(mut self) -> Self {
        self.is_written = false;
        self
    }

    /// A file the user named, in the user's or the project's place.
    pub fn given(path: PathBuf, scope: Scope) -> Self {
        file(path, scope)
    }
}

pub(super) fn cursor(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".cursor/mcp.json"), at.project(".cursor/mcp.json")]
}

pub(super) fn vscode(at: &Roots<'_>) -> Vec<ClientFile> {
    let mut files = Vec::new();
    for product in ["Code", "Code - Insiders", "VSCodium"] {
        files.push(at.support(&format!("{product}/User/mcp.json")));
        let profiles = at.env.app_support().join(format!("{product}/User/profiles"));
        files.extend(each_below(&profiles, "mcp.json"));
        files.push(at.support(&format!("{product}/User/settings.json")).read_only());
    }
    files.push(at.project(".vscode/mcp.json"));
    files.push(at.project(".devcontainer/devcontainer.json").read_only());
    files.push(at.project(".devcontainer.json").read_only());
    files.push(at.project(".mcp.json").read_only());
    files
}

pub(super) fn copilot_cli(at: &Roots<'_>) -> Vec<ClientFile> {
    let user = at.named("COPILOT_HOME", ".copilot", "mcp-config.json");
    vec![user, at.project(".mcp.json"), at.project(".github/mcp-config.json").read_only()]
}

pub(super) fn claude_code(at: &Roots<'_>) -> Vec<ClientFile> {
    let managed = match at.env.platform {
        Platform::Linux => "/etc/claude-code/managed-mcp.json",
        Platform::MacOs => "/Library/Application Support/ClaudeCode/managed-mcp.json",
        Platform::Windows => r"C:\Program Files\ClaudeCode\managed-mcp.json",
    };
    vec![
        at.named("CLAUDE_CONFIG_DIR", "", ".claude.json"),
        file(PathBuf::from(managed), Scope::User).read_only(),
        at.project(".mcp.json"),
    ]
}

pub(super) fn claude_desktop(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.support("Claude/claude_desktop_config.json")]
}

pub(super) fn codex(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.named("CODEX_HOME", ".codex", "config.toml"), at.project(".codex/config.toml")]
}

pub(super) fn gemini(at: &Roots<'_>) -> Vec<ClientFile> {
    let mut files = vec![at.home(".gemini/settings.json"), at.project(".gemini/settings.json")];
    files.extend(each_below(&at.env.home.join(".gemini/extensions"), "gemini-extension.json"));
    files
}

pub(super) fn qwen(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![
        at.home(".qwen/settings.json"),
        at.project(".qwen/settings.json"),
        at.project(".mcp.json").read_only(),
    ]
}

pub(super) fn windsurf(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".codeium/windsurf/mcp_config.json")]
}

pub(super) fn antigravity(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".gemini/antigravity/mcp_config.json")]
}

pub(super) fn cline(at: &Roots<'_>) -> Vec<ClientFile> {
    let settings = "settings/cline_mcp_settings.json";
    vec![
        at.support(&format!("Code/User/globalStorage/saoudrizwan.claude-dev/{settings}")),
        at.named("CLINE_DIR", ".cline", &format!("data/{settings}")),
    ]
}

pub(super) fn roo(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![
        at.support("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        at.project(".roo/mcp.json"),
    ]
}

pub(super) fn zed(at: &Roots<'_>) -> Vec<ClientFile> {
    let mut files: Vec<ClientFile> = at.xdg("zed/settings.json").into_iter().collect();
    match at.env.platform {
        Platform::Linux => {}
        // Zed reads the first one; another tool writes the second.
        Platform::MacOs => files.push(at.support("Zed/settings.json").read_only()),
        Platform::Windows => files.push(at.support("Zed/settings.json")),
    }
    files.push(at.project(".zed/settings.json"));
    files
}

pub(super) fn opencode(at: &Roots<'_>) -> Vec<ClientFile> {
    let mut files = Vec::new();
    for name in ["opencode.jsonc", "opencode.json"] {
        let home = format!(".config/opencode/{name}");
        files.push(at.xdg(&format!("opencode/{name}")).unwrap_or_else(|| at.home(&home)));
        if at.env.platform == Platform::Windows {
            files.push(file(at.local_app_data().join("opencode").join(name), Scope::User).read_only());
        }
    }
    // A new file is a plain one; a `.jsonc` that is there shadows it.
    files.sort_by_key(|file| !file.path.exists() && file.path.extension().is_some_and(|e| e == "jsonc"));
    let mut project = [at.project("opencode.jsonc"), at.project("opencode.json")];
    project.sort_by_key(|file| !file.path.exists() && file.path.extension().is_some_and(|e| e == "jsonc"));
    files.extend(project);
    files
}

pub(super) fn goose(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.xdg("goose/config.yaml").unwrap_or_else(|| at.support("Block/goose/config/config.yaml"))]
}

pub(super) fn kiro(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".kiro/settings/mcp.json"), at.project(".kiro/settings/mcp.json")]
}

pub(super) fn amazon_q(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".aws/amazonq/mcp.json"), at.project(".amazonq/mcp.json")]
}

pub(super) fn factory(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".factory/mcp.json"), at.project(".factory/mcp.json")]
}

pub(super) fn crush(at: &Roots<'_>) -> Vec<ClientFile> {
    let windows = || file(at.local_app_data().join("crush/crush.json"), Scope::User);
    let user = at.xdg("crush/crush.json").unwrap_or_else(windows);
    vec![user, at.project("crush.json"), at.project(".crush.json")]
}

pub(super) fn pi(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![
        at.home(".pi/agent/mcp.json"),
        at.home(".agents/mcp/mcp.json").read_only(),
        at.home(".agents/mcp.json").read_only(),
        at.home(".config/mcp/mcp.json").read_only(),
        at.project(".pi/mcp.json"),
        at.project(".mcp.json").read_only(),
    ]
}

pub(super) fn agent_plugin(at: &Roots<'_>) -> Vec<ClientFile> {
    let is_package = at.project.join("plugin.json").is_file();
    if is_package { vec![at.project("mcp.json")] } else { Vec::new() }
}

pub(super) fn continue_dev(at: &Roots<'_>) -> Vec<ClientFile> {
    let mut files = vec![at.home(".continue/config.yaml")];
    let blocks = inside(&at.project.join(".continue/mcpServers")).into_iter();
    let blocks = blocks.filter(|path| path.is_file() && Format::of_path(path).is_some());
    files.extend(blocks.map(|path| file(path, Scope::Project).read_only()));
    files
}

pub(super) fn mcporter(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![
        at.home(".mcporter/mcporter.json"),
        at.home(".mcporter/mcporter.jsonc"),
        at.project("config/mcporter.json"),
    ]
}

pub(super) fn lm_studio(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".lmstudio/mcp.json")]
}

pub(super) fn junie(at: &Roots<'_>) -> Vec<ClientFile> {
    vec![at.home(".junie/mcp/mcp.json"), at.project(".junie/mcp/mcp.json")]
}
