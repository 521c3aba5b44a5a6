//! Where version managers and package managers keep programs that a desktop program's `PATH` does not reach.

use std::ffi::{OsStr, OsString};

use super::path::join;
use super::{Lookup, Search};
use crate::platform::Platform;

/// Below the home directory on Unix; `*` stands for every name in that directory.
const UNIX_HOME: [&str; 14] = [
    ".local/bin",
    ".nvm/versions/node/*/bin",
    ".local/share/fnm/node-versions/*/installation/bin",
    "Library/Application Support/fnm/node-versions/*/installation/bin",
    ".fnm/node-versions/*/installation/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".pyenv/shims",
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    "go/bin",
    "bin",
];
const UNIX_ROOT: [&str; 5] = [
    "/opt/homebrew/bin",
    "/usr/local/bin",
    "/home/linuxbrew/.linuxbrew/bin",
    "/snap/bin",
    "/usr/local/go/bin",
];
const WINDOWS_HOME: [&str; 8] = [
    r"AppData\Roaming\npm",
    r"AppData\Roaming\fnm\node-versions\*\installation",
    r"AppData\Local\Volta\bin",
    r"AppData\Local\Programs\Python\*\Scripts",
    r"scoop\shims",
    r".local\bin",
    r".cargo\bin",
    r".bun\bin",
];
const WINDOWS_ROOT: [&str; 2] = [r"C:\Program Files\nodejs", r"C:\ProgramData\chocolatey\bin"];

/// The directories to propose, the user's own first, newer versions before older ones.
pub(super) fn places(search: &Search<'_>, lookup: &impl Lookup) -> Vec<OsString> {
    let (home, root): (&[&str], &[&str]) = match search.platform {
        Platform::Windows => (&WINDOWS_HOME, &WINDOWS_ROOT),
        Platform::Linux | Platform::Macos => (&UNIX_HOME, &UNIX_ROOT),
    };
    let own = search.home.map(|directory| {
        home.iter().flat_map(move |place| {
            expand(&join(directory, OsStr::new(place), search.platform), search, lookup)
        })
    });
    own.into_iter().flatten().chain(root.iter().map(OsString::from)).collect()
}

fn expand(place: &OsStr, search: &Search<'_>, lookup: &impl Lookup) -> Vec<OsString> {
    let text = place.to_string_lossy();
    let Some((before, after)) = text.split_once('*') else { return vec![place.to_owned()] };
    let before = before.trim_end_matches(['/', '\\']);
    let after = after.trim_start_matches(['/', '\\']);
    let mut names = lookup.names(OsStr::new(before));
    names.sort_by_key(|name| std::cmp::Reverse(version(&name.to_string_lossy())));
    let within = |name: OsString| {
        join(&join(OsStr::new(before), &name, search.platform), OsStr::new(after), search.platform)
    };
    names.into_iter().map(within).collect()
}

/// The numbers in a directory name such as `v22.1.0`, for comparison.
fn version(name: &str) -> Vec<u64> {
    let numbers = name.split(|character: char| !character.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}
