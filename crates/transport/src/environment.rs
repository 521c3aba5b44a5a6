//! Which variables an upstream gets: a safe base, what the user names, or everything. Pure: never reads the
//! environment itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::platform::Platform;

/// The base set on Unix, as the official MCP SDKs have it.
const UNIX_BASE: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
/// The base set on Windows, as the official MCP SDKs have it.
const WINDOWS_BASE: [&str; 12] = [
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
];

/// The names of the variables that an upstream gets from us without being asked to.
pub const fn base_names(platform: Platform) -> &'static [&'static str] {
    match platform {
        Platform::Windows => &WINDOWS_BASE,
        Platform::Linux | Platform::Macos => &UNIX_BASE,
    }
}

/// An upstream's environment. [`fmt::Debug`] shows names only: values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Exactly the variables that the upstream gets.
    pub variables: BTreeMap<OsString, OsString>,
    /// The names of ours that it does not get, sorted: a server that misses one of them often fails at start.
    pub not_passed: Vec<OsString>,
}

impl Environment {
    /// The value of a variable, found as this platform compares names.
    pub fn get(&self, name: &str, platform: Platform) -> Option<&OsStr> {
        let name = OsStr::new(name);
        let found = self.variables.iter().find(|(own, _)| same_name(own, name, platform));
        found.map(|(_, value)| value.as_os_str())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variables, not_passed } = self;
        let names = variables.keys();
        f.debug_struct("Environment").field("variables", &names).field("not_passed", not_passed).finish()
    }
}

/// Builds an upstream's environment from `parent` (ours) and `given` (the user's, which win; the last one of a
/// name wins). Without `inherit` only [`base_names`] are taken from `parent`, and of those not the values that
/// begin with `()`: shells export functions so, and a child must not run them.
pub fn environment<I>(
    parent: I,
    given: &[(OsString, OsString)],
    inherit: bool,
    platform: Platform,
) -> Environment
where
    I: IntoIterator<Item = (OsString, OsString)>,
{
    let mut environment = Environment::default();
    for (name, value) in parent {
        if inherit || (is_base(&name, platform) && !value.as_encoded_bytes().starts_with(b"()")) {
            environment.variables.insert(name, value);
        } else if !given.iter().any(|(own, _)| same_name(own, &name, platform)) {
            environment.not_passed.push(name);
        }
    }
    for (name, value) in given {
        environment.variables.retain(|own, _| !same_name(own, name, platform));
        environment.variables.insert(name.clone(), value.clone());
    }
    environment.not_passed.sort_unstable();
    environment
}

fn is_base(name: &OsStr, platform: Platform) -> bool {
    base_names(platform).iter().any(|base| same_name(OsStr::new(base), name, platform))
}

fn same_name(one: &OsStr, other: &OsStr, platform: Platform) -> bool {
    if platform.ignores_case() { one.eq_ignore_ascii_case(other) } else { one == other }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = [(&'static str, &'static str)];

    fn owned(pairs: &Pairs) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn check(
        parent: &Pairs,
        given: &Pairs,
        inherit: bool,
        platform: Platform,
        expected: &Pairs,
        not: &[&str],
    ) {
        let built = environment(owned(parent), &owned(given), inherit, platform);
        let expected = Environment {
            variables: owned(expected).into_iter().collect(),
            not_passed: not.iter().map(OsString::from).collect(),
        };
        assert_eq!(built, expected);
    }

    const OURS: &Pairs =
        &[("PATH", "/bin"), ("HOME", "/h"), ("TOKEN", "secret"), ("path", "/x"), ("SHELL", "")];

    #[test]
    fn values_are_not_printed() {
        let text = format!("{:?}", environment(owned(OURS), &[], true, Platform::Linux));
        assert!(text.contains("TOKEN") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn only_the_base_passes_and_the_rest_is_named() {
        let expected = [("HOME", "/h"), ("PATH", "/bin"), ("SHELL", "")];
        check(OURS, &[], false, Platform::Linux, &expected, &["TOKEN", "path"]);
        check(OURS, &[], false, Platform::Macos, &expected, &["TOKEN", "path"]);
    }

    #[test]
    fn given_variables_win_and_are_not_missed() {
        let expected = [("HOME", "/h"), ("PATH", "/mine"), ("SHELL", ""), ("TOKEN", "a=b")];
        let given = [("PATH", "/first"), ("TOKEN", "a=b"), ("PATH", "/mine")];
        check(OURS, &given, false, Platform::Linux, &expected, &["path"]);
    }

    #[test]
    fn inherit_passes_everything() {
        let ours = [("A", "1"), ("F", "() { :; }"), ("PATH", "/bin")];
        let expected = [("A", "1"), ("B", "2"), ("F", "() { :; }"), ("PATH", "/bin")];
        check(&ours, &[("B", "2")], true, Platform::Linux, &expected, &[]);
    }

    #[test]
    fn exported_shell_functions_do_not_pass() {
        check(&[("TERM", "() { evil; }")], &[], false, Platform::Linux, &[], &["TERM"]);
    }

    #[test]
    fn windows_ignores_case_and_keeps_the_spelling() {
        let ours = [("Path", r"C:\bin"), ("SystemRoot", r"C:\Windows"), ("ComSpec", "x"), ("HOME", "h")];
        let expected = [("Path", r"C:\bin"), ("SystemRoot", r"C:\Windows")];
        check(&ours, &[], false, Platform::Windows, &expected, &["ComSpec", "HOME"]);
        let given = [("PATH", r"D:\bin")];
        let expected = [("PATH", r"D:\bin"), ("SystemRoot", r"C:\Windows")];
        check(&ours, &given, false, Platform::Windows, &expected, &["ComSpec", "HOME"]);
    }

    #[test]
    fn values_are_found_as_the_platform_compares_names() {
        let built = environment(owned(&[("Path", "x")]), &[], true, Platform::Windows);
        assert_eq!(built.get("PATH", Platform::Windows), Some(OsStr::new("x")));
        assert_eq!(built.get("PATH", Platform::Linux), None);
    }
}
