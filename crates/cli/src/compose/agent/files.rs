//! Owns the files that the command line names for an agent: servers, pictures, texts.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use toolway_agent::{McpServer, PromptImage};
use toolway_config::{Format, read_bytes, read_tolerant};

use super::super::{Environment, UsageError, expand};

/// The most bytes of a picture.
const PICTURE: u64 = 20 << 20;

/// The servers of such a file, with its placeholders replaced as in options.
pub(super) fn servers(file: &Path, own: &Environment) -> Result<Vec<(String, McpServer)>, UsageError> {
    let wrong = |reason: String| UsageError::new("--mcp-config", format!("{}: {reason}", file.display()));
    let bytes = read_bytes(file).map_err(|problem| wrong(problem.message))?;
    let (root, _) = read_tolerant(&bytes, Format::Jsonc).map_err(|problems| {
        let first = problems.into_iter().next();
        wrong(first.map_or_else(|| "is no JSON".to_owned(), |problem| problem.to_string()))
    })?;
    let Some(map) = root.get("mcpServers").unwrap_or(&root).members() else {
        return Err(wrong("has no object mcpServers".to_owned()));
    };
    let mut servers = Vec::new();
    for (name, node) in map {
        let what = format!("{}: server {:?}", file.display(), name.name);
        let mut entry = node.to_json();
        fill(&mut entry, own, &what)?;
        match entry {
            Json::Object(members) => servers.push((name.name.clone(), McpServer::from_json(members))),
            _ => return Err(UsageError::new("--mcp-config", format!("{what} is no object"))),
        }
    }
    Ok(servers)
}

/// Replaces placeholders in every text.
fn fill(value: &mut Json, own: &Environment, what: &str) -> Result<(), UsageError> {
    match value {
        Json::String(text) if text.contains("${") => {
            *text = expand(text, own, what)?.text;
        }
        Json::Array(items) => items.iter_mut().try_for_each(|item| fill(item, own, what))?,
        Json::Object(members) => members.values_mut().try_for_each(|member| fill(member, own, what))?,
        _ => {}
    }
    Ok(())
}

/// A picture for a prompt. What it is, its first bytes say.
pub(crate) fn prompt_image(file: &Path) -> Result<PromptImage, UsageError> {
    let wrong = |reason: &str| UsageError::new("--image", format!("{}: {reason}", file.display()));
    let size = std::fs::metadata(file).map_err(|error| wrong(&error.to_string()))?.len();
    if size > PICTURE {
        return Err(wrong("has more than 20 MiB"));
    }
    let bytes = std::fs::read(file).map_err(|error| wrong(&error.to_string()))?;
    let mime_type = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return Err(wrong("is no PNG, JPEG, GIF or WebP")),
    };
    Ok(PromptImage { mime_type: mime_type.to_owned(), data: STANDARD.encode(bytes) })
}

/// The text, or that of the file behind an `@`.
pub(crate) fn text_or_file(flag: &str, text: &str) -> Result<String, UsageError> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let wrong = |reason: String| UsageError::new(flag, format!("{path}: {reason}"));
    let bytes = read_bytes(Path::new(path)).map_err(|problem| wrong(problem.message))?;
    String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".to_owned()))
}
