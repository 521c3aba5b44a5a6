//! Owns what must hold for any servers with any names, in any order.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c_]{1,4}",
        "[a-z]{1,3}__[0-9][0-9a-z]{7}",
        "\\PC{0,8}",
        "[a-z.]{60,70}",
        "toolway_[a-z]{1,6}"
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((member(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn member() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "name",
        "title",
        "type",
        "properties",
        "required",
        "description",
        "annotations",
        "_meta",
        "inputSchema",
        "outputSchema",
        "readOnlyHint",
        "icons",
        "x\"y",
    ])
    .prop_map(str::to_owned)
}

/// Mostly good tools, some with anything in them, some that are no tools at all.
fn definition() -> impl Strategy<Value = Value> {
    let good = (name(), proptest::collection::vec((member(), any_json()), 0..2)).prop_map(|(name, more)| {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        for (member, value) in more {
            tool[member] = value;
        }
        tool
    });
    prop_oneof![8 => good, 1 => any_json()]
}

fn servers() -> impl Strategy<Value = BTreeMap<String, Vec<Value>>> {
    proptest::collection::btree_map("[a-c._-]{1,4}", proptest::collection::vec(definition(), 0..8), 0..5)
}

fn put(order: &[(&String, &Vec<Value>)], bare: bool) -> Catalogue {
    let mut all = Catalogue::default();
    for (number, (server, tools)) in order.iter().enumerate() {
        let lists = RawLists { tools: raw(tools), ..RawLists::default() };
        let filter = ToolFilter::default();
        let shaping =
            Shaping { naming: Naming::new(64, bare), filter: &filter, relax_output: true, pins: None };
        all.set(number, Arc::new(ServerCatalogue::new(server, &lists, shaping)));
    }
    all
}

/// Exposed name to server and own name.
fn ways(all: &mut Catalogue) -> BTreeMap<String, (String, String)> {
    let names = listed(all, ListKind::Tools);
    let found = names.into_iter().map(|exposed| {
        let route = all.route(ListKind::Tools, &exposed).unwrap();
        let (server, own) = (route.server, route.definition.own.clone());
        (exposed, (all.get(server).unwrap().server().to_owned(), own))
    });
    found.collect()
}

proptest! {
    #[test]
    fn what_is_listed_is_sound_and_can_be_called(servers in servers(), bare: bool) {
        let mut all = put(&servers.iter().collect::<Vec<_>>(), bare);
        let list: Value = serde_json::from_slice(&all.list(ListKind::Tools)).unwrap();
        let mut seen = HashSet::new();
        for tool in list["tools"].as_array().unwrap() {
            let exposed = tool["name"].as_str().unwrap();
            prop_assert!(seen.insert(exposed.to_owned()), "{exposed} twice");
            prop_assert!(exposed.len() <= 64 && !exposed.is_empty());
            prop_assert!(exposed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
            prop_assert_eq!(&tool["inputSchema"]["type"], "object");
            prop_assert!(tool["inputSchema"]["properties"].is_object());
            prop_assert!(tool.get("outputSchema").is_none());
            prop_assert!(all.route(ListKind::Tools, exposed).is_some());
        }
        // Nothing vanishes without a word.
        let given: usize = servers.values().map(Vec::len).sum();
        prop_assert_eq!(seen.len() + all.refused().len(), given);
    }

    #[test]
    fn no_order_of_servers_or_tools_matters(servers in servers(), bare: bool) {
        let forward: Vec<_> = servers.iter().collect();
        let turned: BTreeMap<String, Vec<Value>> = servers
            .iter()
            .map(|(server, tools)| (server.clone(), tools.iter().rev().cloned().collect()))
            .collect();
        let backward: Vec<_> = turned.iter().rev().collect();
        prop_assert_eq!(ways(&mut put(&forward, bare)), ways(&mut put(&backward, bare)));
    }
}
