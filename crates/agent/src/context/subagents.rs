//! Owns subagents that files define: a head with name and description, and a prompt.

use std::path::Path;

use toolway_config::Problem;

use super::SubagentFile;
use super::front_matter::{flag, split, text, texts};
use super::walk::Reader;

/// The most characters of a name.
const NAME: usize = 64;
/// No more subagents.
const MOST: usize = 200;

/// The subagents in a folder. Files in folders below it count as well.
pub(super) fn of_folder(folder: &Path, reader: &mut Reader) -> Vec<SubagentFile> {
    let files = reader.files(folder, "md");
    files.into_iter().filter_map(|path| of_file(&path, reader)).collect()
}

/// The subagent that a file defines.
pub(super) fn of_file(path: &Path, reader: &mut Reader) -> Option<SubagentFile> {
    let whole = reader.text(path)?;
    let headed = match split(&whole) {
        Ok(headed) => headed,
        Err(problem) => {
            reader.problems.push(problem.file(path));
            return None;
        }
    };
    let head = headed.head.as_ref();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = text(head, "name").unwrap_or_else(|| stem.into_owned());
    let mut fault = |message: &str| {
        reader.problems.push(Problem::error(message).file(path));
        None
    };
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if name.chars().count() > NAME || !name.chars().all(fits) {
        return fault("its name must be letters, digits, \"-\", \"_\" and \".\", at most 64");
    }
    let Some(description) = text(head, "description") else {
        return fault("has no description, by which a model chooses it");
    };
    let prompt = headed.text.trim().to_owned();
    if prompt.is_empty() {
        return fault("has no prompt below its head");
    }
    Some(SubagentFile {
        name,
        description,
        prompt,
        model: text(head, "model").filter(|model| model != "inherit"),
        tools: head.and_then(|head| head.get("tools")).map(texts),
        read_only: flag(head, "readonly"),
        path: path.to_path_buf(),
    })
}

/// Adds subagents whose names are free.
pub(super) fn add(known: &mut Vec<SubagentFile>, more: Vec<SubagentFile>, problems: &mut Vec<Problem>) {
    for subagent in more {
        if known.len() >= MOST {
            problems.push(Problem::warning("is one subagent too many").file(&subagent.path));
        } else if let Some(first) = known.iter().find(|first| first.name == subagent.name) {
            let message =
                format!("the subagent {:?} is another one, from {}", subagent.name, first.path.display());
            problems.push(Problem::warning(message).file(&subagent.path));
        } else {
            known.push(subagent);
        }
    }
}
