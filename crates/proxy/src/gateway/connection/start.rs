//! Owns the start of a server's process: where its command is looked up, and what to say when it does not start. Blocking
//! parts run on threads for blocking work.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use toolway_transport::command::{FileSystem, Search, resolve};
use toolway_transport::{Child, ChildTransport, Platform, StartError};

use super::{OpenError, Shared};
use crate::gateway::config::ChildTarget;
use crate::gateway::state::Stage;

/// Programs that may download what they run.
const PACKAGE_RUNNERS: [&str; 8] = ["npx", "bunx", "pnpx", "pnpm", "uvx", "uv", "pipx", "docker"];

/// Finds the command and starts it; gives the file that it was found as.
pub(super) async fn start(
    target: &ChildTarget,
    shared: &Shared,
) -> Result<(ChildTransport, PathBuf), OpenError> {
    let _permit = shared.spawning.acquire().await;
    let own = target.clone();
    let spawned = tokio::task::spawn_blocking(move || spawn(own)).await;
    let spawned = spawned.unwrap_or_else(|_| Err(OpenError::new(Stage::Spawn, "the start was interrupted")));
    let (child, program) = spawned?;
    let transport = ChildTransport::over(child).map_err(failed)?;
    Ok((transport, program))
}

fn spawn(target: ChildTarget) -> Result<(Child, PathBuf), OpenError> {
    let mut config = target.child;
    let value = |name: &str| {
        let same = |own: &OsString| {
            if Platform::CURRENT.ignores_case() {
                own.eq_ignore_ascii_case(name)
            } else {
                own.as_os_str() == OsStr::new(name)
            }
        };
        config.env.iter().find(|(own, _)| same(own)).map(|(_, value)| value.clone())
    };
    let home = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let (path, path_ext, home) = (value("PATH"), value("PATHEXT"), value(home));
    let cwd = config.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let cwd = std::path::absolute(&cwd).unwrap_or(cwd);
    let search = Search {
        path: path.as_deref(),
        path_ext: path_ext.as_deref(),
        cwd: cwd.as_os_str(),
        home: home.as_deref(),
        platform: Platform::CURRENT,
    };
    let program = resolve(OsStr::new(&target.command), &search, &FileSystem);
    let program = program.map_err(|error| failed(error.into()))?;
    config.program.clone_from(&program);
    let child = Child::spawn(&config).map_err(|error| {
        let mut error = failed(error);
        error.detail.program = Some(program.clone());
        error
    })?;
    Ok((child, program))
}

/// Why it could not be started, with all that is known.
pub(super) fn failed(error: StartError) -> OpenError {
    let reason = error.to_string();
    match error {
        StartError::NotFound(missing) => {
            let shown = |places: &[OsString]| {
                places.iter().map(|place| place.to_string_lossy().into_owned()).collect()
            };
            let mut error = OpenError::new(Stage::Resolve, reason);
            error.detail.searched = shown(&missing.searched);
            error.detail.found_at = shown(&missing.found_at);
            match (missing.hint(), &missing.not_executable) {
                (Some(hint), _) => error.hint(hint),
                (None, Some(file)) => {
                    error.hint(format!("make it executable: chmod +x {}", file.to_string_lossy()))
                }
                (None, None) => error
                    .hint("install it, or give the command as an absolute path or with its own PATH in env"),
            }
        }
        StartError::WorkingDirectory { .. } => {
            OpenError::new(Stage::Spawn, reason).hint("correct cwd, or make the directory")
        }
        StartError::Spawn { .. } | StartError::Arguments { .. } | StartError::Supervisor { .. } => {
            OpenError::new(Stage::Spawn, reason)
        }
    }
}

/// What to do about a server that does not answer in time.
pub(super) fn slow_hint(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let name = name.split('.').next().unwrap_or(name);
    if PACKAGE_RUNNERS.contains(&name) {
        return format!(
            "the first start by {name} may download packages: run it once by hand, or raise startupTimeoutMs"
        );
    }
    "raise startupTimeoutMs if it needs longer; if it waits for something else, run its command by hand"
        .to_owned()
}
