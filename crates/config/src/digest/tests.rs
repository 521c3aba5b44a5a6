use super::*;
use crate::definition::Content;
use crate::environment::{Environment, Platform};
use crate::expand::{Context, Depth, expand};
use crate::source::Source;
use crate::tree::{Format, read};

fn digest_in(text: &str, root: &Path) -> String {
    digest_with(text, root, root, "x")
}

fn digest_with(text: &str, root: &Path, cwd: &Path, value: &str) -> String {
    let node = read(text.as_bytes(), Format::Jsonc).unwrap();
    let dialect = if text.contains("${keyring:") { Dialect::Toolway } else { Dialect::Cursor };
    let entry = Definition::read("s", node.at, &node, dialect);
    let Content::Definition(definition) = &entry.content else { panic!("{:?}", entry.problems) };
    let vars = [("T".to_owned(), value.to_owned())];
    let environment = Environment::new(vars.into(), cwd.to_path_buf(), Platform::Linux);
    let context = Context {
        environment: &environment,
        workspace: root,
        source: &Source::Project,
        file: &root.join("mcp.json"),
        depth: Depth::Names,
    };
    let outcome = expand("s", definition, context);
    of_meaning(definition, &outcome.expanded, outcome.env_file.as_deref(), Some(root))
}

#[test]
fn formatting_order_and_values_of_variables_mean_nothing() {
    let root = Path::new("/nowhere");
    let one =
        digest_in(r#"{"command":"x","args":["${env:T}"],"env":{"A":"1","B":"2"},"enabled":true}"#, root);
    let same = "{ // note\n \"env\": {\"B\":\"2\",\"A\":\"1\"},\n\"args\":[\"${T}\"], \"command\":\"x\" }";
    assert_eq!(one, digest_in(same, root));
    assert_eq!(one, digest_with(same, root, root, "another value"));
}

#[test]
fn every_change_of_meaning_changes_it() {
    let root = Path::new("/nowhere");
    let texts = [
        r#"{"command":"x"}"#,
        r#"{"command":"y"}"#,
        r#"{"command":"x","args":["a"]}"#,
        r#"{"command":"x","args":["a b"]}"#,
        r#"{"command":"x","args":["a","b"]}"#,
        r#"{"command":"x","args":["${T}"]}"#,
        r#"{"command":"x","args":["$${T}"]}"#,
        r#"{"command":"x","args":["${T:-d}"]}"#,
        r#"{"command":"x","args":["${input:T}"]}"#,
        r#"{"command":"x","env":{"A":"1"}}"#,
        r#"{"command":"x","env":{"A":"2"}}"#,
        r#"{"command":"x","args":["${keyring:T}"]}"#,
        r#"{"command":"x","args":["${keyring:U}"]}"#,
        r#"{"command":"x","envFile":".env"}"#,
        r#"{"command":"x","cwd":"/t"}"#,
        r#"{"command":"x","cwd":"~/t"}"#,
        r#"{"command":"x","inheritEnv":true}"#,
        r#"{"command":"x","inheritEnv":["A"]}"#,
        r#"{"command":"x","tools":{"deny":["a"]}}"#,
        r#"{"command":"x","callMaxMs":5}"#,
        r#"{"command":"x","lazy":true}"#,
        r#"{"command":"x","roots":["/"]}"#,
        r#"{"url":"http://h"}"#,
        r#"{"url":"http://h","type":"sse"}"#,
        r#"{"url":"http://h","headers":{"A":"1"}}"#,
        r#"{"url":"http://h","headers":{"A":"${T}"}}"#,
        r#"{"url":"http://h","auth":{"CLIENT_ID":"1"}}"#,
        r#"{"url":"http://h","auth":{"CLIENT_ID":"1","scopes":["a"]}}"#,
        r#"{"url":"http://h","tls":{"strict":true}}"#,
        r#"{"url":"http://h","headerCase":"title"}"#,
    ];
    let digests: std::collections::BTreeSet<String> =
        texts.iter().map(|text| digest_in(text, root)).collect();
    assert_eq!(digests.len(), texts.len());
}

#[test]
fn scripts_inside_the_project_are_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (text, script) in [
        (r#"{"command":"node","args":["./a/server.js"]}"#, "a/server.js"),
        (r#"{"command":"node","args":["${workspaceFolder}/b.js"]}"#, "b.js"),
        (r#"{"command":"./run.sh"}"#, "run.sh"),
        (r#"{"command":"python","args":["-m","pkg.srv"]}"#, "pkg/srv.py"),
        (r#"{"command":"deno","args":["--config=deno.json","x"]}"#, "deno.json"),
        (r#"{"command":"node","args":["app"]}"#, "app/package.json"),
        (r#"{"command":"sh -c ./c.sh"}"#, "c.sh"),
        (r#"{"command":"sh","args":["-c","exec ./d.sh --x 'y z'"]}"#, "d.sh"),
    ] {
        let none = digest_in(text, root);
        write(script, "one");
        let one = digest_in(text, root);
        if script != "run.sh" {
            // A relative command is another file elsewhere.
            assert_eq!(
                one,
                digest_with(text, root, &root.join("a"), "x"),
                "{script}: from another directory"
            );
        }
        write(script, "two");
        let two = digest_in(text, root);
        assert!(none != one && one != two, "{script}");
        write("unrelated", text);
        assert_eq!(two, digest_in(text, root), "{script}");
    }
}

#[test]
fn of_a_file_of_variables_only_those_that_steer_are_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"command":"x","envFile":"${workspaceFolder}/.env"}"#;
    let with = |content: &str| {
        std::fs::write(dir.path().join(".env"), content).unwrap();
        digest_in(text, dir.path())
    };
    assert_eq!(with("TOK=1"), with("TOK=2"));
    assert_ne!(with("TOK=1"), with("TOK=1\nNODE_OPTIONS=--require ./x.js"));
}
