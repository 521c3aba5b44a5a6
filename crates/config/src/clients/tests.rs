//! Single rules of import and export; whole files are in `tests/clients.rs`.

mod anything;
mod both_ways;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::placeholders::translate;
use super::*;
use crate::dialect::Field;
use crate::edit::edit;
use crate::environment::Platform;
use crate::tree::{Format, read};

fn client(id: &str) -> &'static Client {
    Client::by_id(id).unwrap()
}

fn given(path: &str) -> ClientFile {
    ClientFile::given(PathBuf::from(path), Scope::User)
}

fn found_in(id: &str, text: &str) -> InFile {
    find(client(id), &given("f.json"), text.as_bytes(), Path::new("/project")).unwrap()
}

fn texts(found: &InFile) -> Vec<String> {
    found.problems.iter().map(crate::problem::Problem::text).collect()
}

/// What `own` and the servers of the files become.
fn import(own: &str, files: &[(&str, &str)]) -> (Json, Vec<ImportOutcome>) {
    let found: Vec<Found> = files.iter().flat_map(|(id, text)| found_in(id, text).found).collect();
    let root = read(own.as_bytes(), Format::Jsonc).unwrap();
    let plan = plan_import(Some(&root), found, &[]);
    let edited = edit(own.as_bytes(), Format::Jsonc, &plan.changes).unwrap().bytes;
    let outcomes = plan.lines.into_iter().map(|line| line.outcome).collect();
    (read(&edited, Format::Jsonc).unwrap().to_json(), outcomes)
}

/// What is written for one entry, and what became of it.
fn export(id: &str, file: &Json, own: &Json) -> (Json, ExportLine) {
    let (text, own) = (file.to_string(), own.as_object().unwrap().clone());
    let root = read(text.as_bytes(), Format::Jsonc).unwrap();
    let plan = plan_export(client(id), Some(&root), &[("s".to_owned(), own)], &[], false);
    let edited = edit(text.as_bytes(), Format::Jsonc, &plan.changes).unwrap().bytes;
    (read(&edited, Format::Jsonc).unwrap().to_json(), plan.lines.into_iter().next().unwrap())
}

fn added(name: &str) -> ImportOutcome {
    ImportOutcome::Added { name: name.to_owned() }
}

#[test]
fn what_is_no_server_is_told_and_hides_no_other() {
    let found = found_in(
        "cursor",
        r#"{"mcpServers": {"typo": {"comand": "x"}, "both": {"command": "x", "url": "https://h.example"},
            "ws": {"type": "ws", "url": "wss://h"}, "odd": {"type": "carrier-pigeon", "command": "x"}, "text": "x",
            "wrong": {"type": "http", "command": "x"}, "twice": {"command": "a"}, "twice": {"command": "b"},
            "ok": {"command": "x"}, "off": {"disabled": true}}}"#,
    );
    assert_eq!(found.found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["ok", "off"]);
    let mut told = texts(&found);
    told.sort();
    assert_eq!(
        told,
        [
            "server \"both\": has both command and url",
            "server \"odd\": has the type \"carrier-pigeon\", which is none of stdio, http and sse",
            "server \"text\": must be an object, and is a string",
            "server \"twice\": \"twice\" stands twice: in line 3 and in line 3",
            "server \"typo\": has neither command nor url",
            "server \"wrong\": has a command, and the type of an address",
            "server \"ws\": speaks WebSocket, which is no transport of MCP",
        ]
    );
}

#[test]
fn an_entry_that_only_switches_goes_both_ways() {
    for (id, text) in [
        ("cline", r#"{"mcpServers": {"s": {"disabled": true}}}"#),
        ("cursor", r#"{"mcpServers": {"s": {"disabled": true}}}"#),
        ("zed", r#"{"context_servers": {"s": {"enabled": false}}}"#),
    ] {
        let (own, _) = import("{}", &[(id, text)]);
        let (file, line) = export(id, &json!({}), &own["mcpServers"]["s"]);
        assert_eq!(line.outcome, ExportOutcome::Added);
        assert_eq!(file, serde_json::from_str::<Json>(text).unwrap(), "{id}");
    }
}

#[test]
fn servers_under_another_clients_key_are_read_with_a_warning() {
    let found = found_in("vscode", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    assert_eq!(found.found.len(), 1);
    assert_eq!(texts(&found), ["the servers stand under \"mcpServers\", where VS Code has \"servers\""]);
    assert!(found_in("vscode", r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#).problems.is_empty());
    assert_eq!(found_in("opencode", r#"{"mcp": {"servers": {"a": {"command": ["x"]}}}}"#).found[0].name, "a");
    assert_eq!(found_in("opencode", r#"{"mcp": {"servers": {"command": ["x"]}}}"#).found[0].name, "servers");
    let strict = found_in("kiro", "{\"mcpServers\": {\"a\": {\"command\": \"x\"},}}");
    assert_eq!((strict.found.len(), strict.problems.len()), (1, 1));
    assert!(texts(&strict)[0].starts_with("Kiro reads strict JSON: a comma before a closing bracket"));
}

#[test]
fn the_same_server_is_added_once_and_goes_back_to_both_clients() {
    let cursor = r#"{"mcpServers": {"gh": {"url": "https://g.example/mcp", "headers": {"A": "${env:T}"}}}}"#;
    let cline = r#"{"mcpServers": {"gh": {"type": "streamableHttp", "url": "https://g.example/mcp",
        "headers": {"A": "b"}, "autoApprove": ["x"]}}}"#;
    let claude = r#"{"mcpServers": {"gh": {"type": "http", "url": "https://g.example/mcp", "headers": {"A": "${T}"}}}}"#;
    let (own, outcomes) = import("{}", &[("cursor", cursor), ("claude-code", claude), ("cline", cline)]);
    assert_eq!(
        outcomes,
        [
            added("gh"),
            ImportOutcome::Present { name: "gh".to_owned() },
            ImportOutcome::Conflict { name: "gh".to_owned(), with: Some("f.json:1".to_owned()) },
        ]
    );
    let own = &own["mcpServers"]["gh"];
    for (id, text) in [("cursor", cursor), ("claude-code", claude)] {
        let file: Json = serde_json::from_str(text).unwrap();
        let plan =
            plan_export(client(id), None, &[("gh".to_owned(), own.as_object().unwrap().clone())], &[], false);
        let new = edit(b"", Format::Jsonc, &plan.changes).unwrap().bytes;
        assert_eq!(read(&new, Format::Jsonc).unwrap().to_json(), file, "{id}");
    }
}

#[test]
fn what_differs_in_environment_alone_is_another_server() {
    let text =
        |value: &str| format!(r#"{{"mcpServers": {{"a": {{"command": "x", "env": {{"K": "{value}"}}}}}}}}"#);
    let (_, outcomes) = import(&text("1"), &[("cursor", &text("2")), ("cursor", &text("1"))]);
    let conflict = ImportOutcome::Conflict { name: "a".to_owned(), with: None };
    assert_eq!(outcomes, [conflict, ImportOutcome::Present { name: "a".to_owned() }]);
    // Names that differ in case only cannot both be in a file of Toolway's own.
    let (_, outcomes) = import(&text("1"), &[("cursor", r#"{"mcpServers": {"A": {"command": "y"}}}"#)]);
    assert_eq!(outcomes, [ImportOutcome::Conflict { name: "a".to_owned(), with: None }]);
}

#[test]
fn a_name_that_own_files_cannot_have_is_told_and_goes_back() {
    let file = r#"{"mcpServers": {"Mein Dienst (ä)": {"command": "x"}}}"#;
    let (own, outcomes) = import("{}", &[("claude-desktop", file)]);
    assert_eq!(outcomes, [added("Mein-Dienst")]);
    let entry = own["mcpServers"]["Mein-Dienst"].as_object().unwrap().clone();
    let plan = plan_export(client("claude-desktop"), None, &[("Mein-Dienst".to_owned(), entry)], &[], false);
    let new = edit(b"", Format::Jsonc, &plan.changes).unwrap().bytes;
    assert_eq!(read(&new, Format::Jsonc).unwrap().to_json(), serde_json::from_str::<Json>(file).unwrap());
}

#[test]
fn an_edited_entry_goes_back_without_stale_remembrances() {
    let nested =
        json!({"context_servers": {"s": {"command": {"path": "node", "args": ["a"]}, "settings": {"k": 1}}}});
    let (own, _) = import("{}", &[("zed", &nested.to_string())]);
    let mut own = own["mcpServers"]["s"].clone();
    own["args"] = json!(["b"]);
    let (file, line) = export("zed", &nested, &own);
    assert_eq!(line.outcome, ExportOutcome::Changed);
    let expected =
        json!({"context_servers": {"s": {"command": "node", "args": ["b"], "settings": {"k": 1}}}});
    assert_eq!(file, expected);

    let windsurf = json!({"mcpServers": {"s": {"url": "https://a.example", "x": 1}}});
    let (own, _) = import("{}", &[("windsurf", &windsurf.to_string())]);
    let mut own = own["mcpServers"]["s"].clone();
    own["url"] = json!("https://b.example");
    let (file, _) = export("windsurf", &windsurf, &own);
    assert_eq!(file, json!({"mcpServers": {"s": {"serverUrl": "https://b.example", "x": 1}}}));
}

#[test]
fn a_server_that_a_client_cannot_have_is_refused_by_name() {
    let refused = |id: &str, own: Json| match export(id, &json!({}), &own).1.outcome {
        ExportOutcome::Refused(reason) => reason,
        other => format!("{other:?}"),
    };
    let off = json!({"command": "x", "enabled": false});
    assert_eq!(refused("cursor", off.clone()), "it is switched off, and there is no switch for that there");
    assert_eq!(refused("cline", off), "Added");
    let variable = json!({"command": "x", "env": {"A": "${B}"}});
    assert_eq!(refused("claude-desktop", variable.clone()), "env.A: ${B} has no counterpart there");
    assert_eq!(refused("zed", json!({"command": "x", "args": ["$${B}"]})), "Added");
    assert_eq!(refused("codex", json!({"command": "x", "env": {"B": "${B}"}})), "Added");
    assert_eq!(
        refused("gemini", json!({"command": "x", "args": ["$HOME"]})),
        "args.0: a literal ${ cannot be written there"
    );
    assert_eq!(refused("codex", json!({"url": "u", "type": "sse"})), "type: cannot be said there");
    assert_eq!(
        refused("claude-code", json!({"command": "${input:k}"})),
        "command: ${input:k} has no counterpart there"
    );
    assert_eq!(refused("cursor", json!({"enabled": true})), "it only switches a server on or off");
}

#[test]
fn what_a_client_has_no_word_for_is_told() {
    let own = json!({"command": "x -y 'a b'", "envFile": ".env", "tools": {"deny": ["d"], "rename": {"a": "b"}},
        "callIdleTimeoutMs": 1500, "lazy": true, "env": {}});
    let (file, line) = export("cline", &json!({"other": 1}), &own);
    assert_eq!(line.left_out, ["envFile", "tools.deny", "tools.rename", "callIdleTimeoutMs", "lazy"]);
    let entry = json!({"command": "x", "args": ["-y", "a b"], "env": {}, "timeout": 2});
    assert_eq!(file, json!({"other": 1, "mcpServers": {"s": entry}}));
}

#[test]
fn another_server_of_that_name_stays_unless_told() {
    let file = json!({"mcpServers": {"s": {"command": "other", "env": {"K": "secret"}}}});
    let own = json!({"command": "x"});
    let (after, line) = export("cursor", &file, &own);
    assert_eq!((after, line.outcome), (file.clone(), ExportOutcome::Conflict));
    let root = read(file.to_string().as_bytes(), Format::Jsonc).unwrap();
    let entries = [("s".to_owned(), own.as_object().unwrap().clone())];
    let plan = plan_export(client("cursor"), Some(&root), &entries, &[], true);
    assert_eq!(plan.lines[0].outcome, ExportOutcome::Changed);
}

#[test]
fn gemini_switches_by_lists_at_the_top() {
    let off = json!({"command": "x", "enabled": false});
    let (file, _) = export("gemini", &json!({"mcp": {"excluded": ["a"]}}), &off);
    assert_eq!(file["mcp"], json!({"excluded": ["a", "s"]}));
    let (file, _) = export("gemini", &file, &json!({"command": "x"}));
    assert_eq!(file["mcp"], json!({"excluded": ["a"]}));
    let (file, _) = export("gemini", &json!({"mcp": {"allowed": ["a"]}}), &json!({"command": "x"}));
    assert_eq!(file["mcp"], json!({"allowed": ["a", "s"]}));
}

#[test]
fn placeholders_go_where_they_mean_the_same() {
    let (own, field) = (Dialect::Toolway, Field::Env);
    for (from, text, to, expected) in [
        (Dialect::Cursor, "Bearer ${env:T}", Dialect::ClaudeCode, "Bearer ${T}"),
        (Dialect::OpenCode, "a{env:T}b", own, "a${T}b"),
        (own, "${T}", Dialect::OpenCode, "{env:T}"),
        (own, "${T}", Dialect::VsCode, "${env:T}"),
        (own, "${T:-d}", Dialect::ClaudeCode, "${T:-d}"),
        (own, "${T}", Dialect::Continue, "${{ secrets.T }}"),
        (Dialect::Gemini, "$A/${B}", Dialect::Cursor, "${env:A}/${env:B}"),
        (Dialect::Pi, "!pass x", own, "${command:pass x}"),
        (own, "${command:pass x}", Dialect::Pi, "!pass x"),
        (own, "Bearer ${keyring:gh}", own, "Bearer ${keyring:gh}"),
        (own, "!x", Dialect::Pi, "!!x"),
        (own, "${userHome}/x", Dialect::Cursor, "${userHome}/x"),
        (Dialect::Codex, "${T}", own, "$${T}"),
        (own, "$${T}", Dialect::Codex, "${T}"),
    ] {
        let translated = translate(text, from, to, field);
        assert_eq!(translated, Ok(expected.to_owned()), "{from:?} {text} to {to:?}");
    }
    for (from, text, to) in [
        (own, "${T:-d}", Dialect::OpenCode),
        (own, "a ${command:x}", Dialect::Pi),
        (own, "${keyring:gh}", Dialect::Cursor),
        (own, "${keyring:gh}", Dialect::Pi),
        (Dialect::OpenCode, "{file:x}", own),
        (own, "${T}", Dialect::Zed),
        (own, "$T", Dialect::Gemini),
        (own, "${userHome}", Dialect::ClaudeCode),
    ] {
        assert!(translate(text, from, to, field).is_err(), "{from:?} {text} to {to:?}");
    }
}

#[test]
fn files_are_where_each_platform_has_them() {
    let paths = |id: &str, platform: Platform, vars: &[(&str, &str)]| -> Vec<String> {
        let vars: BTreeMap<String, String> =
            vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let env = Environment::new(vars, PathBuf::from("/w"), platform);
        let files = client(id).files(&env, Path::new("/p")).into_iter();
        files.map(|file| file.path.to_string_lossy().into_owned()).collect()
    };
    let linux = [("HOME", "/h")];
    assert_eq!(paths("cursor", Platform::Linux, &linux), ["/h/.cursor/mcp.json", "/p/.cursor/mcp.json"]);
    assert_eq!(paths("vscode", Platform::Linux, &linux)[0], "/h/.config/Code/User/mcp.json");
    let mac = "/h/Library/Application Support";
    assert_eq!(paths("vscode", Platform::MacOs, &linux)[0], format!("{mac}/Code/User/mcp.json"));
    assert_eq!(
        paths("zed", Platform::MacOs, &linux),
        [
            "/h/.config/zed/settings.json".to_owned(),
            format!("{mac}/Zed/settings.json"),
            "/p/.zed/settings.json".into()
        ]
    );
    let windows = [("USERPROFILE", "/u"), ("APPDATA", "/u/r"), ("LOCALAPPDATA", "/u/l")];
    assert_eq!(paths("goose", Platform::Windows, &windows), ["/u/r/Block/goose/config/config.yaml"]);
    assert_eq!(
        paths("goose", Platform::Linux, &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]),
        ["/x/goose/config.yaml"]
    );
    assert_eq!(paths("codex", Platform::Linux, &[("HOME", "/h"), ("CODEX_HOME", "/c")])[0], "/c/config.toml");
    assert!(
        paths("opencode", Platform::Windows, &windows).contains(&"/u/l/opencode/opencode.json".to_owned())
    );
    assert_eq!(paths("claude-code", Platform::Linux, &linux)[0], "/h/.claude.json");
}

#[test]
fn the_file_that_is_there_is_written() {
    let home = tempfile::tempdir().unwrap();
    let vars = BTreeMap::from([("HOME".to_owned(), home.path().to_string_lossy().into_owned())]);
    let env = Environment::new(vars, PathBuf::from("/w"), Platform::Linux);
    let written = || {
        let file = client("opencode").file_to_write(&env, Path::new("/p"), Scope::User).unwrap();
        file.path.file_name().unwrap().to_string_lossy().into_owned()
    };
    assert_eq!(written(), "opencode.json");
    let directory = home.path().join(".config/opencode");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("opencode.json"), "{}").unwrap();
    std::fs::write(directory.join("opencode.jsonc"), "{}").unwrap();
    assert_eq!(written(), "opencode.jsonc");
    assert_eq!(client("windsurf").file_to_write(&env, Path::new("/p"), Scope::Project), None);
}

#[test]
fn toolway_is_not_put_behind_itself() {
    let file = r#"{"mcpServers": {"all": {"command": "/usr/bin/toolway", "args": ["serve"]},
        "wrapped": {"command": "env A=b toolway serve"},
        "one": {"command": "toolway", "args": ["stdio", "--", "x"]},
        "two": {"command": "toolway", "args": ["stdio", "--", "x", "serve"]}}}"#;
    let (own, outcomes) = import("{}", &[("cursor", file)]);
    assert_eq!(outcomes, [ImportOutcome::Itself, ImportOutcome::Itself, added("one"), added("two")]);
    assert_eq!(own["mcpServers"].as_object().unwrap().len(), 2);
}

#[test]
fn servers_are_removed_and_switched_in_a_clients_own_way() {
    let done = |text: &str, format: Format, plan: &dyn Fn(&crate::tree::Node) -> Vec<crate::edit::Change>| {
        let root = read(text.as_bytes(), format).unwrap();
        let edited = edit(text.as_bytes(), format, &plan(&root)).unwrap();
        String::from_utf8(edited.bytes).unwrap()
    };
    let cline = "{\"mcpServers\": {\"a\": {\"command\": \"x\"} /* c */}}";
    let off = done(cline, Format::Jsonc, &|root| plan_switch(client("cline"), root, "a", false).unwrap());
    assert!(off.contains("\"disabled\": true") && off.contains("/* c */"), "{off}");
    let on = done(&off, Format::Jsonc, &|root| plan_switch(client("cline"), root, "a", true).unwrap());
    assert!(on.contains("\"disabled\": false"), "{on}");
    let codex = "[mcp_servers.a] # c\ncommand = \"x\"\n";
    let off = done(codex, Format::Toml, &|root| plan_switch(client("codex"), root, "a", false).unwrap());
    assert_eq!(off, format!("{codex}enabled = false\n"));
    let gemini = "{\"mcp\": {\"allowed\": []}, \"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    let off = done(gemini, Format::Jsonc, &|root| plan_switch(client("gemini"), root, "a", false).unwrap());
    let on = done(&off, Format::Jsonc, &|root| plan_switch(client("gemini"), root, "a", true).unwrap());
    let lists = read(on.as_bytes(), Format::Jsonc).unwrap().to_json()["mcp"].clone();
    assert_eq!(lists, json!({"allowed": ["a"], "excluded": []}));
    let list = "mcpServers: # c\n  - name: a\n    command: x\n  - name: b\n    command: y\n";
    let left = done(list, Format::Yaml, &|root| plan_removal(client("continue"), root, "a").unwrap());
    assert_eq!(
        read(left.as_bytes(), Format::Yaml).unwrap().to_json(),
        json!({"mcpServers": [{"name": "b", "command": "y"}]})
    );
    let root = read(cline.as_bytes(), Format::Jsonc).unwrap();
    let told = |problem: crate::problem::Problem| problem.to_string();
    assert_eq!(
        plan_removal(client("cline"), &root, "b").map_err(told),
        Err("server \"b\": is not in this file (in it are a)".to_owned())
    );
    assert!(plan_switch(client("cursor"), &root, "a", false).is_err());
}
