//! Calls: names, ids, progress, cancellation, deadlines, servers that are lost.

use tokio::time::Duration;
use toolway_transport::Failure;
use toolway_wire::Id;

use super::rig::{Rig, entry, json, refused, server_config};
use crate::gateway::hub::{ClientEvent, Event};
use crate::gateway::message::SessionId;
use crate::gateway::state::{ServerState, Stage};
use crate::gateway::upstream::UpstreamEvent;

#[test]
fn a_call_goes_to_its_server_and_the_answer_to_its_client() {
    let mut rig = Rig::ready(&["a", "b"]);
    for id in ["7", "\"7\"", "1.0", "\"\\u00e4\"", "9007199254740993", "-1"] {
        rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"b__t","arguments":{{"n":9007199254740993,"e":1e2}}}}}}"#));
        let sent = rig.one();
        let ours = super::rig::sent_id(&sent);
        assert_eq!(
            sent,
            format!(
                r#"b > {{"jsonrpc":"2.0","id":{ours},"method":"tools/call","params":{{"_meta":{{"progressToken":{ours}}},"name":"t","arguments":{{"n":9007199254740993,"e":1e2}}}}}}"#
            )
        );
        rig.server(
            "b",
            &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[], "x":9007199254740993}}}}"#),
        );
        assert_eq!(
            rig.one(),
            format!(
                r#"1 [{id}]. < {{"jsonrpc":"2.0","id":{id},"result":{{"content":[], "x":9007199254740993}}}}"#
            )
        );
    }
}

#[test]
fn joined_names_never_lead_to_the_wrong_server() {
    let mut rig = Rig::new(&["a", "a__b"]);
    rig.up_as("a", toolway_wire::era::Era::Legacy, &[r#"{"name":"b__c","inputSchema":{"type":"object"}}"#]);
    rig.up_as("a__b", toolway_wire::era::Era::Legacy, &[r#"{"name":"c","inputSchema":{"type":"object"}}"#]);
    rig.open(1);
    rig.hello(1);
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let list = json(&rig.one());
    let names: Vec<String> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    let own: Vec<String> = names
        .iter()
        .filter(|name| *name != "toolway_saved")
        .map(|name| {
            rig.client(
                1,
                &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#),
            );
            let sent = rig.one();
            format!(
                "{} {}",
                sent.split_once(" > ").unwrap().0,
                json(&sent)["params"]["name"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(own, ["a b__c", "a__b c"]);
}

#[test]
fn an_unknown_tool_and_a_server_that_is_not_up_are_told_apart() {
    let blocked = refused("deny", ServerState::Blocked { policy: "rule 3".to_owned() });
    let mut rig = Rig::with(vec![entry(server_config("ok")), entry(server_config("gone")), blocked], |_| {});
    rig.up("ok");
    let state = ServerState::Failed {
        stage: Stage::Resolve,
        reason: "command not found; searched: /bin".to_owned(),
        hint: None,
    };
    rig.upstream("gone", UpstreamEvent::State(state));
    rig.open(1);
    rig.sent();
    for (name, code, text) in [
        ("nothing", -32602, "unknown tool: \"nothing\""),
        ("ok__x", -32602, "unknown tool: \"ok__x\": server \"ok\" has none of this name"),
        (
            "gone__x",
            -32000,
            "the tool \"gone__x\" is not available: server \"gone\" is failed (resolve): command not found; searched: /bin",
        ),
        ("deny__x", -32000, "the tool \"deny__x\" is not available: server \"deny\" is blocked: rule 3"),
    ] {
        rig.client(
            1,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#),
        );
        let answer = json(&rig.sent().pop().unwrap());
        assert_eq!(
            (answer["error"]["code"].as_i64(), answer["error"]["message"].as_str()),
            (Some(code), Some(text))
        );
    }
}

#[test]
fn progress_goes_under_the_clients_own_token_or_nowhere() {
    let mut rig = Rig::ready(&["a"]);
    rig.client(1, r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a__t","_meta":{"progressToken":"p1"}}}"#);
    let ours = super::rig::sent_id(&rig.one());
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{ours},"progress":1.0}}}}"#));
    assert_eq!(
        rig.one(),
        r#"1 [5] < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p1","progress":1.0}}"#
    );
    let quiet = rig.call(1, "6", "a__t");
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{quiet},"progress":1}}}}"#));
    rig.nothing();
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server_and_its_late_answer_dropped() {
    let mut rig = Rig::ready(&["a"]);
    let ours = rig.call(1, "\"x\"", "a__t");
    rig.client(1, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"enough"}}"#);
    assert_eq!(
        rig.one(),
        format!(
            r#"a > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{ours},"reason":"enough"}}}}"#
        )
    );
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#));
    rig.nothing();
    // What was answered already, or was never asked, is cancelled by some clients too.
    rig.client(1, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"hello"}}"#);
    rig.nothing();
}

#[test]
fn a_call_without_answer_or_progress_ends_at_its_deadline_and_progress_puts_that_off() {
    let mut config = server_config("a");
    config.timeouts.call_idle = Duration::from_secs(10);
    config.timeouts.call_max = Duration::from_secs(25);
    let mut rig = Rig::with(vec![entry(config)], |_| {});
    rig.up("a");
    rig.open(1);
    rig.sent();
    let ours = rig.call(1, "1", "a__t");
    rig.after(Duration::from_secs(9));
    rig.nothing();
    rig.after(Duration::from_secs(1));
    let sent = rig.sent();
    let cancel = json(&sent[0]);
    assert_eq!(cancel["method"], "notifications/cancelled");
    assert_eq!(cancel["params"]["requestId"], ours);
    let text = json(&sent[1])["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(text, "server \"a\" timed out: neither answer nor progress for 10 s (callIdleTimeoutMs)");
    assert_eq!(sent.len(), 2);

    let ours = rig.call(1, "2", "a__t");
    for _ in 0..4 {
        rig.after(Duration::from_secs(6));
        rig.server("a", &format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{ours},"progress":1}}}}"#));
    }
    rig.nothing();
    rig.after(Duration::from_secs(1));
    let text = json(&rig.sent()[1])["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(text, "server \"a\" timed out: no answer within 25 s in all (callMaxMs)");
}

#[test]
fn calls_of_a_server_that_dies_are_answered_with_its_name_and_the_reason() {
    let mut rig = Rig::ready(&["a", "b"]);
    let first = rig.call(1, "1", "a__t");
    rig.call(1, "2", "a__t");
    let other = rig.call(1, "3", "b__t");
    rig.upstream("a", UpstreamEvent::Down { reason: "the server exited with code 7".to_owned() });
    let texts: Vec<String> =
        rig.sent().iter().map(|sent| json(sent)["error"]["message"].as_str().unwrap().to_owned()).collect();
    assert_eq!(texts, ["server \"a\" did not answer: the server exited with code 7"; 2]);
    // An answer from before its death is late, and the other server goes on.
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{}}}}"#));
    rig.nothing();
    rig.server("b", &format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#));
    assert_eq!(rig.one(), r#"1 [3]. < {"jsonrpc":"2.0","id":3,"result":{}}"#);
}

#[test]
fn a_request_that_could_not_be_delivered_fails_with_its_own_error() {
    let mut rig = Rig::ready(&["a"]);
    let ours = rig.call(1, "1", "a__t");
    let failure = Failure {
        code: -32000,
        message: "the server answered 403".to_owned(),
        data: Some("{\"status\":403}".to_owned()),
    };
    rig.upstream("a", UpstreamEvent::Failed { ids: vec![Id::from_number(ours)], failure });
    assert_eq!(
        rig.one(),
        r#"1 [1]. < {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"server \"a\": the server answered 403","data":{"status":403}}}"#
    );
}

#[test]
fn a_call_waits_for_a_server_that_is_starting_and_fails_with_it() {
    let mut config = server_config("lazy");
    config.lazy = true;
    let mut rig = Rig::with(vec![entry(config)], |_| {});
    rig.lists("lazy", &[r#"{"name":"t","inputSchema":{"type":"object"}}"#], &[]);
    rig.open(1);
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lazy__t"}}"#);
    assert_eq!(rig.one(), "lazy woken");
    rig.up("lazy");
    let sent = rig.sent();
    assert_eq!(json(&sent[0])["params"]["name"], "t");
    rig.upstream("lazy", UpstreamEvent::Down { reason: "it went away".to_owned() });
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"lazy__t"}}"#);
    rig.sent();
    let state = ServerState::Failed { stage: Stage::Spawn, reason: "exited 7".to_owned(), hint: None };
    rig.upstream("lazy", UpstreamEvent::State(state));
    assert_eq!(
        json(&rig.one())["error"]["message"],
        "server \"lazy\" is not available: failed (spawn): exited 7"
    );
}

#[test]
fn one_id_used_twice_is_answered_twice() {
    let mut rig = Rig::ready(&["a"]);
    let first = rig.call(1, "1", "a__t");
    let second = rig.call(1, "1", "a__t");
    for ours in [second, first] {
        rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":"{ours}","result":{{"of":{ours}}}}}"#));
        assert_eq!(rig.one(), format!(r#"1 [1]. < {{"jsonrpc":"2.0","id":1,"result":{{"of":{ours}}}}}"#));
    }
    // Each of them once.
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{}}}}"#));
    rig.nothing();
}

#[test]
fn a_server_cannot_answer_for_another_one() {
    let mut rig = Rig::ready(&["a", "b"]);
    let ours = rig.call(1, "1", "a__t");
    rig.server("b", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#));
    rig.nothing();
    rig.server(
        "a",
        &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}},"error":{{"code":1,"message":"m"}}}}"#),
    );
    assert_eq!(
        json(&rig.one())["error"]["message"],
        "server \"a\" broke the protocol: its answer has neither or both of result and error"
    );
}

#[test]
fn members_of_a_batch_travel_alone_and_their_answers_together() {
    let mut rig = Rig::ready(&["a", "b"]);
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b__t"}}"#,
    ];
    let messages = messages.iter().map(|json| super::rig::message(json)).collect();
    rig.event(Event::Client(ClientEvent::Batch { session: SessionId(1), messages }));
    let sent = rig.sent();
    let (first, second) = (super::rig::sent_id(&sent[0]), super::rig::sent_id(&sent[1]));
    assert_eq!(sent.len(), 2);
    rig.server("b", &format!(r#"{{"jsonrpc":"2.0","id":{second},"result":{{}}}}"#));
    rig.nothing();
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{}}}}"#));
    assert_eq!(
        rig.one(),
        r#"1 [1]. < [{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#
    );
}

#[test]
fn a_client_that_goes_takes_its_calls_with_it() {
    let mut rig = Rig::ready(&["a"]);
    rig.open(2);
    rig.hello(2);
    rig.sent();
    let first = rig.call(1, "1", "a__t");
    let second = rig.call(2, "1", "a__t");
    rig.event(Event::Client(ClientEvent::Closed { session: SessionId(1) }));
    let cancel = json(&rig.one());
    assert_eq!(
        (&cancel["method"], &cancel["params"]["requestId"]),
        (&"notifications/cancelled".into(), &first.into())
    );
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{second},"result":{{}}}}"#));
    assert_eq!(rig.one(), r#"2 [1]. < {"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[test]
fn what_is_no_request_is_refused_and_nothing_else_suffers() {
    let mut rig = Rig::ready(&["a"]);
    for (json, answer) in [
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"1 [null]. < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the id of a request is not null"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            r#"1 < {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request: the id is a string or a number"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":NaN}}"#,
            r#"1 [1]. < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error: NaN, Infinity and raw control characters in strings are not JSON"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"1 [1]. < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: name, a string, is required"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
            r#"1 [1]. < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: no page of this list has that cursor"}}"#,
        ),
    ] {
        rig.client(1, json);
        assert_eq!(rig.one(), answer);
    }
    rig.client(1, r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
    assert_eq!(rig.one(), r#"1 [9]. < {"jsonrpc":"2.0","id":9,"result":{}}"#);
}

#[test]
fn methods_that_nobody_knows_go_to_the_only_server() {
    let mut rig = Rig::ready(&["a"]);
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"x-vendor/thing","params":{"n":9007199254740993,"f":1.0,"e":1e2,"z":null}}"#);
    let sent = rig.one();
    let ours = super::rig::sent_id(&sent);
    assert_eq!(
        sent,
        format!(
            r#"a > {{"jsonrpc":"2.0","id":{ours},"method":"x-vendor/thing","params":{{"n":9007199254740993,"f":1.0,"e":1e2,"z":null}}}}"#
        )
    );
    let mut two = Rig::ready(&["a", "b"]);
    two.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"x-vendor/thing"}"#);
    assert_eq!(json(&two.one())["error"]["code"], -32601);
}

#[test]
fn what_waits_for_a_server_is_bounded() {
    let mut rig = Rig::new(&["a"]);
    rig.lists("a", &[r#"{"name":"t","inputSchema":{"type":"object"}}"#], &[]);
    rig.open(1);
    rig.sent();
    let text = "x".repeat(1 << 20);
    for n in 0..63 {
        rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"a__t","arguments":{{"x":"{text}"}}}}}}"#));
    }
    assert!(rig.sent().iter().all(|sent| sent == "a woken"));
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":63,"method":"tools/call","params":{{"name":"a__t","arguments":{{"x":"{text}"}}}}}}"#));
    let text = json(&rig.one())["error"]["message"].to_string();
    assert!(text.contains("too many calls wait"), "{text}");
    // Who gives up makes room.
    rig.client(1, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    rig.client(1, r#"{"jsonrpc":"2.0","id":64,"method":"tools/call","params":{"name":"a__t"}}"#);
    assert_eq!(rig.one(), "a woken");
}

#[test]
fn a_server_that_has_failed_is_tried_again_when_somebody_calls_it() {
    let mut rig = Rig::ready(&["a", "b"]);
    let reason = "no answer".to_owned();
    let state = ServerState::Failed { stage: Stage::Initialize, reason, hint: None };
    rig.upstream("a", UpstreamEvent::State(state));
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__t"}}"#);
    let sent = rig.sent();
    assert_eq!((sent.len(), sent[0].as_str()), (2, "a woken"));
    assert!(json(&sent[1])["error"]["message"].as_str().unwrap().contains("no answer"), "{sent:?}");
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"b__none"}}"#);
    assert!(rig.one().contains("unknown tool"));
}
