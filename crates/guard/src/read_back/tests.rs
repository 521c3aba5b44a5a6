use std::path::Path;

use serde_json::{Value, json};
use toolway_wire::Verdict;

use super::*;
use crate::{Action, CallInfo, Glob, GuardConfig};

fn save(guard: &Guard, message: &Value, session: &str) -> String {
    let call = CallInfo {
        method: "tools/call".into(),
        tool: Some("t".into()),
        session: session.into(),
        ..CallInfo::default()
    };
    let mut intake = guard.intake();
    intake.feed(message.to_string().as_bytes());
    let mut taken = intake.finish();
    let Verdict::Message(envelope) = taken.verdict else { panic!("no message") };
    let Action::Replace { shape, limit } = guard.action(envelope, Some(&call)) else { panic!("passes") };
    let out = guard.replace(envelope, Some(&call), shape, limit, &mut taken.body).unwrap();
    let out: Value = serde_json::from_slice(&out).unwrap();
    out["result"]["_meta"]["toolway/saved"]["id"].as_str().unwrap().to_owned()
}

fn guard(root: &Path, read_back: ReadBack) -> Guard {
    Guard::new(GuardConfig {
        read_back,
        pass_saved: vec![Glob::new("up*").unwrap()],
        ..GuardConfig::new(root.join("s"))
    })
}

fn log() -> Value {
    let lines: Vec<String> =
        (1..=3000).map(|n| format!("line {n} \"quoted\"\ttext of some length")).collect();
    json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":lines.join("\n")}]}})
}

fn ask(guard: &Guard, arguments: &Value, session: &str) -> (String, bool) {
    let out = guard.call_read_back(b"\"q\"", arguments.to_string().as_bytes(), session);
    assert!(chars(&out) <= guard.config().max_response_chars);
    let out: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(out["id"], "q");
    let result = &out["result"];
    (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"].as_bool().unwrap())
}

#[test]
fn lines_from_the_middle_come_without_a_file_tool() {
    let root = tempfile::tempdir().unwrap();
    let guard = guard(root.path(), ReadBack::Session);
    let id = save(&guard, &log(), "a");
    let (text, is_error) = ask(&guard, &json!({"id": id, "lines": "900-950"}), "a");
    assert!(!is_error && text.starts_with("line 900 ") && text.trim_end().ends_with("text of some length"));
    assert_eq!(text.lines().count(), 51);
    assert_eq!(ask(&guard, &json!({"id": id, "lines": "9000-"}), "a").0, "There are only 3,000 lines.");
}

#[test]
fn pages_go_on_until_the_end() {
    let root = tempfile::tempdir().unwrap();
    let guard = guard(root.path(), ReadBack::Session);
    let id = save(&guard, &log(), "a");
    for (key, first) in [("lines", "1-"), ("bytes", "0-")] {
        let (mut range, mut all, mut pages) = (first.to_owned(), String::new(), 0);
        loop {
            let (text, is_error) = ask(&guard, &json!({"id": id, key: range}), "a");
            assert!(!is_error, "{text}");
            pages += 1;
            let Some((page, hint)) = text.rsplit_once("[page full") else {
                all.push_str(&text);
                break;
            };
            all.push_str(if key == "bytes" { page.strip_suffix('\n').unwrap() } else { page });
            let next = hint.split_once(&format!("\"{key}\":\"")).unwrap().1;
            range = next.split_once('"').unwrap().0.to_owned();
        }
        let expected = log()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert_eq!(all.trim_end(), expected, "{key}");
        assert!((10..60).contains(&pages), "{pages}");
    }
}

#[test]
fn search_and_query_answer_and_say_what_is_wrong() {
    let root = tempfile::tempdir().unwrap();
    let guard = guard(root.path(), ReadBack::Session);
    let id = save(&guard, &log(), "a");
    let (text, _) = ask(&guard, &json!({"id": id, "search": "line 29(98|99) ", "context": 1}), "a");
    assert_eq!(
        text.lines().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["2997-line", "2998:line", "2999:line", "3000-line"]
    );
    let (text, _) = ask(&guard, &json!({"id": id, "search": "line", "context": 0}), "a");
    let next: u64 = text.rsplit_once("\"from\":").unwrap().1.trim_end_matches(']').parse().unwrap();
    assert!(
        ask(&guard, &json!({"id": id, "search": "line", "context": 0, "from": next}), "a")
            .0
            .starts_with(&format!("{next}:line"))
    );
    assert_eq!(ask(&guard, &json!({"id": id, "search": "absent"}), "a").0, "Nothing found.");

    let rows: Vec<Value> = (0..2000).map(|id| json!({"id": id})).collect();
    let table = save(
        &guard,
        &json!({"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"rows":rows}}}),
        "a",
    );
    assert_eq!(ask(&guard, &json!({"id": table, "query": ".rows[1500]"}), "a").0, "{\"id\":1500}\n");
    assert!(ask(&guard, &json!({"id": table, "query": ".rows[]"}), "a").0.contains("[page full after"));
    assert!(ask(&guard, &json!({"id": table, "query": "."}), "a").0.contains("narrow the filter"));

    for (arguments, reason) in [
        (json!({"id": id}), "exactly one of"),
        (json!({"id": id, "lines": "1", "bytes": "1"}), "exactly one of"),
        (json!({"id": id, "lines": "x"}), "bad range"),
        (json!({"id": id, "search": "("}), "bad regular expression"),
        (json!({"id": id, "query": "["}), "query failed"),
        (json!({"id": "nosuchid", "lines": "1"}), "no saved result"),
        (json!({"id": id, "line": "1"}), "unknown field"),
        (json!([]), "bad arguments"),
    ] {
        let (text, is_error) = ask(&guard, &arguments, "a");
        assert!(is_error && text.contains(reason), "{arguments}: {text}");
    }
}

#[test]
fn sessions_see_their_own_and_users_see_all() {
    let root = tempfile::tempdir().unwrap();
    let (session, user) = (guard(root.path(), ReadBack::Session), guard(root.path(), ReadBack::User));
    let id = save(&session, &log(), "a");
    let arguments = json!({"id": id, "lines": "1"});
    assert!(!ask(&session, &arguments, "a").1);
    assert!(ask(&session, &arguments, "b").1);
    assert!(!ask(&user, &arguments, "b").1);
    let list = br#"{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"x:y","name":"n"}]}}"#;
    assert!(session.add_saved_resources(list, "b").is_none());
    let with: Value = serde_json::from_slice(&session.add_saved_resources(list, "a").unwrap()).unwrap();
    let uri = with["result"]["resources"][1]["uri"].as_str().unwrap().to_owned();
    assert_eq!(uri, format!("toolway://saved/{id}"));
    let read: Value = serde_json::from_slice(&session.read_saved_resource(b"5", &uri, "a").unwrap()).unwrap();
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().starts_with("line 1 "));
    let refused: Value =
        serde_json::from_slice(&session.read_saved_resource(b"5", &uri, "b").unwrap()).unwrap();
    assert_eq!(refused["error"]["code"], -32602);
    assert!(session.read_saved_resource(b"5", "file:///x", "a").is_none());
}

#[test]
fn references_are_followed_for_named_tools_only() {
    let root = tempfile::tempdir().unwrap();
    let guard = guard(root.path(), ReadBack::Session);
    let padding = "p".repeat(20_000);
    let id = save(
        &guard,
        &json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"whole \"text\""}],"structuredContent":{"a/b":[{"c":"deep\n"},2.5],"p":padding}}}),
        "a",
    );
    let request = |argument: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{{"name":"upload", "arguments":{{"x":{argument},"toolway://saved/{id}":1}}}}}}"#
        )
    };
    let follow =
        |argument: &str, tool: &str| guard.follow_references(request(argument).as_bytes(), tool, "a");
    for (argument, text) in [
        (format!("\"toolway://saved/{id}\""), r#""whole \"text\"""#),
        (format!("\"toolway:\\/\\/saved\\/{id}\""), r#""whole \"text\"""#),
        (format!("[\"toolway://saved/{id}#/a~1b/0/c\"]"), r#"["deep\n"]"#),
        (format!("\"toolway://saved/{id}#/a%7e1b/1\""), r#""2.5""#),
    ] {
        let out = follow(&argument, "upload").unwrap().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), request(text), "{argument}");
    }
    for argument in [format!("\"see toolway://saved/{id}\""), "1".into()] {
        assert!(follow(&argument, "upload").unwrap().is_none());
    }
    assert!(follow(&format!("\"toolway://saved/{id}\""), "download").unwrap().is_none());
    assert!(follow("\"toolway://saved/none\"", "upload").is_err());
    assert!(follow(&format!("\"toolway://saved/{id}#/nothing\""), "upload").is_err());
}
