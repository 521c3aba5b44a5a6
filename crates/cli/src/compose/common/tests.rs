use super::*;
use crate::args::{Command, parse};

fn composed(flags: &[&str], variables: &[(&str, &str)]) -> Result<Common, UsageError> {
    let mut line = vec!["toolway", "stdio"];
    line.extend(flags);
    line.extend(["--", "server"]);
    let Command::Stdio(args) = parse(line.iter().map(Into::into)).unwrap().command else { panic!() };
    let mut all = vec![("HOME", "/home/u"), ("USERPROFILE", "/home/u")];
    all.extend(variables);
    common(args.common, &Environment::of(&all))
}

fn limits(flags: &[&str], variables: &[(&str, &str)]) -> (u64, usize) {
    let guard = composed(flags, variables).unwrap().guard;
    (guard.max_response_chars, guard.preview_chars)
}

fn complaint(flags: &[&str], variables: &[(&str, &str)]) -> String {
    composed(flags, variables).unwrap_err().to_string()
}

#[test]
fn limits_come_from_flags_variables_and_profiles() {
    assert_eq!(limits(&[], &[]), (10_000, 4000));
    assert_eq!(limits(&["--max-response-chars", "5000"], &[]), (5000, 2000));
    assert_eq!(limits(&["--max-response-chars", "50000"], &[]), (50_000, 4000));
    assert_eq!(limits(&["--client", "claude-code"], &[]), (40_000, 12_000));
    assert_eq!(limits(&["--client", "claude-code", "--max-response-chars", "2000"], &[]), (2000, 800));
    assert_eq!(limits(&[], &[("CURSOR_MCP_RESPONSE_PROXY_MAX_RESPONSE_CHARS", "3000")]), (3000, 1200));
    assert_eq!(limits(&["--preview-chars", "20000"], &[]), (10_000, 4000));
    assert_eq!(limits(&["--preview-chars", "10"], &[("TOOLWAY_MAX_RESPONSE_CHARS", "1000")]), (1000, 10));
}

#[test]
fn bad_values_are_named_with_where_they_came_from() {
    assert_eq!(
        complaint(&["--max-response-chars", "999"], &[]),
        "--max-response-chars: \"999\" is less than 1000"
    );
    assert_eq!(
        complaint(&[], &[("TOOLWAY_PREVIEW_CHARS", "x")]),
        "TOOLWAY_PREVIEW_CHARS: \"x\" is not a whole number"
    );
    assert_eq!(
        complaint(&["--client", "emacs"], &[]),
        "--client: \"emacs\" is none of cursor, claude-code, codex, vscode, generic"
    );
    assert_eq!(
        complaint(&["--preview-chars", "10000", "--max-response-chars", "10000"], &[]),
        "--preview-chars: 10000 is not less than the limit of 10000 characters (--max-response-chars)"
    );
    for flags in [
        ["--preview-chars", "0"],
        ["--keep-for", "0d"],
        ["--max-saved", "1 parsec"],
        ["--tool-limit", "x"],
        ["--tool-limit", "=5000"],
        ["--tool-limit", "a=10"],
        ["--path-map", "x"],
        ["--log", "loud"],
        ["--redact", "/no/such/file"],
        ["--record", "/no/such/dir/file"],
        ["--read-back", "on"],
    ] {
        let text = complaint(&flags, &[]);
        assert!(text.starts_with(flags[0]), "{text}");
    }
}

#[test]
fn the_directory_is_found_from_home() {
    let dir = |flags: &[&str]| composed(flags, &[]).unwrap().guard.store.dir;
    assert_eq!(dir(&[]), PathBuf::from("/home/u/.cache/cursor-mcp-response-proxy"));
    assert_eq!(dir(&["--output-dir", "~/saved"]), PathBuf::from("/home/u/saved"));
    assert_eq!(dir(&["--output-dir", "/x/~/y"]), PathBuf::from("/x/~/y"));
}

#[test]
fn rules_for_tools_keep_their_order() {
    let guard = composed(&["--tool-limit", "a=b*=2000", "--tool-limit", "*=pass"], &[]).unwrap().guard;
    assert!(guard.tool_rules[0].0.matches("a=bc"));
    assert_eq!(
        guard.tool_rules.iter().map(|(_, rule)| *rule).collect::<Vec<_>>(),
        [ToolRule::Limit(2000), ToolRule::Pass]
    );
}
