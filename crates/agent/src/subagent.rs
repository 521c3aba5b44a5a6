//! Owns subagents as definitions: where they come from, and what a model is told of them. It runs none.

use std::collections::BTreeMap;

use crate::context::SubagentFile;
use crate::options::AgentDefinition;

/// The subagent that is always there.
pub(crate) const GENERAL: &str = "general";
/// The tool by which they are called.
pub(crate) const TASK: &str = "task";

/// A subagent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Subagent {
    pub(crate) name: String,
    pub(crate) definition: AgentDefinition,
    /// The only tools that it has.
    pub(crate) tools: Option<Vec<String>>,
    /// It has tools that read alone.
    pub(crate) read_only: bool,
}

/// All that a model may call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Subagents(BTreeMap<String, Subagent>);

impl Subagent {
    /// Its words, if it has any of its own.
    pub(crate) fn prompt(&self) -> Option<&str> {
        Some(self.definition.prompt.as_str()).filter(|prompt| !prompt.trim().is_empty())
    }
}

impl Subagents {
    /// Those that the program gives, those of files that it does not give, and the general one.
    pub(crate) fn new(given: &BTreeMap<String, AgentDefinition>, files: &[SubagentFile]) -> Self {
        let general = AgentDefinition {
            description: "Works on any task by itself, with the same tools as you.".to_owned(),
            ..AgentDefinition::default()
        };
        let mut all = BTreeMap::new();
        all.insert(
            GENERAL.to_owned(),
            Subagent { name: GENERAL.to_owned(), definition: general, ..Subagent::default() },
        );
        let of_files = files.iter().rev().map(|file| Subagent {
            name: file.name.clone(),
            definition: AgentDefinition {
                description: file.description.clone(),
                prompt: file.prompt.clone(),
                model: file.model.clone().filter(|model| model != "inherit"),
                mcp_servers: None,
            },
            tools: file.tools.clone(),
            read_only: file.read_only,
        });
        let of_program = given.iter().map(|(name, definition)| {
            let model = definition.model.clone().filter(|model| model != "inherit");
            let definition = AgentDefinition { model, ..definition.clone() };
            Subagent { name: name.clone(), definition, ..Subagent::default() }
        });
        for subagent in of_files.chain(of_program) {
            all.insert(subagent.name.clone(), subagent);
        }
        Self(all)
    }

    /// The one that is meant: without a name the general one. The error is for the model.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&Subagent, String> {
        let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(GENERAL);
        let same = |known: &&Subagent| known.name.eq_ignore_ascii_case(name);
        self.0.get(name).or_else(|| self.0.values().find(same)).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            format!("There is no subagent {name:?}. There are: {}.", known.join(", "))
        })
    }

    /// What a model is told of the tool that calls them.
    pub(crate) fn description(&self) -> String {
        let mut description = String::from(
            "Gives a task to a subagent, which works on it with a conversation of its own and answers once. Use it for work \
             that needs much reading and little telling, or for which there is a special one. It knows nothing of this \
             conversation: write into the prompt all it needs, and what it is to answer. There are:",
        );
        for subagent in self.0.values() {
            let (name, about) = (&subagent.name, subagent.definition.description.trim());
            description.extend(["\n- ", name.as_str(), ": ", about]);
        }
        description
    }

    /// The schema of its arguments.
    pub(crate) fn schema(&self) -> serde_json::Value {
        let names: Vec<&String> = self.0.keys().collect();
        serde_json::json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "enum": names, "description": "Which one; without it: general" },
                "description": { "type": "string", "description": "The task in three to five words, for the user" },
                "prompt": { "type": "string", "description": "The whole task" },
            },
            "required": ["prompt"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> AgentDefinition {
        AgentDefinition {
            description: "reads".into(),
            prompt: "Read.".into(),
            model: Some("inherit".into()),
            mcp_servers: None,
        }
    }

    fn file(name: &str, prompt: &str) -> SubagentFile {
        SubagentFile {
            name: name.into(),
            description: "of a file".into(),
            prompt: prompt.into(),
            model: None,
            tools: Some(vec!["read".into()]),
            read_only: true,
            path: "/w/.cursor/agents/x.md".into(),
        }
    }

    #[test]
    fn the_programs_own_stand_above_files_and_the_general_one_is_there() {
        let given = BTreeMap::from([("reader".to_owned(), definition())]);
        let all = Subagents::new(
            &given,
            &[file("reader", "other"), file("writer", "first"), file("writer", "second")],
        );
        assert_eq!(all.find(Some("Reader")).unwrap().prompt(), Some("Read."));
        assert_eq!(all.find(Some("reader")).unwrap().definition.model, None, "inherit is the parent's");
        assert_eq!(all.find(Some("writer")).unwrap().prompt(), Some("first"), "the first file counts");
        assert_eq!(all.find(None).unwrap().name, GENERAL);
        assert_eq!(
            all.find(Some("x")).unwrap_err(),
            "There is no subagent \"x\". There are: general, reader, writer."
        );
        assert!(all.description().contains("- writer: of a file"));
        let schema = all.schema().to_string();
        assert!(schema.contains(r#""enum":["general","reader","writer"]"#), "{schema}");
    }
}
