use std::collections::HashMap;

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn fits(name: &str, limit: usize) -> bool {
    (1..=limit).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Names that provoke: separators, hash-like tails, other scripts, what is hard to see.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-b_-]{0,6}",
        "[a-z]{1,4}(__[0-9][0-9a-z]{7})?",
        "[A-Za-z0-9_.-]{1,80}",
        "\\PC{0,12}",
        "(数|据|库|é|e\u{301}|\u{200B}| |/){0,4}",
    ]
}

#[test]
fn names_that_fit_are_kept_and_others_stay_readable() {
    let naming = Naming::default();
    let long = "x".repeat(70);
    let pairs = [
        ("fs", "read_file"),
        ("a-b", "c"),
        ("a", "b-c"),
        ("fs", "read.file"),
        ("fs", "read file"),
        ("数据", "数据库"),
        ("fs", "数据库"),
        ("fs", ""),
        ("my.server", "get"),
        ("a_", "b"),
        ("a", "_b"),
        ("a__b", "c"),
        ("a", "b__c"),
        ("fs", "x__1abcdefg"),
        ("fs", "read__document"),
        ("toolway_x", "y"),
        ("toolway", "y"),
        ("a-server-of-25-characters", long.as_str()),
    ];
    let shown: Vec<String> = pairs
        .iter()
        .map(|(server, tool)| format!("{server} {tool} -> {}", naming.exposed(server, tool)))
        .collect();
    expect![[r"
        fs read_file -> fs__read_file
        a-b c -> a-b__c
        a b-c -> a__b-c
        fs read.file -> fs__read_file__8sx63z5c
        fs read file -> fs__read_file__1fcjkc6t
        数据 数据库 -> tool__0qaj1pc2
        fs 数据库 -> fs__7he0w8r2
        fs  -> fs__87tz7y9f
        my.server get -> my_server__get__05k0txn5
        a_ b -> a__b__7j7703m4
        a _b -> a___b
        a__b c -> a__b__c__6ngd197d
        a b__c -> a__b__c
        fs x__1abcdefg -> fs__x__1abcdefg__2e67gb88
        fs read__document -> fs__read__document
        toolway_x y -> toolway-x__y__4edc6y8d
        toolway y -> toolway__y
        a-server-of-25-characters xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx -> a-server-of-25-characters__xxxxxxxxxxxxxxxxxxxxxxxxxxx__1p9wb1a6"]].assert_eq(&shown.join("\n"));
}

#[test]
fn bare_names_are_the_tools_own() {
    let naming = Naming::new(64, true);
    assert_eq!(naming.exposed("fs", "read_file"), "read_file");
    assert_eq!(naming.exposed("fs_", "a__b"), "a__b");
    assert!(naming.exposed("fs", "toolway_saved").starts_with("fs__toolway_saved__"));
    assert!(naming.exposed("fs", "read.file").starts_with("fs__read_file__"));
    assert!(naming.is_changed("fs", "read.file") && !naming.is_changed("fs", "read"));
}

#[test]
fn limits_outside_of_what_makes_sense_are_moved() {
    assert_eq!(Naming::new(0, false).limit(), MIN_NAME_CHARS);
    assert_eq!(Naming::new(1000, false).limit(), MAX_NAME_CHARS);
}

#[test]
fn eight_hostile_names_are_eight_names() {
    let (a, b) = (format!("{}a", "n".repeat(70)), format!("{}b", "n".repeat(70)));
    let names = ["read.file", "read_file", "read file", &a, &b, "数据库", "UPPER", "x__y"];
    for limit in [20, 40, 60, 64] {
        let naming = Naming::new(limit, false);
        let exposed: HashMap<String, &str> =
            names.iter().map(|name| (naming.exposed("s", name), *name)).collect();
        assert_eq!(exposed.len(), names.len());
        assert!(exposed.keys().all(|name| fits(name, limit)), "{exposed:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 4))]

    #[test]
    fn every_name_fits(server in name(), tool in name(), limit in 0_usize..80, bare: bool) {
        let naming = Naming::new(limit, bare);
        let exposed = naming.exposed(&server, &tool);
        prop_assert!(fits(&exposed, naming.limit()), "{exposed}");
        prop_assert!(!is_reserved(&exposed), "{exposed}");
    }

    #[test]
    fn two_pairs_never_share_a_name(
        pairs in proptest::collection::vec((name(), name()), 2..12), limit in 20_usize..=64,
    ) {
        let naming = Naming::new(limit, false);
        let mut seen: HashMap<String, (String, String)> = HashMap::new();
        for pair in pairs {
            let exposed = naming.exposed(&pair.0, &pair.1);
            if let Some(other) = seen.insert(exposed.clone(), pair.clone()) {
                prop_assert_eq!(other, pair, "both are {}", exposed);
            }
        }
    }

    /// What a name becomes may itself be somebody's name: that one then becomes another.
    #[test]
    fn an_exposed_name_as_a_tools_name_is_no_way_in(server in "[a-z]{1,5}", tool in name()) {
        let naming = Naming::default();
        let exposed = naming.exposed(&server, &tool);
        let imitated = exposed.strip_prefix(&format!("{server}__")).unwrap_or(&exposed).to_owned();
        if imitated != tool {
            prop_assert_ne!(naming.exposed(&server, &imitated), exposed);
        }
    }
}
