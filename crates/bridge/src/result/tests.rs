//! Host content becomes MCP content, bytes and all.

use serde_json::{Value, json};

use super::*;

fn of(content: &str) -> String {
    let content = RawJson::new(content.as_bytes().to_vec()).unwrap();
    String::from_utf8(tool_result(&HostResult { content, is_error: false }).to_vec()).unwrap()
}

fn content(host: &str) -> Value {
    let result: Value = serde_json::from_str(&of(host)).unwrap();
    assert_eq!(result.as_object().unwrap().len(), 1, "content alone: {result}");
    result["content"].clone()
}

#[test]
fn statement_21_image_json_string_and_empty_results_map_and_details_are_absent() {
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let json_block = json!({"type": "table", "rows": [1, 2], "details": {"k": "v"}});
    assert_eq!(content(&json!([image]).to_string()), json!([image]));
    let mapped = content(&json!([json_block]).to_string());
    assert_eq!(mapped[0]["type"], "text");
    assert_eq!(serde_json::from_str::<Value>(mapped[0]["text"].as_str().unwrap()).unwrap(), json_block);
    assert_eq!(content("\"just text\""), json!([{"type": "text", "text": "just text"}]));
    assert_eq!(content("[]"), json!([{"type": "text", "text": ""}]));
    assert_eq!(content(" [ ] "), json!([{"type": "text", "text": ""}]));
    // What a host keeps beside text and data of a block is its own.
    let detailed = json!([
        {"type": "text", "text": "t", "details": {"secret": 1}, "textSignature": "s"},
        {"mimeType": "image/png", "details": 1, "data": "aGk=", "type": "image"},
    ]);
    assert_eq!(content(&detailed.to_string()), json!([{"type": "text", "text": "t"}, image]));
}

#[test]
fn what_is_no_list_becomes_one_text_with_its_json() {
    for (host, text) in [
        (r#"{"a":1, "b":[9007199254740993]}"#, r#"{"a":1, "b":[9007199254740993]}"#),
        ("9007199254740993", "9007199254740993"),
        ("null", "null"),
        ("true", "true"),
        (r#""\u00e9\n""#, "é\n"),
    ] {
        assert_eq!(content(host), json!([{"type": "text", "text": text}]), "{host}");
    }
}

#[test]
fn numbers_and_spelling_pass_through_unread() {
    let block = r#"{ "text":"\u00e9 9007199254740993 \/" , "type":"text"}"#;
    assert_eq!(of(&format!("[{block} , {block}]")), format!("{{\"content\":[{block},{block}]}}"));
    let data = r#"{"type":"data","n":9007199254740993123,"e":1e400}"#;
    let mapped = content(&format!("[{data}]"));
    assert_eq!(mapped[0]["text"], data);
}

#[test]
fn blocks_that_only_look_like_text_or_image_become_text_with_their_json() {
    for odd in [
        r#"{"type":"text"}"#,
        r#"{"type":"text","text":5}"#,
        r#"{"type":"text","text":null}"#,
        r#"{"type":"image","data":"aGk="}"#,
        r#"{"type":"image","data":{},"mimeType":"image/png"}"#,
        r#"{"type":"audio","data":"aGk=","mimeType":"audio/wav"}"#,
        r#"{"type":["text"],"text":"t"}"#,
        r#"{"text":"t"}"#,
        "{}",
        "[]",
        "null",
        "7",
        "\"t\"",
    ] {
        assert_eq!(content(&format!("[{odd}]")), json!([{"type": "text", "text": odd}]), "{odd}");
    }
}

#[test]
fn a_member_that_stands_twice_counts_by_its_last_value_as_in_javascript() {
    assert_eq!(
        of(r#"[{"type":"text","text":"a","text":"b"}]"#),
        r#"{"content":[{"type":"text","text":"b"}]}"#
    );
    let last_is_none = r#"{"type":"text","text":"a","text":1}"#;
    assert_eq!(content(&format!("[{last_is_none}]")), json!([{"type": "text", "text": last_is_none}]));
    assert_eq!(
        of(r#"[{"type":"te\u0078t","te\u0078t":"a"}]"#),
        r#"{"content":[{"type":"te\u0078t","te\u0078t":"a"}]}"#
    );
}

#[test]
fn is_error_is_there_only_when_it_is_true() {
    let result = tool_result(&HostResult::error("no"));
    assert_eq!(result, r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#);
    assert_eq!(tool_result(&HostResult::text("ok")), r#"{"content":[{"type":"text","text":"ok"}]}"#);
}

#[test]
fn names_that_an_agent_makes_up_are_repeated_in_part_and_quoted() {
    let name = format!("x\"\n{}", "y".repeat(10_000));
    let answer: Value = serde_json::from_slice(&unknown_tool(&name, None)).unwrap();
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.len() < 300 && text.contains(r#"x\"\ny"#) && text.contains("tools/list"), "{text}");
    assert_eq!(answer["isError"], true);
}

proptest::proptest! {
    #[test]
    fn any_json_becomes_a_result_that_is_json(value in any_json()) {
        let content = RawJson::of(&value);
        let result: Value = serde_json::from_slice(&tool_result(&HostResult { content, is_error: true })).unwrap();
        let blocks = result["content"].as_array().unwrap();
        let expected = value.as_array().map_or(1, |list| list.len().max(1));
        proptest::prop_assert_eq!(blocks.len(), expected);
        proptest::prop_assert!(blocks.iter().all(|block| block["type"] == "text" || block["type"] == "image"));
    }
}

fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let key = prop_oneof![Just("type"), Just("text"), Just("data"), Just("mimeType"), Just("x\"")];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![Just("text".to_owned()), Just("image".to_owned()), ".{0,8}"].prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Value>()),
        ]
    })
}
