//! Owns which files of the machine an agent may take rules, hooks and texts from: the chosen sources, and where they
//! are. Reads no content.

use std::path::PathBuf;

use toolway_config::{Environment, Platform, SettingSource, project_root};

/// The sources that were chosen for an agent.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The machine.
    pub environment: Environment,
    /// The folder the agent works in. Absolute.
    pub cwd: PathBuf,
    /// The top level of the project that the folder is in.
    pub root: PathBuf,
    /// What was chosen; nothing else is opened.
    pub chosen: Vec<SettingSource>,
    /// The project's hooks may run, and what it allows counts. A program that chooses the project says so by that; a
    /// host with a user before it asks first.
    pub trust_project: bool,
    /// Where administrators put hooks for every user of this machine.
    pub system_dirs: Vec<PathBuf>,
}

impl Sources {
    /// The sources as a program chooses them: what it names it trusts.
    pub fn new(environment: Environment, cwd: PathBuf, chosen: Vec<SettingSource>) -> Self {
        let root = project_root(&cwd);
        let mut system_dirs = environment.managed_dirs.clone();
        system_dirs.push(match environment.platform {
            Platform::Linux => PathBuf::from("/etc/cursor"),
            Platform::MacOs => PathBuf::from("/Library/Application Support/Cursor"),
            Platform::Windows => {
                PathBuf::from(environment.set_var("ProgramData").unwrap_or(r"C:\ProgramData")).join("Cursor")
            }
        });
        Self { environment, cwd, root, chosen, trust_project: true, system_dirs }
    }

    /// Whether a source was chosen.
    pub fn has(&self, source: SettingSource) -> bool {
        self.chosen.contains(&source)
    }

    /// `~/.cursor`, where there is a home.
    pub(crate) fn user_dir(&self) -> Option<PathBuf> {
        let home = &self.environment.home;
        (!home.as_os_str().is_empty()).then(|| home.join(".cursor"))
    }
}
