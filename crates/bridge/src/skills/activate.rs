//! Owns the activation of a skill: the name that came, the file that is read, the text that goes back.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::escape::{visible, xml};
use super::resources::Resources;
use super::{Listed, Skill, SkillList};
use crate::call::HostResult;
use crate::json::RawJson;

/// The most of a skill's file that is given: 1 MiB.
pub(super) const MAX_SKILL_BYTES: usize = 1024 * 1024;
/// The most characters of a name that an error repeats.
const MAX_ECHO: usize = 120;

/// A skill that was activated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// What the agent reads.
    pub text: String,
    /// What the host shows.
    pub details: ActivationDetails,
}

/// What the host shows of an activation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivationDetails {
    /// The skill's name.
    pub name: String,
    /// Its file.
    pub file_path: String,
    /// Its folder.
    pub base_dir: String,
    /// The files that belong to it.
    pub resources: Vec<String>,
    /// All names that could have been given, sorted.
    pub available_skill_names: Vec<String>,
}

/// Why no skill was activated. The agent gets it as a tool's error.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// The arguments hold no name.
    #[error("the name of a skill is missing; available: {available}")]
    NoName {
        /// The names that could be given, sorted; or `none`.
        available: String,
    },
    /// No skill of that name is listed.
    #[error("no skill is called \"{name}\"; available: {available}")]
    Unknown {
        /// The name as it came, shortened, what cannot be seen escaped.
        name: String,
        /// The names that could be given, sorted; or `none`.
        available: String,
    },
    /// The file cannot be given.
    #[error("the skill \"{name}\" cannot be read from {path}: {cause}")]
    File {
        /// The skill's name.
        name: String,
        /// Its file.
        path: String,
        /// What is wrong.
        cause: String,
    },
}

impl Activation {
    /// The result of the tool call.
    pub fn result(&self) -> HostResult {
        HostResult::text(&self.text)
    }
}

impl SkillError {
    /// The result of the tool call: an error.
    pub fn result(&self) -> HostResult {
        HostResult::error(&self.to_string())
    }
}

/// Activates the skill that the arguments name. Files are read on a thread that may wait.
pub async fn activate(list: &SkillList, arguments: &RawJson) -> Result<Activation, SkillError> {
    let available = list.names();
    let shown = shown_names(&available);
    let tree = arguments.tree();
    let name = tree.get("name").and_then(|name| name.as_str()).map(str::trim).filter(|name| !name.is_empty());
    let Some(name) = name else { return Err(SkillError::NoName { available: shown }) };
    let Some(listed) = list.find(name).cloned() else {
        return Err(SkillError::Unknown { name: echo(name), available: shown });
    };
    let failure = |cause: String| SkillError::File {
        name: visible(&listed.skill.name),
        path: visible(&listed.skill.file_path),
        cause,
    };
    let own = listed.clone();
    let read = tokio::task::spawn_blocking(move || read(&own)).await;
    let (body, resources) = match read {
        Ok(Ok(read)) => read,
        Ok(Err(error)) => return Err(failure(error.to_string())),
        Err(error) => return Err(failure(error.to_string())),
    };
    let Skill { name, file_path, base_dir, .. } = listed.skill.clone();
    let text = element(&listed.skill, &body, &resources);
    let details = ActivationDetails {
        name,
        file_path,
        base_dir,
        resources: resources.files,
        available_skill_names: available,
    };
    Ok(Activation { text, details })
}

fn shown_names(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = names.iter().map(|name| visible(name)).collect();
    shown.join(", ")
}

fn echo(name: &str) -> String {
    let mut shown: String = name.chars().take(MAX_ECHO).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    visible(&shown)
}

/// The beginning of a skill's file, and what is left of it.
struct Body {
    text: String,
    /// If not all of it is here: how many bytes are, how many there are, and in which line the text ends.
    cut: Option<Cut>,
}

struct Cut {
    shown: usize,
    whole: u64,
    line: usize,
}

fn read(listed: &Listed) -> io::Result<(Body, Resources)> {
    let (folder, path) = resolve(listed)?;
    let mut file = open_regular(&folder, &path)?;
    let whole = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_SKILL_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok((body(bytes, whole), Resources::below(&folder)))
}

/// The real folder and the real file: the folder is the one that was listed, and the file lies in it.
fn resolve(listed: &Listed) -> io::Result<(PathBuf, PathBuf)> {
    let refused = |why: &'static str| io::Error::other(why);
    let skill = &listed.skill;
    if !Path::new(&skill.base_dir).is_absolute() || !Path::new(&skill.file_path).is_absolute() {
        return Err(refused("its paths are not absolute"));
    }
    let folder = Path::new(&skill.base_dir).canonicalize()?;
    if listed.folder.as_ref() != Some(&folder) {
        return Err(refused("its folder is not where it was when the host listed it"));
    }
    let path = Path::new(&skill.file_path).canonicalize()?;
    if !path.starts_with(&folder) {
        return Err(refused("it leads out of the skill's folder"));
    }
    Ok((folder, path))
}

/// Opens a regular file below a folder, and nothing else: no part of the way may be a link, and a pipe or a device that
/// took its place meanwhile is neither waited for nor read.
fn open_regular(folder: &Path, path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("it is not a regular file");
    if !path.symlink_metadata()?.is_file() {
        return Err(refused());
    }
    let file = open_below(folder, path)?;
    if !file.metadata()?.is_file() {
        return Err(refused());
    }
    Ok(file)
}

#[cfg(unix)]
fn open_below(folder: &Path, path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    let inside = path.strip_prefix(folder).map_err(io::Error::other)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(folder, flags | OFlags::DIRECTORY, Mode::empty())?;
    let mut names = inside.iter().peekable();
    while let Some(name) = names.next() {
        let kind = if names.peek().is_some() { OFlags::DIRECTORY } else { OFlags::empty() };
        at = rustix::fs::openat(&at, name, flags | kind, Mode::empty())?;
    }
    Ok(File::from(at))
}

#[cfg(not(unix))]
fn open_below(_: &Path, path: &Path) -> io::Result<File> {
    File::open(path)
}

fn body(mut bytes: Vec<u8>, whole: u64) -> Body {
    let is_cut = bytes.len() > MAX_SKILL_BYTES;
    if is_cut {
        bytes.truncate(MAX_SKILL_BYTES);
        bytes.truncate(bytes.len() - unfinished(&bytes));
    }
    let shown = bytes.len();
    let text = String::from_utf8_lossy(&bytes);
    let line = text.matches('\n').count() + 1;
    let text = text.trim_start_matches('\u{feff}').trim().to_owned();
    Body { text, cut: is_cut.then_some(Cut { shown, whole, line }) }
}

/// How many bytes at the end begin a character of which the rest is missing.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
    let is_begun = std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_begun { last.len() } else { 0 }
}

fn element(skill: &Skill, body: &Body, resources: &Resources) -> String {
    let mut lines = vec![
        format!("<skill name=\"{}\">", xml(&visible(&skill.name))),
        "<instructions>".to_owned(),
        body.text.clone(),
    ];
    if let Some(Cut { shown, whole, line }) = &body.cut {
        let path = visible(&skill.file_path);
        lines.push(format!(
            "[cut: the first {shown} of {whole} bytes, up to line {line}; for the rest read {path} from that line on \
             with a file-reading tool]"
        ));
    }
    lines.push("</instructions>".to_owned());
    lines.push(format!("<directory>{}</directory>", xml(&visible(&skill.base_dir))));
    lines.push(
        "Relative paths in this skill refer to that directory; write them as absolute paths in tool calls."
            .to_owned(),
    );
    let missing = resources.missing();
    if resources.files.is_empty() && missing.is_empty() {
        lines.push("<resources/>".to_owned());
    } else {
        lines.push("<resources>".to_owned());
        lines.extend(resources.files.iter().map(|file| format!("  <file>{}</file>", xml(file))));
        lines.extend(missing.iter().map(|why| format!("  [{why}]")));
        lines.push("</resources>".to_owned());
    }
    lines.push("</skill>".to_owned());
    lines.join("\n")
}
