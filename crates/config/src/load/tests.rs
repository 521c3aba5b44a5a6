mod bad;
mod machine;
mod standing;

use machine::Machine;

use super::*;
use crate::entry::Standing;

const SERVER: &str = r#"{"command": "x"}"#;

fn map(name: &str, entry: &str) -> String {
    format!(r#"{{"mcpServers": {{"{name}": {entry}}}}}"#)
}

#[test]
fn bom_comments_and_one_bad_entry() {
    let text = "\u{feff}{\n  // team servers\n  \"mcpServers\": {\n    \"good\": { \"command\": \"fakemcp\", \"args\": [\"a.script\",], },\n    \
                \"typo\": { \"comand\": \"fakemcp\" },\n    \"both\": { \"command\": \"fakemcp\", \"url\": \"https://h.example/mcp\" },\n    \
                \"http\": { \"type\": \"streamableHttp\", \"url\": \"http://127.0.0.1:1/mcp\", \"future_key\": {\"x\":1} }, /* ok */\n  },\n}";
    let machine = Machine::new(&[("home/.cursor/mcp.json", text)]);
    let mut loader = Loader::default();
    let resolved = machine.load_by(&mut loader, "user");
    assert_eq!(machine.standings(&resolved), ["good ready", "typo invalid", "both invalid", "http ready"]);
    assert_eq!(
        machine.told(&resolved),
        [
            "home/.cursor/mcp.json:5:15: server \"typo\": neither command nor url (did you mean command?)",
            "home/.cursor/mcp.json:6:5: server \"both\": both command and url: it is ambiguous (a server has one of \
             the two)",
            "home/.cursor/mcp.json:7:74: server \"http\": future_key: is not known to Toolway, and has no effect",
        ]
    );
    let http = resolved.entry("http").unwrap();
    assert_eq!(
        http.definition.as_ref().unwrap().unknown,
        [("future_key".to_owned(), serde_json::json!({"x": 1}))]
    );

    machine.write("home/.cursor/mcp.json", text.trim_end_matches('}'));
    let kept = machine.load_by(&mut loader, "user");
    assert_eq!(machine.standings(&kept), machine.standings(&resolved));
    assert!(matches!(kept.files[1].status, FileStatus::Kept(_)));
    let told = machine.told(&kept);
    assert!(told[0].starts_with("home/.cursor/mcp.json:1:1: ") || told[0].contains(".json:9:"), "{told:?}");
    assert!(told[0].ends_with("(what it said before stays in force)"), "{told:?}");
    // Without a memory of it nothing is left.
    assert_eq!(machine.standings(&machine.load("user")), [""; 0]);
}

#[test]
fn nothing_is_opened_that_is_not_asked_for() {
    let machine = Machine::new(&[("project/.cursor/mcp.json", "{"), ("home/.cursor/mcp.json", "{")]);
    let resolved = machine.load("");
    assert!(resolved.entries.is_empty() && resolved.problems.is_empty() && resolved.files.is_empty());
}

#[test]
fn each_source_brings_its_own() {
    let machine = Machine::new(&[
        ("project/.cursor/mcp.json", &map("p", SERVER)),
        ("project/nested/.cursor/mcp.json", &map("nested", SERVER)),
        ("home/.cursor/mcp.json", &map("u", SERVER)),
        ("team.json", &map("t", SERVER)),
        ("managed/mcp.json", &map("m", SERVER)),
        ("home/.cursor/plugins/local/a/mcp.json", &map("one", SERVER)),
    ])
    .given();
    assert_eq!(machine.standings(&machine.load("project")), ["p ready"]);
    assert_eq!(machine.standings(&machine.load("user")), ["u ready"]);
    assert_eq!(machine.standings(&machine.load("team")), ["t ready"]);
    assert_eq!(machine.standings(&machine.load("mdm")), ["m ready"]);
    assert_eq!(machine.standings(&machine.load("plugins")), ["plugin-a-one ready"]);
    assert_eq!(
        machine.standings(&machine.load("all")),
        ["m ready", "plugin-a-one ready", "p ready", "u ready", "t ready"]
    );
}

#[test]
fn the_highest_wins_whole_and_the_others_are_told() {
    let files: Vec<String> = (1..=7).map(|n| map("s", &format!(r#"{{"command": "{n}"}}"#))).collect();
    let paths = [
        "project/.toolway/mcp.json",
        "project/toolway.json",
        "project/.cursor/mcp.json",
        "project/.mcp.json",
        "home/.config/toolway/mcp.json",
        "home/.cursor/mcp.json",
        "team.json",
    ];
    let machine = Machine::new(&[]).given();
    // From the lowest to the highest: the newest wins.
    for (path, text) in paths.iter().zip(&files).rev() {
        machine.write(path, text);
        let resolved = machine.load("all");
        assert_eq!(machine.shown(&resolved.entry("s").unwrap().place.file), *path);
    }
    let resolved = machine.load("all");
    let lost: Vec<String> =
        resolved.entries.iter().skip(1).map(|entry| machine.shown(&entry.place.file)).collect();
    assert_eq!(lost, paths[1..]);
    assert!(resolved.entries.iter().skip(1).all(|entry| {
        let Standing::Shadowed { by } = &entry.standing else { return false };
        by.file == machine.at(paths[0])
    }));
    assert_eq!(machine.told(&resolved).len(), 6, "each shadowed one is a warning");

    machine.write("managed/mcp.json", &map("s", SERVER));
    assert_eq!(machine.load("all").entry("s").unwrap().source, Source::Mdm);
    let mut options = machine.options("all");
    options.inline = machine.inline(&map("s", SERVER));
    assert_eq!(machine.load_with(&options).entry("s").unwrap().source, Source::Inline);
    options.per_send = machine.inline(&map("s", SERVER));
    assert_eq!(machine.load_with(&options).entry("s").unwrap().source, Source::PerSend);
}

#[test]
fn files_that_the_user_names_are_all_that_is_read() {
    let machine = Machine::new(&[
        ("home/.cursor/mcp.json", &map("u", SERVER)),
        ("a.json", r#"{"mcpServers": {"s": {"command": "a"}, "only a": {"command": "a"}}}"#),
        ("b.json", &map("s", r#"{"command": "b"}"#)),
    ]);
    let mut options = machine.options("all");
    options.files = vec![machine.at("a.json"), machine.at("b.json")];
    let resolved = machine.load_with(&options);
    assert_eq!(machine.standings(&resolved), ["s ready", "s shadowed", "only a ready"]);
    assert_eq!(machine.shown(&resolved.entry("s").unwrap().place.file), "b.json");
    options.files = vec![PathBuf::from("none.json")];
    let resolved = machine.load_with(&options);
    assert_eq!(machine.told(&resolved), ["project/nested/none.json: there is no such file"]);
}

#[test]
fn a_named_file_may_be_another_clients() {
    let codex = "[mcp_servers.c]\ncommand = \"x\"\nargs = [\"${TOK}\"]\nenabled_tools = [\"a\"]\n";
    let code = r#"{"servers": {"v": {"type": "stdio", "command": "x", "args": ["${env:TOK}"]}}}"#;
    let open =
        r#"{"mcp": {"o": {"type": "local", "command": ["x", "{env:TOK}"], "environment": {"A": "b"}}}}"#;
    let machine = Machine::new(&[
        ("home/.codex/config.toml", codex),
        ("project/.vscode/mcp.json", code),
        ("project/opencode.json", open),
    ]);
    for (path, name, arg) in [
        ("home/.codex/config.toml", "c", "${TOK}"),
        ("project/.vscode/mcp.json", "v", "s3cr3t"),
        ("project/opencode.json", "o", "s3cr3t"),
    ] {
        let mut options = machine.options("");
        options.files = vec![machine.at(path)];
        let resolved = machine.load_with(&options);
        assert_eq!(machine.standings(&resolved), [format!("{name} ready")], "{:?}", resolved.problems);
        let expanded = resolved.entries[0].expand(&machine.environment).unwrap();
        let crate::ExpandedTarget::Stdio(stdio) = expanded.target else { panic!() };
        assert_eq!((stdio.command.as_str(), stdio.args[0].expose()), ("x", arg), "{path}");
        assert!(resolved.problems.iter().all(|problem| !problem.is_error()));
    }
}

#[test]
fn one_file_by_two_paths_is_read_once() {
    let machine = Machine::new(&[("home/.cursor/mcp.json", &map("u", SERVER))]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(machine.at("home/.cursor"), machine.at("project/.cursor")).unwrap();
    let resolved = machine.load("project,user");
    #[cfg(unix)]
    assert!(resolved.files.iter().any(|file| matches!(file.status, FileStatus::Same { .. })));
    assert_eq!(machine.standings(&resolved), ["u ready"], "it is the user's own, and needs no approval");
}

#[test]
fn every_field_knows_its_file_and_line() {
    let text = "{\"mcpServers\": {\n\"s\": {\n\"url\": \"http://h\",\n\"headers\": {\n\"A\": \"b\"}}}}";
    let machine = Machine::new(&[("home/.cursor/mcp.json", text)]);
    let resolved = machine.load("user");
    let entry = resolved.entry("s").unwrap();
    let lines: Vec<(&str, u32)> =
        entry.provenance.iter().map(|(field, place)| (field.as_str(), place.at.unwrap().line)).collect();
    assert_eq!(lines, [("headers", 4), ("headers.A", 5), ("url", 3)]);
    assert_eq!(entry.place.to_string(), format!("{}:2", machine.at("home/.cursor/mcp.json").display()));
}

#[test]
fn inline_definitions_are_told_all_at_once() {
    let machine = Machine::new(&[]);
    let mut options = machine.options("");
    options.inline = machine.inline(
        r#"{"mcpServers": {"a b": {"command": "x"}, "ok": {"command": "${HOME}"}, "n": {"command": "x", "env": {"A": 1}}, "OK": {"url": "http://h"}}}"#,
    );
    let resolved = machine.load_with(&options);
    assert_eq!(machine.standings(&resolved), ["a b invalid", "ok ready", "n invalid", "OK invalid"]);
    assert_eq!(resolved.problems.iter().filter(|problem| problem.is_error()).count(), 3);
    let expanded = resolved.entry("ok").unwrap().expand(&machine.environment).unwrap();
    let crate::ExpandedTarget::Stdio(stdio) = expanded.target else { panic!() };
    assert_eq!(stdio.command, "${HOME}", "nothing is replaced in what a program gives");
}

#[test]
fn the_team_may_have_its_document_behind_a_url() {
    let mut machine = Machine::new(&[]);
    machine.environment.vars.insert("TOOLWAY_TEAM_CONFIG".to_owned(), "https://h/t.json".to_owned());
    let mut options = machine.options("team");
    let mut loader = Loader::default();
    options.team_document = Some(Ok(map("t", SERVER).into_bytes()));
    assert_eq!(machine.standings(&loader.load(&options, &machine.environment)), ["t ready"]);
    options.team_document = Some(Err("no network".to_owned()));
    let kept = loader.load(&options, &machine.environment);
    assert_eq!(machine.standings(&kept), ["t ready"]);
    assert_eq!(
        kept.problems[0].to_string(),
        "https://h/t.json: cannot be fetched: no network (TOOLWAY_TEAM_CONFIG names it)"
    );
}

#[test]
fn the_address_of_the_teams_document_is_shown_without_what_may_be_secret() {
    let mut machine = Machine::new(&[]);
    let url = "https://u:s3cr3t@h/t.json?key=s3cr3t#s3cr3t";
    machine.environment.vars.insert("TOOLWAY_TEAM_CONFIG".to_owned(), url.to_owned());
    let mut options = machine.options("team");
    options.team_document = Some(Ok(map("t", SERVER).into_bytes()));
    let good = machine.load_with(&options);
    assert_eq!(good.entries[0].place.file, Path::new("https://h/t.json"));
    options.team_document = Some(Ok(b"{".to_vec()));
    let bad = machine.load_with(&options);
    assert!(!format!("{good:?}{bad:?}").contains("s3cr3t"), "{bad:?}");
}

#[test]
fn a_teams_file_that_is_named_has_to_be_there() {
    let machine = Machine::new(&[]);
    let resolved = machine.load("team");
    assert_eq!(machine.told(&resolved), ["team.json: there is no such file"]);
    assert!(resolved.problems[0].is_error());
}
