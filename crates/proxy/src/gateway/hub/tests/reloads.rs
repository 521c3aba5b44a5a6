//! New settings while calls are in flight.

use std::sync::Arc;

use tokio::time::Duration;

use super::rig::{Rig, entry, json, refused, server_config};
use crate::gateway::config::ToolFilter;
use crate::gateway::hub::{Command, Event};
use crate::gateway::state::ServerState;

fn changed(name: &str) -> crate::gateway::config::ServerConfig {
    let mut config = server_config(name);
    config.digest = "another".to_owned();
    config
}

#[test]
fn what_has_not_changed_is_left_alone() {
    let mut rig = Rig::ready(&["a", "b"]);
    rig.reload(vec![entry(server_config("b")), entry(server_config("a"))]);
    rig.after(Duration::from_secs(1));
    rig.nothing();
}

#[test]
fn a_call_in_flight_ends_on_what_it_began_with() {
    let mut rig = Rig::ready(&["a", "b"]);
    let ours = rig.call(1, "1", "a__t");
    rig.reload(vec![entry(changed("a")), entry(server_config("b"))]);
    assert_eq!(rig.one(), "a#2 started");
    rig.up("a#2");
    // New calls go to the new copy.
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert!(rig.one().starts_with("a#2 > "));
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{ours},"progress":1}}}}"#));
    rig.nothing();
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#));
    let mut sent = rig.sent();
    sent.sort();
    assert_eq!(sent, [r#"1 [1]. < {"jsonrpc":"2.0","id":1,"result":{}}"#, "a stopped"]);
    // The same tools: nobody needs to hear of it.
    rig.after(Duration::from_secs(1));
    rig.nothing();
}

#[test]
fn a_removed_server_serves_its_last_call_and_is_missing_then() {
    let mut rig = Rig::ready(&["a", "b"]);
    let ours = rig.call(1, "1", "a__t");
    rig.reload(vec![entry(server_config("b"))]);
    rig.nothing();
    rig.after(Duration::from_millis(20));
    assert_eq!(rig.one(), r#"1 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(
        json(&rig.one())["error"]["message"],
        "the tool \"a__t\" is not available: server \"a\" is missing"
    );
    assert_eq!(rig.status()[0].state, ServerState::Missing);
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#));
    assert!(rig.sent().contains(&"a stopped".to_owned()));
    // It comes back under its old number.
    rig.reload(vec![entry(server_config("b")), entry(server_config("a"))]);
    assert_eq!(rig.one(), "a started");
    rig.up("a");
    rig.after(Duration::from_millis(20));
    rig.sent();
    assert_eq!(rig.status().len(), 2);
}

#[test]
fn a_server_that_is_switched_off_and_on_again() {
    let mut rig = Rig::ready(&["a"]);
    rig.reload(vec![refused("a", ServerState::Disabled { by: "x".to_owned() })]);
    assert_eq!(rig.one(), "a stopped");
    assert_eq!(rig.status()[0].state, ServerState::Disabled { by: "x".to_owned() });
    rig.reload(vec![entry(server_config("a"))]);
    assert_eq!(rig.one(), "a started");
}

#[test]
fn another_filter_needs_no_restart() {
    let mut rig = Rig::ready(&["a"]);
    let mut config = server_config("a");
    config.filter =
        ToolFilter { deny: vec![toolway_guard::Glob::new("t").unwrap()], ..ToolFilter::default() };
    rig.reload(vec![entry(config)]);
    rig.nothing();
    rig.after(Duration::from_millis(20));
    assert_eq!(rig.sent().len(), 1);
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert!(json(&rig.one())["error"].is_object());
}

#[test]
fn another_way_to_name_tools_needs_no_restart() {
    let mut rig = Rig::ready(&["a"]);
    let mut config = super::rig::gateway(vec![entry(server_config("a"))], rig.dir.path());
    config.bare = true;
    config.guard = Arc::clone(&rig.hub.config.guard);
    rig.event(Event::Command(Command::Reload(Box::new(config), tokio::sync::oneshot::channel().0)));
    rig.after(Duration::from_millis(20));
    assert_eq!(rig.sent().len(), 1);
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#);
    assert_eq!(json(&rig.one())["params"]["name"], "t");
}

#[test]
fn two_hundred_reloads_leave_nothing_behind() {
    let mut rig = Rig::ready(&["a"]);
    for n in 0..200 {
        let mut config = server_config("a");
        config.digest = format!("digest {n}");
        rig.reload(vec![entry(config), entry(server_config(&format!("once{n}")))]);
        let copy = rig.copies.values().find(|name| name.starts_with('a')).unwrap().clone();
        rig.up(&copy);
        rig.after(Duration::from_millis(20));
        rig.sent();
    }
    assert_eq!(rig.copies.len(), 2);
    assert_eq!(rig.hub.instances.len(), 2);
    for n in 200..1000 {
        rig.reload(vec![entry(server_config(&format!("once{n}")))]);
    }
    assert!(rig.status().len() <= 258, "{}", rig.status().len());
    assert!(rig.hub.by_name.len() <= 258);
}

#[test]
fn the_end_of_the_gateway_answers_everybody_and_stops_everything() {
    let mut rig = Rig::ready(&["a", "b"]);
    rig.call(1, "1", "a__t");
    rig.event(Event::Command(Command::Shutdown));
    let sent = rig.sent();
    assert_eq!(json(&sent[0])["error"]["message"], "server \"a\" did not answer: it was stopped");
    assert_eq!(sent[1..], ["a stopped", "b stopped", "finished"]);
}
