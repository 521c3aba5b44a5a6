//! Owns where the files of each source are, and which of them are one. Reads no content.

use std::io;
use std::path::{Path, PathBuf};

use crate::clients::{CLIENTS, Client};
use crate::dialect::Dialect;
use crate::environment::Environment;
use crate::problem::Problem;
use crate::source::{SettingSource, Source};
use crate::tree::is_circle;

#[cfg(test)]
mod tests;

/// Names the team's file, or its URL.
const TEAM: &str = "TOOLWAY_TEAM_CONFIG";

/// A file that may hold servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) source: Source,
    pub(crate) dialect: Dialect,
    /// Names follow Toolway's own rule.
    pub(crate) own: bool,
    /// The id of the client in whose own way it is written; `None`: in Toolway's and Cursor's.
    pub(crate) client: Option<&'static str>,
}

impl Candidate {
    fn own(path: PathBuf, source: Source) -> Self {
        Self { path, source, dialect: Dialect::Toolway, own: true, client: None }
    }

    fn of(path: PathBuf, source: Source, dialect: Dialect) -> Self {
        Self { path, source, dialect, own: false, client: None }
    }
}

/// The top level of the git repository that a directory is in; the directory itself where there is none.
pub fn project_root(cwd: &Path) -> PathBuf {
    let top = cwd.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
    top.unwrap_or(cwd).to_path_buf()
}

/// The URL of the team's document, if it is one: the caller fetches it.
pub fn team_url(environment: &Environment) -> Option<&str> {
    environment.set_var(TEAM).filter(|place| place.contains("://"))
}

/// A document's URL as it may be shown: user, password and query may be secret.
pub(crate) fn without_secrets(url: &str) -> String {
    let Ok(mut url) = url::Url::parse(url) else { return "the team's document".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // An address that cannot have a user has none.
    let _same = url.set_username("").and_then(|()| url.set_password(None));
    url.into()
}

/// The administrator's file: the first that is there, or else the first that could be.
pub(crate) fn managed_file(environment: &Environment) -> Option<PathBuf> {
    let files: Vec<PathBuf> = environment.managed_dirs.iter().map(|dir| dir.join("mcp.json")).collect();
    files.iter().find(|file| file.symlink_metadata().is_ok()).or_else(|| files.first()).cloned()
}

/// The files of a source, those that stand higher first. Plugins are found by themselves.
pub(crate) fn files_of(source: SettingSource, root: &Path, environment: &Environment) -> Vec<Candidate> {
    match source {
        SettingSource::Project => vec![
            Candidate::own(root.join(".toolway/mcp.json"), Source::Project),
            Candidate::own(root.join("toolway.json"), Source::Project),
            Candidate::of(root.join(".cursor/mcp.json"), Source::Project, Dialect::Cursor),
            Candidate::of(root.join(".mcp.json"), Source::Project, Dialect::ClaudeCode),
        ],
        SettingSource::User => {
            let mut files = vec![Candidate::own(environment.config_dir.join("mcp.json"), Source::User)];
            if !environment.home.as_os_str().is_empty() {
                let cursor = environment.home.join(".cursor/mcp.json");
                files.push(Candidate::of(cursor, Source::User, Dialect::Cursor));
            }
            files
        }
        SettingSource::Team => {
            let named = environment.set_var(TEAM).filter(|place| !place.contains("://"));
            let path = named.map(|place| environment.cwd.join(environment.expand_home(place)));
            path.map(|path| Candidate::own(path, Source::Team)).into_iter().collect()
        }
        SettingSource::Mdm => {
            managed_file(environment).map(|path| Candidate::own(path, Source::Mdm)).into_iter().collect()
        }
        SettingSource::Plugins => Vec::new(),
    }
}

/// A file that the user named.
pub(crate) fn named_file(path: &Path, root: &Path, environment: &Environment) -> Candidate {
    let path = environment.cwd.join(environment.expand_home(&path.to_string_lossy()));
    let dialect = dialect_of(&path);
    let plain = [Dialect::Toolway, Dialect::Cursor, Dialect::ClaudeCode];
    let has_it = |client: &&Client| client.files(environment, root).iter().any(|file| file.path == path);
    let client = if dialect == Dialect::Toolway {
        CLIENTS.iter().find(has_it)
    } else {
        CLIENTS.iter().find(|client| client.dialect == dialect)
    };
    let client = client.filter(|client| !plain.contains(&client.dialect));
    let dialect = client.map_or(dialect, |client| client.dialect);
    Candidate { path, source: Source::Config, dialect, own: false, client: client.map(|client| client.id) }
}

/// Whose conventions a file follows, by its place.
fn dialect_of(path: &Path) -> Dialect {
    let parent = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match (parent.as_str(), name.as_str()) {
        (".cursor", _) => Dialect::Cursor,
        (".vscode", _) => Dialect::VsCode,
        (".gemini", _) => Dialect::Gemini,
        (".qwen", _) => Dialect::Qwen,
        (".roo", _) => Dialect::Roo,
        (".codex", "config.toml") => Dialect::Codex,
        (".zed", _) => Dialect::Zed,
        (".factory", _) => Dialect::Factory,
        (".pi", _) => Dialect::Pi,
        (_, ".mcp.json" | ".claude.json" | "managed-mcp.json") => Dialect::ClaudeCode,
        (_, "claude_desktop_config.json") => Dialect::ClaudeDesktop,
        (_, "opencode.json" | "opencode.jsonc") => Dialect::OpenCode,
        _ => Dialect::Toolway,
    }
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file, with a path that is the same whatever links led to it.
    File(PathBuf),
    /// Nothing.
    Absent,
}

/// Follows a path to its file.
pub(crate) fn find(path: &Path) -> Result<Found, Problem> {
    match path.canonicalize() {
        Ok(real) => Ok(Found::File(real)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let is_link = path.symlink_metadata().is_ok_and(|kind| kind.is_symlink());
            if is_link {
                return Err(Problem::error("is a link that leads nowhere").file(path));
            }
            Ok(Found::Absent)
        }
        Err(error) => {
            let problem = Problem::error(format!("cannot be read: {error}")).file(path);
            let circle = is_circle(&error);
            Err(if circle { problem.hint("its links lead in a circle") } else { problem })
        }
    }
}
