//! Owns the prompts that an agent is sent: bootstrap, incremental, tail guard. Pure: it knows no run, no server, no file.

mod bootstrap;
mod budget;
mod digest;
mod incremental;
mod message;
mod system;
mod tail;
mod transcript;

#[cfg(test)]
mod tests;

use crate::profile::Profile;

pub use bootstrap::bootstrap;
pub(crate) use bootstrap::boundary;
pub use budget::estimate;
pub use digest::Digest;
pub use incremental::incremental;
pub use message::{Block, Message, MessageBody};
pub use system::{HostSystem, InstructionFile, InstructionLayer, SystemOptions, SystemPart, SystemPartKind};

/// What a prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct PromptInput<'a> {
    /// The names of the host's profile.
    pub profile: &'a Profile,
    /// The MCP names that this run exposes. None of them: no word about the bridge anywhere.
    pub exposed: &'a [&'a str],
    /// The text of the manifest; `None` if it is switched off, and then nothing points to it.
    pub manifest: Option<&'a str>,
    /// The host plans: files stay as they are.
    pub plan_mode: bool,
    /// The host's system instructions as [`HostSystem::instructions`] made them.
    pub system: &'a str,
    /// The conversation, oldest first.
    pub messages: &'a [Message],
    /// How many of the messages the agent was sent already. Only [`incremental()`] looks at it.
    pub sent: usize,
    /// The most tokens, by [`estimate`], that a bootstrap prompt may have; `None` is no limit.
    pub budget_tokens: Option<usize>,
}

/// What is sent to the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// The images of the latest user message, in order.
    pub images: Vec<PromptImage>,
    /// How many messages of the conversation are left out because the budget was full.
    pub omitted: usize,
}

/// An image that goes along with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptImage {
    /// The image in Base64, as the host gave it.
    pub data: String,
    /// Its media type.
    pub mime_type: String,
}

/// The tail guard alone, of an incremental prompt or of a bootstrap prompt.
pub(crate) fn tail_guard(input: &PromptInput<'_>, is_incremental: bool) -> String {
    let occasion = if is_incremental { tail::Occasion::Incremental } else { tail::Occasion::Bootstrap };
    tail::guard(input, occasion)
}

/// Sections one after the other, an empty line between them; those without text leave no trace.
fn joined(sections: &[&str]) -> String {
    let filled: Vec<&str> =
        sections.iter().map(|section| section.trim()).filter(|section| !section.is_empty()).collect();
    filled.join("\n\n")
}
