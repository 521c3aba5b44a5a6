//! Owns the bytes of `tools/list` and the signature over what they come from.

use std::ops::Range;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::naming::{hex, quoted};
use crate::profile::Profile;
use crate::tool::HostTool;

use super::{ExposedTool, schema};

/// What stands where a host's schema is none that MCP knows.
const EMPTY_SCHEMA: &[u8] = br#"{"type":"object","properties":{}}"#;

/// The whole array, and each tool with its slice of it.
pub(super) fn build(profile: &Profile, named: &[(&str, &HostTool)]) -> (Bytes, Vec<ExposedTool>) {
    let expected =
        named.iter().map(|(_, tool)| tool.parameters.bytes().len() + tool.description.len() + 512).sum();
    let mut json: Vec<u8> = Vec::with_capacity(expected);
    let mut places: Vec<Range<usize>> = Vec::with_capacity(named.len());
    let mut odd = Vec::with_capacity(named.len());
    json.push(b'[');
    for (mcp_name, tool) in named {
        if !places.is_empty() {
            json.push(b',');
        }
        let from = json.len();
        odd.push(write_definition(&mut json, profile, mcp_name, tool));
        places.push(from..json.len());
    }
    json.push(b']');
    let json = Bytes::from(json);
    let exposed =
        named.iter().zip(places).zip(odd).map(|(((mcp_name, tool), place), odd_schema)| ExposedTool {
            mcp_name: (*mcp_name).to_owned(),
            tool: (*tool).clone(),
            definition: json.slice(place),
            odd_schema,
        });
    let exposed = exposed.collect();
    (json, exposed)
}

fn write_definition(
    json: &mut Vec<u8>,
    profile: &Profile,
    mcp_name: &str,
    tool: &HostTool,
) -> Option<schema::OddSchema> {
    let odd = schema::check(&tool.parameters).err();
    let schema = if odd.is_some() { EMPTY_SCHEMA } else { tool.parameters.bytes() };
    json.extend_from_slice(br#"{"name":"#);
    write_text(json, mcp_name);
    json.extend_from_slice(br#","description":"#);
    write_text(json, &description(profile, mcp_name, tool));
    json.extend_from_slice(br#","inputSchema":"#);
    json.extend_from_slice(schema);
    json.extend_from_slice(br#","_meta":{"#);
    write_text(json, profile.meta_name);
    json.push(b':');
    write_text(json, &tool.name);
    json.extend_from_slice(b"}}");
    odd
}

fn write_text(json: &mut Vec<u8>, text: &str) {
    // Writing a string into memory cannot fail.
    serde_json::to_writer(json, text).unwrap_or_default();
}

/// What the host says of the tool, its guidelines as a list, and one line that points to the rules for all of them.
fn description(profile: &Profile, mcp_name: &str, tool: &HostTool) -> String {
    let host = profile.host;
    let shown = quoted(&tool.name);
    let mut text = if tool.description.trim().is_empty() {
        format!("Runs the {host} tool {shown}.")
    } else {
        tool.description.clone()
    };
    let mut guidelines =
        tool.guidelines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).peekable();
    if guidelines.peek().is_some() {
        text.push_str("\n\nGuidelines:");
        for line in guidelines {
            text.push_str("\n- ");
            text.push_str(line);
        }
    }
    format!(
        "{text}\n\nCall it as {mcp_name}; its {host} name is {shown}. The full rules are in the bootstrap prompt, if \
         there was one."
    )
}

/// The signature over the tools, which are sorted by MCP name. Every field goes into the hash with its length before
/// it, so that no two surfaces read the same.
pub(super) fn signature(enabled: bool, named: &[(&str, &HostTool)]) -> String {
    if !enabled {
        return "bridge:off".to_owned();
    }
    if named.is_empty() {
        return "bridge:empty".to_owned();
    }
    let mut hash = Sha256::new();
    for (mcp_name, tool) in named {
        field(&mut hash, tool.name.as_bytes());
        field(&mut hash, mcp_name.as_bytes());
        field(&mut hash, tool.description.as_bytes());
        hash.update(length(tool.guidelines.len()));
        for line in &tool.guidelines {
            field(&mut hash, line.as_bytes());
        }
        field(&mut hash, tool.parameters.bytes());
        field(&mut hash, tool.provenance.source.as_bytes());
        for optional in [&tool.provenance.path, &tool.provenance.scope] {
            hash.update([u8::from(optional.is_some())]);
            field(&mut hash, optional.as_deref().unwrap_or_default().as_bytes());
        }
    }
    format!("bridge:on:{}", hex(&hash.finalize(), 4))
}

fn field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update(length(bytes.len()));
    hash.update(bytes);
}

fn length(count: usize) -> [u8; 8] {
    (count as u64).to_le_bytes()
}
