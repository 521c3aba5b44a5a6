//! Entries of any shape, for every client.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::given;
use crate::clients::*;
use crate::edit::edit;
use crate::tree::{Format, read};

const TEXTS: &[&str] = &[
    "x",
    "s",
    "*",
    "http",
    "stdio",
    "local",
    "remote",
    "sse",
    "custom",
    "https://h/sse",
    "${A}",
    "${env:A}",
    "{env:A}",
    "$A",
    "${A:-b}",
    "!cmd",
    "$${A}",
    "Bearer ${A}",
];

fn any_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (0..100_000u32).prop_map(Json::from),
        prop_oneof![Just(0.5), Just(12.25), Just(-1.0)].prop_map(Json::from),
        "[a-z ${}:!\\\\'-]{0,8}".prop_map(Json::from),
        proptest::sample::select(TEXTS).prop_map(Json::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            proptest::collection::btree_map(
                "[A-Ca]|clientId|clientSecret|scopes?|path|args|env|CLIENT_ID",
                inner,
                0..3
            )
            .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

const MEMBERS: &str = "type|command|cmd|args|env|envs|environment|envFile|env_keys|env_vars|cwd|url|serverUrl|httpUrl|uri|\
    baseUrl|headers|http_headers|env_http_headers|bearer_token_env_var|requestOptions|auth|oauth|enabled|disabled|tools|\
    enabled_tools|includeTools|available_tools|excludeTools|disabledTools|disabled_tools|timeout|startup_timeout_sec|\
    startup_timeout_ms|tool_timeout_sec|requestTimeoutMs|connectionTimeout|autoApprove|name|source|lifecycle|transport";

fn any_entry() -> impl Strategy<Value = Json> {
    let server = prop_oneof![
        "[a-z $\\{\\}]{1,8}".prop_map(|text| ("command".to_owned(), Json::from(text))),
        Just(("command".to_owned(), json!(["x", "y"]))),
        Just(("cmd".to_owned(), json!("x"))),
        Just(("url".to_owned(), json!("https://h/sse"))),
        Just(("uri".to_owned(), json!("https://h"))),
        Just(("httpUrl".to_owned(), json!("https://${A}"))),
    ];
    (server, proptest::collection::btree_map(MEMBERS, any_value(), 0..4)).prop_map(|(server, mut members)| {
        members.insert(server.0, server.1);
        Json::Object(members.into_iter().collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever an entry says: if it can be imported, it goes back to its client as it was.
    #[test]
    fn any_entry_that_is_imported_goes_back_as_it_was(entry in any_entry(), which in 0..CLIENTS.len()) {
        let client = &CLIENTS[which];
        let root = client.shape.roots[0];
        // Continue has a list, and is content with a map.
        let file = root.iter().rev().fold(json!({"s": entry}), |inner, name| json!({*name: inner}));
        let found = find(client, &given("f.json"), file.to_string().as_bytes(), Path::new("/p")).unwrap();
        let count = found.found.len();
        let plan = plan_import(None, found.found, &[]);
        let own = edit(b"", Format::Jsonc, &plan.changes).unwrap().bytes;
        if count == 1 {
            let own = read(&own, Format::Jsonc).unwrap().to_json();
            let own = own["mcpServers"]["s"].as_object().unwrap().clone();
            let root = read(file.to_string().as_bytes(), Format::Jsonc).unwrap();
            let plan = plan_export(client, Some(&root), &[("s".to_owned(), own.clone())], &[], false);
            prop_assert_eq!(&plan.lines[0].outcome, &ExportOutcome::Same, "{} {:?} {:?}", client.id, own, plan);
            prop_assert!(plan.lines[0].left_out.is_empty(), "{} {:?} {:?}", client.id, own, plan);
            prop_assert!(plan.changes.is_empty());
        }
    }
}
