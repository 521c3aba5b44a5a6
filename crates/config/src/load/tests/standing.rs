//! Whether the one that wins may start.

use std::sync::Arc;

use toolway_secret::Secret;

use super::*;
use crate::trust::Verdict;

#[test]
fn a_switch_takes_a_server_off_and_an_empty_map_hides_nothing() {
    let machine = Machine::new(&[
        ("project/.toolway/mcp.json", &map("s", r#"{"enabled": false}"#)),
        ("project/.cursor/mcp.json", r#"{"mcpServers": {}}"#),
        ("home/.cursor/mcp.json", r#"{"mcpServers": {"s": {"command": "x"}, "t": {"command": "y"}}}"#),
    ])
    .given();
    let resolved = machine.load("project,user");
    assert_eq!(machine.standings(&resolved), ["s disabled", "t ready"]);
    let Standing::Disabled { by } = &resolved.entry("s").unwrap().standing else { panic!() };
    assert_eq!(by.file, machine.at("project/.toolway/mcp.json"));
    let refused = resolved.entry("s").unwrap().expand(&machine.environment).unwrap_err();
    assert!(refused[0].message.starts_with("cannot be started: disabled at"));
}

#[test]
fn who_says_last_whether_a_server_is_on() {
    let off = r#"{"enabled": false}"#;
    let on = r#"{"disabled": false}"#;
    let is_off = r#"{"command": "x", "disabled": true}"#;
    let says_on = r#"{"command": "x", "enabled": true}"#;
    // (file, entry) twice, and what comes of it.
    let (own, cursor, user) =
        ("project/.toolway/mcp.json", "project/.cursor/mcp.json", "home/.cursor/mcp.json");
    let mine = "home/.config/toolway/mcp.json";
    for (first, second, expected) in [
        ((own, off), (cursor, SERVER), "disabled"),
        ((cursor, SERVER), (user, off), "disabled"),
        ((cursor, says_on), (user, off), "disabled"),
        ((mine, on), (user, is_off), "ready"),
        ((own, on), (user, is_off), "disabled"),
        ((cursor, is_off), (user, on), "disabled"),
        ((user, is_off), (user, is_off), "disabled"),
    ] {
        let machine = Machine::new(&[]).given();
        machine.write(first.0, &map("s", first.1));
        machine.write(second.0, &map("s", second.1));
        let resolved = machine.load("project,user");
        assert_eq!(machine.standings(&resolved), [format!("s {expected}")], "{first:?} {second:?}");
    }
}

#[test]
fn a_switch_without_a_server_is_told() {
    let machine = Machine::new(&[("home/.cursor/mcp.json", &map("s", r#"{"enabled": false}"#))]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["s disabled"]);
    assert!(machine.told(&resolved)[0].ends_with("switches a server that nobody defines"));
}

#[test]
fn a_bad_entry_never_hides_a_good_one() {
    let machine = Machine::new(&[
        ("project/.cursor/mcp.json", &map("s", r#"{"comand": "x"}"#)),
        ("home/.cursor/mcp.json", &map("s", SERVER)),
    ]);
    let resolved = machine.load("project,user");
    assert_eq!(machine.standings(&resolved), ["s invalid", "s ready"]);
    assert_eq!(resolved.entry("s").unwrap().source, Source::User);
}

#[test]
fn a_project_starts_nothing_before_its_content_is_approved() {
    let text = map("s", r#"{"command": "node", "args": ["./s.js"], "env": {"A": "${TOK}"}}"#);
    let mut machine = Machine::new(&[("project/.cursor/mcp.json", &text), ("project/s.js", "one")]);
    let standing = |machine: &Machine| machine.standings(&machine.load("project")).concat();
    let approve = |machine: &Machine| {
        let resolved = machine.load("project");
        machine.store().approve(resolved.entries.iter()).unwrap();
        assert_eq!(machine.store().verdict(&resolved.entries[0]), Verdict::Approved);
    };
    assert_eq!(standing(&machine), "s untrusted");
    let refused = machine.load("project").entries[0].expand(&machine.environment).unwrap_err();
    assert!(refused[0].message.contains("was never approved"), "{refused:?}");
    approve(&machine);
    assert_eq!(standing(&machine), "s ready");

    machine.write("project/.cursor/mcp.json", &format!("// moved\n\n{}", text.replace(": ", " :\n ")));
    machine.environment.vars.insert("TOK".to_owned(), "another".to_owned());
    assert_eq!(standing(&machine), "s ready", "formatting and values mean nothing");

    machine.write("project/s.js", "two");
    assert_eq!(standing(&machine), "s untrusted", "the script has changed");
    approve(&machine);
    machine.write("project/.cursor/mcp.json", &text.replace("TOK", "KEY"));
    let resolved = machine.load("project");
    let Standing::Untrusted { reason } = &resolved.entries[0].standing else { panic!() };
    assert_eq!(reason, "it has changed since it was approved");
    machine.write("project/.cursor/mcp.json", &text);
    assert_eq!(standing(&machine), "s ready");
    assert_eq!(machine.store().revoke(|approval| approval.name == "s").unwrap(), 1);
    assert_eq!(standing(&machine), "s untrusted");
}

#[test]
fn plugins_and_commands_for_values_are_approved_too_and_explicit_input_is_not() {
    let runs = map("c", r#"{"url": "http://h", "headers": {"X": "${command:echo 1}"}}"#);
    let machine = Machine::new(&[
        ("home/.cursor/plugins/local/a/mcp.json", &map("one", SERVER)),
        ("home/.config/toolway/mcp.json", &runs),
        ("home/.cursor/mcp.json", &map("u", SERVER)),
        ("c.json", &runs),
    ]);
    let resolved = machine.load("plugins,user");
    assert_eq!(machine.standings(&resolved), ["plugin-a-one untrusted", "c untrusted", "u ready"]);
    let mut options = machine.options("");
    options.files = vec![machine.at("c.json")];
    assert_eq!(machine.standings(&machine.load_with(&options)), ["c ready"]);
}

#[test]
fn approvals_that_others_may_write_are_not_used() {
    let machine = Machine::new(&[("project/.cursor/mcp.json", &map("s", SERVER))]);
    machine.store().approve(machine.load("project").entries.iter()).unwrap();
    assert_eq!(machine.standings(&machine.load("project")), ["s ready"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = machine.at("home/.config/toolway/trust.json");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
        let resolved = machine.load("project");
        assert_eq!(machine.standings(&resolved), ["s untrusted"]);
        assert!(machine.told(&resolved)[0].contains("others may write to it"));
    }
}

#[test]
fn the_policy_binds_every_source() {
    let policy = r#"{"policy": {"deny": [{"command": "evil*"}]}}"#;
    let evil = map("s", r#"{"command": "/usr/bin/evil", "args": ["x"]}"#);
    let machine =
        Machine::new(&[("managed/mcp.json", policy), ("home/.cursor/mcp.json", &evil), ("e.json", &evil)]);
    assert_eq!(machine.standings(&machine.load("user")), ["s blocked"]);
    let mut options = machine.options("");
    options.files = vec![machine.at("e.json")];
    assert_eq!(machine.standings(&machine.load_with(&options)), ["s blocked"]);
    let mut options = machine.options("");
    options.inline = machine.inline(&evil);
    let resolved = machine.load_with(&options);
    assert_eq!(machine.standings(&resolved), ["s blocked"]);
    assert_eq!(
        machine.told(&resolved),
        ["server \"s\": blocked by ".to_owned()
            + &machine.at("managed/mcp.json").display().to_string()
            + ":1: denied by command \"evil*\""]
        .map(|text| text
            .replace(&format!("{}/", machine.at("").display().to_string().trim_end_matches('/')), ""))
    );
    assert!(resolved.entries[0].expand(&machine.environment).is_err());
}

#[test]
fn the_policy_is_asked_again_with_the_values() {
    let policy = r#"{"policy": {"deny": [{"url": "evil.example"}]}}"#;
    let mut machine = Machine::new(&[
        ("managed/mcp.json", policy),
        ("home/.cursor/mcp.json", &map("s", r#"{"url": "http://${WHERE}/mcp"}"#)),
    ]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["s unset"]);
    machine.environment.vars.insert("WHERE".to_owned(), "good.example".to_owned());
    assert!(resolved.entries[0].expand(&machine.environment).is_ok());
    machine.environment.vars.insert("WHERE".to_owned(), "evil.example".to_owned());
    let refused = resolved.entries[0].expand(&machine.environment).unwrap_err();
    assert!(refused[0].message.contains("denied by url"), "{refused:?}");
}

#[test]
fn a_file_of_variables_does_not_steer_an_allowed_command() {
    let policy = r#"{"policy": {"allow": [{"command": "npx"}]}}"#;
    let machine = Machine::new(&[
        ("managed/mcp.json", policy),
        ("project/.env", "TOK=1"),
        (
            "home/.cursor/mcp.json",
            &map("s", r#"{"command": "npx", "args": [], "envFile": "${workspaceFolder}/.env"}"#),
        ),
    ]);
    assert_eq!(machine.standings(&machine.load("user")), ["s ready"]);
    machine.write("project/.env", "TOK=1\nPATH=/tmp/evil");
    assert_eq!(machine.standings(&machine.load("user")), ["s blocked"]);
}

#[test]
fn a_clients_way_to_the_gateway_is_no_server_and_asks_for_no_approval() {
    let front = r#"{"mcpServers": {"toolway": {"command": "/x/toolway", "args": ["serve"]},
        "wrapped": {"command": "env A=${UNSET} toolway serve"}, "off": {"command": "toolway serve", "disabled": true}}}"#;
    let machine = Machine::new(&[("project/.mcp.json", front), ("named.json", front)]);
    let expected = ["toolway itself", "wrapped itself", "off disabled"];
    assert_eq!(machine.standings(&machine.load("project")), expected);
    // Who names the file means what is in it.
    let named = LoadOptions { files: vec![machine.at("named.json")], ..LoadOptions::default() };
    assert_eq!(
        machine.standings(&machine.load_with(&named)),
        ["toolway ready", "wrapped unset", "off disabled"]
    );
}

#[test]
fn the_policy_of_the_documentation_does_what_is_said_there() {
    let page = include_str!("../../../../../docs/configuration.md");
    let blocks = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let policy = blocks.into_iter().find(|block| block.contains("\"policy\"")).unwrap();
    let servers = r#"{"mcpServers": {
        "a": {"command": "npx", "args": ["-y", "@acme/x"]}, "legacy-a": {"command": "npx", "args": ["-y", "@acme/x"]},
        "b": {"command": "npx", "args": ["-y", "@other/x"]}, "c": {"url": "https://mcp.acme.example/x"},
        "d": {"url": "http://mcp.acme.example/x"}, "db": {"command": "/opt/acme/bin/db-mcp"},
        "e": {"command": "/opt/acme/bin/db-mcp"},
        "f": {"command": "npx", "args": ["-y", "@acme/x", "mcp-remote"]}}}"#;
    let machine = Machine::new(&[("managed/mcp.json", policy), ("home/.cursor/mcp.json", servers)]);
    let standings = machine.standings(&machine.load("user,mdm"));
    let ready = ["handbook ready", "a ready", "c ready", "db ready"];
    let blocked: Vec<&String> =
        standings.iter().filter(|standing| !ready.contains(&standing.as_str())).collect();
    assert_eq!(
        blocked,
        ["legacy-a blocked", "b blocked", "d blocked", "e blocked", "f blocked"],
        "{standings:?}"
    );
    assert_eq!(standings.len(), 9);
}

#[test]
fn a_policy_that_cannot_be_read_closes_everything() {
    for text in [
        "{",
        "",
        "[]",
        r#"{"policy": {"alow": []}}"#,
        r#"{"policy": {"disableAll": true}}"#,
        // Read loosely, each of these would forbid nothing.
        r#"{"polcy": {"deny": ["*"]}}"#,
        r#"{"policy": {"deny": ["*"], "deny": []}}"#,
        r#"{"policy": {"deny": ["*"]}, "policy": {}}"#,
        r#"{"policy": {"deny": [{"name": "*", "name": "x"}]}}"#,
        r#"{"deny": ["*"]}"#,
        r#"{"policy": {"deny": "*"}}"#,
        r#"{"mcpServers": {}, "mcpServers": {}, "policy": {"deny": ["*"]}}"#,
    ] {
        let machine =
            Machine::new(&[("managed/mcp.json", text), ("home/.cursor/mcp.json", &map("s", SERVER))]);
        assert_eq!(machine.standings(&machine.load("user")), ["s blocked"], "{text}");
    }
}

#[test]
fn variables_and_inputs_that_are_missing_are_told_by_name() {
    let text = r#"{"mcpServers": {
        "b": {"url": "http://h/${env:TOK}", "headers": {"Authorization": "Bearer ${TOK}", "X-U": "${UNSET}"}},
        "c": {"url": "http://h/mcp", "headers": {"X": "${input:key}"}},
        "d": {"command": "x", "envFile": "none.env"}}}"#;
    let machine = Machine::new(&[("home/.cursor/mcp.json", text)]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["b unset", "c needs_input", "d invalid"]);
    assert_eq!(resolved.entry("c").unwrap().standing.to_string(), "needs input key");
    let told = machine.told(&resolved).join("\n");
    assert!(told.contains("server \"b\": headers.X-U: the variable UNSET is not set"), "{told}");
    assert!(told.contains("server \"d\": envFile: "), "{told}");
    assert!(!format!("{resolved:?}").contains("s3cr3t"));
    let faults = resolved.entry("b").unwrap().expand(&machine.environment).unwrap_err();
    assert_eq!(faults.len(), 1);
}

#[test]
fn plugins_with_one_url_are_one_server() {
    let server = map("s", r#"{"url": "https://h/mcp"}"#);
    let machine = Machine::new(&[
        ("home/.cursor/plugins/local/a/mcp.json", &server),
        ("home/.cursor/plugins/local/b/mcp.json", &server),
        ("home/.cursor/mcp.json", &server),
    ])
    .given();
    let resolved = machine.load("plugins,user");
    assert_eq!(machine.standings(&resolved), ["plugin-a-s ready", "plugin-b-s shadowed", "s ready"]);
}

#[test]
fn the_keyring_is_asked_only_for_what_may_start_and_only_when_it_starts() {
    use std::sync::Mutex;
    let text = map(
        "s",
        r#"{"url": "https://h.example/mcp", "headers": {"X-Key": "${keyring:db key}", "X-No": "${keyring:none}"}}"#,
    );
    let mine = text.replace("\"s\"", "\"mine\"").replace(", \"X-No\": \"${keyring:none}\"", "");
    let mut machine = Machine::new(&[
        ("project/.toolway/mcp.json", &text),
        ("home/.config/toolway/mcp.json", &mine),
        ("team.json", &text.replace("\"s\"", "\"theirs\"")),
    ]);
    let without = machine.load("project,user,team");
    let told = without.entry("mine").unwrap().expand(&machine.environment).unwrap_err();
    assert!(
        told[0].text().ends_with("${keyring:db key} cannot be read: no keyring is at hand here"),
        "{told:?}"
    );
    assert!(
        told[0].hint.is_some() && told[0].at.is_some() && told[0].field.as_deref() == Some("headers.X-Key")
    );

    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    machine.environment.keyring = Some(Arc::new(move |name| {
        seen.lock().unwrap().push(name.to_owned());
        match name {
            "db key" => Ok(Secret::new("out-of-the-keyring")),
            _ => Err("it holds nothing of this name".to_owned()),
        }
    }));
    let resolved = machine.load("project,user,team");
    assert_eq!(machine.standings(&resolved), ["s untrusted", "mine ready", "theirs untrusted"]);
    assert!(resolved.entry("s").unwrap().expand(&machine.environment).is_err());
    let shown = resolved.entry("mine").unwrap().shown_fields();
    assert!(shown.contains(&("headers.X-Key".to_owned(), "${keyring:db key}".to_owned())), "{shown:?}");
    assert!(asked.lock().unwrap().is_empty(), "nothing that was not approved, and nothing before it starts");

    let expanded = resolved.entry("mine").unwrap().expand(&machine.environment).unwrap();
    let crate::ExpandedTarget::Remote(remote) = &expanded.target else { panic!() };
    assert_eq!(remote.headers[0].1.expose(), "out-of-the-keyring");
    assert!(expanded.secrets.iter().any(|secret| secret.expose() == "out-of-the-keyring"));
    machine.store().approve(resolved.entries.iter()).unwrap();
    let approved = machine.load("project,user,team");
    let told = approved.entry("s").unwrap().expand(&machine.environment).unwrap_err();
    assert_eq!(told.len(), 1);
    assert!(told[0].text().ends_with("${keyring:none} cannot be read: it holds nothing of this name"));
    assert_eq!(*asked.lock().unwrap(), ["db key", "db key", "none"]);
}
