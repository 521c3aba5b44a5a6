//! Owns finding skills: folders with a `SKILL.md`, whose head names and describes them. What is in them is read when one
//! is activated.

use std::path::{Path, PathBuf};

use toolway_bridge::Skill;
use toolway_config::Problem;

use super::front_matter::{flag, split, text};
use super::walk::Reader;

const FILE: &str = "SKILL.md";
/// The most characters of a name and of a description.
const NAME: usize = 64;
const DESCRIPTION: usize = 1024;

/// The skills in a folder of skills.
pub(super) fn of_folder(folder: &Path, reader: &mut Reader) -> Vec<Skill> {
    let mut skills = Vec::new();
    for dir in reader.entries(folder) {
        if dir.is_dir() {
            skills.extend(of_dir(&dir, reader));
        }
    }
    skills
}

/// The skill that a folder is.
pub(super) fn of_dir(dir: &Path, reader: &mut Reader) -> Option<Skill> {
    let path = dir.join(FILE);
    let whole = reader.text(&path)?;
    let headed = match split(&whole) {
        Ok(headed) => headed,
        Err(problem) => {
            reader.problems.push(problem.file(&path));
            return None;
        }
    };
    let head = headed.head.as_ref();
    let name = text(head, "name").or_else(|| Some(dir.file_name()?.to_string_lossy().into_owned()))?;
    let mut fault = |message: String| {
        reader.problems.push(Problem::error(message).file(&path));
        None
    };
    if name.chars().count() > NAME || name.chars().any(char::is_control) {
        return fault(format!("its name is longer than {NAME} characters, or no text"));
    }
    let Some(description) = text(head, "description") else {
        return fault("has no description, by which a model finds it".to_owned());
    };
    Some(Skill {
        name,
        description: description.chars().take(DESCRIPTION).collect(),
        file_path: shown(&path),
        base_dir: shown(dir),
        disable_model_invocation: flag(head, "disable-model-invocation"),
    })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Adds skills whose names are free.
pub(super) fn add(skills: &mut Vec<Skill>, more: Vec<Skill>, problems: &mut Vec<Problem>) {
    for skill in more {
        match skills.iter().find(|known| known.name == skill.name) {
            None => skills.push(skill),
            Some(known) => problems.push(
                Problem::warning(format!(
                    "the skill {:?} is another one, from {}",
                    skill.name, known.file_path
                ))
                .file(PathBuf::from(skill.file_path)),
            ),
        }
    }
}
