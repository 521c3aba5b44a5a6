//! Owns what the files of the chosen sources tell an agent: rules, skills, subagents. It writes no prompt.

use std::path::PathBuf;

use toolway_bridge::Skill;
use toolway_config::Problem;

/// All texts and definitions of the chosen sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContextSources {
    /// Rules, those that stand higher last.
    pub rules: Vec<RuleText>,
    /// Skills; of two with one name the first counts. For [`toolway_bridge::SkillList::load`].
    pub skills: Vec<Skill>,
    /// Subagents; of two with one name the first counts and the other is not here.
    pub subagents: Vec<SubagentFile>,
    /// What could not be used, with file and place.
    pub diagnostics: Vec<Problem>,
}

/// A text that tells the model how to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// Its name: the file's name without its ending.
    pub name: String,
    /// The file.
    pub path: PathBuf,
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
