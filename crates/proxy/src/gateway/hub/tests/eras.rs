//! Clients and servers of different generations.

use tokio::time::Duration;
use toolway_wire::era::Era;

use super::rig::{Rig, json, sent_id};
use crate::gateway::hub::{ClientEvent, Event};
use crate::gateway::message::SessionId;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{}},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}"#;
const TOOL: &str = r#"{"name":"t","inputSchema":{"type":"object"}}"#;

fn modern_call(id: &str, more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{META},"name":"a__t"{more}}}}}"#)
}

/// A server of that era and one client, a legacy one that has shaken hands or a modern one.
fn pair(server: Era, client: Era) -> Rig {
    let mut rig = Rig::new(&["a"]);
    rig.up_as("a", server, &[TOOL]);
    rig.open(1);
    if client == Era::Legacy {
        rig.hello(1);
    }
    rig.sent();
    rig
}

#[test]
fn discover_is_answered_at_once_and_bad_requests_are_refused() {
    let mut rig = Rig::new(&["mute"]);
    rig.open(1);
    rig.sent();
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#));
    let answer = json(&rig.one());
    assert_eq!(answer["result"]["supportedVersions"], serde_json::json!(["2026-07-28"]));
    assert_eq!(answer["result"]["resultType"], "complete");
    for (meta, code) in [
        ("{}", -32602),
        (r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#, -32602),
        (
            r#"{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}"#,
            -32022,
        ),
    ] {
        rig.client(
            1,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{"_meta":{meta}}}}}"#),
        );
        assert_eq!(json(&rig.one())["error"]["code"], code, "{meta}");
    }
}

#[test]
fn between_modern_sides_only_ids_names_and_tokens_change() {
    let mut rig = pair(Era::Modern, Era::Modern);
    rig.client(
        1,
        &modern_call("\"m\"", r#","arguments":{"n":1e2},"requestState":"\u0041=="}"#.trim_end_matches('}')),
    );
    let sent = rig.one();
    let ours = sent_id(&sent);
    assert!(sent.contains(r#""requestState":"\u0041==""#), "{sent}");
    assert_eq!(json(&sent)["params"]["_meta"]["progressToken"], ours);
    let round = r#""resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}},"requestState":"\u0042""#;
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{{round}}}}}"#));
    assert_eq!(rig.one(), format!(r#"1 ["m"]. < {{"jsonrpc":"2.0","id":"m","result":{{{round}}}}}"#));
}

#[test]
fn a_modern_client_uses_a_legacy_server() {
    let mut rig = pair(Era::Legacy, Era::Modern);
    rig.client(1, &modern_call("1", ""));
    let sent = rig.one();
    let ours = sent_id(&sent);
    assert_eq!(json(&sent)["params"], serde_json::json!({"name": "t", "_meta": {"progressToken": ours}}));
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[]}}}}"#));
    let answer = json(&rig.one());
    assert_eq!(answer["result"], serde_json::json!({"resultType": "complete", "content": []}));
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{META}}}}}"#));
    let list = json(&rig.one());
    assert_eq!((&list["result"]["ttlMs"], &list["result"]["cacheScope"]), (&0.into(), &"private".into()));
    rig.client(
        1,
        &format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{{{META},"uri":"x://none"}}}}"#
        ),
    );
    assert_eq!(json(&rig.one())["error"]["code"], -32602);
}

#[test]
fn a_legacy_servers_question_becomes_a_round_and_the_call_stays_open() {
    let mut rig = pair(Era::Legacy, Era::Modern);
    rig.client(1, &modern_call("1", ""));
    let ours = sent_id(&rig.one());
    rig.server("a", r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"who?"}}"#);
    let round = json(&rig.one());
    assert_eq!((&round["id"], &round["result"]["resultType"]), (&1.into(), &"input_required".into()));
    let (key, question) = round["result"]["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["params"]["message"], "who?");
    let state = round["result"]["requestState"].as_str().unwrap();
    // A person takes longer than a call may be idle.
    rig.after(Duration::from_secs(90));
    rig.nothing();
    // Another session may carry on: each request of a modern HTTP client is one.
    rig.open_as(2, true);
    let retry = format!(
        r#","inputResponses":{{"{key}":{{"action":"accept","content":{{"n":1e2}}}}}},"requestState":"{state}""#
    );
    rig.client(2, &modern_call("2", &retry));
    assert_eq!(rig.one(), r#"a > {"jsonrpc":"2.0","id":5,"result":{"action":"accept","content":{"n":1e2}}}"#);
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[]}}}}"#));
    assert_eq!(
        rig.one(),
        r#"2 [2]. < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}"#
    );
    // The same state a second time finds nothing: it is a new call, whose state the server would not know.
    rig.client(2, &modern_call("3", &retry));
    assert_eq!(json(&rig.one())["params"]["name"], "t");
}

#[test]
fn an_answer_and_a_question_that_come_meanwhile_wait_for_the_second_call() {
    let mut rig = pair(Era::Legacy, Era::Modern);
    rig.client(1, &modern_call("1", ""));
    let ours = sent_id(&rig.one());
    let ask = |rig: &mut Rig, id: u64| {
        rig.server(
            "a",
            &format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"{id}"}}}}"#
            ),
        );
    };
    ask(&mut rig, 5);
    let state = json(&rig.one())["result"]["requestState"].as_str().unwrap().to_owned();
    ask(&mut rig, 6);
    rig.nothing();
    rig.client(1, &modern_call("2", &format!(r#","inputResponses":{{}},"requestState":"{state}""#)));
    let sent = rig.sent();
    assert_eq!(json(&sent[0])["error"]["message"], "the client did not answer this");
    let round = json(&sent[1]);
    assert_eq!(round["id"], 2);
    let state = round["result"]["requestState"].as_str().unwrap().to_owned();
    // The server gives up waiting and answers.
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[]}}}}"#));
    rig.nothing();
    rig.client(1, &modern_call("3", &format!(r#","inputResponses":{{}},"requestState":"{state}""#)));
    let sent = rig.sent();
    assert_eq!(json(sent.last().unwrap())["id"], 3);
    assert_eq!(json(sent.last().unwrap())["result"]["content"], serde_json::json!([]));
}

#[test]
fn a_held_call_ends_when_its_client_never_calls_again() {
    let mut rig = pair(Era::Legacy, Era::Modern);
    rig.client(1, &modern_call("1", ""));
    let ours = sent_id(&rig.one());
    rig.server("a", r#"{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"who?"}}"#);
    rig.sent();
    rig.after(Duration::from_secs(601));
    let sent = rig.sent();
    assert_eq!(json(&sent[0])["id"], 5);
    assert_eq!(json(&sent[1])["params"]["requestId"], ours);
    assert_eq!(rig.hub.flights.len(), 0);
}

#[test]
fn a_legacy_client_uses_a_modern_server_and_answers_its_questions() {
    let mut rig = pair(Era::Modern, Era::Legacy);
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t","arguments":{"x":1.0},"_meta":{"progressToken":"p"}}}"#);
    let sent = rig.one();
    let first = sent_id(&sent);
    let meta = &json(&sent)["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"], serde_json::json!({}));
    assert_eq!(meta["progressToken"], first);
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{"resultType":"input_required","inputRequests":{{"k1":{{"method":"elicitation/create","params":{{"message":"who?"}}}},"k2":{{"method":"roots/list"}}}},"requestState":"a\u0041\/"}}}}"#));
    let asked = rig.sent();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].starts_with("1 [1] < "));
    assert_eq!(
        (&json(&asked[0])["method"], &json(&asked[1])["method"]),
        (&"elicitation/create".into(), &"roots/list".into())
    );
    let ids: Vec<u64> = asked.iter().map(|sent| json(sent)["id"].as_u64().unwrap()).collect();
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#, ids[1]));
    rig.nothing();
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"no"}}}}"#, ids[0]));
    let sent = rig.one();
    let second = sent_id(&sent);
    assert_ne!(first, second);
    assert!(sent.contains(r#""requestState":"a\u0041\/""#), "{sent}");
    let params = &json(&sent)["params"];
    assert_eq!(
        params["inputResponses"],
        serde_json::json!({"k1": {"action": "cancel"}, "k2": {"roots": []}})
    );
    assert_eq!((&params["_meta"]["progressToken"], &params["name"]), (&second.into(), &"t".into()));
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{second},"progress":1}}}}"#));
    assert_eq!(json(&rig.one())["params"]["progressToken"], "p");
    rig.server(
        "a",
        &format!(r#"{{"jsonrpc":"2.0","id":{second},"result":{{"resultType":"complete","content":[]}}}}"#),
    );
    assert_eq!(rig.one(), r#"1 [1]. < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    assert_eq!(rig.hub.flights.len(), 0);
}

#[test]
fn a_modern_server_that_asks_without_end_is_stopped() {
    let mut rig = pair(Era::Modern, Era::Legacy);
    let mut ours = rig.call(1, "1", "a__t");
    for _ in 0..100 {
        rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"resultType":"input_required","requestState":"s"}}}}"#));
        let sent = rig.one();
        if sent.starts_with("1 ") {
            assert!(json(&sent)["error"]["message"].as_str().unwrap().contains("does not come to an end"));
            return;
        }
        ours = sent_id(&sent);
    }
    panic!("it goes on for ever");
}

#[test]
fn streams_are_acknowledged_and_carry_their_own_id() {
    let mut rig = pair(Era::Legacy, Era::Modern);
    rig.lists("a", &[TOOL], &[r#"{"uri":"file:///a","name":"a"}"#]);
    rig.after(Duration::from_millis(20));
    rig.sent();
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{{META},"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["file:///a","file:///a"]}}}}}}"#));
    let sent = rig.sent();
    let acknowledged = json(&sent[0]);
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["params"]["notifications"]["resourceSubscriptions"],
        serde_json::json!(["file:///a"])
    );
    assert_eq!(json(&sent[1])["method"], "resources/subscribe");
    rig.server(
        "a",
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#,
    );
    let update = json(&rig.one());
    assert_eq!(update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    rig.lists("a", &[], &[r#"{"uri":"file:///a","name":"a"}"#]);
    rig.after(Duration::from_millis(20));
    let changed = json(&rig.one());
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    rig.event(Event::Client(ClientEvent::Dropped {
        session: SessionId(1),
        request: toolway_wire::Id::from_json(b"\"s\"").unwrap(),
    }));
    assert_eq!(json(&rig.one())["method"], "resources/unsubscribe");
}

#[test]
fn subscriptions_of_legacy_clients_become_a_stream_at_a_modern_server() {
    let mut rig = pair(Era::Modern, Era::Legacy);
    rig.lists("a", &[TOOL], &[r#"{"uri":"file:///a","name":"a"}"#]);
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}"#);
    let sent = rig.sent();
    let listen = sent_id(&sent[0]);
    assert_eq!(json(&sent[0])["method"], "subscriptions/listen");
    assert_eq!(sent[1], r#"1 [1]. < {"jsonrpc":"2.0","id":1,"result":{}}"#);
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}},"uri":"file:///a"}}}}"#));
    let update = rig.one();
    assert!(update.starts_with("1 < ") && !update.contains("subscriptionId"), "{update}");
    rig.client(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}"#,
    );
    assert_eq!(json(&rig.sent()[0])["params"]["requestId"], listen);
}

#[test]
fn log_messages_reach_modern_requests_that_want_them() {
    let mut rig = pair(Era::Legacy, Era::Modern);
    let meta = META.replace(
        r#","io.modelcontextprotocol/clientInfo""#,
        r#","io.modelcontextprotocol/logLevel":"warning","io.modelcontextprotocol/clientInfo""#,
    );
    rig.client(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{meta},"name":"a__t"}}}}"#),
    );
    rig.client(1, &modern_call("2", ""));
    rig.sent();
    for level in ["info", "error"] {
        rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"x"}}}}"#));
    }
    let sent = rig.one();
    assert!(sent.starts_with("1 [1] < ") && sent.contains("error"), "{sent}");
}
