//! What rules say about single actions.

use super::*;

#[test]
fn reads_inside_are_allowed_and_the_rest_is_asked() {
    let machine = Machine::new();
    let gate = machine.gate(PermissionMode::Ask, &[], &[]);
    let inside = below(&machine.project, "src/a.rs");
    for (action, expected) in [
        (Action::Read(inside.clone()), "allow"),
        (Action::Read("src/a.rs".into()), "allow"),
        (Action::Read("../other/a.rs".into()), "ask"),
        (Action::Read("/etc/passwd".into()), "ask"),
        (Action::Write(inside), "ask"),
        (shell("ls"), "ask"),
        (Action::Fetch("https://example.com/".into()), "ask"),
        (mcp("files", "read", true), "allow"),
        (mcp("files", "read", false), "ask"),
    ] {
        assert_eq!(word(&gate.decide(&action)), expected, "{action}");
    }
    let free = machine.gate(PermissionMode::Unrestricted, &[], &["Shell(rm)", "Read(/etc/**)"]);
    for (action, expected) in [
        (Action::Read("../other/a.rs".into()), "allow"),
        (Action::Read("/etc/passwd".into()), "deny"),
        (Action::Write("/tmp/x".into()), "allow"),
        (shell("ls | wc"), "allow"),
        (shell("ls; rm x"), "deny"),
        (shell("$X y"), "ask"),
        (mcp("files", "read", false), "allow"),
    ] {
        assert_eq!(word(&free.decide(&action)), expected, "{action}");
    }
}

#[test]
fn a_denial_stands_above_every_permission() {
    let machine = Machine::new();
    let allow = ["Shell(*)", "Read(**)", "Write(**)", "Mcp(*:*)", "WebFetch(*)"];
    let deny = ["Shell(rm)", "Read(.env*)", "Write(**/*.key)", "Mcp(db:drop*)", "WebFetch(*.evil.com)"];
    let gate = machine.gate(PermissionMode::Ask, &allow, &deny);
    for (action, expected) in [
        (shell("rm -rf x"), "deny"),
        (shell("curl x"), "allow"),
        (Action::Read(".env.local".into()), "deny"),
        (Action::Read("a/.env".into()), "allow"),
        (Action::Write("a/b.key".into()), "deny"),
        (Action::Write("/somewhere/else.key".into()), "deny"),
        (Action::Write("a/b".into()), "allow"),
        (mcp("db", "drop_table", true), "deny"),
        (mcp("db", "read", false), "allow"),
        (Action::Fetch("https://a.EVIL.com./x".into()), "deny"),
        (Action::Fetch("https://evil.com".into()), "allow"),
        (Action::Fetch("https://good@a.evil.com:8080/".into()), "deny"),
    ] {
        assert_eq!(word(&gate.decide(&action)), expected, "{action}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_dots_lead_around_no_rule() {
    use std::os::unix::fs::symlink;

    let machine = Machine::new();
    machine.write("secret/key", "x");
    machine.write("project/src/a", "x");
    let (project, home) = (&machine.project, &machine.home);
    symlink(home.join("secret"), project.join("link")).unwrap();
    symlink(home.join("secret/new"), project.join("dangling")).unwrap();
    symlink("circle2", project.join("circle")).unwrap();
    symlink("circle", project.join("circle2")).unwrap();
    symlink(project.join("src"), home.join("inward")).unwrap();
    let gate = machine.gate(
        PermissionMode::Ask,
        &["Write(**)"],
        &["Read(~/secret/**)", "Write(~/secret/**)", "Write(src/**)"],
    );
    for (action, expected) in [
        (Action::Read("link/key".into()), "deny"),
        (Action::Read("../secret/key".into()), "deny"),
        (Action::Read("src/../../secret/key".into()), "deny"),
        (Action::Read("nothing/../../secret/key".into()), "deny"),
        (Action::Write("dangling".into()), "deny"),
        (Action::Write("link/new/deep".into()), "deny"),
        (Action::Write("circle".into()), "ask"),
        (Action::Write(home.join("inward/b")), "deny"),
        (Action::Write("./x/../src/b".into()), "deny"),
        (Action::Write("b".into()), "allow"),
        (shell("echo x > link/new"), "deny"),
        (Action::Write("../out".into()), "ask"),
    ] {
        assert_eq!(word(&gate.decide(&action)), expected, "{action}");
    }
    // A permission counts for where a path leads, not for how it is written.
    let inside = machine.gate(PermissionMode::Ask, &["Write(link/**)"], &[]);
    assert_eq!(word(&inside.decide(&Action::Write("link/key".into()))), "ask");
    assert_eq!(word(&inside.decide(&Action::Read("link/key".into()))), "ask");
}

#[test]
fn a_denied_folder_denies_what_is_in_it() {
    let machine = Machine::new();
    let gate = machine.gate(PermissionMode::Ask, &[], &["Read(private)", "Read(**/secrets)"]);
    for path in ["private", "private/a/b", "x/secrets/y", "secrets"] {
        assert_eq!(word(&gate.decide(&Action::Read(path.into()))), "deny", "{path}");
    }
    assert_eq!(word(&gate.decide(&Action::Read("privately".into()))), "allow");
}

#[test]
fn redirections_need_the_permission_to_write() {
    let machine = Machine::new();
    let gate = machine.gate(PermissionMode::Ask, &["Shell(echo)", "Shell(cd)", "Write(out/**)"], &[]);
    for (text, expected) in [
        ("echo x", "allow"),
        ("echo x > out/a", "allow"),
        ("echo x 2>&1 >/dev/null", "allow"),
        ("echo x > a", "ask"),
        ("echo x > ~/.bashrc", "ask"),
        ("echo x >> $F", "ask"),
        ("cd .. && echo x > out/a", "ask"),
        ("echo < a", "allow"),
        ("echo < /etc/shadow", "ask"),
    ] {
        assert_eq!(word(&gate.decide(&shell(text))), expected, "{text}");
    }
    let denied = machine.gate(PermissionMode::Unrestricted, &[], &["Write(~/.bashrc)"]);
    for (text, expected) in [
        ("echo x > ~/.bashrc", "deny"),
        ("echo x | cat >> ../.bashrc", "deny"),
        ("bash -c 'echo x > ~/.bashrc'", "deny"),
        ("cd .. && echo x > .bashrc", "ask"),
        ("echo x > $F", "ask"),
        ("echo x > other", "allow"),
    ] {
        assert_eq!(word(&denied.decide(&shell(text))), expected, "{text}");
    }
}

#[test]
fn files_that_decide_what_runs_are_asked_for_by_name() {
    let machine = Machine::new();
    let gate =
        machine.gate(PermissionMode::Ask, &["Write(**)", "Write(.cursor/mcp.json)", "Write(~/**)"], &[]);
    for (path, expected) in [
        ("src/a", "allow"),
        (".cursor/rules/a.mdc", "allow"),
        (".cursor/mcp.json", "allow"),
        (".cursor/hooks.json", "ask"),
        (".cursor/cli.json", "ask"),
        (".toolway/permissions.json", "ask"),
        (".git/hooks/pre-commit", "ask"),
        ("../.config/toolway/permissions.json", "ask"),
        ("../.cursor/cli-config.json", "ask"),
    ] {
        assert_eq!(word(&gate.decide(&Action::Write(path.into()))), expected, "{path}");
    }
}

#[test]
fn the_rule_that_is_offered_allows_what_was_asked_and_little_else() {
    let machine = Machine::new();
    for (action, offered) in [
        (shell("git status -s"), vec!["Shell(git status)"]),
        (shell("ls -la"), vec!["Shell(ls)"]),
        (shell("rm -rf 'a b*'"), vec![r"Shell(rm:-rf a b\*)"]),
        (shell("make test && wc x"), vec!["Shell(make test)", "Shell(wc)"]),
        (shell("make test; wc x; make test"), vec!["Shell(make test)", "Shell(wc)"]),
        (shell("python -c 'x'"), vec!["Shell(python:-c x)"]),
        (shell("ls $X"), vec![]),
        (shell("A=1 ls"), vec![]),
        (shell("echo $((1))"), vec![]),
        (mcp("a*b", "t", false), vec![r"Mcp(a\*b:t)"]),
        (Action::Fetch("https://Example.com/x".into()), vec!["WebFetch(example.com)"]),
    ] {
        let gate = machine.gate(PermissionMode::Ask, &[], &[]);
        let Decision::Ask { rules, .. } = gate.decide(&action) else { panic!("{action}") };
        assert_eq!(rules, offered, "{action}");
        if !rules.is_empty() {
            let texts: Vec<&str> = rules.iter().map(String::as_str).collect();
            let gate = machine.gate(PermissionMode::Ask, &texts, &[]);
            assert_eq!(gate.decide(&action), Decision::Allow, "{action}");
            assert_eq!(word(&gate.decide(&shell("curl x"))), "ask");
        }
    }
    let gate = machine.gate(PermissionMode::Ask, &["Shell(rm:-rf a b\\*)"], &[]);
    assert_eq!(word(&gate.decide(&shell("rm -rf 'a bc'"))), "ask");
}

#[test]
fn wrong_rules_of_a_program_are_told_at_once() {
    let error = PermissionRules::parse(["Shell(ls)", "Run(x)"], ["rm"]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("permissions.allow.1") && text.contains("permissions.deny.0"), "{text}");
}

#[test]
fn the_mode_of_a_program_follows_from_what_it_gives() {
    assert_eq!(PermissionMode::for_program(false, false, false, false), PermissionMode::Unrestricted);
    for given in 0..4 {
        let is = |index| index == given;
        assert_eq!(PermissionMode::for_program(is(0), is(1), is(2), is(3)), PermissionMode::Ask);
    }
}
