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
