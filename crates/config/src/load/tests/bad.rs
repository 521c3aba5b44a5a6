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
fn servers_under_another_clients_key_are_read_with_a_warning() {
    let machine = Machine::new(&[("home/.cursor/mcp.json", r#"{"servers": {"s": {"command": "x"}}}"#)]);
    let resolved = machine.load("user");
    assert_eq!(machine.standings(&resolved), ["s ready"]);
    assert!(!resolved.problems[0].is_error());
}
