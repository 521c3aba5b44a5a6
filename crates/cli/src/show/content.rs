//! Owns what a result looks like: its blocks in their order, and its structured content once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::file::Shelf;
use super::structured::{Eyes, structured};
use super::terminal::Terminal;
use super::text::{one_line, safe};
use crate::render::size;

/// What is shown of a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    /// For stdout; holds nothing that steers a terminal if one reads it, except the pictures that we put there.
    pub(crate) out: String,
    /// For stderr: what could not be shown or saved.
    pub(crate) notes: Vec<String>,
}

impl Shown {
    /// Text of a server, with a line break at its end.
    fn text(&mut self, text: &str, terminal: &Terminal) {
        if terminal.out {
            self.out.push_str(&safe(text));
        } else {
            self.out.push_str(text);
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }
}

/// The whole result of a call.
pub(crate) fn show_result(result: &Value, terminal: &Terminal, shelf: &Shelf) -> Shown {
    let mut shown = Shown::default();
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let value = result.get("structuredContent").filter(|value| !value.is_null());
    let mirror = value.is_some_and(|value| mirrors(blocks, value));
    // A mirror is the same content twice. A person is shown it as a value, a program gets the server's own text.
    let as_value = value.filter(|value| !mirror || (terminal.out && !is_scalar(value)));
    for block in blocks {
        if !(mirror && as_value.is_some() && text_of(block).is_some()) {
            show_block(&mut shown, block, terminal, shelf);
        }
    }
    if let Some(value) = as_value {
        let eyes = if terminal.out { Eyes::Person(terminal.width) } else { Eyes::Program };
        if terminal.out && !shown.out.is_empty() {
            shown.out.push('\n');
        }
        shown.text(&structured(value, eyes), terminal);
    }
    shown
}

/// One block of content.
pub(crate) fn show_block(shown: &mut Shown, block: &Value, terminal: &Terminal, shelf: &Shelf) {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => shown.text(text("text").unwrap_or_default(), terminal),
        Some("image" | "audio") => {
            show_bytes(shown, text("data").unwrap_or_default(), text("mimeType"), terminal, shelf);
        }
        Some("resource") => show_resource(shown, block.get("resource"), terminal, shelf),
        Some("resource_link") => {
            let line = link(block);
            shown.text(&line, terminal);
        }
        _ => shown.text(&format!("{block:#}"), terminal),
    }
}

fn show_resource(shown: &mut Shown, resource: Option<&Value>, terminal: &Terminal, shelf: &Shelf) {
    let text = |name: &str| resource.and_then(|resource| resource.get(name)).and_then(Value::as_str);
    if terminal.out {
        let header = format!("[{}]\n", one_line(text("uri").unwrap_or("resource"), 400));
        shown.out.push_str(&header);
    }
    match (text("text"), text("blob")) {
        (Some(content), _) => shown.text(content, terminal),
        (None, Some(blob)) => show_bytes(shown, blob, text("mimeType"), terminal, shelf),
        (None, None) => shown.notes.push("a resource without text or blob".to_owned()),
    }
}

/// A picture on the terminal where that can be, else the path of a file.
fn show_bytes(shown: &mut Shown, base64: &str, mime: Option<&str>, terminal: &Terminal, shelf: &Shelf) {
    let kind = one_line(mime.unwrap_or("application/octet-stream"), 80);
    let bytes = match STANDARD.decode(base64.trim()) {
        Ok(bytes) => bytes,
        Err(error) => {
            shown.notes.push(format!("{kind} content that is no base64: {error}"));
            return;
        }
    };
    if let Some(picture) = terminal.graphics.and_then(|graphics| graphics.picture(&bytes, &kind)) {
        shown.out.push_str(&picture);
        return;
    }
    let length = size(bytes.len() as u64);
    match shelf.save(&bytes, &kind) {
        Ok(path) => shown.text(&format!("[{kind}, {length}: {}]", path.display()), terminal),
        Err(error) => shown.notes.push(format!("{kind} content of {length} cannot be saved: {error}")),
    }
}

/// `name: uri (mime, size)`.
fn link(block: &Value) -> String {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    let mut line = text("uri").unwrap_or_default().to_owned();
    if let Some(name) = text("title").or(text("name")) {
        line = format!("{name}: {line}");
    }
    let bytes = block.get("size").and_then(Value::as_u64).map(size);
    let more: Vec<String> = text("mimeType").map(str::to_owned).into_iter().chain(bytes).collect();
    if more.is_empty() { line } else { format!("{line} ({})", more.join(", ")) }
}

fn text_of(block: &Value) -> Option<&str> {
    let is_text = block.get("type").and_then(Value::as_str) == Some("text");
    block.get("text").and_then(Value::as_str).filter(|_| is_text)
}

/// The value itself, or the only member of the object that wraps it.
fn unwrapped(value: &Value) -> &Value {
    match value {
        Value::Object(members) if members.len() == 1 => members.values().next().unwrap_or(value),
        _ => value,
    }
}

fn is_scalar(value: &Value) -> bool {
    !unwrapped(value).is_object() && !unwrapped(value).is_array()
}

/// Whether the texts say the same as the structured content: one text that is its JSON, or a text for each item.
fn mirrors(blocks: &[Value], value: &Value) -> bool {
    let texts: Vec<&str> = blocks.iter().filter_map(text_of).collect();
    let same = |text: &str, value: &Value| {
        value.as_str() == Some(text) || serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
    };
    match (texts.as_slice(), unwrapped(value)) {
        ([], _) => false,
        ([text], inner) if same(text, value) || same(text, inner) => true,
        (texts, Value::Array(items)) => {
            texts.len() == items.len() && texts.iter().zip(items).all(|(text, item)| same(text, item))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
