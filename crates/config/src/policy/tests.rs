use super::*;
use crate::definition::{HeaderCase, InheritEnv, Options, RemoteKind};
use crate::expanded::ExpandedRemote;
use crate::tree::{Format, read};
use toolway_secret::Secret;

fn policy(text: &str) -> Policy {
    Policy::read(&read(text.as_bytes(), Format::Jsonc).unwrap(), Path::new("/etc/p.json")).unwrap()
}

fn with(target: ExpandedTarget) -> Expanded {
    Expanded {
        name: "s".to_owned(),
        target,
        options: Options::default(),
        roots: None,
        digest: String::new(),
        secrets: Vec::new(),
        warnings: Vec::new(),
    }
}

fn command(command: &str, args: &[&str], env: &[&str]) -> Expanded {
    with(ExpandedTarget::Stdio(ExpandedStdio {
        command: command.to_owned(),
        args: args.iter().map(|arg| Secret::new(*arg)).collect(),
        env: env.iter().map(|name| ((*name).to_owned(), Secret::new("x"))).collect(),
        inherit_env: InheritEnv::Base,
        cwd: PathBuf::from("/"),
    }))
}

fn url(url: &str) -> Expanded {
    with(ExpandedTarget::Remote(ExpandedRemote {
        kind: RemoteKind::Auto,
        url: Secret::new(url),
        headers: Vec::new(),
        header_case: HeaderCase::Lower,
        auth: None,
        tls: None,
    }))
}

#[test]
fn what_is_denied_is_denied_by_path_and_case_too() {
    let policy = policy(
        "{\"deny\": [{\"command\": \"npx *evil*\"}, {\"command\": \"curl\"},\n \"Bad*\", {\"url\": \"*.evil.com\"}]}",
    );
    for server in [
        command("npx", &["-y", "evil-mcp"], &[]),
        command("/usr/bin/npx", &["evil"], &[]),
        command(r"C:\node\NPX.cmd", &["evil"], &[]),
        command("/bin/curl", &["x"], &[]),
        command("env", &["A=b", "npx", "evil"], &[]),
        command("sh", &["-c", "cd /x && exec curl y"], &[]),
        command("/opt/toolway", &["stdio", "--", "npx", "-y", "evil"], &[]),
        url("https://a.EVIL.com/mcp"),
    ] {
        assert!(policy.forbids("s", &server).is_some(), "{server:?}");
    }
    assert_eq!(
        policy.forbids("badger", &command("x", &[], &[])).unwrap(),
        "/etc/p.json:2: denied by name \"Bad*\""
    );
    for server in
        [command("npx", &["-y", "good"], &[]), command("curly", &[], &[]), url("https://evil.com.example/")]
    {
        assert_eq!(policy.forbids("s", &server), None, "{server:?}");
    }
}

#[test]
fn what_is_allowed_is_allowed_as_written_only() {
    let policy = policy(
        r#"{"allow": [{"command": "npx -y @acme/*"}, {"url": "https://*.acme.com/*"}, {"name": "db", "command": "psql"}]}"#,
    );
    assert_eq!(policy.forbids("s", &command("npx", &["-y", "@acme/x"], &[])), None);
    assert_eq!(policy.forbids("db", &command("psql", &[], &["PGHOST"])), None);
    assert_eq!(policy.forbids("s", &url("https://mcp.acme.com/x")), None);
    for server in [
        command("/tmp/npx", &["-y", "@acme/x"], &[]),
        command("npx", &["-y", "@other/x"], &[]),
        command("npx", &["-y", "@acme/x"], &["PATH"]),
        command("npx", &["-y", "@acme/x"], &["node_options"]),
        command("psql", &[], &[]),
        url("https://evil.com/x.acme.com/"),
        url("http://mcp.acme.com/x"),
        url("https://mcp.acme.com@evil.com/x"),
    ] {
        let told = policy.forbids("s", &server);
        assert_eq!(told.as_deref(), Some("/etc/p.json: not among the allowed servers"), "{server:?}");
    }
}

#[test]
fn ports_and_addresses_are_matched() {
    assert!(fits_url("http://localhost:8080", "http://localhost:8080/x"));
    assert!(!fits_url("http://localhost:8080", "http://localhost:8081/x"));
    assert!(fits_url("https://h:443/", "https://h/"));
    assert!(fits_url("http://[::1]:*", "http://[::1]:99/x") && fits_url("http://[::1]", "http://[::1]:99/x"));
}

#[test]
fn a_policy_with_a_fault_is_refused_with_its_place() {
    for text in [
        "[]",
        r#"{"alow": []}"#,
        r#"{"deny": [{"nam": "x"}]}"#,
        r#"{"deny": [{}]}"#,
        r#"{"allow": "x"}"#,
        r#"{"disableAll": 1}"#,
    ] {
        let node = read(text.as_bytes(), Format::Jsonc).unwrap();
        let problem = Policy::read(&node, Path::new("/etc/p.json")).unwrap_err();
        assert!(problem.at.is_some(), "{text}");
    }
    assert!(policy(r#"{"disableAll": true}"#).forbids("s", &url("https://h")).is_some());
}
