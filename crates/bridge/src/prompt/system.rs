//! Owns what of the host's system prompt goes to the agent. What is not recognised stays.

mod duplicates;
mod pi;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::joined;
use crate::profile::Profile;
use crate::skills::Catalogue;

/// The system prompt as the host has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HostSystem {
    /// One text. The sections that pi writes are recognised in it when the profile is pi's; in any other text nothing
    /// but a catalogue of skills is.
    Text(String),
    /// Parts that the host marked itself.
    Parts(Vec<SystemPart>),
}

/// A part of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SystemPart {
    /// What it is.
    pub kind: SystemPartKind,
    /// Its text.
    pub text: String,
    /// For instructions that come from a file: the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// For instructions that come from a file: whose file it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<InstructionLayer>,
}

/// What a part of a system prompt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SystemPartKind {
    /// Anything that the agent is to read.
    Text,
    /// The list of the host's tools: left out, because the agent cannot call them by these names.
    ToolCatalogue,
    /// General advice for models that the host drives itself: left out.
    Guidelines,
    /// Where the host's own documentation is: left out.
    HostDocs,
    /// Instructions for the project or of the user: kept, unless the agent loads the same file itself.
    Instructions,
    /// The catalogue of skills: replaced while the agent's model is selected.
    Skills,
}

/// Whose instructions a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InstructionLayer {
    /// The host's own file for everything the user does: covered by the setting source `user`.
    Global,
    /// A file of the project or of a folder above it: covered by the setting source `project`.
    Project,
}

/// A file of instructions that the host put into its system prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstructionFile {
    /// The path, as the system prompt has it.
    pub path: String,
    /// The content, as the system prompt has it.
    pub content: String,
    /// Whose it is.
    pub layer: InstructionLayer,
}

/// What decides of a system prompt besides its text.
#[derive(Debug, Clone, Copy)]
pub struct SystemOptions<'a> {
    /// The names of the host's profile.
    pub profile: &'a Profile,
    /// The catalogue that stands for the host's; `None` leaves the host's where it is.
    pub catalogue: Option<&'a Catalogue>,
    /// The files that the host put into a [`HostSystem::Text`].
    pub instruction_files: &'a [InstructionFile],
    /// What the agent loads itself: `local.settingSources`.
    pub setting_sources: &'a [String],
    /// Keep what the agent loads itself as well: `local.preservePiAgentsContext`.
    pub preserve_instructions: bool,
}

impl SystemOptions<'_> {
    /// The agent loads this file itself.
    fn is_covered(&self, path: &str, layer: InstructionLayer) -> bool {
        let source = match layer {
            InstructionLayer::Global => "user",
            InstructionLayer::Project => "project",
        };
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        !self.preserve_instructions
            && matches!(name, "AGENTS.md" | "CLAUDE.md")
            && self.setting_sources.iter().any(|named| named == source || named == "all")
    }
}

impl HostSystem {
    /// What the agent reads of it.
    pub fn instructions(&self, options: &SystemOptions<'_>) -> String {
        match self {
            Self::Text(text) => {
                let covered: Vec<&InstructionFile> = options
                    .instruction_files
                    .iter()
                    .filter(|file| options.is_covered(&file.path, file.layer))
                    .collect();
                let kept = duplicates::without(text, &covered);
                let kept =
                    if *options.profile == Profile::PI { pi::without_host_sections(&kept) } else { kept };
                options
                    .catalogue
                    .map_or_else(|| kept.clone(), |catalogue| catalogue.rewrite(&kept))
                    .trim()
                    .to_owned()
            }
            Self::Parts(parts) => {
                let own = options.catalogue.map(Catalogue::text);
                let mut shown: Vec<&str> = Vec::new();
                let mut is_catalogue_shown = false;
                for part in parts {
                    match part.kind {
                        SystemPartKind::ToolCatalogue
                        | SystemPartKind::Guidelines
                        | SystemPartKind::HostDocs => {}
                        SystemPartKind::Text => shown.push(&part.text),
                        SystemPartKind::Instructions => {
                            let layer = part.layer.zip(part.path.as_deref());
                            if !layer.is_some_and(|(layer, path)| options.is_covered(path, layer)) {
                                shown.push(&part.text);
                            }
                        }
                        SystemPartKind::Skills => match &own {
                            None => shown.push(&part.text),
                            Some(own) if !is_catalogue_shown => {
                                shown.push(own);
                                is_catalogue_shown = true;
                            }
                            Some(_) => {}
                        },
                    }
                }
                if let Some(own) = own.as_deref().filter(|_| !is_catalogue_shown) {
                    shown.push(own);
                }
                joined(&shown)
            }
        }
    }
}

#[cfg(test)]
mod tests;
