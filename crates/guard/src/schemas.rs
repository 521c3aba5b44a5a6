//! Owns the changes to `tools/list` and to what a server says of itself: splices, everything else byte for byte. Pure.

use std::ops::Range;

use toolway_wire::find::{self, Step};
use toolway_wire::push_string;

use crate::read_back;

/// Where a tool's `outputSchema` goes.
const RELAXED: &str = "toolway/outputSchema";

/// Replacements in a message, made at once.
#[derive(Debug, Default)]
struct Splices(Vec<(Range<usize>, Vec<u8>)>);

impl Splices {
    fn replace(&mut self, at: Range<usize>, with: Vec<u8>) {
        self.0.push((at, with));
    }

    fn insert(&mut self, at: usize, with: Vec<u8>) {
        self.0.push((at..at, with));
    }

    fn apply(mut self, message: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by_key(|(at, _)| (at.start, at.end));
        let mut out = Vec::with_capacity(message.len() + 256);
        let mut from = 0;
        for (at, with) in self.0 {
            out.extend_from_slice(message.get(from..at.start).unwrap_or_default());
            out.extend_from_slice(&with);
            from = at.end.max(from);
        }
        out.extend_from_slice(message.get(from..).unwrap_or_default());
        Some(out)
    }
}

/// Moves each tool's `outputSchema` to its `_meta["toolway/outputSchema"]`, in a complete `tools/list` response.
/// `None`: no tool has one. A client that validates then accepts a result that lost its `structuredContent`.
pub fn relax_schemas(message: &[u8]) -> Option<Vec<u8>> {
    let tools = find::find(message, &[Step::Key("result"), Step::Key("tools")])?;
    let mut splices = Splices::default();
    for tool in find::elements(message, tools) {
        relax_tool(message, tool, &mut splices);
    }
    splices.apply(message)
}

fn relax_tool(message: &[u8], tool: Range<usize>, splices: &mut Splices) {
    let members: Vec<find::Member> = find::members(message, tool.clone()).collect();
    let is = |member: &find::Member, name: &str| find::is_named(message, member, name);
    // A name that stands twice means different things to different readers: such a tool is left alone.
    if ["outputSchema", "_meta"]
        .iter()
        .any(|name| members.iter().filter(|member| is(member, name)).count() > 1)
    {
        return;
    }
    let Some(schema) = members.iter().find(|member| is(member, "outputSchema")) else { return };
    let mut moved = Vec::new();
    push_string(RELAXED, &mut moved);
    moved.push(b':');
    moved.extend_from_slice(message.get(schema.value.clone()).unwrap_or_default());
    let meta = members.iter().find(|member| is(member, "_meta"));
    let in_meta = meta.filter(|meta| message.get(meta.value.start) == Some(&b'{'));
    let mut in_place = in_meta.is_none().then(|| {
        let mut fresh = b"\"_meta\":{".to_vec();
        fresh.extend_from_slice(&moved);
        fresh.push(b'}');
        fresh
    });
    if let Some(meta) = in_meta {
        if find::members(message, meta.value.clone()).next().is_some() {
            moved.push(b',');
        }
        splices.insert(meta.value.start + 1, moved);
    }
    for (index, member) in members.iter().enumerate() {
        let stale_meta = in_meta.is_none() && is(member, "_meta");
        if !is(member, "outputSchema") && !stale_meta {
            continue;
        }
        match in_place.take_if(|_| member == schema) {
            Some(fresh) => splices.replace(member.name.start..member.value.end, fresh),
            // With the comma before it, or, for the first members, the one after it.
            None => {
                match (index.checked_sub(1).and_then(|before| members.get(before)), members.get(index + 1)) {
                    (_, Some(next)) => splices.replace(member.name.start..next.name.start, Vec::new()),
                    (Some(before), None) => splices.replace(before.value.end..member.value.end, Vec::new()),
                    (None, None) => splices.replace(member.name.start..member.value.end, Vec::new()),
                }
            }
        }
    }
}

/// Adds the read-back tool to a complete `tools/list` response that is the last page. `None`: it has no list of
/// tools, or has that tool already.
pub fn add_read_back_tool(message: &[u8]) -> Option<Vec<u8>> {
    let tools = find::find(message, &[Step::Key("result"), Step::Key("tools")])?;
    if message.get(tools.start) != Some(&b'[') {
        return None;
    }
    let mut last = None;
    for tool in find::elements(message, tools.clone()) {
        if find::members(message, tool.clone()).any(|member| {
            find::is_named(message, &member, "name")
                && find::string(message, member.value.clone()).as_deref() == Some(read_back::TOOL)
        }) {
            return None;
        }
        last = Some(tool.end);
    }
    let mut definition = if last.is_some() { b",".to_vec() } else { Vec::new() };
    definition.extend_from_slice(read_back::definition().as_bytes());
    let mut splices = Splices::default();
    splices.insert(last.unwrap_or(tools.start + 1), definition);
    splices.apply(message)
}

/// Adds `tools` to the capabilities of a complete `initialize` or `server/discover` response. `None`: they are
/// there, or there are no capabilities.
pub fn add_tools_capability(message: &[u8]) -> Option<Vec<u8>> {
    add_capability(message, "tools")
}

/// As [`add_tools_capability`], for `resources`.
pub fn add_resources_capability(message: &[u8]) -> Option<Vec<u8>> {
    add_capability(message, "resources")
}

fn add_capability(message: &[u8], name: &str) -> Option<Vec<u8>> {
    let capabilities = find::find(message, &[Step::Key("result"), Step::Key("capabilities")])?;
    if message.get(capabilities.start) != Some(&b'{') {
        return None;
    }
    let mut any = false;
    for member in find::members(message, capabilities.clone()) {
        any = true;
        if find::is_named(message, &member, name) {
            return None;
        }
    }
    let mut splices = Splices::default();
    splices.insert(
        capabilities.start + 1,
        format!("\"{name}\":{{}}{}", if any { "," } else { "" }).into_bytes(),
    );
    splices.apply(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: fn(&[u8]) -> Option<Vec<u8>>, message: &str) -> Option<String> {
        change(message.as_bytes()).map(|out| String::from_utf8(out).unwrap())
    }

    fn list(tools: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1.0,"result":{{"tools":[{tools}],"nextCursor":null}}}}"#)
    }

    #[test]
    fn output_schemas_move_and_everything_else_stays() {
        for (tool, relaxed) in [
            (
                r#"{"name":"a", "outputSchema":{"type" : "object"}, "x":1e2}"#,
                Some(r#"{"name":"a", "_meta":{"toolway/outputSchema":{"type" : "object"}}, "x":1e2}"#),
            ),
            (
                r#"{"outputSchema":{},"name":"a","_meta":{"k":1}}"#,
                Some(r#"{"name":"a","_meta":{"toolway/outputSchema":{},"k":1}}"#),
            ),
            (
                r#"{"_meta":{ },"name":"a" , "outputSchema":{}}"#,
                Some(r#"{"_meta":{"toolway/outputSchema":{} },"name":"a"}"#),
            ),
            (r#"{"outputSchema":{}}"#, Some(r#"{"_meta":{"toolway/outputSchema":{}}}"#)),
            (r#"{"outputSchema":{"a":1},"outputSchema":{"b":2},"name":"a"}"#, None),
            (
                r#"{"name":"a","_meta":null,"x":1,"outputSchema":{}}"#,
                Some(r#"{"name":"a","x":1,"_meta":{"toolway/outputSchema":{}}}"#),
            ),
            (r#"{"outputSchema":{},"_meta":7}"#, Some(r#"{"_meta":{"toolway/outputSchema":{}}}"#)),
            (r#"{"_meta":null,"outputSchema":{}}"#, Some(r#"{"_meta":{"toolway/outputSchema":{}}}"#)),
            (r#"{"name":"outputSchema","inputSchema":{"outputSchema":{}}}"#, None),
        ] {
            assert_eq!(changed(relax_schemas, &list(tool)), relaxed.map(list), "{tool}");
        }
        let two = list(r#"{"name":"a","outputSchema":{}},{"name":"b"}"#);
        assert_eq!(
            changed(relax_schemas, &two),
            Some(list(r#"{"name":"a","_meta":{"toolway/outputSchema":{}}},{"name":"b"}"#))
        );
        assert_eq!(
            changed(relax_schemas, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#),
            None
        );
    }

    #[test]
    fn the_read_back_tool_joins_once() {
        for tools in ["", " ", r#"{"name":"a"}"#] {
            let with = changed(add_read_back_tool, &list(tools)).unwrap();
            let value: serde_json::Value = serde_json::from_str(&with).unwrap();
            let last = value["result"]["tools"].as_array().unwrap().last().unwrap();
            assert_eq!(last["name"], "toolway_saved");
            assert_eq!(last["inputSchema"]["type"], "object");
            assert_eq!(changed(add_read_back_tool, &with), None);
        }
        assert_eq!(changed(add_read_back_tool, r#"{"result":{}}"#), None);
    }

    #[test]
    fn capabilities_are_added_where_they_lack() {
        for (before, after) in [
            ("{}", Some(r#"{"tools":{}}"#)),
            (r#"{"logging":{}}"#, Some(r#"{"tools":{},"logging":{}}"#)),
            (r#"{"tools":{"listChanged":true}}"#, None),
            ("null", None),
        ] {
            let message = |capabilities: &str| {
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"capabilities":{capabilities}}}}}"#)
            };
            assert_eq!(changed(add_tools_capability, &message(before)), after.map(message));
        }
    }
}
