//! Tests of decisions, files of rules, and the gate without hooks.

mod answers;
mod decisions;
mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolway_config::{Environment, Platform, SettingSource};

use super::{Action, Decision, Gate, GateOptions, PermissionMode, PermissionRules};
use crate::hooks::Hooks;
use crate::sources::Sources;

/// A home and a project in it.
pub(super) struct Machine {
    _dir: tempfile::TempDir,
    pub(super) home: PathBuf,
    pub(super) project: PathBuf,
}

impl Machine {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        let project = home.join("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        Self { _dir: dir, home, project }
    }

    pub(super) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn environment(&self) -> Environment {
        let vars = BTreeMap::from([("HOME".to_owned(), self.home.display().to_string())]);
        let mut environment = Environment::new(vars, self.project.clone(), Platform::Linux);
        environment.managed_dirs = vec![self.home.join("managed")];
        environment
    }

    pub(super) fn sources(&self, chosen: &[SettingSource]) -> Sources {
        let mut sources = Sources::new(self.environment(), self.project.clone(), chosen.to_vec());
        sources.system_dirs = vec![self.home.join("managed")];
        sources
    }

    pub(super) fn options(&self, mode: PermissionMode, rules: PermissionRules) -> GateOptions {
        GateOptions {
            mode,
            rules,
            approver: None,
            hooks: Hooks::default(),
            environment: self.environment(),
            cwd: self.project.clone(),
            roots: Vec::new(),
        }
    }

    pub(super) fn gate(&self, mode: PermissionMode, allow: &[&str], deny: &[&str]) -> Gate {
        Gate::new(self.options(mode, PermissionRules::parse(allow, deny).unwrap()))
    }
}

pub(super) fn shell(command: &str) -> Action {
    Action::Shell { command: command.to_owned(), cwd: None }
}

pub(super) fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow => "allow",
        Decision::Deny { .. } => "deny",
        Decision::Ask { .. } => "ask",
    }
}

pub(super) fn mcp(server: &str, tool: &str, explicit: bool) -> Action {
    Action::Mcp { server: server.to_owned(), tool: tool.to_owned(), explicit }
}

pub(super) fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path)
}
