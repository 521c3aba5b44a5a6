//! Which reports of an agent are about bridge calls, and which are not.

use serde_json::json;

use super::*;

struct Watched(OwnActivity);

impl Watched {
    fn new() -> Self {
        Self(OwnActivity::default())
    }

    /// `pi__read` and `pi__todo` are exposed; requests 3 and "abc" came.
    fn is_own(&mut self, report: &Value) -> bool {
        let known = |name: &str| matches!(name, "pi__read" | "pi__todo");
        let requested = |id: &Id| id.raw() == b"3" || id.raw() == b"\"abc\"";
        self.0.recognise(&RawJson::of(report), "pi_tools", &known, &requested)
    }
}

fn is_own(report: &Value) -> bool {
    Watched::new().is_own(report)
}

#[test]
fn statement_34_the_report_of_a_bridge_call_is_recognised_and_another_mcp_call_is_not() {
    for own in [
        json!({"name": "pi__read", "callId": "c1"}),
        json!({"name": "mcp", "args": {"toolName": "pi__read"}}),
        json!({"name": "mcp", "callId": "3"}),
        json!({"name": "mcp", "callId": 3}),
        json!({"name": "pi_tools", "callId": "abc"}),
        json!({"type": "pi__read", "callId": "c1", "args": {}}),
        json!({"type": "mcp", "callId": "3", "args": {}}),
        json!({"tool": "mcp", "args": {"server": "pi_tools", "tool": "pi__todo"}}),
    ] {
        assert!(is_own(&own), "{own}");
    }
    for other in [
        json!({"name": "mcp", "args": {"toolName": "search", "server": "docs"}, "callId": "c9"}),
        json!({"name": "mcp", "callId": "4"}),
        json!({"name": "mcp__docs__read", "callId": "c1"}),
        json!({"name": "read", "args": {"path": "pi__read"}}),
        json!({"name": "pi__unknown"}),
        json!({"type": "mcp", "args": {"type": "pi__read"}}),
        json!({"type": "read", "callId": "3"}),
        json!({}),
        json!("pi__read"),
        json!(null),
    ] {
        assert!(!is_own(&other), "{other}");
    }
}

#[test]
fn lesson_11_names_are_found_through_arguments_and_lists_to_a_depth_of_four() {
    for key in NAME_KEYS {
        assert!(is_own(&json!({ key: "pi__todo" })), "{key}");
        assert!(is_own(&json!({"name": "mcp", "args": { key: "pi__todo" }})), "{key}");
    }
    for key in INVOCATION_KEYS {
        assert!(is_own(&json!({"name": "mcp", key: {"name": "pi__todo"}})), "{key}");
        assert!(is_own(&json!({"name": "mcp", key: [{"x": 1}, {"name": "pi__todo"}]})), "{key}");
    }
    let nested =
        |depth: usize| (1..depth).fold(json!({"name": "pi__todo"}), |inner, _| json!({ "arguments": inner }));
    for depth in 1..8 {
        assert_eq!(is_own(&json!({"name": "mcp", "args": nested(depth)})), depth <= 4, "{depth}");
    }
}

#[test]
fn lesson_12_a_result_that_mentions_a_bridge_name_hides_nothing() {
    for other in [
        json!({"name": "mcp", "args": {"toolName": "search"}, "result": {"toolName": "pi__read"}}),
        json!({"name": "mcp", "result": [{"name": "pi__read"}], "output": {"args": {"name": "pi__read"}}}),
        json!({"name": "mcp", "args": {"query": {"name": "pi__read"}}}),
        json!({"name": "mcp", "args": {"text": "pi__read", "names": ["pi__read"]}}),
    ] {
        assert!(!is_own(&other), "{other}");
    }
}

#[test]
fn lesson_13_a_request_id_alone_says_nothing_of_another_tool() {
    for other in
        [json!({"name": "read", "callId": "3"}), json!({"callId": "3"}), json!({"name": "docs", "id": 3})]
    {
        assert!(!is_own(&other), "{other}");
    }
}

#[test]
fn a_completion_without_a_name_belongs_to_its_start_and_one_with_another_name_does_not() {
    let mut watched = Watched::new();
    assert!(watched.is_own(&json!({"name": "mcp", "callId": "tool-7", "args": {"toolName": "pi__read"}})));
    assert!(watched.is_own(&json!({"callId": "tool-7", "result": "text"})));
    assert!(watched.is_own(&json!({"name": "mcp", "callId": "tool-7", "result": "text"})));
    assert!(watched.is_own(&json!({"type": "", "callId": "tool-7", "args": {}})));
    for other in [json!({"name": "grep", "callId": "tool-7"}), json!({"type": "grep", "callId": "tool-7"})] {
        assert!(!watched.is_own(&other), "{other}");
    }
    assert!(!watched.is_own(&json!({"callId": "tool-8"})));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut watched = Watched::new();
    for n in 0..REMEMBERED + 10 {
        assert!(watched.is_own(&json!({"name": "pi__read", "callId": format!("c{n}")})));
    }
    assert_eq!((watched.0.started.len(), watched.0.order.len()), (REMEMBERED, REMEMBERED));
    assert!(!watched.is_own(&json!({"callId": "c0"})));
    assert!(watched.is_own(&json!({"callId": "c100"})));
}

#[test]
fn inherited_looking_names_and_deep_reports_are_harmless() {
    assert!(!is_own(&json!({"name": "constructor", "args": {"name": "__proto__"}})));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let report = RawJson::new(format!("{{\"name\":\"x\",\"args\":{deep}}}")).unwrap();
    assert!(!OwnActivity::default().recognise(&report, "pi_tools", &|_| true, &|_| true));
}
