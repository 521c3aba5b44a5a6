//! Owns how what a host gave back becomes an MCP result. Pure: bytes to bytes, no number is read and no text decoded that
//! need not be.
//!
//! Blocks that are text or image pass as they are; what else a host has in its list becomes text with its JSON. What the
//! host keeps beside the content (`details` and the like) is not for the agent.

use std::ops::Range;

use bytes::Bytes;
use toolway_wire::{find, push_string};

use crate::call::HostResult;
use crate::json::{RawJson, mend_halves};

/// What of a name is repeated in an answer, in characters.
const SHOWN_NAME: usize = 80;

/// The `CallToolResult` (MCP 2025-11-25, `server/tools`) of what a host gave back.
pub(crate) fn tool_result(result: &HostResult) -> Bytes {
    let content = content_bytes(&result.content);
    let mut out = Vec::with_capacity(content.len() + 64);
    out.extend_from_slice(b"{\"content\":[");
    match content.first() {
        Some(b'[') => blocks(content, &mut out),
        Some(b'"') => text_of_raw(content, &mut out),
        _ => text_of_json(content, &mut out),
    }
    out.push(b']');
    mend_halves(&mut out);
    end(result.is_error, out)
}

/// There is no tool of that name.
pub(crate) fn unknown_tool(name: &str, suggestion: Option<&str>) -> Bytes {
    let name = shown(name);
    error(&match suggestion {
        Some(suggestion) => {
            format!(
                "There is no tool {name:?} here. The tool that was meant may be {suggestion:?}: call that."
            )
        }
        None => format!(
            "There is no tool {name:?} here. Only the tools of tools/list can be called, by the names that it has."
        ),
    })
}

/// Hosts read their lines with parsers that give up on deep values, and some of them break off with the whole line.
pub(crate) fn deep_arguments(most: usize) -> Bytes {
    error(&format!("The tool was not called: its arguments are nested more than {most} levels deep."))
}

/// The host removed the tool while the run was open.
pub(crate) fn withdrawn_tool(real_name: &str) -> Bytes {
    error(&format!("The host has removed its tool {:?}: it cannot be called any more.", shown(real_name)))
}

/// A result that is too large to go on, where nothing can save it.
pub(crate) fn too_large(bytes: usize, most: usize) -> Bytes {
    error(&format!(
        "The tool ran, but its result of {bytes} bytes is larger than the {most} bytes that can be handed on, and saving \
         of results is off. Ask the tool for less at a time."
    ))
}

/// A failure, as a result that the agent's model reads.
pub(crate) fn error(text: &str) -> Bytes {
    let mut out = b"{\"content\":[".to_vec();
    push_text(text, &mut out);
    out.push(b']');
    end(true, out)
}

fn end(is_error: bool, mut out: Vec<u8>) -> Bytes {
    out.extend_from_slice(if is_error { b",\"isError\":true}" } else { b"}" });
    out.into()
}

fn content_bytes(content: &RawJson) -> &[u8] {
    content.bytes().trim_ascii()
}

fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN_NAME).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

fn blocks(list: &[u8], out: &mut Vec<u8>) {
    let before = out.len();
    for at in find::elements(list, 0..list.len()) {
        if out.len() > before {
            out.push(b',');
        }
        block(list, at, out);
    }
    if out.len() == before {
        push_text("", out);
    }
}

/// The members of a block that matter, where they are strings.
#[derive(Default)]
struct Block {
    kind: Option<Range<usize>>,
    text: Option<Range<usize>>,
    data: Option<Range<usize>>,
    mime_type: Option<Range<usize>>,
    /// It has members that MCP does not know.
    others: bool,
    /// A member stands there twice.
    twice: bool,
}

fn block(list: &[u8], at: Range<usize>, out: &mut Vec<u8>) {
    let mut block = Block::default();
    for member in find::members(list, at.clone()) {
        let slot = [
            ("type", &mut block.kind),
            ("text", &mut block.text),
            ("data", &mut block.data),
            ("mimeType", &mut block.mime_type),
        ];
        let slot = slot.into_iter().find(|(name, _)| find::is_named(list, &member, name));
        let Some((_, slot)) = slot else {
            block.others = true;
            continue;
        };
        let string = list.get(member.value.start) == Some(&b'"');
        block.twice |= slot.is_some();
        *slot = string.then_some(member.value);
    }
    let raw = |span: &Option<Range<usize>>| span.clone().and_then(|span| list.get(span));
    let kind = raw(&block.kind).and_then(|kind| find::string(kind, 0..kind.len()));
    let (text, data, mime_type) = (raw(&block.text), raw(&block.data), raw(&block.mime_type));
    let whole = list.get(at).unwrap_or_default();
    match (kind.as_deref(), text, data, mime_type) {
        (Some("text"), Some(_), None, None) | (Some("image"), None, Some(_), Some(_))
            if !block.others && !block.twice =>
        {
            out.extend_from_slice(whole);
        }
        (Some("text"), Some(text), ..) => text_of_raw(text, out),
        (Some("image"), _, Some(data), Some(mime_type)) => {
            out.extend_from_slice(b"{\"type\":\"image\",\"data\":");
            out.extend_from_slice(data);
            out.extend_from_slice(b",\"mimeType\":");
            out.extend_from_slice(mime_type);
            out.push(b'}');
        }
        _ => text_of_json(whole, out),
    }
}

/// A text block of a JSON string, which keeps its spelling.
fn text_of_raw(string: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    out.extend_from_slice(string);
    out.push(b'}');
}

/// A text block that shows JSON.
fn text_of_json(json: &[u8], out: &mut Vec<u8>) {
    push_text(&String::from_utf8_lossy(json), out);
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    push_string(text, out);
    out.push(b'}');
}

#[cfg(test)]
mod tests;
