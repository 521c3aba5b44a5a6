use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use toolway_wire::era::ProtocolVersion;

use super::*;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn value(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn client() -> ClientFacts {
    ClientFacts {
        version: ProtocolVersion::V2026_07_28,
        capabilities: br#"{"elicitation":{},"x":1.0}"#.to_vec(),
        client_info: Some(br#"{"name":"t","version":"1"}"#.to_vec()),
    }
}

const TRIPLE: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"x":1.0},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}"#;

#[test]
fn a_legacy_request_gets_the_clients_facts_wherever_params_are() {
    for (before, after) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            format!(r#"{{"params":{{"_meta":{{{TRIPLE}}}}},"jsonrpc":"2.0","id":1,"method":"tools/list"}}"#),
        ),
        (
            r#"{"id":1.50,"method":"x","params":{}}"#,
            format!(r#"{{"id":1.50,"method":"x","params":{{"_meta":{{{TRIPLE}}}}}}}"#),
        ),
        (
            r#"{"method":"x","params": { "name":"a" , "_meta": {"progressToken" : 7e0} }}"#,
            format!(
                r#"{{"method":"x","params": {{ "name":"a" , "_meta": {{{TRIPLE},"progressToken" : 7e0}} }}}}"#
            ),
        ),
        (
            r#"{"method":"x","params":{"_meta":null,"a":1}}"#,
            format!(r#"{{"method":"x","params":{{"_meta":{{{TRIPLE}}},"a":1}}}}"#),
        ),
        (r#"{"method":"x","params":[1]}"#, r#"{"method":"x","params":[1]}"#.to_owned()),
    ] {
        assert_eq!(text(request_to_modern(before.as_bytes(), &client(), None)), after);
    }
    let with_level = request_to_modern(br#"{"method":"x","params":{}}"#, &client(), Some("info"));
    assert_eq!(request_meta(&with_level).log_level.as_deref(), Some("info"));
}

#[test]
fn a_modern_request_loses_what_only_its_era_knows() {
    for (before, after) in [
        (format!(r#"{{"params":{{"_meta":{{{TRIPLE}}},"name":"a"}}}}"#), r#"{"params":{"name":"a"}}"#),
        (format!(r#"{{"params":{{"name":"a","_meta":{{{TRIPLE}}}}}}}"#), r#"{"params":{"name":"a"}}"#),
        (format!(r#"{{"params":{{"_meta":{{{TRIPLE}}}}}}}"#), r#"{"params":{}}"#),
        (
            format!(r#"{{"params":{{"_meta":{{"a":1,{TRIPLE},"b":2}}}}}}"#),
            r#"{"params":{"_meta":{"a":1,"b":2}}}"#,
        ),
        (
            r#"{"params":{"requestState":"s","a":1,"inputResponses":{},"_meta":{"k":1}}}"#.to_owned(),
            r#"{"params":{"a":1,"_meta":{"k":1}}}"#,
        ),
        (r#"{"params":{"_meta":{}}}"#.to_owned(), r#"{"params":{"_meta":{}}}"#),
    ] {
        assert_eq!(text(request_to_legacy(before.as_bytes())), after);
    }
}

#[test]
fn results_say_whether_they_are_complete_and_may_be_cached() {
    let plain = br#"{"id":1,"result":{"content":[]}}"#;
    assert_eq!(
        text(result_to_modern(plain, "tools/call")),
        r#"{"id":1,"result":{"resultType":"complete","content":[]}}"#
    );
    let list = br#"{"id":1,"result":{}}"#;
    assert_eq!(
        text(result_to_modern(list, "tools/list")),
        r#"{"id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private"}}"#
    );
    // What the server says itself is not overruled.
    let own = br#"{"result":{"resultType":"task","ttlMs":5}}"#;
    assert_eq!(
        text(result_to_modern(own, "resources/read")),
        r#"{"result":{"cacheScope":"private","resultType":"task","ttlMs":5}}"#
    );
    assert_eq!(text(result_to_legacy(own, "resources/read")), r#"{"result":{}}"#);
    assert_eq!(text(result_to_legacy(own, "tools/call")), r#"{"result":{"ttlMs":5}}"#);
    let error = br#"{"id":1,"error":{"code":-32002,"message":"no","data":{"uri":"a"}}}"#;
    let modern = error_to_modern(error);
    assert_eq!(text(modern.clone()), r#"{"id":1,"error":{"code":-32602,"message":"no","data":{"uri":"a"}}}"#);
    assert_eq!(error_to_legacy(&modern, "resources/read"), error);
    assert_eq!(error_to_legacy(&modern, "tools/call"), modern);
}

#[test]
fn requests_of_the_modern_era_are_checked_before_anything_else() {
    let message = request_to_modern(br#"{"id":1,"method":"x"}"#, &client(), None);
    assert!(is_modern(&message) && !is_modern(br#"{"params":{"_meta":{"progressToken":1}}}"#));
    let found = request_meta(&message);
    assert_eq!(check(&found, &SUPPORTED), Ok(ProtocolVersion::V2026_07_28));
    assert_eq!(found.client(), Some(client()));
    for (meta, code) in [
        ("{}", -32602),
        (r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#, -32602),
        (
            r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":[]}"#,
            -32602,
        ),
        (
            r#"{"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}}"#,
            -32022,
        ),
        (
            r#"{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}"#,
            -32022,
        ),
    ] {
        let message = format!(r#"{{"id":"a","method":"x","params":{{"_meta":{meta}}}}}"#);
        let refusal = check(&request_meta(message.as_bytes()), &SUPPORTED).unwrap_err();
        let response = value(&refusal.response(b"\"a\"", &[ProtocolVersion::V2026_07_28]));
        assert_eq!((&response["id"], &response["error"]["code"]), (&json!("a"), &json!(code)), "{meta}");
        if code == -32022 {
            assert_eq!(response["error"]["data"]["supported"], json!(["2026-07-28"]));
        }
    }
    let missing = value(&Refusal::MissingCapability("sampling").response(b"1", &[]));
    assert_eq!(missing["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
}

#[test]
fn both_handshakes_say_the_same_of_a_server() {
    let (capabilities, info) = (br#"{"tools":{}}"#, br#"{"name":"s","version":"0"}"#);
    let initialize = initialize_result(ProtocolVersion::V2025_06_18, capabilities, info, Some(br#""hello""#));
    let legacy = facts_of_initialize(&result_response(b"1", &initialize)).unwrap();
    let discover = discover_result(capabilities, info, Some(br#""hello""#));
    let modern = facts_of_discover(&result_response(b"1", &discover)).unwrap();
    assert_eq!(Facts { versions: modern.versions.clone(), ..legacy.clone() }, modern);
    assert_eq!(
        (legacy.versions, modern.versions),
        (vec!["2025-06-18".to_owned()], vec!["2026-07-28".to_owned()])
    );
    let discover = value(&discover);
    assert_eq!((&discover["ttlMs"], &discover["cacheScope"]), (&json!(0), &json!("private")));
    for (asked, answered) in [
        (Some("2024-11-05"), "2024-11-05"),
        (Some("2025-03-26"), "2025-03-26"),
        (Some("2024-10-07"), "2025-11-25"),
        (Some("2026-07-28"), "2025-11-25"),
        (Some("nonsense"), "2025-11-25"),
        (None, "2025-11-25"),
    ] {
        assert_eq!(negotiate(asked).to_string(), answered);
    }
}

#[test]
fn a_modern_servers_round_becomes_requests_and_a_second_call() {
    let answer = br#"{"id":1,"result":{"resultType":"input_required","inputRequests":{"a\u0062":{"method":"elicitation/create","params":{"n":1.0}},"r":{"method":"roots/list"}},"requestState":"st\u0061te"}}"#;
    let round = read_input_required(answer).unwrap();
    assert_eq!(
        round.asked,
        [
            Asked {
                key: "ab".to_owned(),
                method: "elicitation/create".to_owned(),
                params: Some(br#"{"n":1.0}"#.to_vec())
            },
            Asked { key: "r".to_owned(), method: "roots/list".to_owned(), params: None },
        ]
    );
    assert_eq!(
        text(server_request(b"9", &round.asked[0].method, round.asked[0].params.as_deref())),
        r#"{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{"n":1.0}}"#
    );
    let call =
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":1e2}}}"#;
    let second = retry(call, &[("ab", br#"{"action":"accept"}"#)], round.request_state.as_deref());
    // The state goes back as it was spelled.
    assert_eq!(
        text(second.clone()),
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"inputResponses":{"ab":{"action":"accept"}},"requestState":"st\u0061te","name":"t","arguments":{"n":1e2}}}"#
    );
    // A third call carries nothing of the second.
    assert_eq!(text(retry(&second, &[], None)), text(call.to_vec()));
    for fault in [
        r#"{"result":{"resultType":"input_required"}}"#,
        r#"{"result":{"resultType":"complete","requestState":"s"}}"#,
        r#"{"result":{"resultType":"input_required","inputRequests":{"a":{"params":{}}}}}"#,
        r#"{"result":{"resultType":"input_required","inputRequests":{"a":1}}}"#,
    ] {
        assert_eq!(read_input_required(fault.as_bytes()), None, "{fault}");
    }
}

#[test]
fn a_legacy_servers_question_becomes_a_round() {
    let asked = Asked {
        key: "q".to_owned(),
        method: "sampling/createMessage".to_owned(),
        params: Some(br#"{"maxTokens":1.0}"#.to_vec()),
    };
    let answer = input_required(b"\"c\"", std::slice::from_ref(&asked), "token");
    assert_eq!(
        text(answer.clone()),
        r#"{"jsonrpc":"2.0","id":"c","result":{"resultType":"input_required","inputRequests":{"q":{"method":"sampling/createMessage","params":{"maxTokens":1.0}}},"requestState":"token"}}"#
    );
    assert_eq!(read_input_required(&answer).unwrap().asked, [asked]);
    let second = br#"{"id":2,"method":"tools/call","params":{"name":"t","inputResponses":{"q":{"role":"x","n":1.0}},"requestState":"token"}}"#;
    let found = read_retry(second).unwrap();
    assert_eq!(found.request_state.as_deref(), Some("token"));
    assert_eq!(found.responses, [("q".to_owned(), br#"{"role":"x","n":1.0}"#.to_vec())]);
    assert_eq!(read_retry(br#"{"params":{"name":"t"}}"#), None);
    let url = br#"{"id":1,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"u"}]}}}"#;
    assert_eq!(
        url_elicitations(url).unwrap()[0].params.as_deref(),
        Some(&br#"{"mode":"url","url":"u"}"#[..])
    );
    assert_eq!(capability_for("roots/list"), Some("roots"));
    assert!(declares(br#"{"roots":{},"sampling":null}"#, "roots"));
    assert!(!declares(br#"{"roots":{},"sampling":null}"#, "sampling"));
}

#[test]
fn streams_of_notifications_carry_the_id_of_their_listen_request() {
    let asked = br#"{"id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:1","a:1","b"]}}}"#;
    let filter = listen_filter(asked).unwrap();
    assert_eq!(
        filter,
        Filter { tools: true, prompts: false, resources: false, uris: vec!["a:1".into(), "b".into()] }
    );
    assert!(filter.admits("notifications/tools/list_changed", None));
    assert!(filter.admits("notifications/resources/updated", Some("b")));
    assert!(!filter.admits("notifications/resources/updated", Some("c")));
    assert!(!filter.admits("notifications/message", None));
    assert_eq!(
        text(acknowledged(b"\"L\"", &filter)),
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","b"]}}}"#
    );
    let change = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let marked = with_subscription_id(change, b"7");
    assert_eq!(subscription_id(&marked), toolway_wire::Id::from_json(b"7"));
    assert_eq!(subscription_id(change), None);
    let moved = with_subscription_id(&marked, b"\"L\"");
    assert_eq!(subscription_id(&moved), toolway_wire::Id::from_json(b"\"L\""));
    assert_eq!(subscription_id(&without_subscription_id(&moved)), None);
    assert_eq!(listen_filter(&listen_request(b"1", &client(), &filter)).unwrap(), filter);
    assert_eq!(listen_filter(br#"{"params":{}}"#), None);
    assert_eq!(value(&listen_result(b"3"))["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 3);
}

#[test]
fn what_is_parked_is_found_once_and_not_for_ever() {
    let now = Instant::now();
    let mut parked = Parked::new(2, Duration::from_secs(10));
    let first = parked.park(1, now).unwrap();
    let second = parked.park(2, now + Duration::from_secs(1)).unwrap();
    assert!(first != second && first.len() == 32, "192 bits of base64");
    assert_eq!(parked.park(3, now), Err(3), "no room");
    assert_eq!((parked.take("guess"), parked.take(&first), parked.take(&first)), (None, Some(1), None));
    assert_eq!(parked.next_end(), Some(now + Duration::from_secs(11)));
    assert_eq!(parked.expired(now + Duration::from_secs(10)), None);
    assert_eq!(parked.expired(now + Duration::from_secs(11)), Some(2));
    assert!(parked.is_empty() && parked.next_end().is_none());
    parked.park(5, now).unwrap();
    assert_eq!(parked.take_if(|value| *value == 5), [5]);
}

/// JSON texts with odd numbers, escapes and white space.
fn any_json(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("1.0".to_owned()),
        Just("-0".to_owned()),
        Just("1E+2".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just(r#""\u00e9\/x""#.to_owned()),
        Just("\"\u{6f22}\"".to_owned()),
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            members_of(inner).prop_map(|members| format!("{{ {} }}", members.join(" ,"))),
        ]
    })
    .boxed()
}

/// `"name": value` with names that nobody knows, one of them spelled with an escape.
fn members_of(value: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<String>> {
    let name = prop::sample::select(vec!["a", "b/c", "vendor.x/y", "\\u0061b", "_met", "name"]);
    prop::collection::btree_map(name, value, 0..4)
        .prop_map(|map| map.into_iter().map(|(name, value)| format!("\"{name}\": {value}")).collect())
}

proptest! {
    #[test]
    fn a_request_comes_back_byte_for_byte_from_the_other_era(
        params in members_of(any_json(3)),
        meta in members_of(any_json(2)),
        has_meta in any::<bool>(),
    ) {
        let mut all = params;
        if has_meta && !meta.is_empty() {
            all.push(format!("\"_meta\": {{ {} }}", meta.join(", ")));
        }
        let message = format!(r#"{{"jsonrpc":"2.0", "id": 1.50 ,"method":"tools/call","x":1e1,"params":{{{}}}}}"#, all.join(","));
        let modern = request_to_modern(message.as_bytes(), &client(), Some("debug"));
        prop_assert!(is_modern(&modern));
        prop_assert_eq!(text(request_to_legacy(&modern)), message);
    }

    #[test]
    fn a_result_keeps_every_member_and_spelling(members in members_of(any_json(3)), method in prop::sample::select(vec!["tools/call", "tools/list", "resources/read"])) {
        let message = format!(r#"{{"id":"\u0061","result":{{ {} }},"y": 0.10}}"#, members.join(" , "));
        let modern = result_to_modern(message.as_bytes(), method);
        serde_json::from_slice::<Value>(&modern).unwrap();
        let back = text(result_to_legacy(&modern, method));
        prop_assert_eq!(back, message);
    }

    #[test]
    fn rounds_keep_the_state_and_the_arguments(members in members_of(any_json(3)), state in ".*", key in ".*") {
        let mut quoted = Vec::new();
        toolway_wire::push_string(&state, &mut quoted);
        let message = format!(r#"{{"id":1,"method":"tools/call","params":{{{}}}}}"#, members.join(","));
        let second = retry(message.as_bytes(), &[(&key, b"{\"n\":1.0}")], Some(&quoted));
        let found = read_retry(&second).unwrap();
        prop_assert_eq!(found.request_state.as_deref(), Some(state.as_str()));
        prop_assert_eq!(found.responses, vec![(key, b"{\"n\":1.0}".to_vec())]);
        prop_assert_eq!(text(request_to_legacy(&second)), message);
    }

    #[test]
    fn any_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        request_to_modern(&bytes, &client(), None);
        request_to_legacy(&bytes);
        result_to_modern(&bytes, "tools/list");
        result_to_legacy(&bytes, "tools/list");
        error_to_modern(&bytes);
        retry(&bytes, &[("k", b"{}")], None);
        read_input_required(&bytes);
        read_retry(&bytes);
        listen_filter(&bytes);
        with_subscription_id(&bytes, b"1");
        without_subscription_id(&bytes);
        facts_of_discover(&bytes);
        url_elicitations(&bytes);
    }
}
