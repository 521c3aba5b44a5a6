//! Owns which tool of which server an agent means by the name that it shows. Agents put the name of the entry before the
//! tool's, each in its own way; no name is ever cut at a guess where a known tool fits.

use std::sync::Arc;

use crate::generation::McpTool;

/// The name of the entry under which all but direct servers reach an agent.
pub(super) const FRONT: &str = "toolway";

/// The tools that an agent was given, and under which entries.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    tools: Arc<Vec<McpTool>>,
    direct: Vec<String>,
}

impl Names {
    pub(super) fn new(tools: Arc<Vec<McpTool>>, direct: Vec<String>) -> Self {
        Self { tools, direct }
    }

    /// Server and tool. `coarse`: the agent says that it is a tool of no kind of its own, so a bare name counts too.
    pub(super) fn find(&self, said: &str, coarse: bool) -> Option<(String, String)> {
        let said = said.trim();
        let said =
            ["Tool: ", "MCP: ", "Call "].iter().find_map(|words| said.strip_prefix(words)).unwrap_or(said);
        if let Some(tool) = self.tools.iter().find(|tool| self.is(tool, said, coarse)) {
            let server = if tool.server.is_empty() { FRONT } else { &tool.server };
            return Some((server.to_owned(), tool.tool.clone()));
        }
        // A tool that came after the list was taken.
        let entries = self.direct.iter().map(String::as_str).chain([FRONT]);
        entries.into_iter().find_map(|entry| Some((entry.to_owned(), own_part(said, entry)?.to_owned())))
    }

    fn is(&self, tool: &McpTool, said: &str, coarse: bool) -> bool {
        let entry =
            if self.direct.iter().any(|direct| **direct == *tool.server) { &tool.server } else { FRONT };
        let exposed = tool.exposed.as_str();
        (coarse && said == exposed) || own_part(said, entry) == Some(exposed)
    }
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
    use toolway_bridge::RawJson;

    use super::*;

    fn tool(exposed: &str, server: &str, tool: &str) -> McpTool {
        McpTool {
            exposed: exposed.to_owned(),
            server: server.into(),
            tool: tool.to_owned(),
            description: String::new(),
            input_schema: RawJson::empty_object(),
            read_only: false,
        }
    }

    #[test]
    fn every_agents_way_to_write_a_tools_name_is_read() {
        let tools = vec![
            tool("a__b-c", "a", "b-c"),
            tool("a-b__c", "a-b", "c"),
            tool("pi__ask", "pi-tools", "pi__ask"),
            tool("toolway_saved", "", "toolway_saved"),
        ];
        let names = Names::new(Arc::new(tools), vec!["pi-tools".to_owned()]);
        let table = [
            ("toolway_a__b-c", Some(("a", "b-c"))),
            ("mcp__toolway__a-b__c", Some(("a-b", "c"))),
            ("toolway/a-b__c", Some(("a-b", "c"))),
            ("Tool: toolway/a__b-c", Some(("a", "b-c"))),
            ("a__b-c (toolway MCP Server)", Some(("a", "b-c"))),
            ("a__b-c", Some(("a", "b-c"))),
            ("pi-tools_pi__ask", Some(("pi-tools", "pi__ask"))),
            ("pi-tools_pi__late", Some(("pi-tools", "pi__late"))),
            ("toolway_toolway_saved", Some(("toolway", "toolway_saved"))),
            ("toolway_late__one", Some(("toolway", "late__one"))),
            ("bash", None),
            ("toolway", None),
            ("other_a__b-c", None),
        ];
        for (said, expected) in table {
            let expected = expected.map(|(server, tool): (&str, &str)| (server.to_owned(), tool.to_owned()));
            assert_eq!(names.find(said, true), expected, "{said}");
        }
        assert_eq!(names.find("a__b-c", false), None);
    }
}
