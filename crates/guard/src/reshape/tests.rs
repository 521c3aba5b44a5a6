use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{Action, CallInfo, Guard, GuardConfig, PathMap, ToolRule};
use toolway_wire::{Scanner, Verdict};

/// The rewritten message and its size, for a message that is too large.
fn rewritten(config: GuardConfig, message: &[u8], method: &str) -> (Vec<u8>, u64) {
    let guard = Guard::new(config);
    let call = CallInfo { method: method.into(), tool: Some("t".into()), ..CallInfo::default() };
    let mut intake = guard.intake();
    intake.feed(message);
    let mut taken = intake.finish();
    let Verdict::Message(envelope) = taken.verdict else { panic!("no message: {:?}", taken.verdict) };
    let Action::Replace { shape, limit } = guard.action(envelope, Some(&call)) else {
        return (message.to_vec(), envelope.size().counted(guard.config().media_limit));
    };
    let out = guard.replace(envelope, Some(&call), shape, limit, &mut taken.body).unwrap();
    let mut scanner = Scanner::new();
    scanner.feed(&out);
    let Verdict::Message(envelope) = scanner.finish() else { panic!("no message made") };
    let size = envelope.size().counted(guard.config().media_limit);
    (out, size)
}

fn id() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(|id| json!(id)),
        "[a-zé\"\\\\]{0,240}".prop_map(|id| json!(id)),
        "[a-z]{498}".prop_map(|id| json!(id))
    ]
}

fn text() -> impl Strategy<Value = String> {
    let unit = prop_oneof![
        "\\PC{1,8}",
        "[\u{0}-\u{1f}]{1,5}",
        "[a-z \n]{1,30}",
        "[\"\\\\]{1,9}",
        "[漢字]{1,5}",
        Just("👨‍👩‍👧‍👦".to_owned()),
        "[A-Za-z0-9+/]{60,90}"
    ];
    (proptest::collection::vec(unit, 1..6), 1usize..3000)
        .prop_map(|(units, times)| units.concat().repeat(times))
}

fn message(method: &str, id: &Value, text: &str, extra: usize) -> Value {
    let link = |n: usize| json!({"type":"resource_link","uri":format!("x://{n}"),"name":text.chars().take(60).collect::<String>()});
    let meta =
        json!({"k": text.chars().take(extra * 40).collect::<String>(), "_cursor_mcp_response_proxy": 1});
    match method {
        "resources/read" => {
            json!({"jsonrpc":"2.0","id":id,"result":{"_meta":meta,"contents":[{"uri":text,"text":text},{"uri":"b:","text":text}]}})
        }
        "prompts/get" => {
            json!({"jsonrpc":"2.0","id":id,"result":{"description":text,"messages":[{"role":"user","content":{"type":"text","text":text}}]}})
        }
        "x/y" => json!({"jsonrpc":"2.0","id":id,"result":{"x":text}}),
        "error" => json!({"jsonrpc":"2.0","id":id,"error":{"code":-1,"message":text,"data":{"d":text}}}),
        _ => {
            let mut content = vec![json!({"type":"text","text":text})];
            content.extend((0..extra).map(link));
            json!({"jsonrpc":"2.0","id":id,"result":{"content":content,"isError":true,"_meta":meta,"odd":text}})
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]
    #[test]
    fn the_rewritten_message_is_never_over_the_limit(
        id in id(),
        text in text(),
        limit in prop_oneof![1000u64..1200, 1000u64..30_000],
        preview in 0usize..20_000,
        long in prop_oneof![Just(0usize), 0usize..3000],
        method in prop_oneof![Just("tools/call"), Just("resources/read"), Just("prompts/get"), Just("x/y"), Just("error")],
        extra in 0usize..40,
        writable: bool,
    ) {
        let root = tempfile::tempdir().unwrap();
        let dir = if writable { root.path().join("s") } else { let file = root.path().join("f"); std::fs::write(&file, "").unwrap(); file };
        let to = format!("/{}", "deep\u{1}/".repeat(long / 5));
        let map = PathMap { from: root.path().display().to_string(), to };
        let config = GuardConfig {
            max_response_chars: limit,
            preview_chars: preview,
            path_map: vec![map],
            tool_rules: vec![(crate::Glob::new("*").unwrap(), ToolRule::Limit(limit))],
            ..GuardConfig::new(dir)
        };
        let message = message(method, &id, &text, extra);
        let (out, size) = rewritten(config, message.to_string().as_bytes(), method);
        prop_assert!(size <= limit, "{} > {}: {}", size, limit, String::from_utf8_lossy(&out));
        let value: Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(&value["id"], &id);
        if method == "tools/call" {
            prop_assert_eq!(&value["result"]["isError"], &json!(true));
        }
    }
}

#[test]
fn things_give_way_in_order() {
    let root = tempfile::tempdir().unwrap();
    let config = || GuardConfig {
        max_response_chars: 4000,
        preview_chars: 2000,
        ..GuardConfig::new(root.path().join("s"))
    };
    let with = |links: usize, meta: usize| {
        let link = |n: usize| json!({"type":"resource_link","uri":format!("x://{n}"),"name":"a link of some length"});
        let mut content = vec![json!({"type":"text","text":"words and words ".repeat(1000)})];
        content.extend((0..links).map(link));
        let message =
            json!({"jsonrpc":"2.0","id":1,"result":{"content":content,"_meta":{"up":"m".repeat(meta)}}});
        let (out, size) = rewritten(config(), message.to_string().as_bytes(), "tools/call");
        assert!(size <= 4000);
        let value: Value = serde_json::from_slice(&out).unwrap();
        let result = &value["result"];
        let preview = result["_meta"]["_cursor_mcp_response_proxy"]["preview_chars"].as_u64().unwrap();
        let links = result["content"].as_array().unwrap().len() - 1;
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (preview, links, result["_meta"].get("up").is_some(), text)
    };
    let (preview, links, meta, _) = with(2, 10);
    assert!(preview > 1000 && links == 2 && meta);
    let (preview, links, meta, _) = with(24, 10);
    assert!((200..1200).contains(&preview) && links == 24 && meta, "{preview} {links}");
    let (preview, links, meta, text) = with(60, 10);
    assert!(preview >= 190 && (5..60).contains(&links) && meta, "{preview} {links}");
    assert!(text.contains(&format!("Only in the file: {} resource links.", 60 - links)), "{text}");
    let (preview, links, meta, _) = with(3, 3500);
    assert!(preview > 500 && links == 3 && !meta, "{preview} {links}");
}

#[test]
fn upstream_meta_goes_on_byte_for_byte() {
    let root = tempfile::tempdir().unwrap();
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{}"}}],"_meta":{{"a" : 1.0, "toolway/saved":{{}} , "b":[ 1e2 ]}}}}}}"#,
        "word ".repeat(4000)
    );
    let (out, _) = rewritten(GuardConfig::new(root.path().join("s")), message.as_bytes(), "tools/call");
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains(r#""_meta":{"a" : 1.0,"b":[ 1e2 ],"_cursor_mcp_response_proxy":{"#), "{out}");
    assert_eq!(out.matches("\"toolway/saved\"").count(), 1);
}
