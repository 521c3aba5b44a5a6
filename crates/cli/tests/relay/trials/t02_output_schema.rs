//! A strict output schema survives the replacement of a result.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use toolway_testkit::{FakeTransport, Rig};

use crate::answer::{Answer, raw, same};
use crate::{TOOLWAY, stdio};

const SCHEMA: &str = r#"{"type":"object","properties":{"rows":{"type":"array","items":{"type":"string"}},"next":{"type":["string","null"]}},"required":["rows","next"],"additionalProperties":false}"#;

fn tool() -> String {
    format!(r#"{{"name":"q","inputSchema":{{"type":"object","properties":{{}}}},"outputSchema":{SCHEMA}}}"#)
}

/// A large result, then small ones.
fn script() -> String {
    let rows = |n: u32| {
        let before = n - 1;
        format!(
            r#"{{"content":[{{"type":"text","text":"{{(\"{{r*500}}\",)*{before}}}\"{{r*500}}\""}}],"structuredContent":{{"rows":[{{("{{r*500}}",)*{before}}}"{{r*500}}"],"next":null}}}}"#
        )
    };
    format!(
        "tool {}\non tools/call/q 1 -> answer {}\non tools/call/q 2+ -> answer {}",
        tool(),
        rows(100),
        rows(2)
    )
}

fn list(session: &mut toolway_testkit::Session, id: &str) -> Result<Vec<u8>> {
    session.client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#))?;
    session.client.answer(id)
}

#[test]
fn a_replaced_result_is_valid_for_what_the_list_says() -> Result<()> {
    let mut session = stdio(&script())?;
    session.client.handshake()?;
    let line = list(&mut session, "\"l\"")?;
    let listed = Answer::of(&line)?;
    let shown = &listed.result()?["tools"][0];
    ensure!(shown.get("outputSchema").is_none(), "still advertised: {shown}");
    let moved = shown["_meta"].get("toolway/outputSchema").context("not moved to _meta")?;
    ensure!(*moved == serde_json::from_str::<Value>(SCHEMA)?, "changed: {moved}");
    ensure!(listed.line.contains(SCHEMA), "respelled: {}", listed.line);
    session.client.call("1", "q", "{}")?;
    let answer = Answer::of(&session.client.answer("1")?)?;
    let result = answer.result()?.as_object().context("no object")?;
    let names: Vec<_> = result.keys().map(String::as_str).collect();
    let ours = names.iter().filter(|n| !["content", "_meta", "isError", "structuredContent"].contains(n));
    ensure!(ours.count() == 0, "our data outside _meta: {names:?}");
    ensure!(result["_meta"]["toolway/saved"]["had_structured_content"] == true, "{:?}", result["_meta"]);
    let saved = answer.saved()?;
    let whole = std::fs::read(&saved.path)?;
    saved.check_file(&whole)?;
    let rows = raw(&whole, &["result", "structuredContent"])?;
    ensure!(rows.matches(&"r".repeat(500)).count() == 100 && rows.ends_with(r#""next":null}"#), "rows");
    session.finish().map(drop)
}

#[test]
fn a_small_result_keeps_its_structured_content() -> Result<()> {
    let mut session = stdio(&script())?;
    session.client.handshake()?;
    session.client.call("1", "q", "{}")?;
    session.client.answer("1")?;
    session.client.call("2", "q", "{}")?;
    let row = "r".repeat(500);
    let sent = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"\"{row}\",\"{row}\""}}],"structuredContent":{{"rows":["{row}","{row}"],"next":null}}}}}}"#
    );
    same(&session.client.answer("2")?, &sent)?;
    session.finish().map(drop)
}

#[test]
fn keep_leaves_the_list_alone() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--output-schema", "keep"]);
    let mut session = rig.script(&script()).start(FakeTransport::Stdio)?;
    session.client.handshake()?;
    let sent = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, tool());
    same(&list(&mut session, "1")?, &sent)?;
    session.finish().map(drop)
}

/// (the tool as the upstream lists it, as the client sees it)
const SPELLINGS: [(&str, &str); 6] = [
    (
        r#"{"name":"none","inputSchema":{"type":"object"}}"#,
        r#"{"name":"none","inputSchema":{"type":"object"}}"#,
    ),
    (
        r#"{"name":"inside","inputSchema":{"type":"object","properties":{"outputSchema":{"type":"string"}}},"x":1.0}"#,
        r#"{"name":"inside","inputSchema":{"type":"object","properties":{"outputSchema":{"type":"string"}}},"x":1.0}"#,
    ),
    (r#"{"outputSchema":{"type":"object"},"name":"first","inputSchema":{}}"#, ""),
    (r#"{"name":"only-meta","inputSchema":{},"_meta":{"v/k":1.0},"outputSchema":{"type":"object"}}"#, ""),
    (r#"{"name":"empty-meta","outputSchema":{"type":"object"},"_meta":{},"inputSchema":{}}"#, ""),
    (r#"{"name":"escaped","inputSchema":{},"output\u0053chema":{"type":"object"}}"#, ""),
];

#[test]
fn every_spelling_of_a_tool_is_relaxed_and_nothing_else_is_touched() -> Result<()> {
    let script: String =
        SPELLINGS.iter().map(|(tool, _)| format!("tool {tool}\n")).collect::<Vec<_>>().concat();
    let mut session = stdio(&script)?;
    session.client.handshake()?;
    let line = list(&mut session, "1")?;
    let listed = Answer::of(&line)?;
    let tools = listed.result()?["tools"].as_array().context("no tools")?;
    ensure!(tools.len() == SPELLINGS.len(), "{} tools", tools.len());
    for (shown, (sent, unchanged)) in tools.iter().zip(SPELLINGS) {
        if !unchanged.is_empty() {
            ensure!(listed.line.contains(unchanged), "changed: {sent} in {}", listed.line);
            continue;
        }
        let mut expected: Value = serde_json::from_str(sent)?;
        let members = expected.as_object_mut().context("no object")?;
        let schema = members.remove("outputSchema").context("no schema")?;
        let meta = members.entry("_meta").or_insert_with(|| serde_json::json!({}));
        meta["toolway/outputSchema"] = schema;
        ensure!(*shown == expected, "{shown} is not {expected}");
    }
    ensure!(listed.line.contains(r#""v/k":1.0"#), "a number was respelled");
    session.finish().map(drop)
}
