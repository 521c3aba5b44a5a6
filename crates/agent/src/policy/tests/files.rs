//! Files of rules of the chosen sources.

use super::*;

use SettingSource::{Mdm, Project, User};

fn texts(rules: &[crate::policy::Rule]) -> Vec<&str> {
    rules.iter().map(|rule| rule.text.as_str()).collect()
}

#[test]
fn only_the_chosen_sources_are_read_and_denials_of_each_hold() {
    let machine = Machine::new();
    machine.write(
        ".cursor/cli-config.json",
        r#"{"version":1,"permissions":{"allow":["Shell(ls)"],"deny":["Shell(rm)"]}}"#,
    );
    machine.write(
        "project/.cursor/cli.json",
        r#"{"permissions":{"allow":["Shell(rm)"],"deny":["Read(.env)"]}}"#,
    );
    machine.write("managed/permissions.json", r#"{"permissions":{"deny":["WebFetch(*)"]}}"#);
    let none = PermissionRules::load(&machine.sources(&[]));
    assert!(none.allow.is_empty() && none.deny.is_empty());
    let user = PermissionRules::load(&machine.sources(&[User]));
    assert_eq!((texts(&user.allow), texts(&user.deny)), (vec!["Shell(ls)"], vec!["Shell(rm)"]));
    let all = PermissionRules::load(&machine.sources(&[Project, User, Mdm]));
    assert_eq!(texts(&all.deny), ["WebFetch(*)", "Read(.env)", "Shell(rm)"]);
    assert!(all.doubts.is_empty(), "{:?}", all.doubts);
    let gate = Gate::new(machine.options(PermissionMode::Ask, all));
    let Decision::Deny { rule, place } = gate.decide(&shell("rm x")) else { panic!() };
    assert_eq!(rule, "Shell(rm)");
    assert!(place.ends_with("cli-config.json:1"), "{place}");
}

#[test]
fn allow_lists_and_comments_are_read() {
    let machine = Machine::new();
    let text = r#"{
        // what may run
        "mcpAllowlist": ["files:*", "*:search", 7],
        "terminalAllowlist": ["git", "npm:run *"],
        "autoRun": {"allow_instructions": ["all"]},
    }"#;
    machine.write(".cursor/permissions.json", text);
    let rules = PermissionRules::load(&machine.sources(&[User]));
    assert_eq!(texts(&rules.allow), ["Mcp(files:*)", "Mcp(*:search)", "Shell(git)", "Shell(npm:run *)"]);
    assert!(
        rules.warnings.iter().any(|problem| problem.to_string().contains("autoRun")),
        "{:?}",
        rules.warnings
    );
    let gate = Gate::new(machine.options(PermissionMode::Ask, rules));
    assert_eq!(gate.decide(&mcp("files", "write", false)), Decision::Allow);
    assert_eq!(gate.decide(&shell("git log && npm run x")), Decision::Allow);
    assert_eq!(word(&gate.decide(&shell("npm install"))), "ask");
}

#[test]
fn a_file_that_cannot_be_understood_opens_nothing() {
    for bad in [
        "{",
        "[]",
        r#"{"permissions": []}"#,
        r#"{"permissions": {"deny": "Shell(rm)"}}"#,
        r#"{"permissions": {"deny": [7]}}"#,
        r#"{"permissions": {"deny": ["Shel(rm)"]}}"#,
        r#"{"permissions": {"deny": ["Shell(rm)"], "deny": []}}"#,
    ] {
        let machine = Machine::new();
        let path = machine.write(".cursor/cli-config.json", bad);
        let rules = PermissionRules::load(&machine.sources(&[User]));
        assert_eq!(rules.doubts.len(), 1, "{bad}: {:?}", rules.doubts);
        assert!(rules.doubts[0].file == path, "{bad}");
        let gate = Gate::new(machine.options(PermissionMode::Unrestricted, rules));
        for action in [shell("ls"), Action::Read("a".into()), mcp("a", "b", true)] {
            assert_eq!(word(&gate.decide(&action)), "ask", "{bad} {action}");
        }
    }
    // What is wrong with a permission is told, and the rest holds.
    let machine = Machine::new();
    machine.write(
        ".cursor/cli-config.json",
        r#"{"permissions": {"allow": ["Shell(", "Shell(ls)"], "deny": []}}"#,
    );
    let rules = PermissionRules::load(&machine.sources(&[User]));
    assert_eq!((rules.doubts.len(), rules.warnings.len(), texts(&rules.allow)), (0, 1, vec!["Shell(ls)"]));
    assert!(rules.warnings[0].to_string().contains("cli-config.json:1"), "{}", rules.warnings[0]);
}

#[test]
fn a_project_that_is_not_trusted_denies_and_does_not_allow() {
    let machine = Machine::new();
    machine
        .write("project/.cursor/cli.json", r#"{"permissions":{"allow":["Shell(*)"],"deny":["Shell(rm)"]}}"#);
    let mut sources = machine.sources(&[Project]);
    sources.trust_project = false;
    let rules = PermissionRules::load(&sources);
    assert_eq!((texts(&rules.allow), texts(&rules.deny)), (vec![], vec!["Shell(rm)"]));
    assert_eq!(rules.warnings.len(), 1);
}

#[test]
fn a_file_of_two_sources_is_read_once() {
    let machine = Machine::new();
    machine.write(".cursor/permissions.json", r#"{"terminalAllowlist": ["ls"]}"#);
    let mut sources = machine.sources(&[Project, User]);
    sources.root.clone_from(&machine.home);
    sources.cwd.clone_from(&machine.home);
    assert_eq!(texts(&PermissionRules::load(&sources).allow), ["Shell(ls)"]);
}
