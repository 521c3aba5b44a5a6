use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::gateway::catalogue::{ServerCatalogue, Shaping};
use crate::gateway::config::ToolFilter;
use crate::gateway::lists::RawLists;
use crate::gateway::naming::Naming;
use crate::gateway::state::{ServerState, Stage};

fn catalogue(servers: &[(&str, &[&str])]) -> Catalogue {
    let mut all = Catalogue::default();
    for (number, (server, tools)) in servers.iter().enumerate() {
        let tools = tools.iter().map(|name| {
            let definition = json!({"name": name, "description": format!("Does {name}\nand more"), "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}});
            Bytes::from(definition.to_string())
        });
        let lists = RawLists { tools: tools.collect(), ..RawLists::default() };
        let filter = ToolFilter::default();
        let shaping = Shaping { naming: Naming::default(), filter: &filter, relax_output: true, pins: None };
        all.set(number, Arc::new(ServerCatalogue::new(server, &lists, shaping)));
    }
    all
}

fn search(
    all: &mut Catalogue,
    arguments: &str,
    states: &[(&str, &ServerState)],
    max: usize,
) -> (Value, bool) {
    let request = SearchRequest::parse(arguments.as_bytes()).unwrap();
    let result: Value = serde_json::from_slice(&search_result(all, &request, states, max)).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    let text = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    (text, result["isError"].as_bool().unwrap())
}

fn names(answer: &Value) -> Vec<&str> {
    answer["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn the_front_of_five_hundred_tools_is_small() {
    let servers: Vec<String> = (0..100).map(|n| format!("server-number-{n}")).collect();
    let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
    let own = [search_definition(&servers), call_definition(), toolway_guard::read_back_definition()];
    for definition in &own {
        let definition: Value = serde_json::from_str(definition).unwrap();
        assert_eq!(definition["inputSchema"]["type"], "object");
    }
    let mut all = Catalogue::new(own.into_iter().map(Bytes::from).collect(), Some(Vec::new()));
    assert!(all.list(ListKind::Tools).len() < 4000, "{}", all.list(ListKind::Tools).len());
    assert!(search_definition(&servers).contains(" more. Say"));
    assert!(!search_definition(&[]).contains("servers"));
}

#[test]
fn what_is_found_comes_with_its_whole_schema() {
    let mut all = catalogue(&[("fs", &["read_file", "write_file"]), ("git", &["commit"])]);
    let up = ServerState::Connected;
    let down = ServerState::Failed { stage: Stage::Spawn, reason: "exit code 1".to_owned(), hint: None };
    let off = ServerState::Disabled { by: "x".to_owned() };
    let states = [("fs", &up), ("git", &up), ("db", &down), ("old", &off)];
    let (answer, is_error) = search(&mut all, r#"{"query":"write a file","limit":1}"#, &states, 10_000);
    assert!(!is_error);
    assert_eq!(
        answer["tools"][0],
        json!({"name": "fs__write_file", "server": "fs", "description": "Does write_file\nand more", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}})
    );
    assert_eq!(answer["alsoFound"], json!(["fs__read_file"]));
    assert_eq!(answer["serversNotUp"], json!([{"server": "db", "state": "failed (spawn): exit code 1"}]));

    let (nothing, _) = search(&mut all, r#"{"query":"kubernetes"}"#, &states, 10_000);
    assert_eq!(names(&nothing), Vec::<&str>::new());
    assert!(nothing["next"].as_str().unwrap().starts_with("Nothing fits."));

    let (unknown, is_error) = search(&mut all, r#"{"query":"x","server":"gti"}"#, &states, 10_000);
    assert_eq!(
        (unknown, is_error),
        (Value::from("there is no server \"gti\"; there are fs, git, db, old"), true)
    );
}

#[test]
fn answers_are_bounded_and_the_first_is_whole() {
    let many: Vec<String> = (0..200).map(|n| format!("find_{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut all = catalogue(&[("s", &many)]);
    let states = [("s", &ServerState::Connected)];
    let (answer, _) = search(&mut all, r#"{"query":"find","limit":50}"#, &states, 2000);
    assert!((5..50).contains(&names(&answer).len()));
    let left = answer["alsoFound"].as_array().unwrap().len() + count(&answer["notNamed"]);
    assert_eq!(names(&answer).len() + left, 200);
    let (answer, _) = search(&mut all, r#"{"query":"find 7"}"#, &states, 1);
    assert_eq!(names(&answer), ["s__find_7"]);
    let (answer, _) = search(&mut all, "{}", &states, 2000);
    assert_eq!(answer["tools"][0], json!({"name": "s__find_0", "description": "Does find_0"}));
    assert_eq!(names(&answer).len() + count(&answer["notShown"]), 200);
}

#[test]
fn calls_name_a_tool_by_its_exposed_name_or_by_the_pair() {
    let mut all = catalogue(&[("fs", &["read", "数据"]), ("git", &["read"])]);
    let mut call = |arguments: &str| {
        let call = CallRequest::parse(&Bytes::from(arguments.to_owned()))?;
        let route = call.resolve(&mut all).ok_or("none")?;
        Ok::<_, String>((
            route.server,
            route.definition.own.clone(),
            String::from_utf8(call.arguments.to_vec()).unwrap(),
        ))
    };
    let of = |server: usize, own: &str, arguments: &str| Ok((server, own.to_owned(), arguments.to_owned()));
    for (arguments, expected) in [
        (r#"{"name":"fs__read","arguments":{ "n" : 1.0 }}"#, of(0, "read", r#"{ "n" : 1.0 }"#)),
        (r#"{"name":"git__read"}"#, of(1, "read", "{}")),
        (r#"{"name":"git__read","arguments":null}"#, of(1, "read", "{}")),
        (r#"{"name":"git__read","arguments":"{\"n\":\n1}"}"#, of(1, "read", r#"{"n": 1}"#)),
        (r#"{"name":"数据","server":"fs"}"#, of(0, "数据", "{}")),
        (r#"{"name":"read","server":"git"}"#, of(1, "read", "{}")),
        (r#"{"name":"read"}"#, Err("none".to_owned())),
        (r#"{"name":"x","server":"git"}"#, Err("none".to_owned())),
    ] {
        assert_eq!(call(arguments), expected, "{arguments}");
    }
}

#[test]
fn bad_arguments_are_told() {
    for (arguments, error) in [
        ("[]", "arguments are an object"),
        (r#"{"arguments":{}}"#, "name is missing: toolway_search shows the names"),
        (r#"{"name":1}"#, "name is a string"),
        (r#"{"name":"a","args":{}}"#, "there is no argument \"args\", only name, server, arguments"),
        (r#"{"name":"a","arguments":[1]}"#, "arguments is an object, as the tool's inputSchema describes it"),
        (r#"{"name":"a","arguments":"x"}"#, "arguments is an object, as the tool's inputSchema describes it"),
    ] {
        assert_eq!(CallRequest::parse(&Bytes::from(arguments)), Err(error.to_owned()), "{arguments}");
    }
    for (arguments, error) in [
        (r#"{"q":"x"}"#, "there is no argument \"q\", only query, server, limit"),
        (r#"{"query":7}"#, "query is a string"),
        (r#"{"limit":"many"}"#, "limit is a number from 1 to 50"),
    ] {
        assert_eq!(SearchRequest::parse(arguments.as_bytes()), Err(error.to_owned()), "{arguments}");
    }
    let overview = SearchRequest { query: String::new(), server: None, limit: 50 };
    assert_eq!(SearchRequest::parse(br#"{"limit":"99","server":""}"#), Ok(overview));
    assert!(SearchRequest::parse(b"").is_ok());
}

#[test]
fn a_wrong_name_is_answered_with_what_is_near() {
    let mut all = catalogue(&[("fs", &["read_file"])]);
    let (up, down) = (ServerState::Connected, ServerState::Missing);
    let states = [("fs", &up), ("db", &down)];
    let mut said = |name| no_such_tool(&mut all, name, &states);
    assert_eq!(said("file_read"), "no tool is called \"file_read\"; like it are \"fs__read_file\"");
    assert_eq!(said("db__query"), "no tool is called \"db__query\" now: the server \"db\" is missing");
    assert_eq!(said("zzz"), "no tool is called \"zzz\"");
}
