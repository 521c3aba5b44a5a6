//! What clients see of all servers: lists, changes, waiting, what is remembered, search.

use tokio::time::Duration;
use toolway_guard::Glob;
use toolway_wire::era::Era;

use super::rig::{Rig, entry, json, refused, server_config};
use crate::gateway::config::{Expose, Wait};
use crate::gateway::lists::RawLists;
use crate::gateway::state::{ServerState, Stage};
use crate::gateway::upstream::UpstreamEvent;

fn tools(rig: &mut Rig) -> Vec<String> {
    rig.client(1, r#"{"jsonrpc":"2.0","id":"tools","method":"tools/list"}"#);
    let list = json(&rig.one());
    let names = list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.filter(|name| *name != "toolway_saved").map(str::to_owned).collect()
}

#[test]
fn initialize_is_answered_at_once_whatever_the_servers_do() {
    let mut rig = Rig::new(&["mute"]);
    rig.open(1);
    rig.sent();
    for (asked, answered) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ] {
        rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{asked}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#));
        let answer = json(&rig.one());
        assert_eq!(answer["result"]["protocolVersion"], answered);
        assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true);
        assert_eq!(answer["result"]["serverInfo"]["name"], "toolway");
    }
    assert_eq!(tools(&mut rig), Vec::<String>::new());
}

#[test]
fn tools_appear_as_servers_come_up_and_clients_hear_of_it_once() {
    let mut rig = Rig::new(&["a", "b"]);
    rig.open(1);
    rig.hello(1);
    rig.open(2);
    rig.sent();
    rig.up("a");
    rig.up("b");
    rig.nothing();
    assert_eq!(tools(&mut rig), ["a__t", "b__t"]);
    rig.after(Duration::from_millis(20));
    assert_eq!(rig.one(), r#"1 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    // A server that lists the same again, or changes all the time, is told of once in a while.
    rig.lists("a", &[r#"{"name":"t","inputSchema":{"type":"object"}}"#], &[]);
    rig.after(Duration::from_secs(1));
    rig.nothing();
    for n in 0..100 {
        rig.lists("a", &[&format!(r#"{{"name":"t{n}","inputSchema":{{"type":"object"}}}}"#)], &[]);
    }
    rig.after(Duration::from_millis(20));
    assert_eq!(rig.sent().len(), 1);
    assert_eq!(tools(&mut rig), ["a__t99", "b__t"]);
    // The old name is no name any more.
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(json(&rig.one())["error"]["code"], -32602);
}

#[test]
fn the_first_list_waits_for_those_that_it_must_wait_for() {
    let servers = || {
        let mut config = server_config("must");
        config.required = true;
        vec![
            entry(config),
            entry(server_config("may")),
            refused("off", ServerState::Disabled { by: "x".to_owned() }),
        ]
    };
    let mut rig = Rig::with(servers(), |config| config.wait = Wait::Required);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    rig.nothing();
    rig.up("must");
    assert_eq!(json(&rig.one())["result"]["tools"][0]["name"], "must__t");

    let mut rig = Rig::with(servers(), |config| config.wait = Wait::All);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    rig.up("must");
    rig.nothing();
    let state = ServerState::Failed { stage: Stage::Spawn, reason: "no".to_owned(), hint: None };
    rig.upstream("may", UpstreamEvent::State(state));
    assert_eq!(json(&rig.one())["id"], 1);

    // A server that never settles is not waited for without end.
    let mut rig = Rig::with(servers(), |config| config.wait = Wait::All);
    rig.open(1);
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    rig.sent();
    rig.after(Duration::from_mins(2));
    assert_eq!(json(&rig.sent()[0])["id"], 1);
}

#[test]
fn a_call_of_what_nobody_has_yet_waits_as_the_first_list_does() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#;
    let servers = || vec![entry(server_config("a")), entry(server_config("b"))];
    let mut rig = Rig::with(servers(), |config| config.wait = Wait::All);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.client(1, call);
    rig.nothing();
    rig.up("a");
    rig.nothing();
    let state = ServerState::Failed { stage: Stage::Spawn, reason: "no".to_owned(), hint: None };
    rig.upstream("b", UpstreamEvent::State(state));
    assert!(rig.sent().iter().any(|line| line.starts_with("a ") && line.contains("tools/call")));

    // A name that nobody has in the end is refused then.
    let mut rig = Rig::with(servers(), |config| config.wait = Wait::All);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.client(1, &call.replace("a__t", "a__none"));
    rig.after(Duration::from_mins(3));
    assert!(rig.sent().iter().any(|line| line.contains("a__none") && line.contains("error")));

    // Whoever waits for nothing is told at once.
    let mut rig = Rig::with(servers(), |_| {});
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.client(1, call);
    assert!(json(&rig.one())["error"]["message"].as_str().unwrap().contains("is starting"));
}

#[test]
fn a_server_has_settled_when_all_of_its_lists_are_there() {
    let get = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a__p"}}"#;
    let mut rig = Rig::with(vec![entry(server_config("a"))], |config| config.wait = Wait::All);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    let lists = |pending: bool| {
        let prompts = if pending { Vec::new() } else { vec![r#"{"name":"p"}"#.into()] };
        UpstreamEvent::Lists(std::sync::Arc::new(RawLists { prompts, pending, ..RawLists::default() }))
    };
    rig.upstream("a", lists(true));
    rig.upstream("a", UpstreamEvent::State(ServerState::Connected));
    rig.client(1, get);
    rig.nothing();
    rig.upstream("a", lists(false));
    let refused = rig.sent().iter().any(|line| line.contains("unknown prompt"));
    assert!(!refused, "the prompt came after the tools");
}

#[test]
fn remembered_tools_are_there_before_their_server_and_go_if_it_does_not_come() {
    let keep = tempfile::tempdir().unwrap();
    let servers = || vec![entry(server_config("a"))];
    let dir = keep.path().to_path_buf();
    let mut first = Rig::with(servers(), |config| config.catalogue_dir = Some(dir.clone()));
    first.up("a");
    drop(first);
    let mut rig = Rig::with(servers(), |config| config.catalogue_dir = Some(dir.clone()));
    rig.open(1);
    rig.hello(1);
    rig.sent();
    assert_eq!(tools(&mut rig), ["a__t"]);
    // A call waits for the server.
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(rig.one(), "a woken");
    let state = ServerState::Failed { stage: Stage::Initialize, reason: "no answer".to_owned(), hint: None };
    rig.upstream("a", UpstreamEvent::State(state));
    assert_eq!(rig.sent().len(), 1);
    assert_eq!(tools(&mut rig), Vec::<String>::new());
}

#[test]
fn a_lazy_server_starts_at_its_first_call_or_once_to_be_listed() {
    let keep = tempfile::tempdir().unwrap();
    let dir = keep.path().to_path_buf();
    let start = || {
        let mut config = server_config("lazy");
        config.lazy = true;
        Rig::with(vec![entry(config)], |config| config.catalogue_dir = Some(dir.clone()))
    };
    let mut first = start();
    assert_eq!(first.sent(), ["lazy started", "lazy woken"]);
    first.up("lazy");
    let mut second = start();
    assert_eq!(second.sent(), ["lazy started"]);
    second.open(1);
    assert_eq!(tools(&mut second), ["lazy__t"]);
    second.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lazy__t"}}"#);
    assert_eq!(second.one(), "lazy woken");
}

#[test]
fn a_tool_that_changed_since_it_was_approved_is_reported_and_with_pins_held_back() {
    let keep = tempfile::tempdir().unwrap();
    let dir = keep.path().to_path_buf();
    for (pin, seen) in [(false, vec!["a__t".to_owned()]), (true, vec![])] {
        let mut rig = Rig::with(vec![entry(server_config("a"))], |config| {
            config.catalogue_dir = Some(dir.clone());
            config.pin_tools = pin;
        });
        if !pin {
            rig.up("a");
            assert_eq!(rig.status()[0].changed_tools, Vec::<String>::new());
        }
        let evil = r#"{"name":"t","description":"now it steals","inputSchema":{"type":"object"}}"#;
        rig.up_as("a", Era::Legacy, &[evil]);
        assert_eq!(rig.status()[0].changed_tools, ["t"]);
        rig.open(1);
        rig.sent();
        assert_eq!(tools(&mut rig), seen);
    }
}

#[test]
fn search_mode_shows_two_tools_and_calls_all() {
    let pinned = Glob::new("a__pin*").unwrap();
    let mut rig = Rig::with(vec![entry(server_config("a"))], |config| {
        config.expose = Expose::Search { pinned: vec![pinned] };
    });
    let all = [
        r#"{"name":"pinned","description":"always there","inputSchema":{"type":"object"}}"#,
        r#"{"name":"weather","description":"Tells the weather of a city","inputSchema":{"type":"object","properties":{"city":{"type":"string"}}}}"#,
    ];
    rig.up_as("a", Era::Legacy, &all);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    assert_eq!(tools(&mut rig), ["a__pinned", "toolway_search", "toolway_call"]);
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"toolway_search","arguments":{"query":"weather in a city"}}}"#);
    let found = json(&rig.one());
    assert!(found["result"]["content"][0]["text"].as_str().unwrap().contains("a__weather"), "{found}");
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"toolway_call","arguments":{"name":"a__weather","arguments":{"city":"Bern"}}}}"#);
    let sent = rig.one();
    let call = json(&sent);
    assert_eq!(call["params"]["name"], "weather");
    assert_eq!(call["params"]["arguments"], serde_json::json!({"city": "Bern"}));
    let ours = call["id"].as_u64().unwrap();
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{ours},"progress":1}}}}"#));
    assert_eq!(json(&rig.one())["params"]["progressToken"], "p");
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[]}}}}"#));
    assert_eq!(json(&rig.one())["id"], 2);
    rig.client(1, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"toolway_call","arguments":{"name":"a__wether"}}}"#);
    assert_eq!(json(&rig.one())["result"]["isError"], true);
}

#[test]
fn every_entry_has_a_state_also_those_that_never_start() {
    let servers = vec![
        entry(server_config("ok")),
        refused("off", ServerState::Disabled { by: "mcp.json:3".to_owned() }),
        refused("lost", ServerState::Shadowed { by: "mcp.json:9".to_owned() }),
    ];
    let mut rig = Rig::with(servers, |_| {});
    rig.up_as(
        "ok",
        Era::Legacy,
        &[r#"{"name":"t","inputSchema":{"type":"object"}}"#, r#"{"name":"bad"}"#, "7"],
    );
    let status = rig.status();
    let states: Vec<String> = status.iter().map(|one| format!("{}: {}", one.name, one.state)).collect();
    assert_eq!(states, ["ok: connected", "off: disabled: mcp.json:3", "lost: shadowed: mcp.json:9"]);
    assert_eq!((status[0].protocol.as_deref(), status[0].instances), (Some("2025-11-25"), 1));
    assert!(status[0].tools >= 1 && !status[0].hidden_tools.is_empty(), "{:?}", status[0]);
}

#[test]
fn with_bare_names_the_one_server_is_asked_for_what_it_did_not_list() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"unlisted"}}"#;
    let one = || vec![entry(server_config("a"))];
    let called = |rig: &mut Rig| {
        rig.open(1);
        rig.hello(1);
        rig.up("a");
        rig.sent();
        rig.client(1, call);
        rig.one()
    };
    let mut rig = Rig::with(one(), |config| config.bare = true);
    assert!(called(&mut rig).starts_with("a "), "the server answers in its own words");

    // Where some of its tools are hidden, a name that is not shown is none.
    let mut hides = server_config("a");
    hides.filter.deny = vec![Glob::new("x*").unwrap()];
    let mut rig = Rig::with(vec![entry(hides)], |config| config.bare = true);
    assert!(called(&mut rig).contains("unknown tool"));
    let mut rig = Rig::with(one(), |config| config.pin_tools = true);
    assert!(called(&mut rig).contains("unknown tool"));
}
