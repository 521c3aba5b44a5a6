//! Changes single members of a file and leaves the rest as it stands: comments, order, indentation, line ends, byte
//! order mark. Owns what a change is; knows nothing of servers.

mod difference;
mod file;
mod jsonc;
mod lock;
mod toml;
mod yaml;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json};

use crate::problem::Problem;
use crate::tree::{self, Format, Node};

pub use file::{Audience, Written, edit_file};

/// What is to change, at a path of members' names from the top of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The member has this value afterwards; objects above it are made. Of an object that is there only what differs
    /// is touched.
    Set {
        /// The names.
        path: Vec<String>,
        /// The value.
        value: Json,
    },
    /// The member is gone afterwards.
    Remove {
        /// The names.
        path: Vec<String>,
    },
}

impl Change {
    /// Sets a member.
    pub fn set<S: AsRef<str>>(path: &[S], value: Json) -> Self {
        Self::Set { path: path.iter().map(|name| name.as_ref().to_owned()).collect(), value }
    }

    /// Removes a member.
    pub fn remove<S: AsRef<str>>(path: &[S]) -> Self {
        Self::Remove { path: path.iter().map(|name| name.as_ref().to_owned()).collect() }
    }

    fn path(&self) -> &[String] {
        match self {
            Self::Set { path, .. } | Self::Remove { path } => path,
        }
    }
}

/// A file's new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Comments that are not in it any more: only YAML loses some, where a list or a whole entry is written anew.
    pub lost_comments: Vec<String>,
}

/// The content with the changes made, one after the other. Nothing but these changes: that is checked by reading the
/// result again. No content at all counts as an empty object.
pub fn edit(bytes: &[u8], format: Format, changes: &[Change]) -> Result<Edited, Vec<Problem>> {
    let text = tree::text_of(bytes).map_err(|problem| vec![problem])?;
    let mut expected = match read(text, format)? {
        Some(root) => root.to_json(),
        None => Json::Object(Map::new()),
    };
    let mut steps = Vec::new();
    for change in changes {
        steps.extend(difference::steps(&expected, change));
        difference::apply(&mut expected, change).map_err(|problem| vec![problem])?;
    }
    let edited = match format {
        _ if steps.is_empty() => Ok(text.to_owned()),
        Format::Json | Format::Jsonc => jsonc::apply(text, &steps),
        Format::Toml => toml::apply(text, &steps),
        Format::Yaml => yaml::apply(text, &steps),
    };
    let edited = edited.map_err(|problem| vec![problem])?;
    let found = read(&edited, format)?.map_or(Json::Null, |root| root.to_json());
    if found != expected && !(changes.is_empty() && found.is_null()) {
        return Err(vec![
            Problem::error("cannot be changed without changing other members").hint("edit it by hand"),
        ]);
    }
    let lost_comments = if format == Format::Yaml { yaml::lost_comments(text, &edited) } else { Vec::new() };
    let (mark, _) = bytes.split_at(bytes.len() - text.len());
    Ok(Edited { bytes: [mark, edited.as_bytes()].concat(), lost_comments })
}

/// The tree; `None` for a file without a value.
fn read(text: &str, format: Format) -> Result<Option<Node>, Vec<Problem>> {
    if text.trim().is_empty() && format != Format::Toml {
        return Ok(None);
    }
    let root = tree::read(text.as_bytes(), format)?;
    Ok(if matches!(root.value, tree::Value::Null) { None } else { Some(root) })
}
