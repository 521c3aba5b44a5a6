//! Owns the box around servers of this machine, where one is asked for: each is started in it, or not at all.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolway_config::{SettingSource, project_root};
use toolway_proxy::gateway::{ChildTarget, ServerConfig, ServerEntry, ServerState, Target};
use toolway_transport::Platform;
use toolway_transport::command::{FileSystem, Search, resolve};

use crate::error::AgentError;
use crate::options::Machine;
use crate::sandbox::{Sandbox, SandboxConfig};

/// What the box is made from.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// Folders that the agent works in.
    pub(super) folders: Vec<PathBuf>,
    /// Whose files say more of it.
    pub(super) sources: Vec<SettingSource>,
}

/// Puts every server that is a child process into the box. Where there is none, they are blocked. Blocks.
pub(super) fn put(entries: &mut [ServerEntry], wish: &Wish, machine: &Machine) {
    let is_child = |entry: &&mut ServerEntry| {
        entry.plan.as_ref().is_ok_and(|config| matches!(config.target, Target::Child(_)))
    };
    let mut sandbox = None;
    for entry in entries.iter_mut().filter(is_child) {
        let sandbox = sandbox.get_or_insert_with(|| close(wish, machine));
        let Ok(config) = &entry.plan else { continue };
        let boxed = sandbox
            .as_ref()
            .map_err(ToString::to_string)
            .and_then(|sandbox| inside(config, sandbox, machine).map_err(|error| error.to_string()));
        entry.plan = boxed.map(Arc::new).map_err(|reason| ServerState::Blocked { policy: reason });
    }
}

fn close(wish: &Wish, machine: &Machine) -> Result<Sandbox, AgentError> {
    let of = |source: SettingSource, folder: PathBuf| {
        wish.sources.contains(&source).then(|| folder.join(".cursor"))
    };
    let user = of(SettingSource::User, machine.home().to_owned());
    let project = of(SettingSource::Project, project_root(machine.cwd()));
    let (config, notes) = SandboxConfig::read(user.as_deref(), project.as_deref())?;
    let temp = machine.var("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let (sandbox, more) = Sandbox::close(&config, &wish.folders, &temp, machine.variable("PATH"))?;
    for note in notes.0.iter().chain(&more.0) {
        tracing::info!("{note}");
    }
    Ok(sandbox)
}

fn inside(config: &ServerConfig, sandbox: &Sandbox, machine: &Machine) -> Result<ServerConfig, AgentError> {
    let mut config = config.clone();
    let Target::Child(ChildTarget { command, child }) = &mut config.target else { return Ok(config) };
    let value = |name: &str| child.env.get(OsStr::new(name)).cloned();
    let cwd = child.cwd.clone().unwrap_or_else(|| machine.cwd().to_owned());
    let (path, path_ext) = (value("PATH"), value("PATHEXT"));
    let home = value(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let search = Search {
        path: path.as_deref(),
        path_ext: path_ext.as_deref(),
        cwd: cwd.as_os_str(),
        home: home.as_deref(),
        platform: Platform::CURRENT,
    };
    // What is not found is told by its start.
    let Ok(program) = resolve(OsStr::new(command), &search, &FileSystem) else { return Ok(config) };
    let args = std::mem::take(&mut child.args);
    let (program, args) = sandbox.server_command(program, args, &cwd, machine.helper())?;
    *command = text(&program)?;
    child.args = args;
    Ok(config)
}

fn text(path: &Path) -> Result<String, AgentError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| AgentError::fault("local.sandbox", format!("{} is not UTF-8", path.display())))
}
