//! Tests of the signature, and of suggestions for wrong names.

use std::collections::BTreeSet;

use super::*;

#[test]
fn statement_17_a_changed_schema_is_another_signature() {
    let all = tools(&["a"]);
    let before = take(&SurfaceOptions::default(), &all);
    let mut changed = all.clone();
    changed.all[0].parameters = RawJson::new(r#"{"type":"object","properties":{"x":{}}}"#).unwrap();
    let after = take(&SurfaceOptions::default(), &changed);
    assert_eq!(names(&before), names(&after));
    assert_ne!(before.signature(), after.signature());
}

#[test]
fn lesson_19_every_part_of_a_tool_is_in_the_signature() {
    let base = {
        let mut all = tools(&["a", "b"]);
        all.all[0].guidelines = vec!["g".to_owned()];
        all.all[0].provenance.source = "s".to_owned();
        all
    };
    let signature = |change: &dyn Fn(&mut HostTool)| {
        let mut all = base.clone();
        change(&mut all.all[0]);
        all.active.push(all.all[0].name.clone());
        take(&SurfaceOptions::default(), &all).signature().to_owned()
    };
    let changes: [&dyn Fn(&mut HostTool); 12] = [
        &|_| (),
        &|tool| tool.name = "c".to_owned(),
        // The MCP name is the same, the real one is not.
        &|tool| tool.name = "a.".to_owned(),
        &|tool| tool.description.push('.'),
        &|tool| tool.guidelines.push(String::new()),
        &|tool| tool.guidelines = vec!["g".to_owned(), "h".to_owned()],
        &|tool| tool.guidelines = vec!["gh".to_owned()],
        &|tool| tool.parameters = RawJson::new("true").unwrap(),
        &|tool| tool.provenance.source = "t".to_owned(),
        &|tool| tool.provenance.path = Some(String::new()),
        &|tool| tool.provenance.path = Some("p".to_owned()),
        &|tool| tool.provenance.scope = Some("p".to_owned()),
    ];
    let all: BTreeSet<String> = changes.iter().map(|change| signature(change)).collect();
    assert_eq!(all.len(), changes.len());
    assert!(all.iter().all(|signature| {
        let hash = signature.strip_prefix("bridge:on:").unwrap();
        hash.len() == 8 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }));
}

#[test]
fn what_is_hidden_and_how_it_is_ordered_is_not_in_the_signature() {
    let signature = |all: &HostTools| take(&SurfaceOptions::default(), all).signature().to_owned();
    let one = signature(&tools(&["a", "b c"]));
    assert_eq!(one, signature(&tools(&["b c", "a"])));
    assert_eq!(one, signature(&tools(&["read", "b c", "a", "bash"])));
    assert_ne!(one, signature(&tools(&["a", "b c", "d"])));
    // A part that moves from one field to the next is another surface.
    let moved = |description: &str, guideline: &str| {
        let mut all = tools(&["a"]);
        all.all[0].description = description.to_owned();
        all.all[0].guidelines = vec![guideline.to_owned()];
        signature(&all)
    };
    assert_ne!(moved("xy", "z"), moved("x", "yz"));
}

#[test]
fn a_wrong_name_is_answered_with_the_one_that_was_meant() {
    let snapshot =
        take(&SurfaceOptions::default(), &tools(&["read.file", "todo", "Web_Search", "mcp", "a b", "a_b"]));
    for (called, meant) in [
        ("read.file", Some("pi__read_file")),
        ("read_file", Some("pi__read_file")),
        ("todo", Some("pi__todo")),
        ("TODO", Some("pi__todo")),
        ("pi__Todo", Some("pi__todo")),
        ("pi_todo", Some("pi__todo")),
        ("todos", Some("pi__todo")),
        ("web search", Some("pi__Web_Search")),
        ("pi__web-search", Some("pi__Web_Search")),
        ("mcp__pi_tools__pi__todo", Some("pi__todo")),
        ("pi_tools-todo", Some("pi__todo")),
        ("pi_tools.read.file", Some("pi__read_file")),
        ("a_b", Some("pi__a_b")),
        ("a b", Some(take_name(&snapshot, "a b"))),
        ("nothing_like_it", None),
        ("", None),
        ("pi__", None),
        ("constructor", None),
    ] {
        assert_eq!(snapshot.suggestion(called), meant, "{called:?}");
    }
    assert_eq!(snapshot.suggestion(&"todo".repeat(100_000)), None);
    assert_eq!(snapshot.find("todo"), None);
}

fn take_name<'a>(snapshot: &'a Snapshot, real: &str) -> &'a str {
    snapshot.exposed().iter().find(|tool| tool.tool.name == real).map_or("", |tool| &tool.mcp_name)
}
