//! Tests of `report`.

use expect_test::expect;

use super::*;
use crate::snapshot::SurfaceOptions;
use crate::tool::{HostTool, HostTools};

fn nothing(profile: &Profile) -> ReportInput<'_> {
    ReportInput {
        profile,
        settings: None,
        warnings: &[],
        snapshot: None,
        deadlines: None,
        run: None,
        diagnostics: &[],
    }
}

fn tools(tools: &[(&str, &str)]) -> HostTools {
    let all = tools.iter().map(|(name, parameters)| {
        let parameters: serde_json::Value = serde_json::from_str(parameters).unwrap();
        serde_json::from_value::<HostTool>(serde_json::json!({"name": name, "parameters": parameters}))
            .unwrap()
    });
    HostTools { all: all.collect(), active: tools.iter().map(|(name, _)| (*name).to_owned()).collect() }
}

#[test]
fn statement_51_the_report_has_the_three_settings_and_the_surface() {
    let (settings, warnings) = Settings::parse(
        br#"{"tools":{"manifest":false,"bridge":{"exclude":["secret tool"],"callTimeoutMs":7200000,"exposeBuiltIn":true}},
            "local":{"settingSources":["user","project"]}}"#,
    );
    let (deadlines, lowered) = settings.deadlines();
    let warnings = [warnings, lowered].concat();
    let host = tools(&[
        ("read.file", r#"{"type":"object"}"#),
        ("odd", r#"{"anyOf":[]}"#),
        ("secret tool", r#"{"type":"object"}"#),
        ("bash", r#"{"type":"object"}"#),
    ]);
    let snapshot = Snapshot::take(&Profile::PI, &settings.surface(true), &host);
    let run = ReportedRun {
        id: "cursor-pi-bridge-run-1",
        pending: 2,
        exposed: 2,
        connected: true,
        listed: true,
        called: false,
    };
    let text = report(&ReportInput {
        settings: Some(&settings),
        warnings: &warnings,
        snapshot: Some(&snapshot),
        deadlines: Some(deadlines),
        run: Some(run),
        diagnostics: &[r#"{"event":"run_created"}"#.to_owned()],
        ..nothing(&Profile::PI)
    });
    expect![[r#"
        Tool surfaces of the current session (/cursor-tools)
        tools.bridge.enabled: enabled
        tools.manifest: disabled
        local.settingSources: user, project
        Callable tool surfaces in this run:
        - The agent's own tools (reading and editing files, search, shell, web and the like) and its configured MCP servers, as far as the agent offers them here; which MCP servers are loaded depends on the agent's settings.
        - Switches for pi tools change pi tools alone, never the agent's own tools or its configured MCP servers.
        - Tools of pi, called by exactly these names (pi shows its own names for them): pi__odd, pi__read_file (pi: "read.file")
        - Not callable: ids that begin with cursor-replay-, tool names that only stand in the history, labels of cards and transcripts.

        Exposed: 2
          pi__odd = "odd", listed with an empty object schema: the root of the schema has no "type": "object"
          pi__read_file = "read.file"

        Hidden: 2
          "bash": overlaps with a tool of the agent; tools.bridge.exposeBuiltins is false
          "secret tool": in tools.bridge.exclude

        Deadlines: MCP tool calls 3600000 ms, calls through the bridge 3600000 ms, connecting 10000 ms

        Run cursor-pi-bridge-run-1: 2 pending
          exposed: 2, connected: yes, listed: yes, called: not yet

        Last diagnostics:
          {"event":"run_created"}

        Warnings about settings:
          tools.bridge.exposeBuiltIn: is unknown; did you mean tools.bridge.exposeBuiltins
          tools.bridge.callTimeoutMs: the deadline of a bridged call is 3600000 ms, not 7200000 ms as configured: it can only lower the time for an MCP tool call"#]].assert_eq(&text);
}

#[test]
fn statement_51_a_broken_file_leaves_a_whole_report() {
    let (settings, warnings) = Settings::parse(b"{ broken");
    let snapshot =
        Snapshot::take(&Profile::HOST, &settings.surface(false), &tools(&[("todo", "{}"), ("ls", "{}")]));
    let text = report(&ReportInput {
        settings: Some(&settings),
        warnings: &warnings,
        snapshot: Some(&snapshot),
        ..nothing(&Profile::HOST)
    });
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "Tool surfaces of the current session (/tools)",
            "tools.bridge.enabled: enabled",
            "tools.manifest: enabled",
            "local.settingSources: all",
        ]
    );
    // The manifest comes next, the line of a missing snapshot does not.
    assert_eq!(lines[4], "Callable tool surfaces in this run:");
    assert!(lines[7].ends_with(": host__todo"), "{}", lines[7]);
    assert_eq!(
        lines.last(),
        Some(&"  the settings file is not well-formed JSON; all settings have their defaults")
    );
    assert!(!text.contains("broken"));
}

#[test]
fn without_settings_and_snapshot_there_is_a_report_all_the_same() {
    let text = report(&nothing(&Profile::PI));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..6],
        [
            "Tool surfaces of the current session (/cursor-tools)",
            "tools.bridge.enabled: enabled",
            "tools.manifest: enabled",
            "local.settingSources: all",
            "No snapshot: the tools of pi could not be read.",
            "Callable tool surfaces in this run:",
        ]
    );
    assert_eq!(lines.len(), 9);
}

#[test]
fn switches_that_are_off_and_no_sources_are_said_so() {
    let (settings, _) = Settings::parse(
        br#"{"tools":{"manifest":false,"bridge":{"enabled":false}},"local":{"settingSources":[]}}"#,
    );
    let snapshot = Snapshot::take(&Profile::PI, &settings.surface(false), &tools(&[("todo", "{}")]));
    let text = report(&ReportInput {
        settings: Some(&settings),
        snapshot: Some(&snapshot),
        ..nothing(&Profile::PI)
    });
    for line in [
        "tools.bridge.enabled: disabled",
        "tools.manifest: disabled",
        "local.settingSources: none",
        "- Tools of the bridge: none, tools.bridge.enabled is false.",
        "Exposed: 0",
        "  \"todo\": tools.bridge.enabled is false",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}");
    }
}

#[test]
fn rows_and_lines_are_bounded_and_stay_lines() {
    let names: Vec<String> = (0..300).map(|number| format!("t\n{number:03}")).collect();
    let host = HostTools { all: Vec::new(), active: names };
    let snapshot = Snapshot::take(&Profile::PI, &SurfaceOptions::default(), &host);
    let diagnostics: Vec<String> =
        (0..30).map(|number| format!("d{number}\u{1b}[31m\n{}", "x".repeat(1000))).collect();
    let text = report(&ReportInput {
        snapshot: Some(&snapshot),
        diagnostics: &diagnostics,
        ..nothing(&Profile::PI)
    });
    assert_eq!(text.lines().filter(|line| line.starts_with("  \"t\\n")).count(), 200);
    assert!(text.contains("\n  and 100 more\n"));
    assert!(!text.contains("d9 ") && text.contains("\n  d10 [31m xxx"));
    assert!(
        text.lines().skip_while(|line| *line != "Last diagnostics:").all(|line| line.chars().count() <= 245)
    );
}

#[test]
fn the_line_of_sources_is_bounded() {
    let settings = |sources: Vec<String>| {
        let mut settings = Settings::default();
        settings.local.setting_sources = sources;
        report(&ReportInput { settings: Some(&settings), ..nothing(&Profile::PI) })
    };
    assert!(settings(vec![]).contains("local.settingSources: none\n"));
    let many = settings(vec!["a\nb".to_owned(); 60]);
    let line = many.lines().find(|line| line.starts_with("local.settingSources")).unwrap();
    assert!(line.ends_with("a b, and 10 more"), "{line}");
}
