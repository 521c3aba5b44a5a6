//! Owns what a run exposes: the one source of `tools/list`, manifest, report and signature. Pure. Knows no run.

mod definition;
mod schema;
mod suggestion;

use std::collections::{HashMap, HashSet};
use std::fmt;

use bytes::Bytes;

use crate::naming::Naming;
use crate::profile::Profile;
use crate::tool::{HostTool, HostTools};

pub use schema::OddSchema;

/// Host tools whose work the agent's own tools do as well.
const OVERLAPPING: [&str; 7] = ["read", "bash", "write", "edit", "grep", "find", "ls"];

/// What decides, besides the host's registry, which tools are exposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurfaceOptions {
    /// The bridge is on.
    pub enabled: bool,
    /// The seven tools that overlap with the agent's own are exposed too.
    pub expose_builtins: bool,
    /// Real names that are never exposed: exact, with their case, no patterns.
    pub exclude: Vec<String>,
    /// The display-only tool was registered by the adapter itself, so that a tool of its name is not the host's.
    pub own_display_tool: bool,
}

impl Default for SurfaceOptions {
    fn default() -> Self {
        Self { enabled: true, expose_builtins: false, exclude: Vec::new(), own_display_tool: false }
    }
}

/// Why a tool is not exposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HiddenReason {
    /// The whole bridge is off.
    Disabled,
    /// The registry has it, but it is not active.
    Inactive,
    /// It is active, but the registry has no tool of this name.
    Unregistered,
    /// The user's deny list names it.
    Excluded,
    /// It only shows what the agent did.
    OwnDisplayTool,
    /// It overlaps with a tool of the agent.
    Builtin,
    /// Another tool was registered later under the same name, and counts.
    Replaced,
}

impl fmt::Display for HiddenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "tools.bridge.enabled is false",
            Self::Inactive => "not active in the host",
            Self::Unregistered => "active, but the host has no tool of this name",
            Self::Excluded => "in tools.bridge.exclude",
            Self::OwnDisplayTool => "only shows what the agent did",
            Self::Builtin => "overlaps with a tool of the agent; tools.bridge.exposeBuiltins is false",
            Self::Replaced => "registered again later under the same name",
        })
    }
}

/// A tool that is not exposed, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HiddenTool {
    /// Its real name.
    pub name: String,
    /// The first rule that hides it.
    pub reason: HiddenReason,
}

/// A tool that the agent can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedTool {
    /// The name by which the agent calls it.
    pub mcp_name: String,
    /// The tool as the host has it.
    pub tool: HostTool,
    /// Its object in `tools/list`: a slice of the whole array.
    pub definition: Bytes,
    /// Its schema of arguments is not one for MCP, so that `tools/list` has an empty object schema instead.
    pub odd_schema: Option<OddSchema>,
}

impl ExposedTool {
    /// Its MCP name is not simply prefix and real name.
    pub fn is_renamed(&self, profile: &Profile) -> bool {
        self.mcp_name.strip_prefix(profile.prefix) != Some(self.tool.name.as_str())
    }
}

/// What is exposed at one moment: taken once for each run, which sees no later change of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    profile: Profile,
    enabled: bool,
    exposed: Vec<ExposedTool>,
    hidden: Vec<HiddenTool>,
    tools_json: Bytes,
    signature: String,
}

impl Snapshot {
    /// The signature where no snapshot exists, since there is no bridge at all.
    pub const ABSENT: &'static str = "bridge:absent";

    /// Decides about every tool. The host's registry and its active set are read, never changed.
    pub fn take(profile: &Profile, options: &SurfaceOptions, tools: &HostTools) -> Self {
        let (candidates, mut hidden) = decide(profile, options, tools);
        let naming = Naming::new(profile, candidates.iter().map(|tool| tool.name.as_str()));
        let mut named: Vec<(&str, &HostTool)> = candidates
            .into_iter()
            .filter_map(|tool| naming.mcp_name(&tool.name).map(|mcp_name| (mcp_name, tool)))
            .collect();
        named.sort_unstable_by_key(|(mcp_name, _)| *mcp_name);
        hidden.sort_unstable();
        let signature = definition::signature(options.enabled, &named);
        let (tools_json, exposed) = definition::build(profile, &named);
        Self { profile: *profile, enabled: options.enabled, exposed, hidden, tools_json, signature }
    }

    /// The names that it was taken with.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The bridge is on.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// There is something to serve. Without it no listener is opened and the agent gets no server.
    pub fn is_served(&self) -> bool {
        !self.exposed.is_empty()
    }

    /// What the agent can call, sorted by MCP name.
    pub fn exposed(&self) -> &[ExposedTool] {
        &self.exposed
    }

    /// What it cannot call and why, sorted by real name.
    pub fn hidden(&self) -> &[HiddenTool] {
        &self.hidden
    }

    /// The tool of exactly this MCP name.
    pub fn find(&self, mcp_name: &str) -> Option<&ExposedTool> {
        let place = self.exposed.binary_search_by(|tool| tool.mcp_name.as_str().cmp(mcp_name)).ok()?;
        self.exposed.get(place)
    }

    /// The MCP name that somebody who called this one most likely meant.
    pub fn suggestion(&self, name: &str) -> Option<&str> {
        suggestion::suggest(self, name)
    }

    /// `bridge:off`, `bridge:empty`, or `bridge:on:` and eight hexadecimal digits over all that the agent sees of the
    /// tools, and where they come from. Another signature asks for another agent.
    pub fn signature(&self) -> &str {
        &self.signature
    }

    /// The array of `tools/list`, ready to send.
    pub fn tools_json(&self) -> &Bytes {
        &self.tools_json
    }
}

/// The tools to expose, and those to hide. The first rule that hides a tool is its reason.
fn decide<'a>(
    profile: &Profile,
    options: &SurfaceOptions,
    tools: &'a HostTools,
) -> (Vec<&'a HostTool>, Vec<HiddenTool>) {
    let active: HashSet<&str> = tools.active.iter().map(String::as_str).collect();
    let exclude: HashSet<&str> = options.exclude.iter().map(String::as_str).collect();
    let last: HashMap<&str, usize> =
        tools.all.iter().enumerate().map(|(place, tool)| (tool.name.as_str(), place)).collect();
    let reason = |place: usize, name: &str| {
        if !options.enabled {
            Some(HiddenReason::Disabled)
        } else if last.get(name) != Some(&place) {
            Some(HiddenReason::Replaced)
        } else if !active.contains(name) {
            Some(HiddenReason::Inactive)
        } else if exclude.contains(name) {
            Some(HiddenReason::Excluded)
        } else if name == profile.display_tool && options.own_display_tool {
            Some(HiddenReason::OwnDisplayTool)
        } else if OVERLAPPING.contains(&name) && !options.expose_builtins {
            Some(HiddenReason::Builtin)
        } else {
            None
        }
    };
    let mut candidates = Vec::with_capacity(tools.all.len());
    let mut hidden = Vec::new();
    for (place, tool) in tools.all.iter().enumerate() {
        match reason(place, &tool.name) {
            Some(reason) => hidden.push(HiddenTool { name: tool.name.clone(), reason }),
            None => candidates.push(tool),
        }
    }
    for name in active.into_iter().filter(|name| !last.contains_key(name)) {
        let reason = if options.enabled { HiddenReason::Unregistered } else { HiddenReason::Disabled };
        hidden.push(HiddenTool { name: name.to_owned(), reason });
    }
    (candidates, hidden)
}

#[cfg(test)]
mod tests;
