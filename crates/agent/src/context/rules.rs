//! Owns rules: `AGENTS.md`, `.cursor/rules/*.mdc`, and the older `.cursorrules`.

use std::path::{Path, PathBuf};

use super::front_matter::{flag, split, text, texts};
use super::walk::Reader;
use super::{ContextSources, RuleText, RuleUse};

/// The file that many agents read.
const AGENTS: &str = "AGENTS.md";
/// No more folders between the project's top and a file are looked at.
const NESTED: usize = 32;

/// The rules of one folder of a project: what holds there and below.
pub(super) fn of_folder(folder: &Path, is_top: bool, reader: &mut Reader) -> Vec<RuleText> {
    let mut rules = Vec::new();
    for name in if is_top { &[".cursorrules", AGENTS][..] } else { &[AGENTS][..] } {
        let path = folder.join(name);
        rules.extend(reader.text(&path).filter(|text| !text.trim().is_empty()).map(|text| RuleText {
            name: (*name).to_owned(),
            path,
            base: folder.to_path_buf(),
            description: None,
            when: RuleUse::Always,
            text,
        }));
    }
    rules.extend(of_rules_folder(&folder.join(".cursor/rules"), folder, reader));
    rules
}

/// The rules below a folder of rules; `base` is what their patterns are about.
pub(super) fn of_rules_folder(folder: &Path, base: &Path, reader: &mut Reader) -> Vec<RuleText> {
    let files = reader.files(folder, "mdc");
    files.into_iter().filter_map(|path| of_file(&path, base, reader)).collect()
}

/// One file of a folder of rules.
pub(super) fn of_file(path: &Path, base: &Path, reader: &mut Reader) -> Option<RuleText> {
    let whole = reader.text(path)?;
    let headed = match split(&whole) {
        Ok(headed) => headed,
        Err(problem) => {
            reader.problems.push(problem.file(path));
            return None;
        }
    };
    let head = headed.head.as_ref();
    let description = text(head, "description");
    let globs = head.and_then(|head| head.get("globs")).map(texts).unwrap_or_default();
    let when = if flag(head, "alwaysApply") {
        RuleUse::Always
    } else if !globs.is_empty() {
        RuleUse::Files(globs)
    } else if description.is_some() {
        RuleUse::Described
    } else {
        RuleUse::Named
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let text = headed.text.trim_start_matches(['\r', '\n']).to_owned();
    (!text.trim().is_empty()).then(|| RuleText {
        name,
        path: path.to_path_buf(),
        base: base.to_path_buf(),
        description,
        when,
        text,
    })
}

/// The folders from the top down to another one below it.
pub(super) fn folders_down(top: &Path, to: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = to
        .ancestors()
        .take_while(|folder| folder.starts_with(top))
        .take(NESTED)
        .map(Path::to_path_buf)
        .collect();
    folders.reverse();
    folders
}

impl ContextSources {
    /// The rules of folders between the project's top and a file that are not among [`Self::rules`]: for an agent that
    /// comes to work there. It waits for the disk. What was told before, the caller knows by its path.
    pub fn nested(&self, file: &Path) -> Vec<RuleText> {
        let Some(top) = &self.project else { return Vec::new() };
        let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
        let Some((folder, top)) = folder.zip(top.canonicalize().ok()) else { return Vec::new() };
        let mut reader = Reader::default();
        let mut rules: Vec<RuleText> = folders_down(&top, &folder)
            .iter()
            .flat_map(|folder| of_folder(folder, *folder == top, &mut reader))
            .collect();
        let known: Vec<PathBuf> =
            self.rules.iter().filter_map(|rule| rule.path.canonicalize().ok()).collect();
        rules.retain(|rule| rule.path.canonicalize().is_ok_and(|path| !known.contains(&path)));
        rules
    }
}
