//! What servers ask of clients: each question goes to the one whose call it belongs to.

use tokio::time::Duration;

use super::rig::{Rig, entry, json, server_config};
use crate::gateway::config::Share;
use crate::gateway::hub::{ClientEvent, Event};
use crate::gateway::message::SessionId;

const ELICIT: &str = r#"{"jsonrpc":"2.0","id":"q-1","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object"}}}"#;

/// The number of the client and the id that a question has there.
fn asked(sent: &str) -> (String, u64) {
    let value = json(sent);
    (sent.split(" < ").next().unwrap().to_owned(), value["id"].as_u64().unwrap())
}

#[test]
fn a_question_goes_to_the_client_whose_call_is_in_flight_and_its_answer_back() {
    let mut rig = Rig::ready(&["a", "b"]);
    rig.open(2);
    rig.hello(2);
    rig.sent();
    rig.call(1, "1", "b__t");
    rig.call(2, "\"mine\"", "a__t");
    rig.server("a", ELICIT);
    let sent = rig.one();
    let (to, id) = asked(&sent);
    assert_eq!(to, "2 [\"mine\"]");
    assert_eq!(json(&sent)["params"]["message"], "who?");
    // Somebody else cannot answer it.
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept"}}}}"#));
    rig.nothing();
    rig.client(2, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"accept","content":{{"n":9007199254740993}}}}}}"#));
    assert_eq!(
        rig.one(),
        r#"a > {"jsonrpc":"2.0","id":"q-1","result":{"action":"accept","content":{"n":9007199254740993}}}"#
    );
    rig.client(2, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    rig.nothing();
}

#[test]
fn of_several_calls_of_a_client_the_most_recent_counts() {
    let mut rig = Rig::ready(&["a"]);
    rig.call(1, "10", "a__t");
    rig.call(1, "11", "a__t");
    rig.server("a", ELICIT);
    assert_eq!(asked(&rig.one()).0, "1 [11]");
}

#[test]
fn a_question_that_may_be_for_one_of_several_clients_goes_to_none_and_they_share_no_longer() {
    let mut rig = Rig::ready(&["a"]);
    rig.open(2);
    rig.hello(2);
    rig.sent();
    let first = rig.call(1, "11", "a__t");
    let second = rig.call(2, "21", "a__t");
    rig.server("a", ELICIT);
    let sent = rig.one();
    assert!(sent.starts_with("a > ") && sent.contains("several clients"), "{sent}");
    for ours in [first, second] {
        rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[]}}}}"#));
    }
    rig.sent();
    rig.call(1, "12", "a__t");
    rig.client(2, r#"{"jsonrpc":"2.0","id":22,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(rig.sent(), ["a#2 started", "a#2 woken"]);
    rig.server("a", ELICIT);
    assert_eq!(asked(&rig.one()).0, "1 [12]");
}

#[test]
fn where_all_share_one_copy_the_most_recent_call_of_an_able_client_counts() {
    let mut config = server_config("a");
    config.share = Share::Always;
    let mut rig = Rig::with(vec![entry(config)], |_| {});
    rig.up("a");
    for session in [1, 3] {
        rig.open(session);
        rig.hello(session);
    }
    rig.open(2);
    rig.client(2, r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#);
    rig.sent();
    rig.call(3, "31", "a__t");
    rig.call(1, "11", "a__t");
    rig.call(2, "21", "a__t");
    rig.server("a", ELICIT);
    assert_eq!(asked(&rig.one()).0, "1 [11]");
}

#[test]
fn a_server_that_asks_without_end_is_refused_and_the_others_are_not() {
    let mut rig = Rig::ready(&["a", "b"]);
    rig.call(1, "1", "a__t");
    for number in 0..300 {
        rig.server("a", &ELICIT.replace("q-1", &format!("q-{number}")));
    }
    let sent = rig.sent();
    let refused = sent.iter().filter(|sent| sent.starts_with("a > ")).count();
    assert_eq!((refused, sent.len()), (300 - 256, 300));
    rig.call(1, "2", "b__t");
    rig.server("b", ELICIT);
    assert_eq!(asked(&rig.one()).0, "1 [2]");
}

#[test]
fn a_question_that_nobody_can_answer_is_refused_by_name() {
    let mut rig = Rig::new(&["a"]);
    rig.up("a");
    rig.server("a", ELICIT);
    assert_eq!(
        rig.sent().last().unwrap(),
        r#"a > {"jsonrpc":"2.0","id":"q-1","error":{"code":-32601,"message":"no client that can answer elicitation/create: it needs the capability elicitation"}}"#
    );
    rig.open(1);
    rig.hello(1);
    rig.open(2);
    rig.hello(2);
    rig.sent();
    rig.server("a", r#"{"jsonrpc":"2.0","id":4,"method":"roots/list"}"#);
    assert!(json(&rig.one())["error"]["message"].as_str().unwrap().contains("several clients"));
}

#[test]
fn roots_are_those_of_the_settings_or_of_the_client() {
    let mut with = server_config("with");
    with.roots = Some(vec!["file:///w".to_owned()]);
    let mut rig = Rig::with(vec![entry(with), entry(server_config("without"))], |_| {});
    rig.up("with");
    rig.up("without");
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.server("with", r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    assert_eq!(rig.one(), r#"with > {"jsonrpc":"2.0","id":"r","result":{"roots":[{"uri":"file:///w"}]}}"#);
    rig.server("without", r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    assert_eq!(asked(&rig.one()).0, "1");
    rig.client(1, r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
    assert_eq!(rig.one(), r#"without > {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#);
}

#[test]
fn a_server_that_asks_outside_of_a_call_is_not_shared_further() {
    let mut rig = Rig::ready(&["a"]);
    rig.server("a", r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    rig.sent();
    rig.open(2);
    rig.hello(2);
    rig.sent();
    rig.client(2, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(rig.sent(), ["a#2 started", "a#2 woken"]);
    rig.up("a#2");
    assert!(rig.one().starts_with("a#2 > "));
    // The first client goes on with the first copy.
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert!(rig.one().starts_with("a > "));
    rig.event(Event::Client(ClientEvent::Closed { session: SessionId(2) }));
    assert_eq!(rig.sent().last().unwrap(), "a#2 stopped");
}

#[test]
fn a_server_that_asked_for_roots_too_early_is_told_to_ask_again() {
    let mut rig = Rig::new(&["a"]);
    rig.up("a");
    rig.server("a", r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    rig.open(1);
    rig.sent();
    rig.hello(1);
    assert_eq!(
        rig.sent().last().unwrap(),
        r#"a > {"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#
    );
    rig.server("a", r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    assert_eq!(asked(&rig.one()).0, "1");
}

#[test]
fn with_share_never_each_client_has_its_own_copy() {
    let mut config = server_config("a");
    config.share = Share::Never;
    let mut rig = Rig::with(vec![entry(config)], |_| {});
    rig.up("a");
    for session in [1, 2, 3] {
        rig.open(session);
        rig.hello(session);
    }
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert!(rig.one().starts_with("a > "));
    rig.client(2, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(rig.sent(), ["a#2 started", "a#2 woken"]);
    rig.up("a#2");
    assert!(rig.one().starts_with("a#2 > "));
    rig.client(2, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert!(rig.one().starts_with("a#2 > "));
    // What a copy says outside of calls is for its owner.
    rig.server("a#2", r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#);
    assert_eq!(asked(&rig.one()).0, "2 [2]");
    assert_eq!(rig.status()[0].instances, 2);
}

#[test]
fn questions_end_with_their_call_their_client_and_their_server() {
    let mut rig = Rig::ready(&["a"]);
    rig.call(1, "1", "a__t");
    rig.server("a", ELICIT);
    let (_, id) = asked(&rig.one());
    // The person takes two minutes, which is not the server's fault.
    rig.after(Duration::from_mins(2));
    rig.nothing();
    rig.server("a", r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q-1"}}"#);
    let cancel = json(&rig.one());
    assert_eq!(cancel["params"]["requestId"], id);

    rig.server("a", ELICIT);
    let (_, id) = asked(&rig.one());
    rig.client(1, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let sent = rig.sent();
    assert!(sent[0].starts_with("a > "));
    assert_eq!(json(&sent[1])["params"]["requestId"], id);

    rig.call(1, "2", "a__t");
    rig.server("a", ELICIT);
    rig.sent();
    rig.event(Event::Client(ClientEvent::Closed { session: SessionId(1) }));
    assert_eq!(rig.sent().len(), 2);
    rig.after(Duration::from_hours(1));
    rig.nothing();
}

#[test]
fn progress_of_a_client_on_a_question_goes_back_under_the_servers_token() {
    let mut rig = Rig::ready(&["a"]);
    rig.call(1, "1", "a__t");
    rig.server("a", r#"{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"st"},"messages":[],"maxTokens":1}}"#);
    let sent = rig.one();
    let (_, id) = asked(&sent);
    assert_eq!(json(&sent)["params"]["_meta"]["progressToken"], id);
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":0.5}}}}"#));
    assert_eq!(
        rig.one(),
        r#"a > {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"st","progress":0.5}}"#
    );
}
