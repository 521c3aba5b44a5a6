//! Owns which tool of which server an agent means by the name that it shows. Agents put the name of the entry before the
//! tool's, each in its own way; what the tool is, is then asked of who has it, and no name is cut at a guess.

use std::fmt;
use std::sync::Arc;

use toolway_bridge::RawJson;

/// The name of the entry under which all but direct servers reach an agent.
pub(super) const FRONT: &str = "toolway";

/// A tool of a server, and what it is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meant {
    pub(super) server: String,
    pub(super) tool: String,
    /// Not what the agent wrote, where that is a call of the tool that calls others.
    pub(super) arguments: RawJson,
}

/// Knows tools by the name under which they are offered.
type Lookup = dyn Fn(&str, &RawJson) -> Option<Meant> + Send + Sync;

/// The tools that an agent was given, and under which entries.
#[derive(Clone)]
pub(super) struct Names {
    lookup: Arc<Lookup>,
    direct: Vec<String>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("direct", &self.direct).finish_non_exhaustive()
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(|_, _| None, Vec::new())
    }
}

impl Names {
    pub(super) fn new(
        lookup: impl Fn(&str, &RawJson) -> Option<Meant> + Send + Sync + 'static,
        direct: Vec<String>,
    ) -> Self {
        Self { lookup: Arc::new(lookup), direct }
    }

    /// A server of that name is the agent's to call, without the front.
    pub(super) fn is_direct(&self, server: &str) -> bool {
        self.direct.iter().any(|direct| direct == server)
    }

    /// What is meant. `coarse`: the agent says that it is a tool of no kind of its own, so a bare name counts too.
    pub(super) fn find(&self, said: &str, coarse: bool, arguments: &RawJson) -> Option<Meant> {
        let said = said.trim();
        let said =
            ["Tool: ", "MCP: ", "Call "].iter().find_map(|words| said.strip_prefix(words)).unwrap_or(said);
        for direct in &self.direct {
            if let Some(tool) = own_part(said, direct) {
                return Some(meant(direct, tool, arguments));
            }
        }
        if let Some(exposed) = own_part(said, FRONT) {
            let found = (self.lookup)(exposed, arguments);
            // One that came and went, or one of the gateway's own.
            return Some(found.map_or_else(|| meant(FRONT, exposed, arguments), of_front));
        }
        if coarse { (self.lookup)(said, arguments).map(of_front) } else { None }
    }
}

fn meant(server: &str, tool: &str, arguments: &RawJson) -> Meant {
    Meant { server: server.to_owned(), tool: tool.to_owned(), arguments: arguments.clone() }
}

fn of_front(meant: Meant) -> Meant {
    let server = if meant.server.is_empty() { FRONT.to_owned() } else { meant.server };
    Meant { server, ..meant }
}

/// The tool's part of a name that begins, or ends, with the entry's.
fn own_part<'a>(said: &'a str, entry: &str) -> Option<&'a str> {
    if let Some((tool, rest)) = said.split_once(" (")
        && rest.strip_prefix(entry).is_some_and(|rest| rest.starts_with(" MCP Server)"))
    {
        return Some(tool);
    }
    let rest = said.strip_prefix("mcp__").or_else(|| said.strip_prefix("mcp_")).unwrap_or(said);
    let rest = rest.strip_prefix(entry)?;
    ["__", "_", "-", "/", ".", ":"]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark))
        .filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway with the tools `b-c` of `a`, `c` of `a-b`, and one of its own.
    fn names() -> Names {
        let lookup = |exposed: &str, arguments: &RawJson| {
            let (server, tool) = match exposed {
                "a__b-c" => ("a", "b-c"),
                "a-b__c" => ("a-b", "c"),
                "toolway_saved" => ("", "toolway_saved"),
                _ => return None,
            };
            Some(meant(server, tool, arguments))
        };
        Names::new(lookup, vec!["pi-tools".to_owned()])
    }

    #[test]
    fn every_agents_way_to_write_a_tools_name_is_read() {
        let table = [
            ("toolway_a__b-c", Some(("a", "b-c"))),
            ("mcp__toolway__a-b__c", Some(("a-b", "c"))),
            ("toolway/a-b__c", Some(("a-b", "c"))),
            ("Tool: toolway/a__b-c", Some(("a", "b-c"))),
            ("a__b-c (toolway MCP Server)", Some(("a", "b-c"))),
            ("a__b-c", Some(("a", "b-c"))),
            ("pi-tools_pi__ask", Some(("pi-tools", "pi__ask"))),
            ("toolway_toolway_saved", Some(("toolway", "toolway_saved"))),
            ("toolway_gone__one", Some(("toolway", "gone__one"))),
            ("bash", None),
            ("toolway", None),
            ("other_a__b-c", None),
        ];
        let names = names();
        for (said, expected) in table {
            let found = names.find(said, true, &RawJson::empty_object());
            let found = found.as_ref().map(|meant| (meant.server.as_str(), meant.tool.as_str()));
            assert_eq!(found, expected, "{said}");
        }
        assert_eq!(names.find("a__b-c", false, &RawJson::empty_object()), None);
    }
}
