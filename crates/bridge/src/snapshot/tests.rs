//! Tests of `snapshot`.

mod signature;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::RawJson;
use crate::tool::Provenance;

fn tool(name: &str) -> HostTool {
    HostTool {
        name: name.to_owned(),
        description: format!("Does {name}."),
        guidelines: Vec::new(),
        parameters: RawJson::new(r#"{"type":"object","properties":{}}"#).unwrap(),
        provenance: Provenance::default(),
    }
}

/// All of them registered and active.
fn tools(names: &[&str]) -> HostTools {
    HostTools {
        all: names.iter().map(|name| tool(name)).collect(),
        active: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn take(options: &SurfaceOptions, tools: &HostTools) -> Snapshot {
    Snapshot::take(&Profile::PI, options, tools)
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.exposed().iter().map(|tool| tool.mcp_name.as_str()).collect()
}

fn reason(snapshot: &Snapshot, name: &str) -> Option<HiddenReason> {
    snapshot.hidden().iter().find(|tool| tool.name == name).map(|tool| tool.reason)
}

fn with(change: impl FnOnce(&mut SurfaceOptions)) -> SurfaceOptions {
    let mut options = SurfaceOptions::default();
    change(&mut options);
    options
}

fn listed(snapshot: &Snapshot) -> Vec<Value> {
    serde_json::from_slice(snapshot.tools_json()).unwrap()
}

#[test]
fn statement_03_overlapping_tools_are_hidden_by_default() {
    let all = tools(&["read", "bash", "write", "edit", "grep", "find", "ls", "todo", "sem"]);
    let snapshot = take(&SurfaceOptions::default(), &all);
    assert_eq!(names(&snapshot), ["pi__sem", "pi__todo"]);
    assert_eq!(snapshot.hidden().len(), 7);
    assert!(snapshot.hidden().iter().all(|tool| tool.reason == HiddenReason::Builtin));
}

#[test]
fn statement_04_the_deny_list_stands_above_the_exposed_builtins() {
    let options = with(|options| {
        options.expose_builtins = true;
        options.exclude = vec!["bash".to_owned()];
    });
    let snapshot = take(&options, &tools(&["read", "bash"]));
    assert_eq!(names(&snapshot), ["pi__read"]);
    assert_eq!(reason(&snapshot, "bash"), Some(HiddenReason::Excluded));
}

#[test]
fn statement_05_inactive_tools_are_hidden_and_unregistered_names_break_nothing() {
    let mut all = tools(&["a", "b"]);
    all.active = vec!["b".to_owned(), "ghost".to_owned(), "ghost".to_owned(), String::new()];
    let snapshot = take(&SurfaceOptions::default(), &all);
    assert_eq!(names(&snapshot), ["pi__b"]);
    let hidden = |name: &str, reason| HiddenTool { name: name.to_owned(), reason };
    assert_eq!(
        snapshot.hidden(),
        [
            hidden("", HiddenReason::Unregistered),
            hidden("a", HiddenReason::Inactive),
            hidden("ghost", HiddenReason::Unregistered),
        ]
    );
}

#[test]
fn statement_06_an_extension_that_overrides_read_is_hidden_as_well() {
    let mut all = tools(&["read"]);
    all.all.push(HostTool {
        provenance: Provenance {
            source: "extension".to_owned(),
            path: Some("/x/read.ts".to_owned()),
            scope: Some("user".to_owned()),
        },
        ..tool("read")
    });
    let snapshot = take(&SurfaceOptions::default(), &all);
    assert!(!snapshot.is_served());
    let reasons: Vec<HiddenReason> = snapshot.hidden().iter().map(|tool| tool.reason).collect();
    assert_eq!(reasons, [HiddenReason::Builtin, HiddenReason::Replaced]);
}

#[test]
fn statement_07_only_the_own_display_tool_is_hidden() {
    for profile in Profile::ALL {
        let all = tools(&[profile.display_tool, "edit", "write"]);
        let foreign = with(|options| options.expose_builtins = true);
        let snapshot = Snapshot::take(&profile, &foreign, &all);
        let mut expected =
            [profile.display_tool, "edit", "write"].map(|name| format!("{}{name}", profile.prefix));
        expected.sort();
        assert_eq!(names(&snapshot), expected);
        let own = SurfaceOptions { own_display_tool: true, ..foreign };
        let snapshot = Snapshot::take(&profile, &own, &all);
        assert_eq!(names(&snapshot).len(), 2);
        assert_eq!(reason(&snapshot, profile.display_tool), Some(HiddenReason::OwnDisplayTool));
    }
}

#[test]
fn lesson_22_real_edit_and_write_stay_exposed_beside_replay_wrappers() {
    let options = with(|options| {
        options.expose_builtins = true;
        options.own_display_tool = true;
    });
    let snapshot = take(&options, &tools(&["cursor", "edit", "write"]));
    assert_eq!(names(&snapshot), ["pi__edit", "pi__write"]);
}

#[test]
fn statement_09_a_host_without_active_tools_has_an_empty_bridge() {
    let all = HostTools { active: Vec::new(), ..tools(&["todo", "sem"]) };
    let snapshot = take(&SurfaceOptions::default(), &all);
    assert!(!snapshot.is_served());
    assert!(snapshot.is_enabled());
    assert_eq!(snapshot.signature(), "bridge:empty");
    assert_eq!(snapshot.tools_json(), "[]");
    assert_eq!(reason(&snapshot, "todo"), Some(HiddenReason::Inactive));
}

#[test]
fn lesson_20_an_empty_active_set_exposes_nothing_not_even_the_skill_tool() {
    for profile in Profile::ALL {
        let all =
            HostTools { active: Vec::new(), ..tools(&[profile.skill_tool, profile.display_tool, "todo"]) };
        assert!(!Snapshot::take(&profile, &SurfaceOptions::default(), &all).is_served());
    }
}

#[test]
fn statement_10_a_snapshot_leaves_registry_and_active_set_alone() {
    let all = HostTools {
        active: vec!["b".to_owned(), "ghost".to_owned(), "b".to_owned()],
        ..tools(&["a", "b", "a"])
    };
    let before = all.clone();
    take(&with(|options| options.exclude = vec!["b".to_owned()]), &all);
    take(&with(|options| options.enabled = false), &all);
    assert_eq!(all, before);
}

#[test]
fn a_disabled_bridge_says_so_of_every_tool_before_any_other_reason() {
    let options = with(|options| {
        options.enabled = false;
        options.exclude = vec!["a".to_owned()];
    });
    let mut all = tools(&["a", "read", "b"]);
    all.active = vec!["a".to_owned(), "ghost".to_owned()];
    let snapshot = take(&options, &all);
    assert_eq!(names(&snapshot), Vec::<&str>::new());
    assert_eq!(snapshot.signature(), "bridge:off");
    assert_eq!(snapshot.hidden().len(), 4);
    assert!(snapshot.hidden().iter().all(|tool| tool.reason == HiddenReason::Disabled));
}

#[test]
fn the_first_rule_that_hides_a_tool_is_its_reason() {
    let options = with(|options| {
        options.exclude = ["read", "cursor", "off"].map(str::to_owned).to_vec();
        options.own_display_tool = true;
    });
    let mut all = tools(&["read", "cursor", "off", "bash"]);
    all.active.retain(|name| name != "off");
    let snapshot = take(&options, &all);
    assert_eq!(reason(&snapshot, "off"), Some(HiddenReason::Inactive));
    assert_eq!(reason(&snapshot, "read"), Some(HiddenReason::Excluded));
    assert_eq!(reason(&snapshot, "cursor"), Some(HiddenReason::Excluded));
    assert_eq!(reason(&snapshot, "bash"), Some(HiddenReason::Builtin));
}

#[test]
fn the_deny_list_has_real_names_exactly() {
    let exclude = |name: &str| {
        let options = with(|options| options.exclude = vec![name.to_owned()]);
        names(&take(&options, &tools(&["a b", "Todo"]))).len()
    };
    assert_eq!(exclude("a b"), 1);
    assert_eq!(exclude("Todo"), 1);
    for name in ["todo", "pi__Todo", "T*", "*", "a_b", "Todo ", ""] {
        assert_eq!(exclude(name), 2, "{name:?}");
    }
}

#[test]
fn an_excluded_tool_takes_no_name_from_another_one() {
    let options = with(|options| options.exclude = vec!["tool_one".to_owned()]);
    let snapshot = take(&options, &tools(&["tool_one", "tool one"]));
    assert_eq!(names(&snapshot), ["pi__tool_one"]);
    assert_eq!(snapshot.find("pi__tool_one").unwrap().tool.name, "tool one");
}

#[test]
fn of_two_tools_of_one_name_the_later_one_counts() {
    let mut all = tools(&["a", "b"]);
    all.all.push(HostTool { description: "The later one.".to_owned(), ..tool("a") });
    let snapshot = take(&SurfaceOptions::default(), &all);
    assert_eq!(names(&snapshot), ["pi__a", "pi__b"]);
    assert_eq!(snapshot.find("pi__a").unwrap().tool.description, "The later one.");
    assert_eq!(snapshot.hidden(), [HiddenTool { name: "a".to_owned(), reason: HiddenReason::Replaced }]);
}

#[test]
fn a_tool_without_a_name_has_one_all_the_same() {
    let snapshot = take(&SurfaceOptions::default(), &tools(&["", "  "]));
    assert_eq!(snapshot.exposed().len(), 2);
    assert_eq!(snapshot.find("pi__tool").unwrap().tool.name, "");
    assert_eq!(listed(&snapshot)[0]["_meta"], json!({"piToolName": ""}));
}

#[test]
fn statement_15_a_definition_has_description_guidelines_and_pointer() {
    let mut all = tools(&["read.file"]);
    all.all[0].description = "Reads a \"file\".\nAll of it.".to_owned();
    all.all[0].guidelines = ["  Prefer it to shell. ", "", " \n", "Give a path."].map(str::to_owned).to_vec();
    let snapshot = take(&SurfaceOptions::default(), &all);
    let expected = "Reads a \"file\".\nAll of it.\n\nGuidelines:\n- Prefer it to shell.\n- Give a path.\n\nCall it as \
                    pi__read_file; its pi name is \"read.file\". The full rules are in the bootstrap prompt, if there was one.";
    assert_eq!(
        listed(&snapshot),
        [json!({
            "name": "pi__read_file",
            "description": expected,
            "inputSchema": {"type": "object", "properties": {}},
            "_meta": {"piToolName": "read.file"},
        })]
    );
    // What prompts say of all tools is said there alone.
    for whole in ["Not callable", "Callable tool surfaces", "tools.bridge", Profile::PI.replay_prefix] {
        assert!(!expected.contains(whole));
    }
    all.all[0].description = " ".to_owned();
    all.all[0].guidelines.clear();
    let snapshot = Snapshot::take(&Profile::HOST, &SurfaceOptions::default(), &all);
    assert_eq!(
        listed(&snapshot)[0]["description"],
        "Runs the host tool \"read.file\".\n\nCall it as host__read_file; its host name is \"read.file\". The full rules \
         are in the bootstrap prompt, if there was one."
    );
    assert_eq!(listed(&snapshot)[0]["_meta"], json!({"hostToolName": "read.file"}));
}

#[test]
fn one_odd_schema_costs_no_other_tool() {
    let odd = [
        "true",
        "null",
        "[]",
        r#"{"type":"string"}"#,
        r#"{"anyOf":[]}"#,
        "{}",
        r#"{"type":"object","properties":null}"#,
    ];
    let good = r#"{ "type":"object","anyOf":[{"x":9007199254740993123}],"s":"\u00e9" }"#;
    let mut all = HostTools::default();
    for (place, schema) in odd.into_iter().chain([good]).enumerate() {
        let parameters = RawJson::new(schema).unwrap();
        all.all.push(HostTool { parameters, ..tool(&format!("t{place}")) });
        all.active.push(format!("t{place}"));
    }
    let snapshot = take(&SurfaceOptions::default(), &all);
    assert_eq!(snapshot.exposed().len(), odd.len() + 1);
    for tool in snapshot.exposed().iter().take(odd.len()) {
        assert!(tool.odd_schema.is_some(), "{}", tool.mcp_name);
        let definition: Value = serde_json::from_slice(&tool.definition).unwrap();
        assert_eq!(definition["inputSchema"], json!({"type": "object", "properties": {}}));
    }
    let kept = snapshot.exposed().last().unwrap();
    assert_eq!(kept.odd_schema, None);
    // Byte for byte.
    assert!(std::str::from_utf8(&kept.definition).unwrap().contains(&format!("\"inputSchema\":{good},")));
}

#[test]
fn definitions_are_slices_of_the_list() {
    let snapshot = take(&SurfaceOptions::default(), &tools(&["b", "a", "c"]));
    let mut joined = b"[".to_vec();
    for (place, tool) in snapshot.exposed().iter().enumerate() {
        joined.extend_from_slice(if place == 0 { b"" } else { b"," });
        joined.extend_from_slice(&tool.definition);
    }
    joined.push(b']');
    assert_eq!(snapshot.tools_json(), &joined);
    let within = snapshot.tools_json().as_ptr_range();
    assert!(snapshot.exposed().iter().all(|tool| within.contains(&tool.definition.as_ptr())));
}

fn any_tool() -> impl Strategy<Value = HostTool> {
    let name =
        prop_oneof![Just("read".to_owned()), Just("cursor".to_owned()), "[a-c_. ]{0,3}", any::<String>()];
    let schema = prop_oneof![Just("true"), Just("{}"), Just(r#"{"type":"object"}"#)];
    (name, any::<String>(), proptest::collection::vec(any::<String>(), 0..3), schema).prop_map(
        |(name, description, guidelines, schema)| HostTool {
            description,
            guidelines,
            parameters: RawJson::new(schema).unwrap(),
            ..tool(&name)
        },
    )
}

proptest! {
    #[test]
    fn every_tool_is_exposed_or_hidden_and_the_list_is_what_is_exposed(
        all in proptest::collection::vec(any_tool(), 0..12),
        inactive in proptest::collection::vec(any::<bool>(), 12),
        enabled in prop::bool::weighted(0.9),
        expose_builtins in any::<bool>(),
        own_display_tool in any::<bool>(),
        excluded in 0_usize..4,
    ) {
        let mut active: Vec<String> = all.iter().zip(&inactive).filter(|(_, off)| !**off).map(|(tool, _)| tool.name.clone()).collect();
        active.push("ghost!".to_owned());
        let exclude = all.iter().take(excluded).map(|tool| tool.name.clone()).collect();
        let options = SurfaceOptions { enabled, expose_builtins, exclude, own_display_tool };
        let tools = HostTools { all, active };
        let snapshot = take(&options, &tools);
        prop_assert_eq!(snapshot.exposed().len() + snapshot.hidden().len(), tools.all.len() + 1);
        let list = listed(&snapshot);
        prop_assert_eq!(list.len(), snapshot.exposed().len());
        prop_assert!(snapshot.exposed().is_sorted_by(|one, next| one.mcp_name < next.mcp_name));
        for (shown, exposed) in list.iter().zip(snapshot.exposed()) {
            prop_assert_eq!(shown["name"].as_str(), Some(exposed.mcp_name.as_str()));
            prop_assert_eq!(shown["_meta"]["piToolName"].as_str(), Some(exposed.tool.name.as_str()));
            prop_assert_eq!(shown["inputSchema"]["type"].as_str(), Some("object"));
            prop_assert_eq!(snapshot.find(&exposed.mcp_name), Some(exposed));
            prop_assert!(tools.active.contains(&exposed.tool.name));
            prop_assert!(!options.exclude.contains(&exposed.tool.name));
        }
        let mut turned = tools.clone();
        turned.active.reverse();
        prop_assert_eq!(&take(&options, &turned), &snapshot);
    }
}
