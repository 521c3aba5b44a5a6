//! Owns what somebody may have meant who called a tool that does not exist.

use crate::naming::stem;

use super::Snapshot;

/// A name beyond this length is like none.
const LONGEST: usize = 128;

/// In this order: the tool of that host name; the same behind what clients write before a name; the same but for case
/// and signs; the nearest one.
pub(super) fn suggest<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a str> {
    if let Some(exact) = exposed(snapshot, name) {
        return Some(exact);
    }
    if name.len() > LONGEST {
        return None;
    }
    let profile = snapshot.profile();
    // `mcp__pi_tools__x`, `pi_tools-x`, `pi_tools.x`, `pi_tools:x`, `pi_tools/x`.
    let bare = name
        .split_once(profile.server_key)
        .map_or(name, |(_, rest)| rest.trim_start_matches(['_', '-', '.', ':', '/']));
    if let Some(found) = exposed(snapshot, bare) {
        return Some(found);
    }
    let unprefixed = bare.strip_prefix(profile.prefix).unwrap_or(bare);
    if let Some(found) = exposed(snapshot, unprefixed) {
        return Some(found);
    }
    let wanted = format!("{}{}", profile.prefix, stem(unprefixed)).to_ascii_lowercase();
    let names = || snapshot.exposed().iter().map(|tool| tool.mcp_name.as_str());
    if let Some(found) = names().find(|mcp_name| mcp_name.eq_ignore_ascii_case(&wanted)) {
        return Some(found);
    }
    // Prefixes are alike, so that only what follows them counts.
    let most = (wanted.len() - profile.prefix.len()) / 3;
    names()
        .filter(|mcp_name| mcp_name.len().abs_diff(wanted.len()) <= most)
        .map(|mcp_name| (strsim::osa_distance(&mcp_name.to_ascii_lowercase(), &wanted), mcp_name))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, mcp_name)| mcp_name)
}

/// The tool of this MCP name or of this real name.
fn exposed<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a str> {
    let by_real = || snapshot.exposed().iter().find(|tool| tool.tool.name == name);
    snapshot.find(name).or_else(by_real).map(|tool| tool.mcp_name.as_str())
}
