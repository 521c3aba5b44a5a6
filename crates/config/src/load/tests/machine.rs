//! A machine in a directory: a home, a project with a nested directory, an administrator's directory, a team's file.

use std::path::{Path, PathBuf};

use crate::environment::{Environment, Platform};
use crate::load::{LoadOptions, Loader, Resolved, TrustMode};
use crate::source::SettingSource;
use crate::trust::TrustStore;

pub(super) struct Machine {
    dir: tempfile::TempDir,
    root: PathBuf,
    pub(super) environment: Environment,
    trust: TrustMode,
}

impl Machine {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let home = root.join("home").to_string_lossy().into_owned();
        let team = root.join("team.json").to_string_lossy().into_owned();
        let vars = [("HOME", home), ("TOOLWAY_TEAM_CONFIG", team), ("TOK", "s3cr3t".to_owned())];
        let vars = vars.map(|(name, value)| (name.to_owned(), value)).into();
        let mut environment = Environment::new(vars, root.join("project/nested"), Platform::Linux);
        environment.managed_dirs = vec![root.join("managed")];
        let machine = Self { dir, root, environment, trust: TrustMode::Ask };
        machine.write("project/.git/HEAD", "");
        machine.write("project/nested/x", "");
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }

    /// All is approved.
    pub(super) fn given(mut self) -> Self {
        self.trust = TrustMode::Given;
        self
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        assert!(self.dir.path().is_dir());
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }

    pub(super) fn options(&self, sources: &str) -> LoadOptions {
        let sources = SettingSource::parse_list(sources.split(',')).unwrap();
        LoadOptions { sources, trust: self.trust, ..LoadOptions::default() }
    }

    pub(super) fn inline(&self, text: &str) -> serde_json::Map<String, serde_json::Value> {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert!(self.dir.path().is_dir());
        value["mcpServers"].as_object().unwrap().clone()
    }

    pub(super) fn load(&self, sources: &str) -> Resolved {
        self.load_with(&self.options(sources))
    }

    pub(super) fn load_with(&self, options: &LoadOptions) -> Resolved {
        crate::load(options, &self.environment)
    }

    pub(super) fn load_by(&self, loader: &mut Loader, sources: &str) -> Resolved {
        loader.load(&self.options(sources), &self.environment)
    }

    pub(super) fn store(&self) -> TrustStore {
        TrustStore::read(self.environment.config_dir.join("trust.json")).unwrap()
    }

    /// Name and standing of each entry.
    pub(super) fn standings(&self, resolved: &Resolved) -> Vec<String> {
        assert!(self.dir.path().is_dir());
        resolved.entries.iter().map(|entry| format!("{} {}", entry.name, entry.standing.name())).collect()
    }

    /// The problems, paths relative to the machine.
    pub(super) fn told(&self, resolved: &Resolved) -> Vec<String> {
        let root = format!("{}/", self.root.display());
        resolved.problems.iter().map(|problem| problem.to_string().replace(&root, "")).collect()
    }
}
