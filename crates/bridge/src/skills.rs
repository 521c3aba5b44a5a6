//! Owns skills: the list of one session, when it counts, the tool that activates one. Takes no path from a model.

mod activate;
mod catalogue;
mod escape;
mod resources;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::RawJson;
use crate::profile::Profile;
use crate::tool::{HostTool, Provenance};

pub use activate::{Activation, ActivationDetails, SkillError, activate};
pub use catalogue::Catalogue;

/// A skill that the host found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    /// Its name, by which it is activated.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The file with its instructions: an absolute path.
    pub file_path: String,
    /// The folder to which paths in it refer: an absolute path.
    pub base_dir: String,
    /// Only the user activates it: no catalogue names it, and no model gets it.
    #[serde(default)]
    pub disable_model_invocation: bool,
}

/// A skill of which is known where its folder was when the host listed it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    skill: Skill,
    /// The folder with all links followed; `None` if it was not there.
    folder: Option<PathBuf>,
}

/// The skills of one session that a model may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillList {
    listed: Arc<[Listed]>,
}

impl SkillList {
    /// Takes the host's list: of two with one name the first counts, and hidden skills go. It looks where each folder is and
    /// so waits for the disk: [`Self::load`] is for async code.
    pub fn read(skills: Vec<Skill>) -> Self {
        let mut listed: Vec<Listed> = Vec::new();
        let mut names = HashSet::new();
        for skill in skills {
            if names.insert(skill.name.clone()) && !skill.disable_model_invocation {
                listed.push(Listed { folder: resources::folder_of(&skill), skill });
            }
        }
        Self { listed: listed.into() }
    }

    /// The same on a thread that may wait. A thread that fails leaves an empty list.
    pub async fn load(skills: Vec<Skill>) -> Self {
        tokio::task::spawn_blocking(|| Self::read(skills)).await.unwrap_or_default()
    }

    /// The skills in the host's order.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.listed.iter().map(|listed| &listed.skill)
    }

    /// No model may have any.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    /// The names in order.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.iter().map(|skill| skill.name.clone()).collect();
        names.sort_unstable();
        names
    }

    fn find(&self, name: &str) -> Option<&Listed> {
        self.listed.iter().find(|listed| listed.skill.name == name)
    }
}

/// The skills of one session through its life. Nested sessions have their own.
#[derive(Debug, Default)]
pub struct Skills {
    list: SkillList,
    is_agent_model: bool,
}

impl Skills {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The host started a session, or another one: what was listed is forgotten.
    pub fn session_started(&mut self) {
        self.list = SkillList::default();
    }

    /// A model was selected, the agent's own or another: what was listed is forgotten.
    pub fn model_selected(&mut self, is_agent_model: bool) {
        self.list = SkillList::default();
        self.is_agent_model = is_agent_model;
    }

    /// The host is about to start the agent with these skills. A turn that starts later keeps them.
    pub fn before_agent_start(&mut self, list: SkillList) {
        self.list = list;
    }

    /// The list as it is now.
    pub fn list(&self) -> &SkillList {
        &self.list
    }

    /// The tool that activates a skill is to be active.
    pub fn is_tool_active(&self, bridge_enabled: bool, host_has_active_tools: bool) -> bool {
        is_tool_active(ToolConditions {
            host_has_active_tools,
            is_agent_model: self.is_agent_model,
            bridge_enabled,
            has_visible_skill: !self.list.is_empty(),
        })
    }

    /// What stands in the prompt instead of the host's catalogue: `None` for another model, or without skills.
    /// `activation` is the MCP name by which this run exposes the tool, if it does.
    pub fn catalogue(&self, activation: Option<&str>) -> Option<Catalogue> {
        (self.is_agent_model && !self.list.is_empty()).then(|| Catalogue::new(self.list.clone(), activation))
    }
}

/// What decides whether the tool that activates a skill is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent conditions, all of which must hold")]
pub struct ToolConditions {
    /// The host has active tools besides this one: it did not switch all of them off.
    pub host_has_active_tools: bool,
    /// The model in use is the agent's.
    pub is_agent_model: bool,
    /// `tools.bridge.enabled`
    pub bridge_enabled: bool,
    /// A skill is listed that a model may have.
    pub has_visible_skill: bool,
}

/// The tool that activates a skill is active if all conditions hold.
pub fn is_tool_active(conditions: ToolConditions) -> bool {
    let ToolConditions { host_has_active_tools, is_agent_model, bridge_enabled, has_visible_skill } =
        conditions;
    host_has_active_tools && is_agent_model && bridge_enabled && has_visible_skill
}

/// The tool that activates a skill, for the host's registry.
pub fn skill_tool(profile: &Profile) -> HostTool {
    HostTool {
        name: profile.skill_tool.to_owned(),
        description:
            "Loads a skill by its name: its complete instructions, its folder, and the files that belong \
                      to it. Call it before work to which a listed skill applies."
                .to_owned(),
        guidelines: Vec::new(),
        parameters: RawJson::of(&serde_json::json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of a skill, as the catalogue of skills has it."}
            },
            "required": ["name"],
            "additionalProperties": false
        })),
        provenance: Provenance { source: "toolway".to_owned(), path: None, scope: None },
    }
}

#[cfg(test)]
mod tests;
