//! Paths of any platform on any platform: `std::path` knows only the rules of the machine it runs on.

use std::ffi::{OsStr, OsString};

use crate::platform::Platform;

/// What separates the entries of `PATH`.
pub(super) fn list_separator(platform: Platform) -> &'static str {
    if platform == Platform::Windows { ";" } else { ":" }
}

fn is_separator(byte: u8, platform: Platform) -> bool {
    byte == b'/' || (platform == Platform::Windows && byte == b'\\')
}

/// Whether this is more than a bare name.
pub(super) fn has_separator(path: &OsStr, platform: Platform) -> bool {
    let bytes = path.as_encoded_bytes();
    bytes.iter().any(|&byte| is_separator(byte, platform)) || has_drive(bytes, platform)
}

fn has_drive(bytes: &[u8], platform: Platform) -> bool {
    platform == Platform::Windows && matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic())
}

fn is_absolute(path: &OsStr, platform: Platform) -> bool {
    let bytes = path.as_encoded_bytes();
    bytes.first().is_some_and(|&first| is_separator(first, platform)) || has_drive(bytes, platform)
}

/// `path` seen from the directory `base`. An empty path is the directory itself, a leading `./` goes.
pub(super) fn join(base: &OsStr, path: &OsStr, platform: Platform) -> OsString {
    if is_absolute(path, platform) {
        return path.to_owned();
    }
    let mut joined = base.to_owned();
    let rest = without_dot(path, platform);
    if !rest.is_empty() {
        if !base.as_encoded_bytes().last().is_some_and(|&last| is_separator(last, platform)) {
            joined.push(if platform == Platform::Windows { "\\" } else { "/" });
        }
        joined.push(rest);
    }
    joined
}

fn without_dot(path: &OsStr, platform: Platform) -> OsString {
    match path.as_encoded_bytes() {
        [b'.'] => OsString::new(),
        [b'.', second, ..] if is_separator(*second, platform) => skip(path, 2),
        _ => path.to_owned(),
    }
}

/// `~` and `~/rest`; another user's `~name` is left as it is.
pub(super) fn expand_home(path: &OsStr, home: Option<&OsStr>, platform: Platform) -> OsString {
    match (home, path.as_encoded_bytes()) {
        (Some(home), [b'~']) => home.to_owned(),
        (Some(home), [b'~', second, ..]) if is_separator(*second, platform) => {
            join(home, &skip(path, 2), platform)
        }
        _ => path.to_owned(),
    }
}

/// The directory of a file, for messages.
pub(super) fn parent(path: &str, platform: Platform) -> &str {
    let end = path.bytes().rposition(|byte| is_separator(byte, platform)).unwrap_or(0);
    path.get(..end).unwrap_or_default()
}

/// The entries of `PATH`. On Unix an empty one means the current directory, on Windows nothing, and quotes keep
/// a `;` inside an entry.
pub(super) fn split_list(list: &OsStr, platform: Platform) -> Vec<OsString> {
    if platform == Platform::Windows {
        return split_windows(&list.to_string_lossy());
    }
    if list.is_empty() {
        return Vec::new();
    }
    split_unix(list)
}

fn split_windows(list: &str) -> Vec<OsString> {
    let mut entries = Vec::new();
    let mut entry = String::new();
    let mut quoted = false;
    for character in list.chars() {
        match character {
            '"' => quoted = !quoted,
            ';' if !quoted => entries.push(std::mem::take(&mut entry)),
            other => entry.push(other),
        }
    }
    entries.push(entry);
    entries.into_iter().filter(|entry| !entry.is_empty()).map(OsString::from).collect()
}

#[cfg(unix)]
fn split_unix(list: &OsStr) -> Vec<OsString> {
    use std::os::unix::ffi::OsStrExt;
    list.as_bytes().split(|&byte| byte == b':').map(|entry| OsStr::from_bytes(entry).to_owned()).collect()
}

#[cfg(not(unix))]
fn split_unix(list: &OsStr) -> Vec<OsString> {
    list.to_string_lossy().split(':').map(OsString::from).collect()
}

/// Without its first `count` bytes, which are ASCII.
#[cfg(unix)]
fn skip(path: &OsStr, count: usize) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(path.as_bytes().get(count..).unwrap_or_default()).to_owned()
}

/// Without its first `count` bytes, which are ASCII.
#[cfg(not(unix))]
fn skip(path: &OsStr, count: usize) -> OsString {
    path.to_string_lossy().get(count..).map(OsString::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_by_each_platforms_rules() {
        let table = [
            (Platform::Linux, "/a", "b/c", "/a/b/c"),
            (Platform::Linux, "/a/", "./b", "/a/b"),
            (Platform::Linux, "/a", "/b", "/b"),
            (Platform::Linux, "/a", "", "/a"),
            (Platform::Linux, "/a", ".", "/a"),
            (Platform::Linux, "/a", "../b", "/a/../b"),
            (Platform::Linux, "/a", r"c:\b", r"/a/c:\b"),
            (Platform::Windows, r"C:\a", "b", r"C:\a\b"),
            (Platform::Windows, r"C:\", r".\b", r"C:\b"),
            (Platform::Windows, r"C:\a", r"D:\b", r"D:\b"),
            (Platform::Windows, r"C:\a", r"\\host\share\b", r"\\host\share\b"),
            (Platform::Windows, r"C:\a", "b/c", r"C:\a\b/c"),
        ];
        for (platform, base, path, expected) in table {
            assert_eq!(join(OsStr::new(base), OsStr::new(path), platform), expected, "{base} {path}");
        }
    }

    #[test]
    fn search_paths_are_split_by_each_platforms_rules() {
        let table: [(Platform, &str, &[&str]); 7] = [
            (Platform::Linux, "/a:/b", &["/a", "/b"]),
            (Platform::Linux, ":/b:", &["", "/b", ""]),
            (Platform::Linux, "", &[]),
            (Platform::Macos, r#"/a;"b""#, &[r#"/a;"b""#]),
            (Platform::Windows, r"C:\a;D:\b c", &[r"C:\a", r"D:\b c"]),
            (Platform::Windows, r#";"C:\a;b";"#, &[r"C:\a;b"]),
            (Platform::Windows, "", &[]),
        ];
        for (platform, list, expected) in table {
            assert_eq!(split_list(OsStr::new(list), platform), expected, "{list}");
        }
    }

    #[test]
    fn home_is_expanded_at_the_beginning_only() {
        let table = [
            (Platform::Linux, "~/x", "/h/x"),
            (Platform::Linux, "~", "/h"),
            (Platform::Linux, "~root/x", "~root/x"),
            (Platform::Linux, "a/~/x", "a/~/x"),
            (Platform::Linux, r"~\x", r"~\x"),
            (Platform::Windows, r"~\x", r"/h\x"),
        ];
        for (platform, path, expected) in table {
            assert_eq!(expand_home(OsStr::new(path), Some(OsStr::new("/h")), platform), expected, "{path}");
        }
        assert_eq!(expand_home(OsStr::new("~/x"), None, Platform::Linux), "~/x");
    }
}
