//! Files as they should not be.

use super::*;

#[test]
fn a_huge_file_is_refused_in_little_memory() {
    let machine = Machine::new(&[("home/.config/toolway/mcp.json", &map("s", SERVER))]);
    let path = machine.at("home/.cursor/mcp.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // 50 MB without a byte on the disk.
    std::fs::File::create(&path).unwrap().set_len(50 << 20).unwrap();
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["s ready"]);
    let told = machine.told(&resolved);
    assert!(told.len() == 1 && told[0].contains("too large for a configuration file"), "{told:?}");
}

#[cfg(unix)]
#[test]
fn circles_of_links_and_unreadable_files_spoil_only_themselves() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let machine = Machine::new(&[
        ("project/.mcp.json", &map("p", SERVER)),
        ("project/.cursor/x", ""),
        ("home/.cursor/mcp.json", &map("u", SERVER)),
    ])
    .given();
    symlink(machine.at("project/.cursor/b.json"), machine.at("project/.cursor/mcp.json")).unwrap();
    symlink(machine.at("project/.cursor/mcp.json"), machine.at("project/.cursor/b.json")).unwrap();
    symlink(machine.at("project/.toolway"), machine.at("project/.toolway")).unwrap();
    let home = machine.at("home/.cursor/mcp.json");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o000)).unwrap();
    let readable = std::fs::read(&home).is_ok();
    let resolved = machine.load("project,user");
    let told = machine.told(&resolved);
    let circles = told.iter().filter(|told| told.ends_with("(its links lead in a circle)")).count();
    assert_eq!(circles, 2, "{told:?}");
    if readable {
        // Nothing is unreadable for an administrator.
        assert_eq!(machine.standings(&resolved), ["p ready", "u ready"]);
    } else {
        assert_eq!(machine.standings(&resolved), ["p ready"]);
        assert!(told.iter().any(|told| told.contains("home/.cursor/mcp.json: cannot be read")), "{told:?}");
    }
}

#[test]
fn directories_and_other_shapes_are_refused_by_name() {
    for (text, expected) in [
        ("[1]", "must hold an object"),
        (r#"{"mcpServers": []}"#, "must be an object of servers, and is a list"),
        (r#"{"mcpServers": {}, "mcpServers": {}}"#, "stands twice: in line 1 and in line 1"),
        ("\u{0}", ""),
        (r#"{"mcpservers": {}}"#, "did you mean mcpServers instead of \"mcpservers\"?"),
    ] {
        let machine = Machine::new(&[("home/.cursor/mcp.json", text)]);
        let told = machine.told(&machine.load("user"));
        assert!(told.len() == 1 && told[0].contains(expected), "{text}: {told:?}");
    }
    let machine = Machine::new(&[("home/.cursor/mcp.json/x", "")]);
    assert!(machine.told(&machine.load("user"))[0].contains("is a directory"));
}

#[test]
fn a_doubled_key_spoils_only_its_server() {
    let text = "{\"mcpServers\": {\n\"a\": {\"command\": \"x\",\n \"command\": \"y\"},\n\"b\": {\"command\": \"x\"},\n\"c\": {\"command\": \"x\"},\n\
                \"c\": {\"command\": \"y\"}}, \"other\": {\"x\": 1, \"x\": 2}}";
    let machine = Machine::new(&[("home/.cursor/mcp.json", text)]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["a invalid", "b ready", "c invalid"]);
    let told = machine.told(&resolved);
    assert_eq!(told.len(), 3);
    assert!(
        told.iter().any(|told| told.contains("server \"c\": \"c\" stands twice: in line 5 and in line 6")),
        "{told:?}"
    );
}

#[test]
fn names_that_differ_in_case_only() {
    let text = r#"{"mcpServers": {"db": {"command": "x"}, "DB": {"command": "y"}, "a b": {"command": "z"}}}"#;
    let machine = Machine::new(&[("home/.cursor/mcp.json", text)]);
    let resolved = machine.load("user");
    assert_eq!(
        machine.standings(&resolved),
        ["db ready", "DB ready", "a b ready"],
        "another client's names stay"
    );
    assert_eq!(resolved.problems.len(), 1);
    let machine = Machine::new(&[("home/.config/toolway/mcp.json", text)]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["db ready", "DB invalid", "a b invalid"]);
}

#[test]
fn a_misspelled_wrapper_is_no_server() {
    let machine = Machine::new(&[
        ("typo.json", r#"{"mcpServer": {"s": {"command": "x"}}}"#),
        ("bare.json", r#"{"mcp-server": {"command": "x"}}"#),
    ]);
    let named = |file: &str| LoadOptions { files: vec![machine.at(file)], ..LoadOptions::default() };
    let typo = machine.load_with(&named("typo.json"));
    assert!(typo.entries.is_empty() && typo.problems[0].to_string().contains("did you mean mcpServers"));
    assert_eq!(machine.standings(&machine.load_with(&named("bare.json"))), ["mcp-server ready"]);
}

#[test]
fn servers_under_another_clients_key_are_read_with_a_warning() {
    let machine = Machine::new(&[("home/.cursor/mcp.json", r#"{"servers": {"s": {"command": "x"}}}"#)]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["s ready"]);
    assert!(!resolved.problems[0].is_error());
}

#[test]
fn many_servers_and_many_variables_are_read() {
    let servers: Vec<String> = (0..3_000).map(|n| format!("\"s{n}\": {{\"command\": \"x\"}}")).collect();
    let variables: Vec<String> = (0..5_000).map(|n| format!("\"V{n}\": \"x\"")).collect();
    let text = format!(
        "{{\"mcpServers\": {{{}, \"big\": {{\"command\": \"x\", \"env\": {{{}}}}}}}}}",
        servers.join(","),
        variables.join(",")
    );
    let machine = Machine::new(&[("home/.cursor/mcp.json", &text)]);
    let resolved = machine.load("user");
    assert_eq!(resolved.entries.len(), 3_001);
    assert!(resolved.entries.iter().all(|entry| entry.standing == Standing::Ready));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(proptest::prelude::ProptestConfig::default().cases / 4))]
    #[test]
    fn any_entry_is_read_or_refused_with_its_place(
        members in proptest::collection::vec((0..14_usize, 0..12_usize), 0..6)
    ) {
        let names = ["command", "url", "args", "env", "headers", "type", "auth", "tools", "enabled", "disabled", "cwd",
                     "roots", "envFile", "comand"];
        let values = ["null", "true", "1", "\"x\"", "\"http://h\"", "\"${T}\"", "\"${\"", "[]", "[\"a\", 1]", "{}",
                      "{\"A\": \"b\"}", "{\"A\": null}"];
        let only_switches = members.iter().all(|(name, _)| names[*name].ends_with("abled"));
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{}\": {}", names[*name], values[*value])).collect();
        let machine = Machine::new(&[("home/.cursor/mcp.json", &map("s", &format!("{{{}}}", members.join(","))))]);
        let resolved = machine.load("user");
        // A switch for a server that nobody defines is no entry, and is told.
        if resolved.entries.is_empty() {
            proptest::prop_assert!(only_switches && !resolved.problems.is_empty());
            return Ok(());
        }
        proptest::prop_assert_eq!(resolved.entries.len(), 1);
        let entry = &resolved.entries[0];
        if entry.standing == Standing::Invalid {
            let told = resolved.problems.iter().filter(|problem| problem.is_error() && problem.at.is_some());
            proptest::prop_assert!(told.count() > 0);
        }
        proptest::prop_assert!(entry.standing != Standing::Ready || entry.expand(&machine.environment).is_ok());
    }
}
