use super::*;
use crate::problem::Severity;
use crate::tree::{Format, read};

fn entry(text: &str, dialect: Dialect) -> ReadEntry {
    let node = read(text.as_bytes(), Format::Jsonc).unwrap();
    Definition::read("s", node.at, &node, dialect)
}

fn definition(text: &str) -> Definition {
    match entry(text, Dialect::Cursor) {
        ReadEntry { content: Content::Definition(definition), .. } => *definition,
        other => panic!("{text}: {:?}", other.problems),
    }
}

/// `field: message` of each error.
fn errors(text: &str, dialect: Dialect) -> Vec<String> {
    let problems = entry(text, dialect).problems;
    problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|p| p.text().replace("server \"s\": ", ""))
        .collect()
}

#[test]
fn every_member_is_understood() {
    let stdio = definition(
        r#"{"type":"stdio","command":"npx","args":["-y","x"],"env":{"A":"1"},"envFile":".env","cwd":"/w",
        "inheritEnv":["HTTP_PROXY"],"enabled":true,"tools":{"allow":["a*"],"deny":["b"],"rename":{"x":"y"},
        "describe":{"x":"does y"}},"startupTimeoutMs":1500,"listTimeoutMs":2,"callIdleTimeoutMs":3,"callMaxMs":4,
        "required":true,"lazy":false,"share":"never","maxResponseChars":5000,"roots":["/w"],"protocol":"legacy",
        "placement":"client"}"#,
    );
    let Target::Stdio(target) = &stdio.target else { panic!() };
    assert_eq!(target.args.as_ref().unwrap().len(), 2);
    assert_eq!(target.env, [("A".to_owned(), Text::new("1"))]);
    assert_eq!(target.inherit_env, InheritEnv::Names(vec!["HTTP_PROXY".to_owned()]));
    assert_eq!(
        stdio.options,
        Options {
            enabled: Some(true),
            tools: ToolOptions {
                allow: Some(vec!["a*".to_owned()]),
                deny: vec!["b".to_owned()],
                rename: [("x".to_owned(), "y".to_owned())].into(),
                describe: [("x".to_owned(), "does y".to_owned())].into(),
            },
            startup_timeout: Some(Duration::from_millis(1500)),
            list_timeout: Some(Duration::from_millis(2)),
            call_idle_timeout: Some(Duration::from_millis(3)),
            call_max: Some(Duration::from_millis(4)),
            required: Some(true),
            lazy: Some(false),
            share: Some(Share::Never),
            max_response_chars: Some(5000),
            roots: Some(vec![Text::new("/w")]),
            protocol: Some(Protocol::Legacy),
            placement: Some(Placement::Client),
        }
    );
    let remote = definition(
        r#"{"url":"https://h/mcp","headers":{"X":"y"},"auth":{"CLIENT_ID":"i","CLIENT_SECRET":"s","scopes":["a"]},
        "tls":{"caBundle":"PEM","strict":true},"headerCase":"title"}"#,
    );
    let Target::Remote(target) = &remote.target else { panic!() };
    assert_eq!((target.kind, target.header_case), (RemoteKind::Auto, HeaderCase::Title));
    assert_eq!(target.auth.as_ref().unwrap().scopes, ["a"]);
    assert!(target.tls.as_ref().unwrap().strict);
}

#[test]
fn the_kind_follows_type_and_members() {
    let kind = |text: &str| match definition(text).target {
        Target::Remote(target) => Some(target.kind),
        Target::Stdio(_) => None,
    };
    assert_eq!(kind(r#"{"command":"x"}"#), None);
    assert_eq!(kind(r#"{"type":"local","command":"x"}"#), None);
    assert_eq!(kind(r#"{"url":"http://h"}"#), Some(RemoteKind::Auto));
    assert_eq!(kind(r#"{"httpUrl":"http://h"}"#), Some(RemoteKind::Http));
    assert_eq!(kind(r#"{"type":"SSE","url":"http://h"}"#), Some(RemoteKind::Sse));
    for word in ["http", "streamable-http", "streamableHttp", "streamable_http", "remote"] {
        assert_eq!(
            kind(&format!(r#"{{"type":"{word}","url":"http://h"}}"#)),
            Some(RemoteKind::Http),
            "{word}"
        );
    }
}

#[test]
fn programs_write_the_plain_names_only() {
    for word in ["streamable-http", "streamableHttp", "local", "remote", "HTTP"] {
        let text = format!(r#"{{"type":"{word}","url":"http://h"}}"#);
        assert_eq!(errors(&text, Dialect::Inline).len(), 1, "{word}");
    }
    assert_eq!(
        errors(r#"{"command":"x","future":1}"#, Dialect::Inline),
        ["future: is not known to Toolway, and has no effect"]
    );
    assert_eq!(
        errors(r#"{"serverUrl":"http://h"}"#, Dialect::Inline),
        ["neither command nor url", "serverUrl: is not known to Toolway, and has no effect"]
    );
    assert_eq!(errors(r#"{"comand":"x"}"#, Dialect::Inline), ["neither command nor url"]);
    assert!(errors(r#"{"type":"sse","url":"http://h"}"#, Dialect::Inline).is_empty());
}

#[test]
fn all_faults_are_told_at_once_with_their_place() {
    let text = "{\n \"type\": \"ws\",\n \"url\": \"ftp://u:hunter2@h\",\n \"headers\": {\"X Y\": \"a\", \"K\": 5,\n  \"k\": \"é\"},\n \"lazy\": 1\n}";
    let found = entry(text, Dialect::Cursor);
    assert_eq!(found.content, Content::Invalid);
    let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 2, column 10: server \"s\": type: WebSocket is no transport of MCP",
            "line 3, column 9: server \"s\": url: is neither http nor https (write http:// or https://, host and path)",
            "line 4, column 14: server \"s\": headers.X Y: is no name of a header (RFC 9110, 5.6.2)",
            "line 4, column 31: server \"s\": headers.K: must be a string, and is a number (write \"5\")",
            "line 5, column 8: server \"s\": headers.k: the value has characters that a header cannot hold: it must be \
             visible ASCII",
            "line 6, column 10: server \"s\": lazy: must be true or false, and is a number",
        ]
    );
}

#[test]
fn each_fault_is_found() {
    for (text, expected) in [
        (r"{}", "neither command nor url"),
        (r#"{"command":"x","url":"http://h"}"#, "both command and url: it is ambiguous"),
        (r#"{"command":"x","type":"http"}"#, "type: the type is that of an address, and there is a command"),
        (r#"{"url":"http://h","type":"stdio"}"#, "type: the type is that of a command, and there is a url"),
        (r#"{"command":"x","type":"pipe"}"#, "type: the type \"pipe\" is not supported"),
        (r#"{"command":" "}"#, "command: is empty"),
        (r#"{"command":"x","env":{"A":null}}"#, "env.A: must be a string, and is null"),
        (r#"{"command":"x","env":{"A=B":""}}"#, "env: the name of a variable has a '='"),
        (r#"{"command":"x","env":{"":""}}"#, "env: the name of a variable is empty"),
        (r#"{"command":"x","args":"a b"}"#, "args: must be a list of strings, and is a string"),
        (r#"{"command":"x","args":["a",{}]}"#, "args.1: must be a string, and is an object"),
        (r#"{"command":"x","args":["${A"]}"#, "args.0: a ${ without its }"),
        (r#"{"command":"x","startupTimeoutSec":301}"#, "startupTimeoutSec: must not be more than 300"),
        (r#"{"command":"x","callMaxMs":0}"#, "callMaxMs: must be more than 0"),
        (r#"{"command":"x","share":"maybe"}"#, "share: must be one of auto, always, never"),
        (r#"{"command":"x","enabled":true,"disabled":true}"#, "disabled: contradicts enabled"),
        (r#"{"command":"x","tools":{"rename":{"a":"z","b":"z"}}}"#, "tools.rename.b: has the new name of a"),
        (r#"{"url":"https://u:p@h"}"#, "url: holds a user or a password"),
        (
            r#"{"url":"http://h","serverUrl":"http://i"}"#,
            "serverUrl: stands beside another url: which one is meant?",
        ),
        (
            r#"{"url":"http://h","headers":{"A":"1","a":"2"}}"#,
            "headers.a: is the same header as A, in another case",
        ),
        (
            r#"{"url":"http://h","headers":{"authorization":"x"},"auth":{"CLIENT_ID":"i"}}"#,
            "auth: stands beside the header authorization, and only one can be sent",
        ),
        (
            r#"{"url":"http://h","auth":{"CLIENT_SECRET":"i"}}"#,
            "auth: has a CLIENT_SECRET without its CLIENT_ID",
        ),
        (r#""npx""#, "must be an object, and is a string"),
    ] {
        assert_eq!(errors(text, Dialect::Cursor), [expected], "{text}");
    }
}

#[test]
fn what_a_file_may_say_in_vain_is_a_warning() {
    let found =
        entry(r#"{"command":"x","headers":{"A":"b"},"disable":true,"future_key":{"x":1}}"#, Dialect::Cursor);
    let told: Vec<_> =
        found.problems.iter().map(|p| (p.severity, p.field.clone().unwrap(), p.hint.clone())).collect();
    assert_eq!(
        told,
        [
            (Severity::Warning, "headers".to_owned(), None),
            (Severity::Warning, "disable".to_owned(), Some("did you mean disabled?".to_owned())),
            (Severity::Warning, "future_key".to_owned(), None),
        ]
    );
    let Content::Definition(definition) = found.content else { panic!() };
    assert_eq!(definition.unknown.len(), 2);
    assert!(errors(r#"{"command":"x","headers":{}}"#, Dialect::Inline).is_empty());
}

#[test]
fn an_entry_may_only_switch() {
    for (text, on) in
        [(r#"{"enabled":false}"#, false), (r#"{"disabled":true}"#, false), (r#"{"disabled":false}"#, true)]
    {
        assert_eq!(entry(text, Dialect::Cursor).content, Content::Switch(on), "{text}");
    }
    assert_eq!(entry(r#"{"enabled":"no"}"#, Dialect::Cursor).content, Content::Invalid);
    assert_eq!(errors(r#"{"enabled":null}"#, Dialect::Cursor), ["neither command nor url"]);
}

#[test]
fn other_clients_filters_are_read_in_files() {
    let tools = |text: &str| definition(text).options.tools;
    assert_eq!(tools(r#"{"command":"x","tools":["*"]}"#).allow, Some(vec!["*".to_owned()]));
    let both = tools(r#"{"command":"x","enabledTools":["a"],"excludeTools":["b"]}"#);
    assert_eq!((both.allow, both.deny), (Some(vec!["a".to_owned()]), vec!["b".to_owned()]));
}

#[test]
fn fields_know_their_place_and_debug_shows_no_text() {
    let found = entry("{\"url\": \"http://h/hunter2\",\n\"headers\": {\"A\": \"hunter2\"}}", Dialect::Cursor);
    assert_eq!(found.fields["headers.A"].unwrap().line, 2);
    assert!(!format!("{found:?}").contains("hunter2"));
}
