//! Owns what the files of the chosen sources tell an agent: rules, skills, subagents. It writes no prompt.

mod front_matter;
mod load;
mod rules;
mod skills;
mod subagents;
mod walk;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use ignore::gitignore::GitignoreBuilder;
use toolway_bridge::Skill;
use toolway_config::Problem;

/// All texts and definitions of the chosen sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextSources {
    /// Rules: the user's, those of plugins, then the project's from its top to the agent's folder, so that the nearest
    /// stand last.
    pub rules: Vec<RuleText>,
    /// Skills; of two with one name the first counts. For [`toolway_bridge::SkillList::load`].
    pub skills: Vec<Skill>,
    /// Subagents; of two with one name the first counts and the other is not here.
    pub subagents: Vec<SubagentFile>,
    /// What could not be used, with file and place.
    pub diagnostics: Vec<Problem>,
    /// The project's top, if the project was chosen: below it [`Self::nested`] looks.
    pub project: Option<PathBuf>,
}

/// A text that tells the model how to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// Its name: the file's name without its ending; `AGENTS.md` for those.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The folder that its patterns are about.
    pub base: PathBuf,
    /// What it is about.
    pub description: Option<String>,
    /// When it holds.
    pub when: RuleUse,
    /// The text, without its front matter.
    pub text: String,
}

/// When a rule holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleUse {
    /// Always: its text belongs in the system prompt.
    Always,
    /// For files that fit a pattern, see [`RuleText::fits`].
    Files(Vec<String>),
    /// When the model finds by its description that it applies: name, description and path belong in the prompt, and the
    /// model reads the file.
    Described,
    /// When the user names it.
    Named,
}

impl RuleText {
    /// Whether it is for this file: one of its patterns fits. A pattern without `/` is about names in every folder.
    pub fn fits(&self, file: &Path) -> bool {
        let RuleUse::Files(patterns) = &self.when else { return false };
        if !file.starts_with(&self.base) {
            return false;
        }
        let mut builder = GitignoreBuilder::new(&self.base);
        for pattern in patterns {
            if let Err(error) = builder.add_line(None, pattern) {
                tracing::debug!(%error, "a pattern of a rule fits nothing");
            }
        }
        builder.build().is_ok_and(|patterns| patterns.matched_path_or_any_parents(file, false).is_ignore())
    }
}

/// A subagent that a file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentFile {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// A model of its own; `None` or `inherit` in the file: the parent's.
    pub model: Option<String>,
    /// The only tools it has; `None`: the parent's.
    pub tools: Option<Vec<String>>,
    /// It only reads.
    pub read_only: bool,
    /// The file.
    pub path: PathBuf,
}
