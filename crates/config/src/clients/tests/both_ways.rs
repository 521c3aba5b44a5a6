//! What comes over whole and goes back whole, by kinds.

use super::*;

#[test]
fn every_name_becomes_one_that_own_files_can_have() {
    let long = "x".repeat(80);
    for name in ["cursor-cloud", "Custom-User-Tools", "数据库", "-", " a b ", &long, "plugin:a:b"] {
        let file = json!({"mcpServers": {name: {"command": "x"}}}).to_string();
        let (own, _) = import("{}", &[("cursor", &file)]);
        let (name, entry) = own["mcpServers"].as_object().unwrap().iter().next().unwrap();
        assert!(crate::check_own(name, entry.as_object().unwrap()).is_empty(), "{name}");
    }
}

#[test]
fn a_server_without_tools_never_gets_them_all_in_silence() {
    let own = json!({"command": "x", "args": [], "tools": {"allow": []}});
    for client in CLIENTS.iter().filter(|client| client.id != "agent-plugin") {
        let there = match client.id {
            "continue" => json!({"mcpServers": []}),
            _ => json!({}),
        };
        let (file, line) = export(client.id, &there, &own);
        if line.left_out == ["tools.allow"] {
            continue;
        }
        let back = found_in(client.id, &file.to_string());
        assert_eq!(back.found[0].own["tools"]["allow"], json!([]), "{}: {file}", client.id);
    }
}

#[test]
fn what_toolway_reads_in_a_clients_file_comes_over_and_goes_back() {
    let entry = json!({"url": "https://h.example/mcp", "tls": {"caBundle": "PEM", "strict": true},
        "startupTimeoutSec": 30, "enabledTools": ["a"], "callMaxMs": 5000, "x": 1});
    let file = json!({"mcpServers": {"s": entry}});
    let (own, _) = import("{}", &[("cursor", &file.to_string())]);
    let mut own = own["mcpServers"]["s"].as_object().unwrap().clone();
    let origin = own.shift_remove(crate::origin::ORIGIN).unwrap();
    let expected = json!({"url": "https://h.example/mcp", "tls": {"caBundle": "PEM", "strict": true},
        "startupTimeoutMs": 30000, "tools": {"allow": ["a"]}, "callMaxMs": 5000});
    assert_eq!(Json::Object(own.clone()), expected);
    own.insert(crate::origin::ORIGIN.to_owned(), origin);
    let (back, line) = export("cursor", &json!({"mcpServers": {}}), &Json::Object(own));
    assert_eq!((&back["mcpServers"]["s"], line.left_out.len()), (&entry, 0), "{line:?}");
    // What Cursor has a word for goes there from a file that never was Cursor's.
    let (new, line) = export(
        "cursor",
        &json!({"mcpServers": {}}),
        &json!({"url": "https://h.example", "tls": {"strict": true}, "tools": {"allow": ["a"]}, "lazy": true}),
    );
    let expected = json!({"url": "https://h.example", "tls": {"strict": true}, "enabledTools": ["a"]});
    assert_eq!((&new["mcpServers"]["s"], line.left_out), (&expected, vec!["lazy".to_owned()]));
}

/// The servers `s` of a client's file in Toolway's own form, what it remembers of the client included.
fn own_of(id: &str, file: &Json) -> Json {
    import("{}", &[(id, &file.to_string())]).0["mcpServers"]["s"].clone()
}

#[test]
fn a_switch_that_is_no_word_of_the_client_goes_back_alone() {
    for entry in [json!({"command": "x", "enabled": false}), json!({"command": "x", "disabled": true})] {
        let file = json!({"mcpServers": {"s": entry}});
        let own = own_of("gemini", &file);
        assert_eq!(own["enabled"], json!(false));
        let (back, line) = export("gemini", &file, &own);
        assert_eq!((back, line.outcome), (file.clone(), ExportOutcome::Same));
        // Where it is new, it is off in the client's own way, too.
        let (new, _) = export("gemini", &json!({}), &own);
        assert_eq!(new["mcp"], json!({"excluded": ["s"]}));
    }
    // Gemini hears its lists alone.
    let file = json!({"mcp": {"excluded": ["s"]}, "mcpServers": {"s": {"command": "x", "enabled": true}}});
    let own = own_of("gemini", &file);
    assert_eq!(own["enabled"], json!(false));
    assert_eq!(export("gemini", &file, &own).0, file);
}

#[test]
fn what_is_remembered_of_a_switch_never_switches_off_again() {
    for (id, root, word, off) in [
        ("gemini", "mcpServers", "disabled", true),
        ("cursor", "mcpServers", "disabled", true),
        ("zed", "context_servers", "disabled", true),
        ("cline", "mcpServers", "enabled", false),
    ] {
        let file = json!({root: {"s": {"command": "x", "args": [], word: off}}});
        let mut own = own_of(id, &file);
        assert_eq!(export(id, &file, &own).0, file, "{id}");
        for enabled in [Some(true), None] {
            match enabled {
                Some(enabled) => own["enabled"] = enabled.into(),
                None => drop(own.as_object_mut().unwrap().shift_remove("enabled")),
            }
            let (back, line) = export(id, &file, &own);
            assert_eq!(line.outcome, ExportOutcome::Changed, "{id}");
            assert_ne!(
                found_in(id, &back.to_string()).found[0].own.get("enabled"),
                Some(&json!(false)),
                "{id}"
            );
        }
    }
}

#[test]
fn a_name_beside_the_key_goes_back() {
    for (id, root) in [("cursor", "mcpServers"), ("goose", "extensions"), ("continue", "mcpServers")] {
        let file = json!({root: {"s": {"name": "s", "command": "x", "args": []}}});
        let (back, line) = export(id, &file, &own_of(id, &file));
        assert_eq!((back, line.outcome), (file, ExportOutcome::Same), "{id}");
    }
    assert!(
        found_in("cursor", r#"{"mcpServers": {"s": {"name": "s", "command": "x"}}}"#).found[0]
            .unknown
            .is_empty()
    );
}

#[test]
fn words_of_a_command_that_are_no_texts_go_back() {
    let file = json!({"mcp": {"s": {"type": "local", "command": ["x", 1, true]}}});
    let own = own_of("opencode", &file);
    assert_eq!(own["args"], json!(["1", "true"]));
    assert_eq!(export("opencode", &file, &own).0, file);
}

#[test]
fn switching_on_in_gemini_leaves_no_switch_that_says_off() {
    let text = r#"{"mcpServers": {"s": {"command": "x", "disabled": true, "enabled": false}}}"#;
    let root = read(text.as_bytes(), Format::Jsonc).unwrap();
    let changes = plan_switch(client("gemini"), &root, "s", true).unwrap();
    let on = edit(text.as_bytes(), Format::Jsonc, &changes).unwrap().bytes;
    let on = read(&on, Format::Jsonc).unwrap().to_json();
    assert_eq!(on, json!({"mcpServers": {"s": {"command": "x"}}}));
}
