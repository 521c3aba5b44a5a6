//! One tree for JSON, JSONC, TOML and YAML, in which every value and every key knows its place in the file. Owns
//! reading: encodings, size, depth and doubled keys. Knows nothing of servers or of files' names.

mod bytes;
mod jsonc;
mod places;
mod toml;
mod yaml;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use serde_json::{Number, Value as Json};

use crate::problem::{Position, Problem};

pub use bytes::read_bytes;
pub(crate) use bytes::{is_circle, text_of};
pub(crate) use jsonc::options as jsonc_options;
pub(crate) use places::Places;
pub(crate) use yaml::plain as yaml_plain;

/// The largest configuration file that is read.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The deepest nesting of objects and arrays that is read.
pub const MAX_DEPTH: usize = 64;
/// The most values and bytes of text that the aliases of a YAML file may stand for.
const MAX_ALIASED: usize = 4 * 1024 * 1024;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub at: Position,
    /// The offset of the byte behind it.
    pub end: usize,
    /// What it is.
    pub value: Value,
}

/// What a node is. Members stand in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, or nothing behind a key in YAML.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string; in TOML also a date, in YAML and TOML also an infinity or not-a-number.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// A map. A doubled key is in it twice if the file was read by [`read_tolerant`].
    Object(Vec<(Key, Node)>),
}

/// A member's name and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Without quotes and escapes.
    pub name: String,
    /// Where it begins.
    pub at: Position,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON and nothing else (RFC 8259).
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML 1.
    Toml,
    /// YAML 1.2, one document.
    Yaml,
}

impl Format {
    /// The format that a file's name ends in; `.json` is read with comments.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" | "jsonc" => Some(Self::Jsonc),
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Reads a file. A doubled key is a problem that names both lines.
pub fn read(bytes: &[u8], format: Format) -> Result<Node, Vec<Problem>> {
    let (root, doubled) = read_tolerant(bytes, format)?;
    if doubled.is_empty() { Ok(root) } else { Err(doubled) }
}

/// Reads a file, and gives doubled keys beside the tree, so that one bad entry does not hide the others: the problem's
/// `field` is the doubled member's JSON pointer. A doubled key of TOML spoils the file all the same.
pub fn read_tolerant(bytes: &[u8], format: Format) -> Result<(Node, Vec<Problem>), Vec<Problem>> {
    let text = text_of(bytes).map_err(|problem| vec![problem])?;
    let mut places = Places::new(text, bytes.len() - text.len());
    let root = match format {
        Format::Json | Format::Jsonc => jsonc::read(text, format == Format::Jsonc, &mut places),
        Format::Toml => toml::read(text, &mut places),
        Format::Yaml => yaml::read(text, &mut places),
    };
    let root = root.map_err(|problem| vec![problem])?;
    let mut doubled = Vec::new();
    find_doubled(&root, &mut Vec::new(), &mut doubled);
    Ok((root, doubled))
}

fn find_doubled<'a>(node: &'a Node, path: &mut Vec<Cow<'a, str>>, found: &mut Vec<Problem>) {
    match &node.value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string().into());
                find_doubled(item, path, found);
                path.pop();
            }
        }
        Value::Object(members) => {
            let mut seen: HashMap<&str, u32> = HashMap::with_capacity(members.len());
            for (key, value) in members {
                path.push(key.name.as_str().into());
                if let Some(first) = seen.insert(&key.name, key.at.line) {
                    found.push(doubled(&key.name, first, key.at).field(pointer(path)));
                }
                find_doubled(value, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn doubled(name: &str, first: u32, at: Position) -> Problem {
    Problem::error(format!("{name:?} stands twice: in line {first} and in line {}", at.line))
        .at(at)
        .hint("remove one of the two")
}

/// The JSON pointer (RFC 6901) of a path.
pub(crate) fn pointer<S: AsRef<str>>(path: &[S]) -> String {
    let mut out = String::new();
    for name in path {
        out.push('/');
        out.push_str(&name.as_ref().replace('~', "~0").replace('/', "~1"));
    }
    out
}

impl Node {
    /// The member of that name, if this is an object that has it; of a doubled one the last, as parsers do.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.members()?.iter().rev().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// What a JSON pointer (RFC 6901) points at.
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        let Some(rest) = pointer.strip_prefix('/') else { return pointer.is_empty().then_some(self) };
        rest.split('/').try_fold(self, |node, step| {
            let step = step.replace("~1", "/").replace("~0", "~");
            match &node.value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                _ => node.get(&step),
            }
        })
    }

    /// What the members' names lead to, one after the other.
    pub fn at_path<S: AsRef<str>>(&self, path: &[S]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name.as_ref()))
    }

    /// The members, if this is an object.
    pub fn members(&self) -> Option<&[(Key, Self)]> {
        if let Value::Object(members) = &self.value { Some(members) } else { None }
    }

    /// The items, if this is an array.
    pub fn items(&self) -> Option<&[Self]> {
        if let Value::Array(items) = &self.value { Some(items) } else { None }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = &self.value { Some(text) } else { None }
    }

    /// The truth, if this is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(value) = &self.value { Some(*value) } else { None }
    }

    /// What a person calls this kind of value.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// The data alone; of doubled keys the last.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.clone()),
            Value::String(text) => Json::String(text.clone()),
            Value::Array(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Object(members) => {
                Json::Object(members.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect())
            }
        }
    }
}
