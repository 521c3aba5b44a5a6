//! The guard in the gateway: large answers are saved, read back, and named in arguments.

use super::rig::{Rig, entry, json, server_config};
use crate::gateway::hub::{Effect, Event};
use crate::gateway::upstream::UpstreamEvent;

#[test]
fn a_large_answer_is_saved_and_read_back() {
    let mut rig = Rig::ready(&["a"]);
    let ours = rig.call(1, "\"big\"", "a__t");
    let text = "line of text\\n".repeat(20_000);
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}}}"#));
    let sent = rig.one();
    assert!(sent.len() < 12_000 && sent.starts_with("1 [\"big\"]. < "), "{}", sent.len());
    let answer = json(&sent);
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&"big".into(), &true.into()));
    let saved = rig.hub.config.guard.store().list().unwrap();
    assert_eq!((saved[0].server.as_str(), saved[0].session.as_str()), ("a", "client-1"));
    let id = &saved[0].id;
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"toolway_saved","arguments":{{"id":"{id}","lines":"2-3"}}}}}}"#));
    assert!(json(&rig.one())["result"]["content"][0]["text"].as_str().unwrap().contains("line of text"));
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{{"uri":"toolway://saved/{id}"}}}}"#));
    assert!(json(&rig.one())["result"]["contents"][0]["text"].as_str().unwrap().contains("line of text"));
    rig.client(1, r#"{"jsonrpc":"2.0","id":5,"method":"resources/list"}"#);
    assert_eq!(json(&rig.one())["result"]["resources"].as_array().unwrap().len(), 1);
    // Another client does not see it.
    rig.open(2);
    rig.client(2, &format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"toolway_saved","arguments":{{"id":"{id}","lines":"2-3"}}}}}}"#));
    assert_eq!(json(&rig.one())["result"]["isError"], true);
}

#[test]
fn a_server_that_goes_while_its_answer_is_saved_has_answered() {
    let mut rig = Rig::ready(&["a"]);
    let ours = rig.call(1, "1", "a__t");
    let text = "x".repeat(200_000);
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    let id = rig.id("a");
    let slow = UpstreamEvent::Message(super::rig::message(&answer));
    rig.hub.handle(Event::Upstream(id, slow), rig.now);
    let effects = rig.hub.take_effects(Vec::new());
    rig.upstream("a", UpstreamEvent::Down { reason: "it exited".to_owned() });
    rig.nothing();
    for effect in effects {
        let Effect::Work(work) = effect else { panic!("{effect:?}") };
        rig.event(Event::Done(work.run()));
    }
    let sent = rig.one();
    assert!(sent.starts_with("1 [1]. < ") && sent.contains("saved"), "{sent}");
}

#[test]
fn arguments_may_name_saved_results_where_the_settings_allow_it() {
    let mut rig = Rig::with(vec![entry(server_config("a"))], |config| {
        let mut guard = config.guard.config().clone();
        guard.pass_saved = vec![toolway_guard::Glob::new("a__*").unwrap()];
        config.guard = std::sync::Arc::new(toolway_guard::Guard::new(guard));
    });
    rig.up("a");
    rig.open(1);
    rig.sent();
    let ours = rig.call(1, "1", "a__t");
    let text = "x".repeat(20_000);
    rig.server(
        "a",
        &format!(
            r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ),
    );
    rig.sent();
    let id = rig.hub.config.guard.store().list().unwrap()[0].id.clone();
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"a__t","arguments":{{"in":"toolway://saved/{id}"}}}}}}"#));
    assert_eq!(json(&rig.one())["params"]["arguments"]["in"], text);
    rig.client(1, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a__t","arguments":{"in":"toolway://saved/none"}}}"#);
    assert_eq!(json(&rig.one())["error"]["code"], -32602);
}

#[test]
fn a_server_may_have_a_limit_of_its_own() {
    let mut config = server_config("a");
    config.max_response_chars = Some(2000);
    let mut rig = Rig::with(vec![entry(config)], |_| {});
    rig.up("a");
    rig.open(1);
    rig.sent();
    let ours = rig.call(1, "1", "a__t");
    let text = "x".repeat(5000);
    rig.server(
        "a",
        &format!(
            r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ),
    );
    assert!(rig.one().len() < 2500);
}
