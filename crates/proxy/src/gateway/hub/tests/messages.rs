//! What is neither call nor list: logging, resources, prompts, completions.

use super::rig::{Rig, json, sent_id};
use crate::gateway::lists::RawLists;
use crate::gateway::upstream::UpstreamEvent;

fn log(rig: &mut Rig, copy: &str, level: &str) -> Vec<String> {
    rig.server(copy, &format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"x"}}}}"#));
    rig.sent().iter().map(|sent| sent.split(" < ").next().unwrap().to_owned()).collect()
}

#[test]
fn each_client_hears_what_its_level_lets_through_and_servers_are_told_the_lowest() {
    let mut rig = Rig::ready(&["a"]);
    rig.open(2);
    rig.hello(2);
    rig.sent();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}"#);
    let sent = rig.sent();
    assert_eq!((json(&sent[0])["params"]["level"].as_str(), sent.len()), (Some("error"), 2));
    assert_eq!(sent[1], r#"1 [1]. < {"jsonrpc":"2.0","id":1,"result":{}}"#);
    rig.client(2, r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}"#);
    assert_eq!(json(&rig.sent()[0])["params"]["level"], "info");
    assert_eq!(log(&mut rig, "a", "debug"), Vec::<String>::new());
    assert_eq!(log(&mut rig, "a", "warning"), ["2"]);
    assert_eq!(log(&mut rig, "a", "critical"), ["1", "2"]);
    // With a call in flight the message belongs to that.
    rig.call(2, "77", "a__t");
    assert_eq!(log(&mut rig, "a", "warning"), ["2 [77]"]);
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"loud"}}"#);
    assert_eq!(json(&rig.one())["error"]["code"], -32602);
}

fn with_resources() -> Rig {
    let mut rig = Rig::ready(&["a", "b"]);
    let t = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
    rig.lists("a", &[t], &[r#"{"uri":"file:///a","name":"a"}"#]);
    rig.lists("b", &[t], &[r#"{"uri":"file:///b","name":"b"}"#]);
    rig.open(2);
    rig.hello(2);
    rig.sent();
    rig
}

#[test]
fn resources_are_read_from_the_server_that_has_them() {
    let mut rig = with_resources();
    for (uri, server) in [("file:///a", "a"), ("file:///b", "b")] {
        rig.client(
            1,
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#),
        );
        let sent = rig.one();
        assert!(sent.starts_with(&format!("{server} > ")), "{sent}");
        assert_eq!(json(&sent)["params"]["uri"], uri);
    }
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"nowhere://x"}}"#);
    assert_eq!(json(&rig.one())["error"]["code"], -32002);
    rig.client(1, r#"{"jsonrpc":"2.0","id":"l","method":"resources/list"}"#);
    assert_eq!(json(&rig.one())["result"]["resources"].as_array().unwrap().len(), 2);
}

#[test]
fn a_resource_that_two_servers_have_keeps_the_address_that_it_was_read_by() {
    let mut rig = Rig::ready(&["a", "b"]);
    let same = r#"{"uri":"file:///x","name":"x"}"#;
    rig.lists("a", &[], &[same]);
    rig.lists("b", &[], &[same]);
    rig.client(1, r#"{"jsonrpc":"2.0","id":"l","method":"resources/list"}"#);
    let list = json(&rig.sent().pop().unwrap());
    let alias = list["result"]["resources"][1]["uri"].as_str().unwrap().to_owned();
    rig.client(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"{alias}"}}}}"#),
    );
    let sent = rig.one();
    assert_eq!((sent.starts_with("b > "), &json(&sent)["params"]["uri"]), (true, &"file:///x".into()));
    let ours = sent_id(&sent);
    rig.server("b", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{"contents":[{{"uri":"file:\/\/\/x","text":"file:///x"}},{{"text":"","uri":"file:///y"}}]}}}}"#));
    let answer = json(&rig.one());
    let contents = &answer["result"]["contents"];
    assert_eq!((&contents[0]["uri"], &contents[0]["text"]), (&alias.into(), &"file:///x".into()));
    assert_eq!((&contents[1]["uri"], &answer["id"]), (&"file:///y".into(), &1.into()));
}

#[test]
fn a_change_below_a_resource_is_told_to_those_who_have_subscribed_to_it() {
    let mut rig = with_resources();
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}"#;
    rig.client(1, subscribe);
    rig.sent();
    let update = |uri: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
        )
    };
    for (uri, told) in [("file:///a/b", 1), ("file:///a", 1), ("file:///ab", 0), ("file:///", 0)] {
        rig.server("a", &update(uri));
        assert_eq!(rig.sent(), vec![format!("1 < {}", update(uri)); told], "{uri}");
    }
}

#[test]
fn only_subscribers_hear_of_a_resource_and_the_last_one_ends_the_subscription() {
    let mut rig = with_resources();
    for session in [1, 2] {
        rig.client(
            session,
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}"#,
        );
        let ours = sent_id(&rig.one());
        rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#));
        assert_eq!(json(&rig.one())["id"], 1);
    }
    let updated =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#;
    rig.server("a", updated);
    assert_eq!(rig.sent(), [format!("1 < {updated}"), format!("2 < {updated}")]);
    rig.client(
        1,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}"#,
    );
    assert_eq!(rig.one(), r#"1 [2]. < {"jsonrpc":"2.0","id":2,"result":{}}"#);
    rig.server("a", updated);
    assert_eq!(rig.one(), format!("2 < {updated}"));
    rig.client(
        2,
        r#"{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"file:///a"}}"#,
    );
    assert_eq!(json(&rig.sent()[0])["method"], "resources/unsubscribe");
    rig.server("a", updated);
    rig.nothing();
}

#[test]
fn a_restarted_server_is_told_again_what_clients_follow() {
    let mut rig = with_resources();
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}"#);
    let ours = sent_id(&rig.one());
    rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{ours},"result":{{}}}}"#));
    rig.client(1, r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}"#);
    rig.upstream("a", UpstreamEvent::Down { reason: "it crashed".to_owned() });
    rig.sent();
    rig.up("a");
    let methods: Vec<String> =
        rig.sent().iter().map(|sent| json(sent)["method"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(methods, ["logging/setLevel", "resources/subscribe"]);
}

#[test]
fn prompts_and_completions_are_routed_by_name_and_address() {
    let mut rig = with_resources();
    let lists = RawLists { prompts: vec![r#"{"name":"p.x"}"#.into()], ..RawLists::default() };
    rig.upstream("b", UpstreamEvent::Lists(std::sync::Arc::new(lists)));
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#);
    let name = json(&rig.one())["result"]["prompts"][0]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("b__p_x__"), "{name}");
    rig.client(
        1,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{{"name":"{name}"}}}}"#),
    );
    let sent = rig.one();
    assert_eq!((sent.starts_with("b > "), json(&sent)["params"]["name"].as_str()), (true, Some("p.x")));
    rig.client(1, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{{"ref":{{"type":"ref/prompt","name":"{name}"}},"argument":{{"name":"x","value":"1e2"}}}}}}"#));
    let sent = rig.one();
    assert_eq!(
        (sent.starts_with("b > "), json(&sent)["params"]["ref"]["name"].as_str()),
        (true, Some("p.x"))
    );
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"file:///a"},"argument":{"name":"x","value":"1"}}}"#);
    assert!(rig.one().starts_with("a > "));
    rig.client(1, r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"none"}}"#);
    assert_eq!(json(&rig.one())["error"]["message"], "unknown prompt: \"none\"");
}
