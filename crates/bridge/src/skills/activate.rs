//! Owns the activation of a skill: the name that came, the file that is read, the text that goes back.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::escape::{visible, xml};
use super::{Listed, MAX_RESOURCES, Resources, Skill, SkillList};
use crate::call::HostResult;
use crate::json::RawJson;

/// The most of a skill's file that is given: 1 MiB.
pub const MAX_SKILL_BYTES: usize = 1024 * 1024;
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
    let mut file = open_regular(&path)?;
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

/// Opens a regular file and nothing else. A pipe that took its place meanwhile is neither waited for nor read.
fn open_regular(path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("it is not a regular file");
    if !path.symlink_metadata()?.is_file() {
        return Err(refused());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(refused());
    }
    Ok(file)
}

fn body(mut bytes: Vec<u8>, whole: u64) -> Body {
    let is_cut = bytes.len() > MAX_SKILL_BYTES;
    if is_cut {
        bytes.truncate(MAX_SKILL_BYTES);
        // Not inside a character: the bytes that begin an unfinished one go.
        let unfinished = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
        if unfinished < 4 && std::str::from_utf8(&bytes).is_err_and(|error| error.error_len().is_none()) {
            bytes.truncate(bytes.len() - unfinished);
        }
    }
    let shown = bytes.len();
    let text = String::from_utf8_lossy(&bytes);
    let line = text.matches('\n').count() + 1;
    let text = text.trim_start_matches('\u{feff}').trim().to_owned();
    Body { text, cut: is_cut.then_some(Cut { shown, whole, line }) }
}

fn element(skill: &Skill, body: &Body, resources: &Resources) -> String {
    let mut text =
        format!("<skill name=\"{}\">\n<instructions>\n{}\n", xml(&visible(&skill.name)), body.text);
    if let Some(Cut { shown, whole, line }) = &body.cut {
        text.push_str(&format!(
            "[cut: the first {shown} of {whole} bytes, up to line {line}; read {} from that line on with a file-reading \
             tool for the rest]\n",
            visible(&skill.file_path)
        ));
    }
    text.push_str("</instructions>\n");
    text.push_str(&format!("<directory>{}</directory>\n", xml(&visible(&skill.base_dir))));
    text.push_str(
        "Relative paths in this skill refer to that directory; use absolute paths in tool calls.\n",
    );
    if resources.files.is_empty() && !resources.is_cut && !resources.is_deeper {
        text.push_str("<resources/>\n");
    } else {
        text.push_str("<resources>\n");
        for file in &resources.files {
            text.push_str(&format!("  <file>{}</file>\n", xml(file)));
        }
        if resources.is_cut {
            text.push_str(&format!(
                "  [list cut at {MAX_RESOURCES}: there are more files in these folders]\n"
            ));
        }
        if resources.is_deeper {
            text.push_str("  [folders deeper than 8 levels are not listed]\n");
        }
        text.push_str("</resources>\n");
    }
    text.push_str("</skill>");
    text
}
