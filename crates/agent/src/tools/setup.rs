//! Owns what tools are made with: plain values, and how they follow from options and machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::AgentError;
use crate::options::{LocalOptions, Machine};
use crate::sandbox::{Sandbox, SandboxNotes, temp_folder};

/// What tools are made with. Nothing is looked up later.
#[derive(Clone)]
pub struct ToolSetup {
    /// The folder that relative paths start from. Absolute.
    pub cwd: PathBuf,
    /// Further folders that the agent works in.
    pub dirs: Vec<PathBuf>,
    /// The folder for temporary files; the agent may work in it too.
    pub temp: PathBuf,
    /// The variables that commands get.
    pub variables: BTreeMap<OsString, OsString>,
    /// The user's shell; absent, or not known to take `-c`: `sh`.
    pub shell: Option<PathBuf>,
    /// The box for commands.
    pub sandbox: Sandbox,
    /// Toolway's own binary, which ends everything that a command started whatever happens; see
    /// [`toolway_transport::supervisor`].
    pub supervise: Option<PathBuf>,
    /// Pages on this machine and in private networks may be read too.
    pub fetch_private: bool,
    /// How long a command may take that names no time.
    pub shell_timeout: Duration,
    /// How long a command may ask for.
    pub shell_timeout_cap: Duration,
}

impl std::fmt::Debug for ToolSetup {
    /// Without the values of variables, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSetup")
            .field("cwd", &self.cwd)
            .field("dirs", &self.dirs)
            .field("variables", &self.variables.keys())
            .field("sandbox", &self.sandbox)
            .finish_non_exhaustive()
    }
}

impl ToolSetup {
    /// For a folder, with the defaults: no sandbox, no private pages, two minutes, at most an hour.
    pub fn new(cwd: PathBuf, temp: PathBuf) -> Self {
        Self {
            cwd,
            dirs: Vec::new(),
            temp,
            variables: BTreeMap::new(),
            shell: None,
            sandbox: Sandbox::none(),
            supervise: None,
            fetch_private: false,
            shell_timeout: Duration::from_mins(2),
            shell_timeout_cap: Duration::from_hours(1),
        }
    }

    /// For an agent on this machine, standing where the machine stands. Where a sandbox is asked for, the files that say
    /// how are read, and it is tried; that blocks.
    ///
    /// # Errors
    /// A sandbox is asked for, and there is none: no command is to be run then.
    pub fn of(machine: &Machine, local: &LocalOptions) -> Result<(Self, SandboxNotes), AgentError> {
        let environment = machine.environment();
        let (sandbox, notes) = if local.sandbox.enabled {
            Sandbox::open(environment, &local.setting_sources, &local.dirs)?
        } else {
            (Sandbox::none(), SandboxNotes::default())
        };
        let setup = Self {
            dirs: local.dirs.clone(),
            variables: machine.variables().iter().cloned().collect(),
            shell: machine.var("SHELL").map(PathBuf::from),
            sandbox,
            supervise: machine.helper().map(PathBuf::from),
            ..Self::new(machine.cwd().to_owned(), temp_folder(environment))
        };
        Ok((setup, notes))
    }
}

#[cfg(test)]
mod tests {
    use toolway_config::SettingSource;

    use super::*;
    use crate::options::SandboxOptions;

    #[test]
    fn a_setup_follows_from_the_machine_and_shows_no_values() {
        let variables = [("SHELL", "/bin/bash"), ("TMPDIR", "/var/tmp/x"), ("TOKEN", "hunter2")];
        let variables = variables.map(|(name, value)| (name.into(), value.into())).to_vec();
        let machine = Machine::new(variables, "/work".into());
        let local = LocalOptions { dirs: vec!["../other".into()], ..LocalOptions::default() };
        let (setup, notes) = ToolSetup::of(&machine, &local).unwrap();
        assert_eq!(notes, SandboxNotes::default());
        assert_eq!(
            (setup.shell.clone(), setup.temp.clone()),
            (Some("/bin/bash".into()), "/var/tmp/x".into())
        );
        assert!(!setup.sandbox.is_closed());
        let shown = format!("{setup:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_bad_file_of_a_chosen_source_is_an_error_where_a_sandbox_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".cursor")).unwrap();
        std::fs::write(folder.path().join(".cursor/sandbox.json"), "{\"type\": 1}").unwrap();
        let machine = Machine::new(Vec::new(), folder.path().to_owned());
        let sandbox = SandboxOptions { enabled: true };
        let local = |sources: &[SettingSource], sandbox| LocalOptions {
            setting_sources: sources.to_vec(),
            sandbox,
            ..LocalOptions::default()
        };
        let project = [SettingSource::Project];
        let error = ToolSetup::of(&machine, &local(&project, sandbox)).unwrap_err();
        assert!(error.to_string().contains("workspace_readwrite"), "{error}");
        // Not a chosen source, or nothing asked for: the file is nobody's.
        assert!(ToolSetup::of(&machine, &local(&project, SandboxOptions::default())).is_ok());
        let without = ToolSetup::of(&machine, &local(&[], sandbox));
        assert!(without.is_ok() || without.unwrap_err().to_string().contains("there is no sandbox"));
    }
}
