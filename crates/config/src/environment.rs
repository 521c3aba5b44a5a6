//! Owns what the caller tells about the machine and the user: variables, directories, platform. Nothing in this crate
//! reads the process's own environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolway_secret::Secret;

/// Which conventions for paths and variables hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Linux, and other systems that follow the XDG base directories.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl Platform {
    /// The one this program was built for.
    pub const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// Gives the secret of that name out of the user's keyring, within a time of its own. An error is a fragment that says why
/// there is none; it holds no value. Called on the thread that expands, once for each place that names it.
pub type KeyringReader = Arc<dyn Fn(&str) -> Result<Secret, String> + Send + Sync>;

/// The machine and the user, as the caller tells them. `Debug` shows the variables' names only.
#[derive(Clone)]
pub struct Environment {
    /// The variables. On Windows a name is looked up without regard to case.
    pub vars: BTreeMap<String, String>,
    /// The user's home directory.
    pub home: PathBuf,
    /// The directory the user, or the agent, stands in. Absolute.
    pub cwd: PathBuf,
    /// Which conventions hold.
    pub platform: Platform,
    /// Toolway's own files of this user: `mcp.json`, `trust.json`.
    pub config_dir: PathBuf,
    /// Where an administrator puts files for every user of this machine; the first one that has a file holds.
    pub managed_dirs: Vec<PathBuf>,
    /// Where `${keyring:NAME}` comes from; without it each such value is an error.
    pub keyring: Option<KeyringReader>,
}

impl Environment {
    /// With the directories that follow from the variables: `HOME` or `USERPROFILE`, `XDG_CONFIG_HOME`, `APPDATA`.
    pub fn new(vars: BTreeMap<String, String>, cwd: PathBuf, platform: Platform) -> Self {
        let mut this = Self {
            vars,
            home: PathBuf::new(),
            cwd,
            platform,
            config_dir: PathBuf::new(),
            managed_dirs: Vec::new(),
            keyring: None,
        };
        let names: &[&str] = if platform == Platform::Windows { &["USERPROFILE", "HOME"] } else { &["HOME"] };
        this.home = names.iter().find_map(|name| this.set_var(name)).map(PathBuf::from).unwrap_or_default();
        this.config_dir = this.app_config().join("toolway");
        this.managed_dirs = match platform {
            Platform::Linux => vec![PathBuf::from("/etc/toolway")],
            Platform::MacOs => {
                vec![PathBuf::from("/Library/Application Support/Toolway"), PathBuf::from("/etc/toolway")]
            }
            Platform::Windows => {
                let root = this.set_var("ProgramData").unwrap_or(r"C:\ProgramData");
                vec![Path::new(root).join("Toolway")]
            }
        };
        this
    }

    /// The value of a variable.
    pub fn var(&self, name: &str) -> Option<&str> {
        if let Some(value) = self.vars.get(name) {
            return Some(value);
        }
        let any_case = self.platform == Platform::Windows;
        let found = self.vars.iter().find(|(own, _)| any_case && own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a variable that is set and not empty.
    pub fn set_var(&self, name: &str) -> Option<&str> {
        self.var(name).filter(|value| !value.is_empty())
    }

    /// Where applications keep their settings: `$XDG_CONFIG_HOME` or `~/.config`; on macOS
    /// `~/Library/Application Support`; on Windows `%APPDATA%`.
    pub fn app_support(&self) -> PathBuf {
        match self.platform {
            Platform::MacOs => self.home.join("Library/Application Support"),
            Platform::Linux | Platform::Windows => self.app_config(),
        }
    }

    /// Where Toolway's own directory is: as [`Self::app_support`], on macOS below `$XDG_CONFIG_HOME` if that is set.
    fn app_config(&self) -> PathBuf {
        match self.platform {
            Platform::Windows => {
                self.set_var("APPDATA").map_or_else(|| self.home.join("AppData/Roaming"), PathBuf::from)
            }
            Platform::MacOs if self.set_var("XDG_CONFIG_HOME").is_none() => self.app_support(),
            Platform::Linux | Platform::MacOs => {
                let set = self.set_var("XDG_CONFIG_HOME").map(PathBuf::from);
                set.filter(|dir| dir.is_absolute()).unwrap_or_else(|| self.home.join(".config"))
            }
        }
    }

    /// A path with a leading `~` replaced by the home directory.
    pub fn expand_home(&self, path: &str) -> PathBuf {
        let separators: &[char] = if self.platform == Platform::Windows { &['/', '\\'] } else { &['/'] };
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with(separators) => self.home.join(rest.trim_start_matches(separators)),
            _ => PathBuf::from(path),
        }
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("vars", &self.vars.keys().collect::<Vec<_>>())
            .field("home", &self.home)
            .field("cwd", &self.cwd)
            .field("platform", &self.platform)
            .field("config_dir", &self.config_dir)
            .field("managed_dirs", &self.managed_dirs)
            .field("keyring", &self.keyring.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(platform: Platform, vars: &[(&str, &str)]) -> Environment {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Environment::new(vars, PathBuf::from("/w"), platform)
    }

    #[test]
    fn directories_follow_the_platform() {
        let linux = of(Platform::Linux, &[("HOME", "/h")]);
        assert_eq!(linux.config_dir, Path::new("/h/.config/toolway"));
        let xdg = of(Platform::Linux, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]);
        assert_eq!(
            (xdg.config_dir.as_path(), xdg.app_support().as_path()),
            (Path::new("/x/toolway"), Path::new("/x"))
        );
        let mac = of(Platform::MacOs, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]);
        assert_eq!(mac.config_dir, Path::new("/x/toolway"));
        assert_eq!(mac.app_support(), Path::new("/h/Library/Application Support"));
        let windows = of(Platform::Windows, &[("userprofile", "/u"), ("APPDATA", "/u/roaming")]);
        assert_eq!(windows.home, Path::new("/u"));
        assert_eq!(windows.config_dir, Path::new("/u/roaming/toolway"));
    }

    #[test]
    fn variables_keep_their_case_except_on_windows() {
        assert_eq!(of(Platform::Linux, &[("Path", "x")]).var("PATH"), None);
        assert_eq!(of(Platform::Windows, &[("Path", "x")]).var("PATH"), Some("x"));
    }

    #[test]
    fn debug_shows_no_values_and_home_is_put_in_place() {
        let environment = of(Platform::Linux, &[("HOME", "/h"), ("TOK", "s3cr3t")]);
        assert!(!format!("{environment:?}").contains("s3cr3t"));
        assert_eq!(environment.expand_home("~/a"), Path::new("/h/a"));
        assert_eq!(environment.expand_home("~bob/a"), Path::new("~bob/a"));
    }
}
