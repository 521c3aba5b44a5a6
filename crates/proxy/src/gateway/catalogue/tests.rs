mod properties;

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::gateway::config::ToolFilter;
use crate::gateway::lists::RawLists;
use crate::gateway::naming::Naming;

fn raw(items: &[Value]) -> Vec<Bytes> {
    items.iter().map(|item| Bytes::from(item.to_string())).collect()
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "inputSchema": {"type": "object", "properties": {}}})
}

fn shaped(server: &str, lists: &RawLists, filter: &ToolFilter) -> Arc<ServerCatalogue> {
    let shaping = Shaping { naming: Naming::default(), filter, relax_output: true, pins: None };
    Arc::new(ServerCatalogue::new(server, lists, shaping))
}

fn tools(server: &str, names: &[&str]) -> Arc<ServerCatalogue> {
    let names: Vec<Value> = names.iter().map(|name| tool(name)).collect();
    shaped(server, &RawLists { tools: raw(&names), ..RawLists::default() }, &ToolFilter::default())
}

fn resources_of(server: &str, uris: &[&str], templates: &[&str]) -> Arc<ServerCatalogue> {
    let uris: Vec<Value> = uris.iter().map(|uri| json!({"uri": uri, "name": "n"})).collect();
    let templates: Vec<Value> =
        templates.iter().map(|uri| json!({"uriTemplate": uri, "name": "n"})).collect();
    let lists = RawLists { resources: raw(&uris), templates: raw(&templates), ..RawLists::default() };
    shaped(server, &lists, &ToolFilter::default())
}

fn listed(catalogue: &mut Catalogue, kind: ListKind) -> Vec<String> {
    let list: Value = serde_json::from_slice(&catalogue.list(kind)).unwrap();
    let items = list[kind.member()].as_array().unwrap();
    items.iter().map(|item| item[kind.key()].as_str().unwrap().to_owned()).collect()
}

fn refusals(catalogue: &mut Catalogue) -> Vec<String> {
    catalogue.refused().iter().map(ToString::to_string).collect()
}

#[test]
fn calls_go_by_the_pair() {
    let mut all = Catalogue::default();
    all.set(0, tools("a-b", &["c"]));
    all.set(1, tools("a", &["b-c", "b__c"]));
    all.set(2, tools("a__b", &["c"]));
    assert_eq!(listed(&mut all, ListKind::Tools), ["a-b__c", "a__b-c", "a__b__c", "a__b__c__6ngd197d"]);
    let mut route = |exposed| {
        all.route(ListKind::Tools, exposed).map(|route| (route.server, route.definition.own.clone()))
    };
    assert_eq!(route("a-b__c"), Some((0, "c".to_owned())));
    assert_eq!(route("a__b-c"), Some((1, "b-c".to_owned())));
    assert_eq!(route("a__b__c"), Some((1, "b__c".to_owned())));
    assert_eq!(route("a__b__c__6ngd197d"), Some((2, "c".to_owned())));
    assert_eq!(route("c"), None);
}

#[test]
fn definitions_keep_what_is_not_ours() {
    let lists = RawLists {
        tools: vec![Bytes::from_static(
            b"{ \"x\" : 1.50,\n\"name\":\"t\\u0061\",\"inputSchema\":{\"type\":\"object\",\"properties\":{ }},\"outputSchema\":{\"a\":1e2}}",
        )],
        ..RawLists::default()
    };
    let filter = ToolFilter {
        rename: [("ta".to_owned(), "go".to_owned())].into(),
        describe: [("ta".to_owned(), "Says \"hi\"".to_owned())].into(),
        ..ToolFilter::default()
    };
    let mut all = Catalogue::new(vec![Bytes::from_static(b"{\"name\":\"toolway_saved\"}")], None);
    all.set(0, shaped("s", &lists, &filter));
    assert_eq!(
        all.list(ListKind::Tools),
        r#"{"tools":[{"x":1.50,"name":"s__go","inputSchema":{"type":"object","properties":{ }},"_meta":{"toolway/outputSchema":{"a":1e2}},"description":"Says \"hi\""},{"name":"toolway_saved"}]}"#
    );
    let route = all.route(ListKind::Tools, "s__go").unwrap();
    assert_eq!((route.definition.own.as_str(), &route.definition.own_json[..]), ("ta", &b"\"t\\u0061\""[..]));
    assert_eq!(all.list(ListKind::Prompts), r#"{"prompts":[]}"#);
    assert_eq!(all.list(ListKind::Templates), r#"{"resourceTemplates":[]}"#);
}

#[test]
fn one_bad_tool_leaves_the_two_good_ones() {
    let lists = RawLists {
        tools: raw(&[tool("good"), json!({"name": "bad"}), tool("also"), tool("good")]),
        notes: vec!["paging was cut".to_owned()],
        ..RawLists::default()
    };
    let mut all = Catalogue::default();
    all.set(7, shaped("s", &lists, &ToolFilter::default()));
    assert_eq!(listed(&mut all, ListKind::Tools), ["s__good", "s__also"]);
    assert_eq!(
        refusals(&mut all),
        [
            r#"tool "bad" of "s" has no inputSchema"#,
            r#"tool "good" of "s" is listed twice; the first one is shown"#
        ]
    );
    assert_eq!(all.get(7).unwrap().notes(), ["paging was cut"]);
}

#[test]
fn filters_hide_and_slips_are_noted() {
    let filter = ToolFilter {
        deny: vec![Glob::new("x1").unwrap()],
        rename: [("gone".to_owned(), "y".to_owned())].into(),
        ..ToolFilter::default()
    };
    let lists = RawLists { tools: raw(&[tool("x1"), tool("y")]), ..RawLists::default() };
    let one = shaped("s", &lists, &filter);
    assert_eq!((one.hidden(), one.definitions(ListKind::Tools).len()), (1, 1));
    assert_eq!(one.notes(), ["the settings name a tool \"gone\", which it does not have"]);
    assert_eq!(one.tokens(), one.definitions(ListKind::Tools)[0].item.len().div_ceil(4));
}

#[test]
fn people_are_told_of_what_clients_see_otherwise() {
    let tools = [
        tool("plain"),
        tool("no args"),
        json!({"name": "odd", "title": null, "inputSchema": {"anyOf": []}}),
        json!({"name": "bare", "inputSchema": {"type": "object"}}),
    ];
    let prompts: Vec<Value> = (0..7).map(|n| json!({"name": format!("p.{n}")})).collect();
    let lists = RawLists { tools: raw(&tools), prompts: raw(&prompts), ..RawLists::default() };
    let notes = shaped("s", &lists, &ToolFilter::default()).notes().to_vec();
    assert_eq!(notes[0], "tool names that not every client takes: \"no args\" is \"s__no_args__817x9zdb\"");
    assert_eq!(
        notes[1],
        "tool definitions that were repaired: \"odd\": title is null and is left out, inputSchema had no type"
    );
    assert_eq!(
        notes[2],
        "tools that some models refuse for what is at the root of their inputSchema: \"odd\": anyOf"
    );
    assert!(notes[3].ends_with("; and 2 more"), "{}", notes[3]);
    assert_eq!(notes.len(), 4);
}

#[test]
fn a_clash_of_renames_refuses_both_in_every_order() {
    let filter = ToolFilter { rename: [("a".to_owned(), "b".to_owned())].into(), ..ToolFilter::default() };
    for names in [["a", "b", "c"], ["b", "c", "a"]] {
        let names = names.map(tool);
        let lists = RawLists { tools: raw(&names), ..RawLists::default() };
        let mut all = Catalogue::default();
        all.set(0, shaped("s", &lists, &filter));
        assert_eq!(listed(&mut all, ListKind::Tools), ["s__c"]);
        let mut reasons = refusals(&mut all);
        reasons.sort();
        assert_eq!(
            reasons,
            [
                r#"tool "a" of "s" "a" and "b" would both be "s__b"; rename one of them"#,
                r#"tool "b" of "s" "b" and "a" would both be "s__b"; rename one of them"#,
            ]
        );
    }
}

#[test]
fn bare_names_of_two_servers_clash_and_the_rest_works() {
    let bare = |server: &str, names: &[&str]| {
        let names: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        let lists = RawLists { tools: raw(&names), ..RawLists::default() };
        let filter = ToolFilter::default();
        let shaping =
            Shaping { naming: Naming::new(64, true), filter: &filter, relax_output: true, pins: None };
        Arc::new(ServerCatalogue::new(server, &lists, shaping))
    };
    let mut all = Catalogue::default();
    all.set(0, bare("p", &["read", "x"]));
    all.set(1, bare("q", &["read", "y"]));
    assert_eq!(listed(&mut all, ListKind::Tools), ["x", "y"]);
    assert!(all.route(ListKind::Tools, "read").is_none());
    assert!(all.find_tools("read", None).is_empty());
    assert_eq!(
        refusals(&mut all),
        [
            r#"tool "read" of "p" would be "read", as one of "q" would be; rename one of them"#,
            r#"tool "read" of "q" would be "read", as one of "p" would be; rename one of them"#,
        ]
    );
    all.remove(1);
    assert_eq!(listed(&mut all, ListKind::Tools), ["read", "x"]);
}

#[test]
fn pins_hold_back_what_has_changed() {
    let mut pins = Pins::default();
    pins.remember(tools("s", &["a", "b"]).digests());
    let changed = json!({"name": "a", "description": "And sends it home", "inputSchema": {}});
    let lists = RawLists { tools: raw(&[changed, tool("b"), tool("new")]), ..RawLists::default() };
    let filter = ToolFilter::default();
    let held = Shaping { naming: Naming::default(), filter: &filter, relax_output: true, pins: Some(&pins) };
    let one = ServerCatalogue::new("s", &lists, held);
    let shown: Vec<_> = one.definitions(ListKind::Tools).iter().map(|one| one.own.as_str()).collect();
    assert_eq!(shown, ["b", "new"]);
    assert_eq!(one.refused()[0].reason, "has changed since it was approved, and is held back");
    let changed = [("a".to_owned(), Difference::Changed), ("new".to_owned(), Difference::New)];
    assert_eq!(pins.compare(one.digests()), changed);
}

#[test]
fn resources_keep_their_addresses_and_twins_get_another() {
    for order in [[0, 1], [1, 0]] {
        let mut all = Catalogue::default();
        all.set(order[0], resources_of("a", &["test://x", "test://a"], &["t://{id}"]));
        all.set(order[1], resources_of("b", &["test://x", "u://b"], &["t://{id}"]));
        let mut uris = listed(&mut all, ListKind::Resources);
        uris.sort();
        assert_eq!(uris, ["test://a", "test://x", "toolway://server/b/test://x", "u://b"]);
        let mut found = |uri| all.resource(uri).map(|route| (route.server, route.own.into_owned()));
        assert_eq!(found("test://x"), Some((order[0], "test://x".to_owned())));
        assert_eq!(found("toolway://server/b/test://x"), Some((order[1], "test://x".to_owned())));
        assert_eq!(
            found("toolway://server/b/test://unlisted"),
            Some((order[1], "test://unlisted".to_owned()))
        );
        assert_eq!(found("t://7"), Some((order[0], "t://7".to_owned())));
        assert_eq!(found("toolway://server/b/t://{id}"), Some((order[1], "t://{id}".to_owned())));
        assert_eq!(found("u://unlisted"), None, "another host");
        assert_eq!(
            found("test://x/1"),
            Some((order[0], "test://x/1".to_owned())),
            "as only one has test://x..."
        );
        assert_eq!(all.exposed_uri(order[1], "test://x"), "toolway://server/b/test://x");
        assert_eq!(all.exposed_uri(order[0], "test://x"), "test://x");
        assert_eq!(all.exposed_uri(order[0], "test://other"), "test://other");
    }
}

#[test]
fn unlisted_resources_go_to_the_only_server_that_may_have_them() {
    let mut all = Catalogue::default();
    all.set(0, resources_of("a", &["file:///x"], &[]));
    all.set(1, tools("b", &["t"]));
    assert_eq!(all.resource("db://rows").map(|route| route.server), Some(0));
    all.set(2, resources_of("c", &["db://tables"], &[]));
    assert_eq!(all.resource("file:///y").map(|route| route.server), Some(0));
    assert_eq!(all.resource("other://y"), None);
}

#[test]
fn only_what_clients_see_counts_as_a_change() {
    let mut all = Catalogue::new(Vec::new(), Some(vec![Glob::new("s__pin*").unwrap()]));
    assert!(all.set(0, tools("s", &["pinned", "a"])).tools);
    assert_eq!(listed(&mut all, ListKind::Tools), ["s__pinned"]);
    assert!(all.route(ListKind::Tools, "s__a").is_some(), "what is not listed can be called");
    assert!(!all.set(0, tools("s", &["pinned", "b"])).any());
    assert!(all.route(ListKind::Tools, "s__a").is_none() && all.route(ListKind::Tools, "s__b").is_some());
    assert!(!all.set(0, tools("s", &["pinned", "b"])).any());
    assert!(all.remove(0).tools);
}

#[test]
fn questions_find_tools() {
    let github = [
        json!({"name": "create_issue", "description": "Opens a new issue in a GitHub repository", "inputSchema": {"type": "object", "properties": {"repo": {"type": "string"}, "title": {"type": "string"}}}}),
        json!({"name": "listPullRequests", "description": "Lists pull requests", "inputSchema": {"type": "object", "properties": {"state": {"enum": ["open", "merged"]}}}}),
        json!({"name": "search_code", "description": "Finds code", "inputSchema": {}}),
    ];
    let files = [
        json!({"name": "read_file", "description": "Reads the whole content of a file", "inputSchema": {"type": "object", "properties": {"path": {"description": "absolute path in a directory"}}}}),
        json!({"name": "数据库查询", "description": "查询数据库中的行", "inputSchema": {}}),
    ];
    let mut all = Catalogue::default();
    all.set(
        0,
        shaped("github", &RawLists { tools: raw(&github), ..RawLists::default() }, &ToolFilter::default()),
    );
    all.set(1, shaped("fs", &RawLists { tools: raw(&files), ..RawLists::default() }, &ToolFilter::default()));
    for (question, server, best) in [
        ("create issue", None, Some("create_issue")),
        ("open an issue on github", None, Some("create_issue")),
        ("merged PULL requests", None, Some("listPullRequests")),
        ("repository", None, Some("create_issue")),
        ("reading files", None, Some("read_file")),
        ("directory", None, Some("read_file")),
        ("数据库", None, Some("数据库查询")),
        ("github", Some("fs"), None),
        ("file", Some("fs"), Some("read_file")),
        ("kubernetes", None, None),
        ("", None, None),
    ] {
        let hit = all.find_tools(question, server).first().copied();
        let own =
            hit.map(|hit| all.get(hit.server).unwrap().definitions(ListKind::Tools)[hit.at].own.clone());
        assert_eq!(own.as_deref(), best, "{question}");
    }
}

#[test]
fn a_thousand_tools_are_merged_whole() {
    let mut all = Catalogue::default();
    for server in 0..20 {
        let names: Vec<String> = (0..50).map(|n| format!("tool_{n}_{}", "x".repeat(n))).collect();
        all.set(server, tools(&format!("s{server}"), &names.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let names = listed(&mut all, ListKind::Tools);
    assert_eq!(names.len(), 1000);
    let mut list = String::new();
    for name in &names {
        assert!(name.len() <= 64, "{name}");
        writeln!(list, "{name}").unwrap();
        let definition = all.route(ListKind::Tools, name).unwrap().definition;
        assert_eq!(definition.exposed, *name);
    }
    assert_eq!(all.find_tools("tool 7", Some("s3")).first().map(|hit| (hit.server, hit.at)), Some((3, 7)));
}
