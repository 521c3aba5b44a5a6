//! Owns how a conversation is told to an agent: as a record, in words that nobody takes for calls.

use super::{Block, Message, MessageBody, PromptImage};
use crate::json::RawJson;
use crate::profile::Profile;

/// What stands before the first entry.
pub(super) const HEADING: &str = "Conversation so far. It is a record of what was said and done; nothing in it can be called, and its \
     labels are not a form to answer in.";

/// The images of a message, in order.
pub(super) fn images(message: &Message) -> Vec<PromptImage> {
    let MessageBody::User { content } = message.body() else { return Vec::new() };
    let image = |block: &Block| match block {
        Block::Image { data, mime_type } if !data.is_empty() => {
            Some(PromptImage { data: data.clone(), mime_type: mime_type.clone() })
        }
        _ => None,
    };
    content.iter().filter_map(image).collect()
}

/// What the user wrote, with the places of the images that are sent along.
pub(super) fn latest_text(message: &Message) -> String {
    match message.body() {
        MessageBody::User { content } => text_of(content, Images::Attached),
        _ => String::new(),
    }
}

/// A message as an entry of the record; empty if it has nothing to show.
pub(super) fn entry(profile: &Profile, message: &Message, is_latest: bool) -> String {
    match message.body() {
        MessageBody::User { content } => {
            let images = if is_latest { Images::Attached } else { Images::Left };
            labelled("User:", &text_of(content, images))
        }
        MessageBody::Assistant { content } => assistant(profile, content),
        MessageBody::ToolResult { tool_call_id, tool_name, content, is_error } => {
            let text = text_of(content, Images::Left);
            let label = result_label(profile, tool_call_id, tool_name, *is_error);
            if text.is_empty() { format!("{label} nothing") } else { format!("{label}\n{text}") }
        }
        MessageBody::Custom { custom_type, content } => {
            labelled(&format!("Note ({}):", one_line(custom_type)), &text_of(content, Images::Left))
        }
        MessageBody::BashExecution { excluded: true, .. } => String::new(),
        MessageBody::BashExecution { command, output, exit_code, .. } => {
            let ended = exit_code.map_or_else(String::new, |code| format!(", exit code {code}"));
            let output = output.trim();
            format!("[historical command of the user{ended}] {}\n{output}", command.trim()).trim().to_owned()
        }
        MessageBody::BranchSummary { summary } => {
            labelled("Summary of a branch that was left:", summary.trim())
        }
        MessageBody::CompactionSummary { summary } => {
            labelled("Summary of what came before:", summary.trim())
        }
        // The host's system prompt has a section of its own.
        MessageBody::Other { role, .. } if role == "system" => String::new(),
        MessageBody::Other { role, content } => {
            labelled(&format!("Message ({}):", one_line(role)), &text_of(content, Images::Left))
        }
    }
}

fn labelled(label: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{label}\n{text}") }
}

/// What becomes of images.
#[derive(Clone, Copy)]
enum Images {
    /// They are sent along.
    Attached,
    /// They are not.
    Left,
}

/// Texts and the places of images. Thinking is no text, and neither is a call.
fn text_of(content: &[Block], images: Images) -> String {
    let mut parts: Vec<String> = Vec::new();
    for block in content {
        match (block, images) {
            (Block::Text(text), _) => parts.push(text.trim().to_owned()),
            (Block::Image { mime_type, data }, Images::Attached) if !data.is_empty() => {
                parts.push(format!("[image, attached: {}]", one_line(mime_type)));
            }
            (Block::Image { mime_type, .. }, _) => {
                parts.push(format!("[image, not sent: {}]", one_line(mime_type)));
            }
            (Block::Thinking(_) | Block::ToolCall { .. } | Block::Other(_), _) => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// An answer: its texts, and its calls in their places.
fn assistant(profile: &Profile, content: &[Block]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut is_label_due = true;
    for block in content {
        if let Block::ToolCall { id, name, arguments } = block {
            parts.push(request(profile, id, name, arguments));
            is_label_due = true;
            continue;
        }
        let text = text_of(std::slice::from_ref(block), Images::Left);
        if text.is_empty() {
            continue;
        }
        parts.push(if is_label_due { labelled("Assistant:", &text) } else { text });
        is_label_due = false;
    }
    parts.join("\n")
}

fn request(profile: &Profile, id: &str, name: &str, arguments: &RawJson) -> String {
    let (id, name) = (one_line(id), one_line(name));
    if !is_activity(profile, &id, &name) {
        return format!("[historical tool request] {name} (id {id}) with arguments {}", arguments.text());
    }
    if name != profile.display_tool {
        return format!("[historical activity of the agent] {name} {}", arguments.text());
    }
    let tree = arguments.tree();
    let member = |key: &str| {
        tree.get(key).and_then(|value| value.as_str()).map(one_line).filter(|text| !text.is_empty())
    };
    let title = member("activityTitle").unwrap_or_else(|| profile.card_title.to_owned());
    let summary = member("activitySummary").map(|summary| format!(": {summary}")).unwrap_or_default();
    format!("[historical activity of the agent] {title}{summary}")
}

fn result_label(profile: &Profile, id: &str, name: &str, is_error: bool) -> String {
    let (id, name) = (one_line(id), one_line(name));
    let kind = if is_error { "error" } else { "result" };
    if is_activity(profile, &id, &name) {
        return format!("[historical activity {kind}]");
    }
    format!("[historical tool {kind}] {name} (id {id}):")
}

/// The call shows what the agent did by itself: no tool of that name can be called. The id decides; the name of the display
/// tool does only if no bridge call carries it.
fn is_activity(profile: &Profile, id: &str, name: &str) -> bool {
    id.starts_with(profile.replay_prefix)
        || (name == profile.display_tool && !id.starts_with(profile.run_prefix))
}

/// A name within a line.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
