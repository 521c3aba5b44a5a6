//! Owns the box that commands and servers run in: what may be written, whether there is a network, and how the system
//! is made to hold them to it. It knows no tools and no models.

mod command;
mod config;
mod landlock;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub use command::{SANDBOX_COMMAND, run_sandboxed};
pub use config::{SandboxConfig, SandboxMode, SandboxNotes};

use toolway_config::{Environment, Platform, SettingSource, project_root};

use crate::error::AgentError;

/// What is to hold commands. [`Sandbox::none`] holds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    means: Means,
    rules: Rules,
}

/// By what they are held.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Means {
    /// By nothing.
    Nothing,
    /// By bubblewrap at this path.
    Bubblewrap(PathBuf),
    /// By Landlock of the kernel.
    Landlock,
}

/// What they are held to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Rules {
    /// Folders that may be written.
    writable: Vec<PathBuf>,
    /// Within those, what may not be.
    protected: Vec<PathBuf>,
    /// Whether there is a network.
    network: bool,
}

/// Files within a folder by which what runs could give itself more than it has.
const PROTECTED: [&str; 3] = [".cursor", ".toolway", ".git/hooks"];

impl Sandbox {
    /// No box.
    pub fn none() -> Self {
        Self { means: Means::Nothing, rules: Rules::default() }
    }

    /// The box for an agent that works in `folders` and in `temp`; programs are looked for in `path`. It is tried
    /// whether this system can hold anything to it. Blocks as long as a program takes to start.
    ///
    /// # Errors
    /// This system cannot: nothing is to be run then.
    pub fn close(
        config: &SandboxConfig,
        folders: &[PathBuf],
        temp: &Path,
        path: Option<&OsStr>,
    ) -> Result<(Self, SandboxNotes), AgentError> {
        if config.mode == SandboxMode::Off {
            return Ok((Self::none(), SandboxNotes::default()));
        }
        let rules = rules(config, folders, temp);
        let mut faults = Vec::new();
        let bubblewrap = path.and_then(|path| {
            std::env::split_paths(path).map(|folder| folder.join("bwrap")).find(|file| file.is_file())
        });
        match bubblewrap {
            None => faults.push("bubblewrap (bwrap) is not in PATH".to_owned()),
            Some(bubblewrap) => match command::bubblewrap_fault(&bubblewrap, &rules) {
                None => {
                    let means = Means::Bubblewrap(bubblewrap);
                    return Ok((Self { means, rules }, SandboxNotes::default()));
                }
                Some(fault) => faults.push(fault),
            },
        }
        match landlock::missing(&rules) {
            None if config.strict && !rules.network => faults
                .push("Landlock denies TCP alone, and a network denied as a whole was asked for".to_owned()),
            None => return Ok((Self { means: Means::Landlock, rules: rules.clone() }, notes(&rules))),
            Some(fault) => faults.push(fault),
        }
        Err(AgentError::fault(
            "local.sandbox",
            format!("there is no sandbox on this system, and one was asked for: {}", faults.join("; ")),
        ))
    }

    /// The box that files of these sources ask for, for an agent that stands where the environment says and works in `dirs`
    /// too. Blocks.
    ///
    /// # Errors
    /// A file cannot be understood, or this system can hold nothing to it: nothing is to be run then.
    pub fn open(
        environment: &Environment,
        sources: &[SettingSource],
        dirs: &[PathBuf],
    ) -> Result<(Self, SandboxNotes), AgentError> {
        let chosen = |source, folder: PathBuf| sources.contains(&source).then_some(folder);
        let user = chosen(SettingSource::User, environment.home.join(".cursor"));
        let project = chosen(SettingSource::Project, project_root(&environment.cwd).join(".cursor"));
        let (config, mut notes) = SandboxConfig::read(user.as_deref(), project.as_deref())?;
        let cwd = &environment.cwd;
        let folders: Vec<PathBuf> =
            std::iter::once(cwd.clone()).chain(dirs.iter().map(|dir| cwd.join(dir))).collect();
        let path = environment.set_var("PATH").map(OsStr::new);
        let (sandbox, more) = Self::close(&config, &folders, &temp_folder(environment), path)?;
        notes.0.extend(more.0);
        Ok((sandbox, notes))
    }

    /// Whether it holds anything.
    pub fn is_closed(&self) -> bool {
        self.means != Means::Nothing
    }

    /// How a server is started in it: the program and its arguments. `helper` is Toolway's own binary, whose `main` calls
    /// [`run_sandboxed`] first.
    ///
    /// # Errors
    /// It takes the helper, and there is none.
    pub fn server_command(
        &self,
        program: PathBuf,
        args: Vec<OsString>,
        cwd: &Path,
        helper: Option<&Path>,
    ) -> Result<(PathBuf, Vec<OsString>), AgentError> {
        match (&self.means, helper) {
            (Means::Landlock, Some(helper)) => {
                Ok((helper.to_owned(), command::in_helper(&self.rules, program.as_os_str(), args)))
            }
            (Means::Landlock, None) => Err(AgentError::fault(
                "local.sandbox",
                "a server can be started in a sandbox of Landlock only by the toolway program, which was not found; \
                 name it, or install bubblewrap",
            )),
            _ => Ok(self.wrap(program, args, cwd)),
        }
    }

    /// How a program is started from a thread that [`Sandbox::restrict_this_thread`] was called on.
    pub(crate) fn wrap(&self, program: PathBuf, args: Vec<OsString>, cwd: &Path) -> (PathBuf, Vec<OsString>) {
        match &self.means {
            Means::Nothing | Means::Landlock => (program, args),
            Means::Bubblewrap(bubblewrap) => {
                let args = command::in_bubblewrap(&self.rules, cwd, program.as_os_str(), args);
                (bubblewrap.clone(), args)
            }
        }
    }

    /// Restricts this thread for good where the box is made so; what is started from it is in the box too. The error is a
    /// fragment, and then nothing is to be started.
    pub(crate) fn restrict_this_thread(&self) -> Result<(), String> {
        match self.means {
            Means::Landlock => landlock::restrict_this_thread(&self.rules),
            Means::Nothing | Means::Bubblewrap(_) => Ok(()),
        }
    }

    /// For the model: what commands may not do.
    pub(crate) fn described(&self) -> Option<String> {
        if !self.is_closed() {
            return None;
        }
        let folders: Vec<String> =
            self.rules.writable.iter().map(|path| path.display().to_string()).collect();
        let network = if self.rules.network { "" } else { " There is no network." };
        Some(format!("Commands run in a sandbox: only {} can be written.{network}", folders.join(", ")))
    }
}

/// The folder for temporary files.
pub(crate) fn temp_folder(environment: &Environment) -> PathBuf {
    let names: &[&str] =
        if environment.platform == Platform::Windows { &["TEMP", "TMP"] } else { &["TMPDIR"] };
    let named = names.iter().find_map(|name| environment.set_var(name)).map(PathBuf::from);
    named.filter(|folder| folder.is_absolute()).unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn rules(config: &SandboxConfig, folders: &[PathBuf], temp: &Path) -> Rules {
    let mut writable: Vec<PathBuf> = match config.mode {
        SandboxMode::Workspace => folders.iter().chain(&config.writable).cloned().collect(),
        SandboxMode::ReadOnly | SandboxMode::Off => Vec::new(),
    };
    if !config.no_temp {
        writable.push(temp.to_owned());
    }
    let protected = folders.iter().flat_map(|folder| PROTECTED.map(|path| folder.join(path))).collect();
    Rules { writable, protected, network: config.network }
}

/// What Landlock leaves open.
fn notes(rules: &Rules) -> SandboxNotes {
    let mut notes =
        vec![format!("sandbox: Landlock cannot close {} within the agent's folders", PROTECTED.join(", "))];
    if !rules.network {
        notes.push(
            "sandbox: Landlock denies TCP; UDP (name resolution among it), and sockets in the file system stay open. \
             With bubblewrap the network is denied as a whole"
                .to_owned(),
        );
    }
    SandboxNotes(notes)
}

#[cfg(test)]
mod tests;
