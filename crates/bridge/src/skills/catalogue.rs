//! Owns the catalogue of skills in a system prompt: its text, and where it stands. Pure.

use super::SkillList;
use super::escape::{visible, xml};

/// The catalogue that stands for the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    list: SkillList,
    activation: Option<String>,
}

/// The first line of this catalogue.
const INTRODUCTION: &str = "Skills hold instructions for certain kinds of work.";
/// The lines around the entries of the host's catalogue.
const OPEN: &str = "<available_skills>";
const CLOSE: &str = "</available_skills>";

impl Catalogue {
    /// A catalogue of these skills. `activation` is the name by which the run exposes the tool that activates one; if it
    /// exposes none, the catalogue says to read the file.
    pub fn new(list: SkillList, activation: Option<&str>) -> Self {
        Self { list, activation: activation.map(str::to_owned) }
    }

    /// Its text.
    pub fn text(&self) -> String {
        let mut text = format!("{INTRODUCTION}\n");
        match &self.activation {
            Some(tool) => text.extend([
                "Before you work on something to which a skill applies, call `",
                tool,
                "` with the skill's name and follow what it returns. If that tool cannot be called, read the skill's \
                 file with your own file-reading tool.\n",
            ]),
            None => text.push_str(
                "Before you work on something to which a skill applies, read the skill's file, whole, with your own \
                 file-reading tool and follow it.\n",
            ),
        }
        text.push_str(
            "Relative paths in a skill count from the folder of its file; write them as absolute paths in tool calls.\n\n",
        );
        text.push_str(OPEN);
        for skill in self.list.iter() {
            text.push_str("\n  <skill>");
            let members =
                [("name", &skill.name), ("description", &skill.description), ("location", &skill.file_path)];
            for (tag, value) in members {
                text.extend(["\n    <", tag, ">", &entry(tag, value), "</", tag, ">"]);
            }
            text.push_str("\n  </skill>");
        }
        text.push('\n');
        text.push_str(CLOSE);
        text
    }

    /// The system prompt with this catalogue in place of the host's, or after it all if it has none.
    pub fn rewrite(&self, system: &str) -> String {
        match host_catalogue(system) {
            Some((before, after)) => format!("{before}{}{after}", self.text()),
            None if system.trim().is_empty() => self.text(),
            None => format!("{}\n\n{}", system.trim_end(), self.text()),
        }
    }
}

/// A description may have lines; a name and a path are one.
fn entry(tag: &str, value: &str) -> String {
    if tag == "description" { xml(value.trim()) } else { xml(&visible(value)) }
}

/// What stands before and after the host's catalogue: the last list of skills that an introduction of the host precedes, so
/// that a list in a file of instructions is not taken for it. Its introduction goes with it, the tags around it stay.
fn host_catalogue(system: &str) -> Option<(&str, &str)> {
    let mut end = system.len();
    loop {
        let open = system.get(..end)?.rfind(OPEN)?;
        if let Some(found) = catalogue_at(system, open) {
            return Some(found);
        }
        end = open;
    }
}

fn catalogue_at(system: &str, open: usize) -> Option<(&str, &str)> {
    let before = system.get(..open)?;
    if !(before.is_empty() || before.ends_with('\n')) {
        return None;
    }
    let start = introduction(before)?;
    let rest = system.get(open..)?;
    let close = rest.find(&format!("\n{CLOSE}"))? + 1 + CLOSE.len();
    let after = rest.get(close..)?;
    if !(after.is_empty() || after.starts_with(['\n', '\r'])) {
        return None;
    }
    Some((system.get(..start)?, after))
}

/// Where the paragraph begins that introduces the list: directly before it, one empty line between, its first line about
/// skills that are for tasks; or the tag of the host's section directly before it. A catalogue that was written here before
/// counts as well.
fn introduction(before: &str) -> Option<usize> {
    let mut start = before.trim_end_matches(['\n', '\r', ' ']).len();
    let mut first = "";
    for line in before.get(..start)?.split_inclusive('\n').rev() {
        let shown = line.trim_end_matches(['\n', '\r']);
        if shown == "<skills>" && first.is_empty() {
            return Some(before.len());
        }
        if shown.is_empty() || shown == "<skills>" {
            break;
        }
        start -= line.len();
        first = shown;
    }
    (first == INTRODUCTION || first.starts_with("The following skills provide")).then_some(start)
}
