//! The peers that Toolway is measured beside, by pinned versions. It installs them and runs none.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::Step;
use crate::workspace::Workspace;

/// Rust peers, always installed: name and version.
const RUST: [(&str, &str); 2] = [("mcpway", "0.2.1"), ("mcp-relay", "1.0.0")];
/// Rust peers of `--peers`.
const MORE_RUST: [(&str, &str); 2] = [("rmcp-proxy", "0.1.3"), ("mcp-proxy", "0.6.0")];
/// `PyPI` peers of `--peers`: folder and requirement.
const PYTHON: [(&str, &str); 3] = [
    ("v-mcp-proxy", "mcp-proxy==0.13.0"),
    ("v-fastmcp", "fastmcp==4.2.3"),
    ("v-jmunch", "jmunch-mcp==0.2.3"),
];
/// npm peers of `--peers`: folder and package.
const NODE: [(&str, &str); 3] = [
    ("n-supergateway", "supergateway@4.0.0"),
    ("n-mcp-remote", "mcp-remote@0.15.1"),
    ("n-mcp-proxy", "mcp-proxy@6.7.19"),
];

/// Installs what is missing into `folder`. A peer that cannot be had is said so and left out.
pub(super) fn install(workspace: &Workspace, folder: &Path, all: bool) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let more: &[(&str, &str)] = if all { &MORE_RUST } else { &[] };
    for (name, version) in RUST.iter().chain(more) {
        let root = folder.join("rust").join(name);
        let package = format!("{name}@{version}");
        once(&root, &package, || {
            let root = root.to_string_lossy().into_owned();
            workspace.cargo(&["install", "--locked", "--root", &root, &package]).run()
        });
    }
    if !all {
        return Ok(());
    }
    for (name, requirement) in PYTHON {
        let venv = folder.join(name);
        once(&venv, requirement, || {
            Step::new("python3").args(&["-m", "venv"]).arg(&venv).run()?;
            Step::new(venv.join("bin/pip")).args(&["install", "-q", requirement]).run()
        });
    }
    for (name, package) in NODE {
        let project = folder.join(name);
        once(&project, package, || npm(&project, package));
    }
    Ok(())
}

/// Beside what searches are measured, where the machine has none: folder and package. The binary is in a package of the
/// platform.
const RIPGREP: (&str, &str) = ("n-ripgrep", "@vscode/ripgrep@1.18.0");

/// The pinned ripgrep, installed when it is first needed; `None` where it cannot be had.
pub(super) fn ripgrep(folder: &Path) -> Option<PathBuf> {
    let project = folder.join(RIPGREP.0);
    once(&project, RIPGREP.1, || npm(&project, RIPGREP.1));
    let scope = fs::read_dir(project.join("node_modules/@vscode")).into_iter().flatten().flatten();
    scope.map(|package| package.path().join("bin/rg")).find(|program| program.is_file())
}

fn npm(project: &Path, package: &str) -> Result<()> {
    fs::create_dir_all(project)?;
    fs::write(project.join("package.json"), "{\"private\": true}\n")?;
    Step::new("npm").args(&["install", "--no-audit", "--no-fund", package]).dir(project).run()
}

/// Runs an installation unless this version is there; a failure is told and goes no further.
fn once(folder: &Path, version: &str, install: impl FnOnce() -> Result<()>) {
    let ready = folder.join(".ready");
    if fs::read_to_string(&ready).is_ok_and(|there| there == version) {
        return;
    }
    let done = install().and_then(|()| fs::write(&ready, version).context("cannot mark it as ready"));
    if let Err(error) = done {
        eprintln!("warning: {version} is left out: {error:#}");
    }
}

/// Whether the fronts of this name can run: their peer is installed, or they need none.
pub(super) fn is_there(folder: &Path, front: &str) -> bool {
    let at = match front {
        "mcpway" | "mcp-relay" | "rmcp-proxy" => format!("rust/{front}"),
        "tower-mcp-proxy-srv" | "tower-many-srv" => "rust/mcp-proxy".to_owned(),
        "py-mcp-proxy" | "py-mcp-proxy-srv" => "v-mcp-proxy".to_owned(),
        "fastmcp-8" | "fastmcp-many" => "v-fastmcp".to_owned(),
        "fastmcp" | "jmunch" => format!("v-{front}"),
        "supergateway" | "supergateway-srv" => "n-supergateway".to_owned(),
        "mcp-remote" => "n-mcp-remote".to_owned(),
        "npm-mcp-proxy-srv" => "n-mcp-proxy".to_owned(),
        _ => return true,
    };
    folder.join(at).join(".ready").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installation_runs_once_for_a_version() {
        let folder = tempfile::tempdir().expect("folder");
        let peer = folder.path().join("rust/mcpway");
        fs::create_dir_all(&peer).expect("folder");
        let mut runs = 0;
        for version in ["a@1", "a@1", "a@2"] {
            once(&peer, version, || {
                runs += 1;
                Ok(())
            });
        }
        assert_eq!(runs, 2);
        assert!(is_there(folder.path(), "mcpway") && is_there(folder.path(), "relay"));
        assert!(!is_there(folder.path(), "mcp-relay"));
    }

    #[test]
    fn a_peer_that_cannot_be_had_is_not_there() {
        let folder = tempfile::tempdir().expect("folder");
        once(&folder.path().join("rust/mcpway"), "mcpway@0", || anyhow::bail!("no network"));
        assert!(!is_there(folder.path(), "mcpway"));
    }
}
