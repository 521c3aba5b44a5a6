use std::path::Path;

use base64::Engine;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolway_wire::{Scanner, Verdict};

use super::*;
use crate::{OutputSchema, PathMap};

fn config(root: &Path) -> GuardConfig {
    GuardConfig::new(root.join("spill"))
}

fn call(method: &str) -> CallInfo {
    let tool = (method == "tools/call").then(|| "build".to_owned());
    CallInfo { method: method.into(), tool, uri: None, server: "srv".into(), session: "s1".into() }
}

/// What the client gets for a message.
fn through(guard: &Guard, message: &str, call: Option<&CallInfo>) -> Vec<u8> {
    let mut intake = guard.intake();
    for piece in message.as_bytes().chunks(10_000) {
        intake.feed(piece);
    }
    let mut taken = intake.finish();
    let Verdict::Message(envelope) = taken.verdict else { panic!("no message: {:?}", taken.verdict) };
    match guard.action(envelope, call) {
        Action::Pass => message.as_bytes().to_vec(),
        Action::Replace { shape, limit } => guard
            .replace(envelope, call, shape, limit, &mut taken.body)
            .unwrap_or_else(|| message.as_bytes().to_vec()),
    }
}

fn replaced(guard: &Guard, message: &str, method: &str) -> Value {
    let out = through(guard, message, Some(&call(method)));
    assert_ne!(out, message.as_bytes());
    let mut scanner = Scanner::new();
    scanner.feed(&out);
    let Verdict::Message(envelope) = scanner.finish() else { panic!("not a message") };
    let size = envelope.size().counted(guard.config().media_limit);
    assert!(size <= guard.config().max_response_chars, "{size} characters");
    serde_json::from_slice(&out).unwrap()
}

fn tool_text(text: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": text}]}}).to_string()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |out, byte| format!("{out}{byte:02x}"))
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[cfg(unix)]
#[test]
fn an_oversized_error_stays_an_error_saved_whole_and_private() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(config(root.path()));
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":"e-1","result":{{"content":[{{"type":"text","text":"HEAD-MARK {} TAIL-MARK exit code 2"}}],"isError":true,"_meta":{{"vendor/k":1}}}}}}"#,
        "x".repeat(30_000)
    );
    let out = through(&guard, &message, Some(&call("tools/call")));
    assert!(out.len() <= 10_000 && !out.contains(&b'\n'));
    let value: Value = serde_json::from_slice(&out).unwrap();
    let result = &value["result"];
    assert_eq!((&value["id"], &result["isError"]), (&json!("e-1"), &json!(true)));
    assert_eq!(result["_meta"]["vendor/k"], 1);
    let text = result["content"][0]["text"].as_str().unwrap();
    for part in ["HEAD-MARK", "TAIL-MARK exit code 2", "30,1", "the limit is 10,000"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let marker = &result["_meta"]["_cursor_mcp_response_proxy"];
    assert_eq!((&marker["truncated"], &marker["original_chars"]), (&json!(true), &json!(message.len())));
    let saved = &result["_meta"]["toolway/saved"];
    let path = marker["saved_path"].as_str().unwrap();
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes, message.as_bytes());
    let sha = sha256(&bytes);
    assert_eq!((&saved["sha256"], &saved["saved"], &saved["lines"]), (&json!(sha), &json!(true), &json!(1)));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&root.path().join("spill")), 0o700);
    for name in names(&root.path().join("spill")) {
        assert_eq!(mode(&root.path().join("spill").join(&name)), 0o600, "{name}");
    }
    let txt = std::fs::read_to_string(saved["text_path"].as_str().unwrap()).unwrap();
    assert!(txt.starts_with("HEAD-MARK x") && txt.ends_with("exit code 2"));
    let entry = guard.store().find(saved["id"].as_str().unwrap(), Some("s1")).unwrap();
    assert_eq!((entry.tool.as_deref(), entry.is_error, entry.lines), (Some("build"), Some(true), 1));
}

#[test]
fn small_media_and_links_stay_as_they_are_beside_big_text() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(config(root.path()));
    let png: Vec<u8> =
        b"\x89PNG\r\n\x1a\n".iter().copied().chain((0..60_000u32).map(|n| (n * n % 251) as u8)).collect();
    let png = base64::engine::general_purpose::STANDARD.encode(png);
    let image = format!(r#"{{"type":"image", "data":"{png}","mimeType":"image\/png"}}"#);
    let link = r#"{"type":"resource_link","uri":"file:///x","name":"x"}"#;
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"text","text":"{}"}},{image},{link}]}}}}"#,
        "l".repeat(40_000)
    );
    let out = String::from_utf8(through(&guard, &message, Some(&call("tools/call")))).unwrap();
    assert!(out.contains(&format!(",{image},{link}]")));
    let value: Value = serde_json::from_str(&out).unwrap();
    let text = value["result"]["content"][0]["text"].as_str().unwrap();
    let run = text
        .split(|ch: char| !(ch.is_ascii_alphanumeric() || "+/=".contains(ch)))
        .map(str::len)
        .max()
        .unwrap();
    assert!(run <= 64, "{text}");
    assert!(names(&root.path().join("spill")).iter().any(|name| name.contains(".2.png")));
}

#[test]
fn media_over_the_limit_becomes_a_link_to_a_real_file() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(GuardConfig { media_limit: 50_000, ..config(root.path()) });
    let jpeg = [b"\xFF\xD8\xFF\xE0".as_slice(), &b"\x07".repeat(40_000)].concat();
    let data = base64::engine::general_purpose::STANDARD.encode(&jpeg);
    let block = format!(r#"{{"type":"image","mimeType":"image/png","data":"{data}"}}"#);
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":[{block},{{"type":"text","text":"two pictures"}},{block}],"resultType":"complete"}}}}"#
    );
    let value = replaced(&guard, &message, "tools/call");
    let content = value["result"]["content"].as_array().unwrap();
    assert_eq!(content.len(), 3);
    assert!(content[0]["text"].as_str().unwrap().contains("two pictures"));
    assert_eq!((&content[1]["type"], &content[1]["data"]), (&json!("image"), &json!(data)));
    assert_eq!((&content[2]["type"], &content[2]["size"]), (&json!("resource_link"), &json!(40_004)));
    assert_eq!(value["result"]["resultType"], "complete");
    let path = content[2]["uri"].as_str().unwrap().strip_prefix("file://").unwrap();
    assert!(path.ends_with(".3.jpg"));
    assert_eq!(std::fs::read(path).unwrap(), jpeg);
}

#[test]
fn without_a_directory_the_answer_says_not_saved_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("spill"), "in the way").unwrap();
    let guard = Guard::new(config(root.path()));
    let text = format!("BEGIN {} END", "words and ".repeat(3000));
    for memory in [4 << 20, 1000] {
        let guard = Guard::new(GuardConfig { memory, ..guard.config().clone() });
        let value = replaced(&guard, &tool_text(&text), "tools/call");
        let shown = value["result"]["content"][0]["text"].as_str().unwrap();
        for part in ["not saved: ", "is not a directory", "BEGIN ", " END"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let meta = &value["result"]["_meta"];
        assert_eq!(meta["toolway/saved"]["saved"], json!(false));
        assert_eq!(meta["_cursor_mcp_response_proxy"]["saved_path"], Value::Null);
        assert!(meta["toolway/saved"]["reason"].as_str().unwrap().contains("not a directory"));
    }
    assert_eq!(names(root.path()), ["spill"]);
}

#[test]
fn unknown_results_and_errors_and_log_messages_name_the_file() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(config(root.path()));
    let big = "s".repeat(12_000);
    let unknown = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"n":9007199254740993,"e":1e2,"requestState":"{big}"}}}}"#
    );
    let value = replaced(&guard, &unknown, "x-vendor/thing");
    assert_eq!(value["error"]["code"], -32000);
    let data = value["error"]["data"].as_object().unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["saved_path", "original_chars"]);
    let path = data["saved_path"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), unknown);
    assert!(value["error"]["message"].as_str().unwrap().contains(path));

    let error = format!(
        r#"{{"jsonrpc":"2.0","id":2,"error":{{"code":-32042,"message":"first {big} last","data":{{"k":[1.0],"saved_path":"x"}}}}}}"#
    );
    let out = String::from_utf8(through(&guard, &error, Some(&call("tools/list")))).unwrap();
    assert!(out.contains(r#""k":[1.0],"#) && !out.contains(r#""saved_path":"x""#));
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["error"]["code"], -32042);
    assert!(value["error"]["message"].as_str().unwrap().contains("first ["));
    assert_eq!(
        std::fs::read_to_string(value["error"]["data"]["saved_path"].as_str().unwrap()).unwrap(),
        error
    );

    let log = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","logger":"l","data":{{"rows":["{big}"]}}}}}}"#
    );
    let value: Value = serde_json::from_slice(&through(&guard, &log, None)).unwrap();
    assert_eq!((&value["params"]["level"], &value["params"]["logger"]), (&json!("info"), &json!("l")));
    assert!(value["params"]["data"].as_str().unwrap().contains("a run of 12,000 characters"), "{value}");
    assert!(value.get("id").is_none());
}

#[test]
fn resources_and_prompts_keep_their_shape() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(config(root.path()));
    let big = "some words ".repeat(2000);
    let message = json!({"jsonrpc":"2.0","id":1,"result":{"contents":[
        {"uri":"app://a b","mimeType":"text/html","text":big},
        {"uri":"app://2","text":"small"},
        {"uri":"app://3","blob":"QUJD".repeat(10_000),"mimeType":"application/pdf"}]}})
    .to_string();
    let value = replaced(&guard, &message, "resources/read");
    let contents = value["result"]["contents"].as_array().unwrap();
    let uris: Vec<&str> = contents.iter().map(|content| content["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["app://a b", "app://2", "app://3"]);
    assert_eq!((&contents[0]["mimeType"], &contents[1]["text"]), (&json!("text/plain"), &json!("small")));
    assert!(contents[0]["text"].as_str().unwrap().contains("some words"));
    let uri = contents[0]["_meta"]["toolway/file"].as_str().unwrap();
    assert!(uri.starts_with("file:///") && uri.contains(".json"));
    assert!(contents[2].get("blob").is_none());

    let message = json!({"jsonrpc":"2.0","id":1,"result":{"description":"d","messages":[
        {"role":"assistant","content":{"type":"text","text":big}}]}})
    .to_string();
    let value = replaced(&guard, &message, "prompts/get");
    let messages = value["result"]["messages"].as_array().unwrap();
    assert_eq!(
        (messages.len(), &messages[0]["role"], &value["result"]["description"]),
        (1, &json!("user"), &json!("d"))
    );
}

#[test]
fn tasks_pass_unless_they_carry_a_tool_result() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(config(root.path()));
    let task = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"task":"{}"}}}}"#, "x".repeat(20_000));
    assert_eq!(through(&guard, &task, Some(&call("tasks/result"))), task.as_bytes());
    assert!(names(&root.path().join("spill")).is_empty());
    let value = replaced(&guard, &tool_text(&"y ".repeat(20_000)), "tasks/result");
    assert_eq!(value["result"]["_meta"]["toolway/saved"]["saved"], json!(true));
}

#[test]
fn json_is_shown_by_its_structure_and_gets_a_readable_view() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(GuardConfig { output_schema: OutputSchema::Relax, ..config(root.path()) });
    let rows: Vec<Value> = (0..2000).map(|id| json!({"id": id, "name": format!("row {id}")})).collect();
    let rows = json!({"rows": rows, "next": null});
    let message = json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":rows.to_string()}],"structuredContent":rows}}).to_string();
    let value = replaced(&guard, &message, "tools/call");
    let text = value["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("2,000 elements in all") && text.contains("\"next\": null"), "{text}");
    assert!(value["result"].get("structuredContent").is_none());
    let saved = &value["result"]["_meta"]["toolway/saved"];
    assert_eq!(saved["had_structured_content"], json!(true));
    let pretty = saved["files"].as_array().unwrap().iter().find(|file| file["kind"] == "pretty").unwrap();
    let pretty = std::fs::read_to_string(pretty["path"].as_str().unwrap()).unwrap();
    assert!(pretty.lines().count() > 8000 && pretty.lines().all(|line| line.len() < 100));
    assert_eq!(serde_json::from_str::<Value>(&pretty).unwrap(), rows);
    assert_eq!(std::fs::read_to_string(saved["text_path"].as_str().unwrap()).unwrap(), rows.to_string());

    let only = json!({"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":rows}}).to_string();
    let text = replaced(&guard, &only, "tools/call")["result"]["content"][0]["text"].to_string();
    assert!(text.contains("2,000 elements in all"));
    let beside = json!({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2000 rows found"}],"structuredContent":rows}}).to_string();
    let text = replaced(&guard, &beside, "tools/call")["result"]["content"][0]["text"].to_string();
    assert!(text.contains("2000 rows found") && text.contains("2,000 elements in all"));
}

#[test]
fn a_batch_is_cut_member_by_member() {
    let root = tempfile::tempdir().unwrap();
    for memory in [4 << 20, 5000] {
        let guard = Guard::new(GuardConfig { memory, ..config(root.path()) });
        let big = tool_text(&"z y ".repeat(10_000));
        let batch = format!("[{}, {big} ]", tool_text("small"));
        let mut intake = guard.intake();
        intake.feed(batch.as_bytes());
        let taken = intake.finish();
        let Verdict::Batch { members, .. } = taken.verdict else { panic!("no batch") };
        let call = call("tools/call");
        assert_eq!(guard.action(&members[0], Some(&call)), Action::Pass);
        let Action::Replace { shape, limit } = guard.action(&members[1], Some(&call)) else {
            panic!("passes")
        };
        let out = guard.replace_member(&members[1], Some(&call), shape, limit, &taken.body).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();
        let path = value["result"]["_meta"]["_cursor_mcp_response_proxy"]["saved_path"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), big);
    }
}

#[test]
fn redaction_reaches_file_views_and_preview_and_the_hash_fits() {
    let root = tempfile::tempdir().unwrap();
    let redaction = Some(Arc::new(toolway_secret::Redactor::with_patterns("hush-\\d+").unwrap()));
    for memory in [4 << 20, 1000] {
        let guard = Guard::new(GuardConfig { redaction: redaction.clone(), memory, ..config(root.path()) });
        let text = format!("hush-1 {} \"quoted\" hush-22", "plain words ".repeat(3000));
        let value = replaced(&guard, &tool_text(&text), "tools/call");
        let saved = &value["result"]["_meta"]["toolway/saved"];
        assert_eq!(saved["redacted"], json!(true));
        let bytes = std::fs::read(saved["path"].as_str().unwrap()).unwrap();
        let sha = sha256(&bytes);
        assert_eq!((&saved["sha256"], &saved["bytes"]), (&json!(sha), &json!(bytes.len())));
        let stored: Value = serde_json::from_slice(&bytes).unwrap();
        let expected = text.replace("hush-1", "[redacted]").replace("hush-22", "[redacted]");
        assert_eq!(stored["result"]["content"][0]["text"], expected);
        assert_eq!(std::fs::read_to_string(saved["text_path"].as_str().unwrap()).unwrap(), expected);
        assert!(!value.to_string().contains("hush-"));
    }
}

#[test]
fn paths_are_shown_as_the_client_sees_them() {
    let root = tempfile::tempdir().unwrap();
    let from = root.path().display().to_string();
    let map = PathMap { from: from.clone(), to: "C:\\share".into() };
    let guard = Guard::new(GuardConfig { path_map: vec![map], ..config(root.path()) });
    let value = replaced(&guard, &tool_text(&"word ".repeat(5000)), "tools/call");
    assert!(!value.to_string().contains(&from));
    let saved = &value["result"]["_meta"]["toolway/saved"];
    assert!(saved["path"].as_str().unwrap().starts_with("C:\\share/spill/"));
    assert!(saved["uri"].as_str().unwrap().starts_with("file:///C:/share/spill/"));
}

#[test]
fn what_is_no_message_and_what_passes_leaves_no_file() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(GuardConfig { memory: 1000, ..config(root.path()) });
    let mut intake = guard.intake();
    intake.feed(b"Server listening on stdio");
    intake.feed(&b"x".repeat(100_000));
    assert!(matches!(intake.finish().verdict, Verdict::NotJson(_)));
    intake.feed(format!("[[{}", "1,".repeat(100_000)).as_bytes());
    assert!(!matches!(intake.finish().verdict, Verdict::Message(_)));
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":["{}"]}}}}"#, "t".repeat(50_000));
    intake.feed(list.as_bytes());
    {
        let taken = intake.finish();
        assert!(matches!(taken.verdict, Verdict::Message(_)));
        let Body::File(file) = &taken.body else { panic!("in memory") };
        let mut bytes = vec![0; list.len() + 1];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), list.len());
    }
    let torn = br#"{"jsonrpc":"2.0","id":1,"result":{"#;
    intake.feed(torn);
    intake.feed(&[b' '; 10_000]);
    drop(intake);
    assert!(names(&root.path().join("spill")).is_empty());
}

#[test]
fn a_message_over_the_most_is_discarded_and_its_id_still_known() {
    let root = tempfile::tempdir().unwrap();
    let guard = Guard::new(GuardConfig { memory: 1000, max_message_bytes: 50_000, ..config(root.path()) });
    let message = tool_text(&"word ".repeat(20_000));
    let mut intake = guard.intake();
    for piece in message.as_bytes().chunks(4096) {
        intake.feed(piece);
    }
    let taken = intake.finish();
    let Verdict::Message(envelope) = taken.verdict else { panic!("no message") };
    assert_eq!(envelope.id().unwrap().raw(), b"7");
    assert!(matches!(taken.body, Body::TooLarge { len } if len == message.len() as u64));
    assert!(names(&root.path().join("spill")).is_empty());
}
