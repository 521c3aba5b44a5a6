//! Tests of `naming`.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn names(profile: &Profile, reals: &[&str]) -> BTreeMap<String, String> {
    let naming = Naming::new(profile, reals.iter().copied());
    reals.iter().map(|real| ((*real).to_owned(), naming.mcp_name(real).unwrap().to_owned())).collect()
}

#[test]
fn statement_01_a_name_that_needs_no_change_is_first_in_either_order() {
    // printf 'tool one' | sha256sum
    let expected = BTreeMap::from([
        ("tool one".to_owned(), "pi__tool_one__11aee0db".to_owned()),
        ("tool_one".to_owned(), "pi__tool_one".to_owned()),
    ]);
    assert_eq!(names(&Profile::PI, &["tool one", "tool_one"]), expected);
    assert_eq!(names(&Profile::PI, &["tool_one", "tool one"]), expected);
}

#[test]
fn statement_02_a_name_of_other_letters_is_called_tool() {
    assert_eq!(names(&Profile::PI, &["日本"])["日本"], "pi__tool");
    assert_eq!(names(&Profile::HOST, &["日本"])["日本"], "host__tool");
}

#[test]
fn the_second_name_of_other_letters_has_a_hash() {
    let all = names(&Profile::PI, &["東京", "日本", "数据库"]);
    // The order of the bytes: 数 e6 95, 日 e6 97, 東 e6 9d.
    assert_eq!(all["数据库"], "pi__tool");
    assert_eq!(all["日本"], format!("pi__tool__{}", short_hash("日本")));
    assert_eq!(all["東京"], format!("pi__tool__{}", short_hash("東京")));
    // A tool that is really called so is before all of them.
    assert_eq!(names(&Profile::PI, &["日本", "tool"])["tool"], "pi__tool");
}

#[test]
fn names_are_trimmed_and_their_runs_of_other_signs_become_one_underscore() {
    let cases = [
        ("read", "read"),
        ("UPPER", "UPPER"),
        ("x__y", "x__y"),
        ("a-b", "a-b"),
        ("-a-", "-a-"),
        ("read.file", "read_file"),
        ("  read  file\n", "read_file"),
        ("a...b", "a_b"),
        ("a_.b", "a__b"),
        ("_private_", "private"),
        ("...x...", "x"),
        ("db 数据库 query", "db_query"),
        ("é", "tool"),
        ("", "tool"),
        ("   ", "tool"),
        ("___", "tool"),
        ("a\u{0}b", "a_b"),
        ("\u{feff}a", "a"),
    ];
    for (real, stem) in cases {
        assert_eq!(names(&Profile::PI, &[real])[real], format!("pi__{stem}"), "{real:?}");
    }
}

#[test]
fn a_name_that_somebody_has_already_is_numbered() {
    let hash = short_hash("a b");
    let taken = format!("a_b__{hash}");
    let taken_too = format!("a_b__{hash}_2");
    let all = names(&Profile::PI, &["a b", "a_b", &taken, &taken_too]);
    assert_eq!(all["a b"], format!("pi__a_b__{hash}_3"));
    assert_eq!(all[&taken], format!("pi__{taken}"));
}

#[test]
fn a_name_that_is_too_long_is_cut_at_the_stem() {
    for (profile, limit) in [(Profile::PI, 51), (Profile::HOST, 49)] {
        let room = limit - profile.prefix.len();
        let fits = "n".repeat(room);
        assert_eq!(names(&profile, &[&fits])[&fits], format!("{}{fits}", profile.prefix));
        let over = "n".repeat(room + 1);
        let cut = "n".repeat(room - 10);
        let expected = format!("{}{cut}__{}", profile.prefix, short_hash(&over));
        assert_eq!(names(&profile, &[&over])[&over], expected);
        assert_eq!(expected.len(), limit);
    }
    // One that fits only once it is cleaned needs no hash.
    let spaced = format!("  {}  ", "n".repeat(47));
    assert_eq!(names(&Profile::PI, &[&spaced])[&spaced], format!("pi__{}", "n".repeat(47)));
}

#[test]
fn a_collision_at_the_limit_is_cut_as_well() {
    let plain = "m".repeat(46) + "_";
    let spaced = "m".repeat(40) + " " + &"m".repeat(5) + "_";
    let twin = "m".repeat(40) + "_" + &"m".repeat(5);
    let all = names(&Profile::PI, &[&plain, &spaced, &twin]);
    assert_eq!(all[&twin], format!("pi__{twin}"));
    assert_eq!(all[&spaced], format!("pi__{}__{}", "m".repeat(37), short_hash(&spaced)));
}

#[test]
fn long_names_whose_numbers_are_taken_stay_within_the_limit() {
    let long = "n".repeat(70);
    let hash = short_hash(&long);
    let mut set = vec![long.clone(), format!("{}__{hash}", "n".repeat(37))];
    for number in 2..=12 {
        let suffix = format!("__{hash}_{number}");
        set.push(format!("{}{suffix}", "n".repeat(47 - suffix.len())));
    }
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let all = names(&Profile::PI, &set);
    assert_eq!(all[&long], format!("pi__{}__{hash}_13", "n".repeat(34)));
    assert_eq!(all[&long].len(), 51);
}

#[test]
fn both_ways_lead_back_and_unknown_names_lead_nowhere() {
    let naming = Naming::new(&Profile::PI, ["a b", "a_b", "a_b"]);
    assert_eq!(naming.len(), 2);
    assert_eq!(naming.real_name("pi__a_b"), Some("a_b"));
    assert_eq!(naming.mcp_name("pi__a_b"), None);
    assert_eq!(naming.real_name("a_b"), None);
    assert_eq!(naming.real_name("constructor"), None);
    assert!(Naming::new(&Profile::PI, []).is_empty());
}

#[test]
fn quoted_names_are_one_short_line() {
    assert_eq!(quoted("数据 \"x\"\n\u{202e}"), "\"数据 \\\"x\\\"\\n\\u{202e}\"");
    assert_eq!(quoted(&"é".repeat(128)), format!("\"{}\"", "é".repeat(128)));
    assert_eq!(quoted(&"é".repeat(129)), format!("\"{}\"...", "é".repeat(128)));
}

/// Names that are near to each other, so that they collide.
fn near() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(
            prop_oneof![Just("a"), Just("_"), Just(" "), Just("."), Just("é"), Just("A")],
            0..5
        )
        .prop_map(|parts| parts.concat()),
        (40_usize..60, "[ab_. ]{0,3}").prop_map(|(length, end)| "n".repeat(length) + &end),
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_names_in_any_order_are_distinct_valid_and_the_same(
        reals in proptest::collection::vec(near(), 0..40),
        seed in any::<u64>(),
        is_host in any::<bool>(),
    ) {
        let profile = if is_host { Profile::HOST } else { Profile::PI };
        // Names that look like what collisions get.
        let mut reals = reals;
        for real in reals.clone().iter().take(8) {
            let stem = stem(real).into_owned();
            reals.push(format!("{stem}__{}", short_hash(real)));
            reals.push(format!("{stem}__{}_2", short_hash(real)));
        }
        let naming = Naming::new(&profile, reals.iter().map(String::as_str));
        let distinct: BTreeSet<&str> = reals.iter().map(String::as_str).collect();
        prop_assert_eq!(naming.len(), distinct.len());
        let mut seen = BTreeSet::new();
        for real in &distinct {
            let mcp = naming.mcp_name(real).unwrap();
            prop_assert!(seen.insert(mcp.to_owned()));
            prop_assert_eq!(naming.real_name(mcp), Some(*real));
            prop_assert!(mcp.starts_with(profile.prefix));
            prop_assert!(mcp.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            prop_assert!(profile.server_key.len() + 1 + mcp.len() <= 60);
        }
        let mut other = reals.clone();
        let turn = usize::try_from(seed % 97).unwrap() % other.len().max(1);
        other.rotate_left(turn);
        if seed % 2 == 0 {
            other.reverse();
        }
        prop_assert_eq!(Naming::new(&profile, other.iter().map(String::as_str)), naming);
    }
}
