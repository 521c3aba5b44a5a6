use std::collections::BTreeMap;

use super::*;
use crate::definition::Content;
use crate::tree::{Format, read};

fn environment() -> Environment {
    let vars = [("TOK", "s3cr3t"), ("EMPTY", ""), ("HOME", "/h"), ("TWICE", "${TOK}"), ("MODE", "fast")];
    let vars: BTreeMap<String, String> =
        vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Environment::new(vars, PathBuf::from("/ws/sub"), Platform::Linux)
}

fn outcome_in(text: &str, dialect: Dialect, dir: &Path) -> Outcome {
    let node = read(text.as_bytes(), Format::Jsonc).unwrap();
    let entry = Definition::read("s", node.at, &node, dialect);
    let Content::Definition(definition) = &entry.content else { panic!("{:?}", entry.problems) };
    let environment = environment();
    let context = Context {
        environment: &environment,
        workspace: dir,
        source: &Source::Project,
        file: &dir.join("mcp.json"),
        depth: Depth::Commands,
    };
    expand("s", definition, context)
}

fn outcome(text: &str, dialect: Dialect) -> Outcome {
    outcome_in(text, dialect, Path::new("/ws"))
}

fn stdio(outcome: &Outcome) -> &crate::expanded::ExpandedStdio {
    let ExpandedTarget::Stdio(stdio) = &outcome.expanded.target else { panic!() };
    stdio
}

fn remote(outcome: &Outcome) -> &crate::expanded::ExpandedRemote {
    let ExpandedTarget::Remote(remote) = &outcome.expanded.target else { panic!() };
    remote
}

fn argv(outcome: &Outcome) -> Vec<&str> {
    stdio(outcome).args.iter().map(Secret::expose).collect()
}

const MATRIX: &str = r#"{"command":"fakemcp","args":["${env:TOK}","${TOK}","$TOK","${UNSET:-dflt}","${EMPTY:-dflt}",
"${workspaceFolder}/x","${userHome}/y","{env:TOK}","$${TOK}"],"cwd":"${workspaceFolder}"}"#;

#[test]
fn the_matrix_in_the_dialect_of_cursor() {
    let outcome = outcome(MATRIX, Dialect::Cursor);
    let expected = ["s3cr3t", "s3cr3t", "$TOK", "dflt", "dflt", "/ws/x", "/h/y", "{env:TOK}", "${TOK}"];
    assert_eq!(argv(&outcome), expected);
    assert_eq!(stdio(&outcome).cwd, Path::new("/ws"));
    assert!(outcome.errors.is_empty());
    let warned: Vec<_> = outcome.expanded.warnings.iter().map(|p| p.field.clone().unwrap()).collect();
    assert_eq!(warned, ["args.0", "args.1"], "a secret is in the arguments");
    let told = format!("{outcome:?}");
    assert!(!told.contains("s3cr3t"), "{told}");
}

#[test]
fn the_matrix_in_other_dialects() {
    let opencode = outcome(MATRIX, Dialect::OpenCode);
    assert_eq!(argv(&opencode)[7], "s3cr3t");
    assert_eq!(argv(&opencode)[8], "${TOK}");
    let codex = outcome(&MATRIX.replace("\"cwd\":\"${workspaceFolder}\"", "\"cwd\":\"/c\""), Dialect::Codex);
    let literal = [
        "${env:TOK}",
        "${TOK}",
        "$TOK",
        "${UNSET:-dflt}",
        "${EMPTY:-dflt}",
        "${workspaceFolder}/x",
        "${userHome}/y",
        "{env:TOK}",
        "$${TOK}",
    ];
    assert_eq!(argv(&codex), literal);
    let gemini = outcome(r#"{"command":"x","args":["$TOK","${TOK}","$5"]}"#, Dialect::Gemini);
    assert_eq!(argv(&gemini), ["s3cr3t", "s3cr3t", "$5"]);
}

#[test]
fn an_unset_variable_is_told_with_its_field_and_nothing_of_the_others() {
    let b = r#"{"url":"http://127.0.0.1:1/${env:TOK}","headers":{"Authorization":"Bearer ${TOK}","X-U":"${UNSET}"}}"#;
    let outcome = outcome(b, Dialect::Cursor);
    let told: Vec<String> = outcome.errors.iter().map(Problem::text).collect();
    assert_eq!(told, ["server \"s\": headers.X-U: the variable UNSET is not set"]);
    assert_eq!(outcome.unset, ["UNSET"]);
    assert!(!format!("{outcome:?}").contains("s3cr3t"));
}

#[test]
fn an_input_is_asked_for_or_answered_by_its_variable() {
    let c = r#"{"url":"http://127.0.0.1:1/mcp","headers":{"X":"${input:key}"}}"#;
    let outcome = outcome(c, Dialect::Cursor);
    assert_eq!(outcome.inputs, ["key"]);
    assert_eq!(outcome.errors[0].text(), "server \"s\": headers.X: needs input key");
    assert_eq!(input_variable("my-key"), "TOOLWAY_INPUT_MY_KEY");
}

#[test]
fn values_are_not_looked_at_again() {
    let outcome = outcome(r#"{"command":"x","args":["${TWICE}"]}"#, Dialect::Cursor);
    assert_eq!(argv(&outcome), ["${TOK}"]);
}

#[test]
fn every_field_is_expanded() {
    let out = outcome(
        r#"{"command":"${userHome}/bin/${MODE}","env":{"A":"${MODE}"},"cwd":"${userHome}/d"}"#,
        Dialect::Cursor,
    );
    assert_eq!((stdio(&out).command.as_str(), stdio(&out).cwd.as_path()), ("/h/bin/fast", Path::new("/h/d")));
    assert_eq!(stdio(&out).env[0].1.expose(), "fast");
    let out = outcome(
        r#"{"url":"http://h/${MODE}","headers":{"X":"a ${MODE}"},"auth":{"CLIENT_ID":"${MODE}","CLIENT_SECRET":"${TOK}"}}"#,
        Dialect::Cursor,
    );
    let remote = remote(&out);
    assert_eq!((remote.url.expose(), remote.headers[0].1.expose()), ("http://h/fast", "a fast"));
    let auth = remote.auth.as_ref().unwrap();
    assert_eq!(auth.client_id.as_deref(), Some("fast"));
    assert_eq!(auth.client_secret.as_ref().unwrap().expose(), "s3cr3t");
}

#[test]
fn values_are_checked_once_they_are_whole() {
    for (text, field) in [
        (r#"{"url":"${MODE}://h"}"#, "url"),
        (r#"{"url":"http://u:${TOK}@h"}"#, "url"),
        (r#"{"url":"http://h","headers":{"X":" ${TOK}"}}"#, "headers.X"),
        (r#"{"command":"x","envFile":"/none/.env"}"#, "envFile"),
    ] {
        let outcome = outcome(text, Dialect::Cursor);
        assert_eq!(outcome.errors.len(), 1, "{text}: {:?}", outcome.errors);
        assert_eq!(outcome.errors[0].field.as_deref(), Some(field));
        assert!(!outcome.errors[0].to_string().contains("s3cr3t"));
    }
}

#[test]
fn variables_of_a_file_stand_below_those_of_the_entry() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".env"), "A=file\nB=${TOK}\nPW=hunter2").unwrap();
    let text = r#"{"command":"x","envFile":"${workspaceFolder}/.env","env":{"A":"entry"}}"#;
    let outcome = outcome_in(text, Dialect::Cursor, dir.path());
    let env: BTreeMap<_, _> =
        stdio(&outcome).env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(env, BTreeMap::from([("A", "entry"), ("B", "${TOK}"), ("PW", "hunter2")]));
    assert!(outcome.expanded.secrets.iter().any(|secret| secret.expose() == "hunter2"));
}

#[test]
fn a_command_without_args_is_split_and_paths_become_absolute() {
    let out = outcome(r#"{"command":"npx -y '@a/b c' ${MODE}"}"#, Dialect::Cursor);
    assert_eq!((stdio(&out).command.as_str(), argv(&out)), ("npx", vec!["-y", "@a/b c", "fast"]));
    let out = outcome(r#"{"command":"./run","args":["~/x","~"],"cwd":"sub"}"#, Dialect::Cursor);
    assert_eq!((stdio(&out).command.as_str(), argv(&out)), ("/ws/sub/./run", vec!["/h/x", "/h"]));
    assert_eq!(stdio(&outcome(r#"{"command":"x"}"#, Dialect::Cursor)).cwd, Path::new("/ws/sub"));
}

#[test]
fn a_secret_behind_its_flag_is_hidden_and_warned_about() {
    let out = outcome(
        r#"{"command":"x","args":["--token","hunter-1","--api-key=hunter-2","--password hunter-3","--key-file","/plain",
            "--auth","--verbose","plain"]}"#,
        Dialect::Cursor,
    );
    let hidden: Vec<&str> = out.expanded.secrets.iter().map(Secret::expose).collect();
    assert_eq!(hidden, ["hunter-1", "hunter-2", "hunter-3"]);
    let warned: Vec<_> = out.expanded.warnings.iter().map(|p| p.field.clone().unwrap()).collect();
    assert_eq!(warned, ["args.1", "args.2", "args.3"]);
}

#[test]
fn a_quote_that_is_never_closed_is_told() {
    let told = outcome(r#"{"command":"npx -y 'x"}"#, Dialect::Cursor).errors;
    assert_eq!(told[0].text(), "server \"s\": command: has a quote that is never closed");
    assert!(outcome(r#"{"command":"it's","args":["a 'b"]}"#, Dialect::Cursor).errors.is_empty());
}

#[cfg(unix)]
#[test]
fn a_command_gives_a_value_only_when_all_is_to_be_read() {
    let text = r#"{"url":"http://h","headers":{"X":"${command:echo s3cr3t-from-cmd}"}}"#;
    let full = outcome_in(text, Dialect::Toolway, Path::new("/"));
    assert_eq!(remote(&full).headers[0].1.expose(), "s3cr3t-from-cmd");
    assert!(full.expanded.secrets.iter().any(|secret| secret.expose() == "s3cr3t-from-cmd"));
}

#[test]
fn a_file_gives_a_value() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tok"), "abc\n").unwrap();
    let text = r#"{"url":"http://h","headers":{"X":"Bearer {file:tok}","Y":"{file:none}"}}"#;
    let outcome = outcome_in(text, Dialect::OpenCode, dir.path());
    assert_eq!(remote(&outcome).headers[0].1.expose(), "Bearer abc");
    assert_eq!(outcome.errors.len(), 1);
}

#[test]
fn roots_become_urls() {
    let outcome =
        outcome(r#"{"command":"x","roots":["${workspaceFolder}/a b","file:///z"]}"#, Dialect::Cursor);
    assert_eq!(outcome.expanded.roots.unwrap(), ["file:///ws/a%20b", "file:///z"]);
}

#[test]
fn the_digest_changes_with_the_values() {
    let digest = |text: &str| outcome(text, Dialect::Cursor).expanded.digest;
    let one = digest(r#"{"command":"x","env":{"A":"${MODE}","B":"1"}}"#);
    assert_eq!(one, digest(r#"{"env":{"B":"1","A":"fast"},"command":"x"}"#));
    assert_ne!(one, digest(r#"{"env":{"B":"1","A":"slow"},"command":"x"}"#));
}
