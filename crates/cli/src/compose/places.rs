//! Owns where Toolway keeps its own state on each platform. Makes no directory.

use std::path::PathBuf;

use super::Environment;

/// Where what can be made again is kept: `$XDG_CACHE_HOME/toolway`, `~/Library/Caches/toolway`,
/// `%LOCALAPPDATA%\toolway\cache`. `None` without a home.
pub(crate) fn cache_dir(own: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(path(own, "LOCALAPPDATA")?.join("toolway").join("cache"));
    }
    base(own, "XDG_CACHE_HOME", if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" })
}

/// Where what outlives a restart and is no configuration is kept: `$XDG_STATE_HOME/toolway`,
/// `~/Library/Application Support/toolway/state`, `%LOCALAPPDATA%\toolway\state`. `None` without a home.
pub(crate) fn state_dir(own: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(path(own, "LOCALAPPDATA")?.join("toolway").join("state"));
    }
    if cfg!(target_os = "macos") {
        return Some(path(own, "HOME")?.join("Library/Application Support/toolway/state"));
    }
    base(own, "XDG_STATE_HOME", ".local/state")
}

/// Where sockets of this user are: `$XDG_RUNTIME_DIR/toolway`, else one below the state directory.
pub(crate) fn runtime_dir(own: &Environment) -> Option<PathBuf> {
    let set = path(own, "XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
    set.map(|path| path.join("toolway")).or_else(|| Some(state_dir(own)?.join("run")))
}

fn base(own: &Environment, variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = path(own, variable).filter(|path| path.is_absolute());
    let base = set.or_else(|| Some(path(own, "HOME")?.join(below_home)))?;
    Some(base.join("toolway"))
}

fn path(own: &Environment, variable: &str) -> Option<PathBuf> {
    own.get(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_relative_directory_is_not_taken() {
        let at = |pairs: &[(&str, &str)]| cache_dir(&Environment::of(pairs));
        assert_eq!(at(&[("HOME", "/h")]), Some("/h/.cache/toolway".into()));
        assert_eq!(at(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c/toolway".into()));
        assert_eq!(at(&[("HOME", "/h"), ("XDG_CACHE_HOME", "c")]), Some("/h/.cache/toolway".into()));
        assert_eq!(at(&[]), None);
    }
}
