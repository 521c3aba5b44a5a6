//! From what the user wrote as a command to the file that is started: search path, `~`, `PATHEXT`, and what to
//! say when there is none. Pure over [`Lookup`], so every platform's rules are tested on every platform.

mod hint;
mod path;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::platform::Platform;

/// What a search must know of the file system. [`FileSystem`] is the real one.
pub trait Lookup {
    /// Whether there is a file of this name, executable or not.
    fn is_file(&self, path: &OsStr) -> bool;
    /// Whether that file may be executed by this user (always true on Windows, where the extension decides).
    fn is_executable(&self, path: &OsStr) -> bool;
    /// The names in a directory, none if it cannot be read.
    fn names(&self, directory: &OsStr) -> Vec<OsString>;
}

/// Where to search. All values are the upstream's: of its own, final environment.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Its `PATH`; `None`: the system's usual directories.
    pub path: Option<&'a OsStr>,
    /// Its `PATHEXT` (Windows); `None`: the usual extensions.
    pub path_ext: Option<&'a OsStr>,
    /// The directory that relative paths start from: absolute.
    pub cwd: &'a OsStr,
    /// What `~` stands for: `HOME`, on Windows `USERPROFILE`.
    pub home: Option<&'a OsStr>,
    /// Whose rules hold.
    pub platform: Platform,
}

/// No program for a command. The message says what was searched; [`NotFound::hint`] where it could be instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct NotFound {
    /// As the user wrote it.
    pub command: OsString,
    /// The directories or the one path that were looked at, in order.
    pub searched: Vec<OsString>,
    /// A file of that name that was found but may not be executed.
    pub not_executable: Option<OsString>,
    /// Where version managers keep a program of that name.
    pub found_at: Vec<OsString>,
    platform: Platform,
}

impl NotFound {
    fn message(&self) -> String {
        let command = self.command.to_string_lossy();
        if let Some(file) = &self.not_executable {
            return format!("{} is not executable", file.to_string_lossy());
        }
        let searched: Vec<_> = self.searched.iter().map(|place| place.to_string_lossy()).collect();
        let searched = searched.join(path::list_separator(self.platform));
        match (self.command.is_empty(), searched.is_empty()) {
            (true, _) => "the command is empty".to_owned(),
            (false, true) => format!("command not found: {command}; PATH is empty"),
            (false, false) => format!("command not found: {command}; searched: {searched}"),
        }
    }

    /// What to do about it, if there is something to propose.
    pub fn hint(&self) -> Option<String> {
        let found = self.found_at.first()?.to_string_lossy();
        let directory = path::parent(&found, self.platform);
        let separator = path::list_separator(self.platform);
        Some(format!(
            "it exists as {found}: give that path as the command, or add its directory to PATH \
             (--env 'PATH={directory}{separator}...'), since a desktop program has no login shell's PATH"
        ))
    }
}

/// The directories searched when the environment has no `PATH`.
const UNIX_DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What `CreateProcess` can start, with the help of `cmd.exe` for the last two. Other members of `PATHEXT`
/// (`.JS`, `.PY`, ...) need a shell and are passed over.
const WINDOWS_EXTENSIONS: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// Finds the file for `command`: an absolute path, a path relative to the directory or to `~`, or a bare name
/// that is searched in `PATH`. Symbolic links are not followed: many programs look at the name they are called by.
pub fn resolve(command: &OsStr, search: &Search<'_>, lookup: &impl Lookup) -> Result<PathBuf, NotFound> {
    let platform = search.platform;
    let expanded = path::expand_home(command, search.home, platform);
    let bare = !path::has_separator(&expanded, platform);
    let searched = match (command.is_empty(), bare) {
        (true, _) => Vec::new(),
        (false, true) => directories(search),
        (false, false) => vec![path::join(search.cwd, &expanded, platform)],
    };
    let places = searched
        .iter()
        .map(|place| if bare { path::join(place, &expanded, platform) } else { place.clone() });
    let mut not_executable = None;
    for file in places.flat_map(|place| candidates(&place, search)) {
        if lookup.is_file(&file) {
            if lookup.is_executable(&file) {
                return Ok(PathBuf::from(file));
            }
            not_executable.get_or_insert(file);
        }
    }
    let found_at = if bare && !command.is_empty() && not_executable.is_none() {
        hint::places(search, lookup)
            .iter()
            .flat_map(|place| candidates(&path::join(place, &expanded, platform), search))
            .filter(|file| lookup.is_file(file) && lookup.is_executable(file))
            .collect()
    } else {
        Vec::new()
    };
    Err(NotFound { command: command.to_owned(), searched, not_executable, found_at, platform })
}

/// Whether the file is started through `cmd.exe`, which has its own rules for arguments.
pub fn is_batch_file(program: &Path, platform: Platform) -> bool {
    let extension = program.extension().unwrap_or_default();
    platform == Platform::Windows && ["bat", "cmd"].iter().any(|batch| extension.eq_ignore_ascii_case(batch))
}

/// What keeps these arguments from being handed to a batch file, if anything does. Quotes, blanks, `&`, `^`
/// and `%` are no obstacle: the standard library escapes them for `cmd.exe`. Line breaks cannot be escaped.
pub fn batch_arguments_fault<S: AsRef<OsStr>>(arguments: &[S]) -> Option<&'static str> {
    let broken =
        |argument: &S| argument.as_ref().as_encoded_bytes().iter().any(|byte| b"\r\n\0".contains(byte));
    arguments.iter().any(broken).then_some("a batch file takes no argument that holds a line break")
}

fn directories(search: &Search<'_>) -> Vec<OsString> {
    let default = match search.platform {
        Platform::Windows => "",
        Platform::Linux | Platform::Macos => UNIX_DEFAULT_PATH,
    };
    let list = search.path.unwrap_or(OsStr::new(default));
    let entries = path::split_list(list, search.platform);
    entries.into_iter().map(|entry| path::join(search.cwd, &entry, search.platform)).collect()
}

/// The files that a name without extension can mean, best first.
fn candidates(file: &OsStr, search: &Search<'_>) -> Vec<OsString> {
    if search.platform != Platform::Windows {
        return vec![file.to_owned()];
    }
    let listed = search.path_ext.map(OsStr::to_string_lossy).unwrap_or_default().to_ascii_lowercase();
    let mut extensions: Vec<&str> =
        listed.split(';').filter(|extension| WINDOWS_EXTENSIONS.contains(extension)).collect();
    if extensions.is_empty() {
        extensions.extend(WINDOWS_EXTENSIONS);
    }
    let written = file.to_string_lossy().to_ascii_lowercase();
    let mut found = Vec::new();
    // A file without one of these extensions cannot be started: `npx` is a shell script beside `npx.cmd`.
    if extensions.iter().any(|extension| written.ends_with(extension)) {
        found.push(file.to_owned());
    }
    found.extend(extensions.into_iter().map(|extension| {
        let mut name = file.to_owned();
        name.push(extension);
        name
    }));
    found
}

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileSystem;

impl Lookup for FileSystem {
    fn is_file(&self, path: &OsStr) -> bool {
        Path::new(path).is_file()
    }

    #[cfg(unix)]
    fn is_executable(&self, path: &OsStr) -> bool {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }

    #[cfg(windows)]
    fn is_executable(&self, _path: &OsStr) -> bool {
        true
    }

    fn names(&self, directory: &OsStr) -> Vec<OsString> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
    }
}

#[cfg(test)]
mod tests;
