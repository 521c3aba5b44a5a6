//! Tests of `manifest`.

use std::collections::BTreeSet;

use expect_test::expect;
use serde_json::Value;

use super::*;
use crate::snapshot::SurfaceOptions;
use crate::tool::{HostTool, HostTools};

const PROMPT: ManifestOptions = ManifestOptions { in_prompt: true };
const REPORT: ManifestOptions = ManifestOptions { in_prompt: false };

fn tools(names: &[String]) -> HostTools {
    let all = names
        .iter()
        .map(|name| serde_json::from_value::<HostTool>(serde_json::json!({"name": name})).unwrap());
    HostTools { all: all.collect(), active: names.to_vec() }
}

fn snapshot(profile: &Profile, names: &[&str]) -> Snapshot {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Snapshot::take(profile, &SurfaceOptions::default(), &tools(&names))
}

/// The names in the bridge's line, without what stands in quotes.
fn listed(profile: &Profile, text: &str) -> BTreeSet<String> {
    let line = text.lines().find(|line| line.contains("exactly these names")).unwrap_or_default();
    let (_, list) = line.split_once("): ").unwrap_or_default();
    list.split(", ")
        .filter_map(|entry| entry.split(' ').next())
        .filter(|name| name.starts_with(profile.prefix))
        .map(str::to_owned)
        .collect()
}

fn in_tools_list(snapshot: &Snapshot) -> BTreeSet<String> {
    let list: Vec<Value> = serde_json::from_slice(snapshot.tools_json()).unwrap();
    list.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_prompt_lists_the_names() {
    let text = manifest(&Profile::PI, &snapshot(&Profile::PI, &["todo", "sem search"]), &PROMPT);
    expect![[r#"
        Callable tool surfaces in this run:
        - The agent's own tools (reading and editing files, search, shell, web and the like) and its configured MCP servers, as far as the agent offers them here; which MCP servers are loaded depends on the agent's settings.
        - Switches for pi tools change pi tools alone, never the agent's own tools or its configured MCP servers.
        - Tools of pi, called by exactly these names (pi shows its own names for them): pi__sem_search (pi: "sem search"), pi__todo
        - Not callable: ids that begin with cursor-replay-, tool names that only stand in the history, labels of cards and transcripts."#]]
    .assert_eq(&text);
}

#[test]
fn a_prompt_says_nothing_of_a_bridge_that_exposes_nothing() {
    let off = SurfaceOptions { enabled: false, ..SurfaceOptions::default() };
    let none = tools(&["read".to_owned()]);
    for options in [SurfaceOptions::default(), off] {
        let text = manifest(&Profile::PI, &Snapshot::take(&Profile::PI, &options, &none), &PROMPT);
        assert_eq!(text, manifest_without_snapshot(&Profile::PI));
        for word in ["bridge", "pi__", "pi_tools", "tools/list"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn a_report_says_why_nothing_is_exposed() {
    let off = SurfaceOptions { enabled: false, ..SurfaceOptions::default() };
    let none = HostTools::default();
    let line = |options: &SurfaceOptions| {
        let text = manifest(&Profile::PI, &Snapshot::take(&Profile::PI, options, &none), &REPORT);
        text.lines().nth(3).unwrap().to_owned()
    };
    assert_eq!(line(&SurfaceOptions::default()), "- Tools of the bridge: no pi tool is exposed in this run.");
    assert_eq!(line(&off), "- Tools of the bridge: none, tools.bridge.enabled is false.");
}

#[test]
fn a_long_list_is_cut_between_names_and_says_how_many_are_missing() {
    let names: Vec<String> = (0..500).map(|number| format!("tool number {number}")).collect();
    let snapshot = Snapshot::take(&Profile::HOST, &SurfaceOptions::default(), &tools(&names));
    let text = manifest(&Profile::HOST, &snapshot, &PROMPT);
    let line = text.lines().nth(3).unwrap();
    let (_, list) = line.split_once("): ").unwrap();
    let (list, more) = list.rsplit_once(" and ").unwrap();
    assert!(list.len() <= 4096 && list.len() > 4000, "{}", list.len());
    let shown = listed(&Profile::HOST, &text);
    assert_eq!(more, format!("{} more, see tools/list", 500 - shown.len()));
    assert!(shown.is_subset(&in_tools_list(&snapshot)));
}

#[test]
fn trial_22_the_manifest_lists_exactly_what_tools_list_does() {
    let long = |end: &str| "n".repeat(70) + end;
    let (a, b) = (long("a"), long("b"));
    let names = ["read.file", "read_file", "read file", &a, &b, "数据库", "UPPER", "x__y"];
    for profile in Profile::ALL {
        let first = snapshot(&profile, &names);
        let mut reversed = names;
        reversed.reverse();
        assert_eq!(snapshot(&profile, &reversed), first);
        let text = manifest(&profile, &first, &PROMPT);
        assert_eq!(listed(&profile, &text), in_tools_list(&first));
        assert_eq!(in_tools_list(&first).len(), names.len());
        for tool in first.exposed() {
            let name = &tool.mcp_name;
            assert!(name.len() <= 64 && profile.server_key.len() + 1 + name.len() <= 60, "{name}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'),
                "{name}"
            );
            assert_eq!(first.find(name).unwrap().tool.name, tool.tool.name);
            // A host's own name, called without the prefix, is answered with this one.
            assert_eq!(first.suggestion(&tool.tool.name), Some(name.as_str()));
            let beside = format!("{name} ({}: {})", profile.host, quoted(&tool.tool.name));
            let is_plain = format!("{}{}", profile.prefix, tool.tool.name) == *name;
            assert_eq!(text.contains(&beside), !is_plain, "{name}");
        }
        // The next run of a host that has removed a tool: neither list nor manifest has it.
        let gone = snapshot(&profile, &names[1..]);
        let name = format!("{}read_file", profile.prefix);
        assert_eq!(gone.find(&name).unwrap().tool.name, "read_file");
        let text = manifest(&profile, &gone, &PROMPT);
        assert!(!text.contains("read.file"));
        assert_eq!(listed(&profile, &text), in_tools_list(&gone));
    }
}

#[test]
fn trial_22_variations_names_that_would_break_a_list() {
    let names = ["a, b", "a\nb", "pi__x", "x", "a (pi: \"x\")", "", " ", "👩‍🚀", "a\u{202e}b", "A", "a"];
    let first = snapshot(&Profile::PI, &names);
    let text = manifest(&Profile::PI, &first, &PROMPT);
    assert_eq!(first.exposed().len(), names.len());
    assert_eq!(text.lines().count(), 5);
    for tool in first.exposed() {
        assert!(text.contains(&tool.mcp_name));
    }
    assert_eq!(first.find("pi__x").unwrap().tool.name, "x");
    assert_eq!(first.find("pi__pi__x").unwrap().tool.name, "pi__x");
}
