//! Tables for every platform over a file system that is a list of names.

use std::collections::BTreeMap;

use super::*;

#[derive(Default)]
struct Files(BTreeMap<OsString, bool>);

impl Files {
    /// Names with a leading `!` are not executable.
    fn of(names: &[&str]) -> Self {
        let file = |name: &&str| (OsString::from(name.trim_start_matches('!')), !name.starts_with('!'));
        Self(names.iter().map(file).collect())
    }
}

impl Lookup for Files {
    fn is_file(&self, path: &OsStr) -> bool {
        self.0.contains_key(path)
    }

    fn is_executable(&self, path: &OsStr) -> bool {
        self.0.get(path).copied().unwrap_or(false)
    }

    fn names(&self, directory: &OsStr) -> Vec<OsString> {
        let directory = directory.to_string_lossy();
        let below = |file: &OsString| {
            let file = file.to_string_lossy().into_owned();
            let rest = file.strip_prefix(directory.as_ref())?.strip_prefix(['/', '\\'])?.to_owned();
            rest.split(['/', '\\']).next().map(OsString::from)
        };
        let mut names: Vec<_> = self.0.keys().filter_map(below).collect();
        names.dedup();
        names
    }
}

fn unix(command: &str, path: Option<&str>, files: &[&str]) -> Result<String, String> {
    let search = Search {
        path: path.map(OsStr::new),
        path_ext: None,
        cwd: OsStr::new("/work"),
        home: Some(OsStr::new("/home/u")),
        platform: Platform::Linux,
    };
    found(resolve(OsStr::new(command), &search, &Files::of(files)))
}

fn windows(command: &str, path_ext: Option<&str>, files: &[&str]) -> Result<String, String> {
    let search = Search {
        path: Some(OsStr::new(r#"C:\Windows;"C:\Program Files\x""#)),
        path_ext: path_ext.map(OsStr::new),
        cwd: OsStr::new(r"C:\work"),
        home: Some(OsStr::new(r"C:\Users\u")),
        platform: Platform::Windows,
    };
    found(resolve(OsStr::new(command), &search, &Files::of(files)))
}

fn found(result: Result<PathBuf, NotFound>) -> Result<String, String> {
    match result {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(error) => Err(error.hint().map_or_else(|| error.to_string(), |hint| format!("{error} | {hint}"))),
    }
}

#[test]
fn unix_commands_are_found_in_path_order() {
    let files = ["!/usr/bin/npx", "/bin/npx", "/work/tools/npx", "/work/npx", "/home/u/npx", "/x/npx"];
    let table = [
        ("npx", Some("/usr/bin:/bin:/x"), "/bin/npx"),
        ("npx", Some("/x:/bin"), "/x/npx"),
        ("npx", Some("tools:/bin"), "/work/tools/npx"),
        ("npx", Some("/none::/bin"), "/work/npx"),
        ("npx", None, "/bin/npx"),
        ("./npx", Some("/bin"), "/work/npx"),
        ("tools/npx", Some("/bin"), "/work/tools/npx"),
        ("/x/npx", Some("/bin"), "/x/npx"),
        ("~/npx", Some("/bin"), "/home/u/npx"),
    ];
    for (command, path, expected) in table {
        assert_eq!(unix(command, path, &files), Ok(expected.to_owned()), "{command} in {path:?}");
    }
}

#[test]
fn unix_errors_say_what_was_searched() {
    let table = [
        ("npx", Some("/usr/bin:/bin"), &[][..], "command not found: npx; searched: /usr/bin:/bin"),
        ("npx", Some(""), &[], "command not found: npx; PATH is empty"),
        ("./npx", Some("/bin"), &["/bin/npx"], "command not found: ./npx; searched: /work/npx"),
        ("npx", Some("/bin:/usr/bin"), &["!/bin/npx"], "/bin/npx is not executable"),
        ("/x/y", Some("/bin"), &["!/x/y"], "/x/y is not executable"),
        ("", Some("/bin"), &["/bin/npx"], "the command is empty"),
    ];
    for (command, path, files, expected) in table {
        assert_eq!(unix(command, path, files), Err(expected.to_owned()), "{command} in {path:?}");
    }
}

#[test]
fn programs_of_version_managers_are_proposed_newest_first() {
    let files = [
        "/home/u/.nvm/versions/node/v9.1.0/bin/npx",
        "/home/u/.nvm/versions/node/v22.1.0/bin/npx",
        "/home/u/.nvm/versions/node/v24.0.0/bin/node",
        "/opt/homebrew/bin/npx",
    ];
    let message = "command not found: npx; searched: /usr/bin:/bin | it exists as \
                   /home/u/.nvm/versions/node/v22.1.0/bin/npx: give that path as the command, or add its directory \
                   to PATH (--env 'PATH=/home/u/.nvm/versions/node/v22.1.0/bin:...'), since a desktop program has \
                   no login shell's PATH";
    assert_eq!(unix("npx", Some("/usr/bin:/bin"), &files), Err(message.to_owned()));
    let error = unix("node", Some("/bin"), &files[2..]);
    assert!(error.is_err_and(|text| text.contains("exists as /home/u/.nvm/versions/node/v24.0.0/bin/node")));
}

#[test]
fn windows_commands_are_found_with_their_extension() {
    let files = [
        r"C:\Program Files\x\npx",
        r"C:\Program Files\x\npx.cmd",
        r"C:\Windows\tool.exe",
        r"C:\Windows\tool.bat",
        r"C:\work\run.cmd",
        r"C:\Users\u\bin\mine.exe",
        r"C:\Windows\script.py",
    ];
    let table = [
        ("npx", None, r"C:\Program Files\x\npx.cmd"),
        ("npx.cmd", None, r"C:\Program Files\x\npx.cmd"),
        ("tool", None, r"C:\Windows\tool.exe"),
        ("tool", Some(".BAT;.EXE"), r"C:\Windows\tool.bat"),
        ("tool.exe", Some(".BAT"), r"C:\Windows\tool.exe.bat"),
        (r".\run", None, r"C:\work\run.cmd"),
        (r"C:\Windows\tool", Some(".PY;.EXE"), r"C:\Windows\tool.exe"),
        (r"~\bin\mine", None, r"C:\Users\u\bin\mine.exe"),
        ("C:/Windows/tool", None, "C:/Windows/tool.exe"),
    ];
    for (command, path_ext, expected) in table {
        let mut files = files.to_vec();
        files.extend(["C:/Windows/tool.exe", r"C:\Windows\tool.exe.bat"]);
        assert_eq!(windows(command, path_ext, &files), Ok(expected.to_owned()), "{command} {path_ext:?}");
    }
}

#[test]
fn windows_errors_say_what_was_searched() {
    let table = [
        ("npx", r"command not found: npx; searched: C:\Windows;C:\Program Files\x"),
        ("script.py", r"command not found: script.py; searched: C:\Windows;C:\Program Files\x"),
        (r"D:\a\b", r"command not found: D:\a\b; searched: D:\a\b"),
    ];
    for (command, expected) in table {
        let error = windows(command, None, &[r"C:\Windows\script.py"]);
        assert_eq!(error, Err(expected.to_owned()), "{command}");
    }
    let error = windows("npx", None, &[r"C:\Users\u\AppData\Roaming\npm\npx.cmd"]);
    assert!(error.is_err_and(|text| text.contains(r"exists as C:\Users\u\AppData\Roaming\npm\npx.cmd")));
}

#[test]
fn batch_files_take_everything_but_line_breaks() {
    let table = [
        ("a b&c", false),
        ("100%", false),
        (r#"say "hi""#, false),
        ("^|<>", false),
        ("a\nb", true),
        ("\r", true),
    ];
    for (argument, refused) in table {
        assert_eq!(batch_arguments_fault(&["fine", argument]).is_some(), refused, "{argument:?}");
    }
    assert!(is_batch_file(Path::new("/x/npx.CMD"), Platform::Windows));
    assert!(!is_batch_file(Path::new("/x/npx.exe"), Platform::Windows));
    assert!(!is_batch_file(Path::new("/x/npx.cmd"), Platform::Linux));
}
