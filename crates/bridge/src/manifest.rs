//! Owns the text that says which tools can be called in this run. Pure: the names come from the snapshot alone.

use std::fmt::Write as _;

use crate::naming::quoted;
use crate::profile::Profile;
use crate::snapshot::Snapshot;

/// The names of a prompt's list take no more than this many bytes.
const LIST_LIMIT: usize = 4096;

/// Where the manifest stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestOptions {
    /// In a prompt, which says nothing of a bridge that exposes nothing. Elsewhere, for people, a line says why.
    pub in_prompt: bool,
}

/// The callable tool surfaces, one line each.
pub fn manifest(profile: &Profile, snapshot: &Snapshot, options: &ManifestOptions) -> String {
    let bridge = if snapshot.is_served() {
        Some(names(profile, snapshot))
    } else if options.in_prompt {
        None
    } else if snapshot.is_enabled() {
        Some(format!("Tools of the bridge: no {} tool is exposed in this run.", profile.host))
    } else {
        Some("Tools of the bridge: none, tools.bridge.enabled is false.".to_owned())
    };
    lines(profile, bridge.as_deref())
}

/// The same where no snapshot could be taken.
pub(crate) fn manifest_without_snapshot(profile: &Profile) -> String {
    lines(profile, None)
}

fn lines(profile: &Profile, bridge: Option<&str>) -> String {
    let host = profile.host;
    let mut text = format!(
        "Callable tool surfaces in this run:\n\
         - The agent's own tools (reading and editing files, search, shell, web and the like) and its configured MCP \
         servers, as far as the agent offers them here; which MCP servers are loaded depends on the agent's settings.\n\
         - Switches for {host} tools change {host} tools alone, never the agent's own tools or its configured MCP \
         servers.\n"
    );
    if let Some(bridge) = bridge {
        // Writing into a string cannot fail.
        writeln!(text, "- {bridge}").unwrap_or_default();
    }
    write!(
        text,
        "- Not callable: ids that begin with {}, tool names that only stand in the history, labels of cards and \
         transcripts.",
        profile.replay_prefix
    )
    .unwrap_or_default();
    text
}

/// The line of those that can be called: sorted, with the host's name where it is another one, as many as fit.
fn names(profile: &Profile, snapshot: &Snapshot) -> String {
    let host = profile.host;
    let exposed = snapshot.exposed();
    let mut list = String::new();
    let mut count = 0;
    for tool in exposed {
        let separator = if list.is_empty() { "" } else { ", " };
        let mut entry = format!("{separator}{}", tool.mcp_name);
        if tool.is_renamed(profile) {
            write!(entry, " ({host}: {})", quoted(&tool.tool.name)).unwrap_or_default();
        }
        if list.len() + entry.len() > LIST_LIMIT {
            break;
        }
        list.push_str(&entry);
        count += 1;
    }
    let more = match exposed.len() - count {
        0 => String::new(),
        more => format!(" and {more} more, see tools/list"),
    };
    format!(
        "Tools of {host}, called by exactly these names ({host} shows its own names for them): {list}{more}"
    )
}

#[cfg(test)]
mod tests;
