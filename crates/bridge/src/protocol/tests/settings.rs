//! Settings as a host reads and writes them.

use std::fs;

use super::*;

/// Every number of a value.
fn numbers(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Number(number) => into.push(number.to_string()),
        Value::Array(list) => list.iter().for_each(|inner| numbers(inner, into)),
        Value::Object(map) => map.values().for_each(|inner| numbers(inner, into)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn times_are_whole_milliseconds_as_they_count_whatever_the_file_says() {
    let mut desk = Desk::new(&["a"]).await;
    for (tool, bridge, connect, ttl, expected) in [
        ("1500000.9", "1500", "1500.5", "0.5", [1_500_000_u64, 1500, 1500, 0]),
        ("1e300", "1e300", "1e300", "1e300", [2_147_483_647, 2_147_483_647, 60_000, u64::MAX]),
        ("-0", "-0.0", "0", "-5", [3_600_000, 3_600_000, 10_000, 0]),
        ("1e400", "null", "true", "\"1\"", [3_600_000, 3_600_000, 10_000, 86_400_000]),
        ("60000", "120000", "1", "1e3", [60_000, 60_000, 1_000, 1_000]),
    ] {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":900,"method":"settings/declare","params":{{"settings":{{"tools":{{"mcp":{{"callTimeoutMs":{tool},
            "connectTimeoutMs":{connect}}},"bridge":{{"callTimeoutMs":{bridge}}}}},"models":{{"cache":{{"ttlMs":{ttl}}}}}}}}}}}"#
        );
        desk.connection.on_line(HostLine::Whole(line.replace('\n', " ").into()), Instant::now());
        let shown = desk.lines().remove(0)["result"].take();
        let settings = &shown["settings"];
        let seen = [
            &settings["tools"]["mcp"]["callTimeoutMs"],
            &settings["tools"]["bridge"]["callTimeoutMs"],
            &settings["tools"]["mcp"]["connectTimeoutMs"],
            &settings["models"]["cache"]["ttlMs"],
        ];
        assert_eq!(seen, expected.map(Value::from).each_ref(), "{tool} {bridge}: {shown}");
        let mut all = Vec::new();
        numbers(&shown, &mut all);
        assert!(all.iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit())), "{all:?}");
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_told_as_that_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bridge.json");
    let mut desk = Desk::new(&["a"]).await;
    desk.connection.spoken.as_mut().unwrap().settings_file = Some(file.clone());
    for (key, value, why) in [
        ("tools.bridge.enabled", json!("yes"), "is neither true nor false"),
        ("tools.display.native", json!("always"), "is none of auto, on, off"),
        ("local.settingSources", json!("all"), "is no list of texts"),
        ("tools.bridge.enabld", json!(true), "is unknown; did you mean tools.bridge.enabled"),
    ] {
        let changes = json!({ key: value, "tools.manifest": false });
        let error = desk.ask("settings/write", json!({ "changes": changes })).await;
        let text = error["message"].as_str().unwrap();
        assert_eq!(
            (&error["code"], error["data"]["field"].as_str()),
            (&json!(-32602), Some(&*format!("changes.{key}")))
        );
        assert!(text.contains(why) && !text.contains("no such setting"), "{text}");
        assert!(!file.exists());
    }
    let line = r#"{"jsonrpc":"2.0","id":901,"method":"settings/write","params":{"changes":{"tools.bridge.callTimeoutMs":1e400}}}"#;
    desk.connection.on_line(HostLine::Whole(Bytes::from_static(line.as_bytes())), Instant::now());
    let error = desk.lines().remove(0)["error"].take();
    assert!(error["message"].as_str().unwrap().contains("is no finite number"), "{error}");
    let written = desk.ask("settings/write", json!({"changes": {"tools.bridge.callTimeoutMs": 1500}})).await;
    assert_eq!(written["settings"]["tools"]["bridge"]["callTimeoutMs"], 1500, "{written}");
    assert!(fs::read_to_string(&file).unwrap().contains("\"callTimeoutMs\": 1500"));
}
