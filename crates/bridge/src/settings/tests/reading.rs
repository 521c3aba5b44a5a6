//! Tests of reading.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use crate::json::RawJson;

fn parse(value: &Value) -> (Settings, Vec<String>) {
    let (settings, warnings) = Settings::parse(value.to_string().as_bytes());
    (settings, warnings.iter().map(ToString::to_string).collect())
}

/// Every key, with a value that is not its default.
fn full() -> Value {
    json!({
        "$schema": "x",
        "tools": {
            "manifest": false,
            "bridge": {
                "enabled": false,
                "exposeBuiltins": true,
                "exclude": ["bash"],
                "callTimeoutMs": 500,
                "debug": {"stderr": true, "file": "/tmp/d"},
            },
            "mcp": {"callTimeoutMs": 60000.5, "connectTimeoutMs": 1000},
            "display": {"native": "off", "taskPresentation": "task"},
        },
        "local": {
            "settingSources": ["user"],
            "preservePiAgentsContext": true,
            "autoReview": true,
            "sandbox": true,
            "resume": false,
            "transport": "http1",
        },
        "models": {"fastDefaults": {"m.1": true, "n": false}, "cache": {"enabled": false, "ttlMs": 1}},
        "debug": {"sdkEvents": {"enabled": true, "directory": "d", "stderr": true}},
    })
}

fn full_settings() -> Settings {
    Settings {
        tools: ToolSettings {
            manifest: false,
            bridge: BridgeSettings {
                enabled: false,
                expose_builtins: true,
                exclude: vec!["bash".to_owned()],
                call_timeout_ms: Some(500.0),
                debug: DiagnosticSettings { stderr: true, file: Some("/tmp/d".to_owned()) },
            },
            mcp: McpSettings { call_timeout_ms: Some(60000.5), connect_timeout_ms: Some(1000.0) },
            display: DisplaySettings {
                native: NativeDisplay::Off,
                task_presentation: TaskPresentation::Task,
            },
        },
        local: LocalSettings {
            setting_sources: vec!["user".to_owned()],
            preserve_pi_agents_context: true,
            auto_review: true,
            sandbox: true,
            resume: false,
            transport: AgentTransport::Http1,
        },
        models: ModelSettings {
            fast_defaults: BTreeMap::from([("m.1".to_owned(), true), ("n".to_owned(), false)]),
            cache: CacheSettings { enabled: false, ttl_ms: 1.0 },
        },
        debug: DebugSettings {
            sdk_events: SdkEventSettings { enabled: true, directory: "d".to_owned(), stderr: true },
        },
    }
}

/// The paths of all values that are no objects.
fn leaves(value: &Value, path: &str, into: &mut Vec<String>) {
    match value.as_object() {
        Some(members) => {
            for (key, value) in members {
                leaves(value, &format!("{path}/{key}"), into);
            }
        }
        None => into.push(path.to_owned()),
    }
}

#[test]
fn every_key_is_read() {
    assert_eq!(parse(&full()), (full_settings(), Vec::new()));
}

#[test]
fn statement_49_a_malformed_file_means_the_defaults() {
    let whole = |why: &str| format!("the settings file {why}; all settings have their defaults");
    for (bytes, why) in [
        (&b"{"[..], "is not well-formed JSON"),
        (b"", "is not well-formed JSON"),
        (b"{} {}", "is not well-formed JSON"),
        (b"{\"tools\":{\"manifest\":false}", "is not well-formed JSON"),
        (b"{\"a\":NaN}", "is not well-formed JSON"),
        (b"\xff\xfe{}", "is not well-formed JSON"),
        (b"{\"a\":\"\xff\"}", "is not well-formed JSON"),
        (b"[]", "holds no JSON object"),
        (b"null", "holds no JSON object"),
        (b"\"tools\"", "holds no JSON object"),
    ] {
        let (settings, warnings) = Settings::parse(bytes);
        assert_eq!(settings, Settings::default());
        let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, [whole(why)], "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn statement_49_one_bad_key_costs_only_itself() {
    let full = full();
    let mut paths = Vec::new();
    leaves(&full, "", &mut paths);
    paths.retain(|path| path != "/$schema");
    assert_eq!(paths.len(), 24);
    for path in paths {
        let mut without = full.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        let (expected, warnings) = parse(&without);
        assert_eq!(warnings, Vec::<String>::new());
        for wrong in [json!(null), json!({"a": [1]})] {
            let mut file = full.clone();
            *file.pointer_mut(&path).unwrap() = wrong.clone();
            let (settings, warnings) = parse(&file);
            assert_eq!(settings, expected, "{path} = {wrong}");
            let dotted = path.trim_start_matches('/').replace('/', ".");
            assert_eq!(warnings.len(), 1, "{path} = {wrong}");
            assert!(warnings[0].starts_with(&format!("{dotted}: is n")), "{warnings:?}");
        }
    }
}

#[test]
fn numbers_are_finite_and_stay_as_written() {
    let read = |number: &str| {
        let file = format!(r#"{{"tools":{{"bridge":{{"callTimeoutMs":{number},"exposeBuiltins":true}}}}}}"#);
        let (settings, warnings) = Settings::parse(file.as_bytes());
        assert!(settings.tools.bridge.expose_builtins);
        (settings.tools.bridge.call_timeout_ms, warnings.len())
    };
    assert_eq!(read("-1"), (Some(-1.0), 0));
    assert_eq!(read("0"), (Some(0.0), 0));
    assert_eq!(read("7200000"), (Some(7_200_000.0), 0));
    assert_eq!(read("1e300"), (Some(1e300), 0));
    assert_eq!(read("1e400"), (None, 1));
    assert_eq!(read("-1e999999"), (None, 1));
    assert_eq!(read("\"x\""), (None, 1));
    assert_eq!(read("\"500\""), (None, 1));
    assert_eq!(read("true"), (None, 1));
}

#[test]
fn the_deny_list_is_trimmed_and_has_each_name_once() {
    let (settings, warnings) =
        parse(&json!({"tools": {"bridge": {"exclude": [" a ", "a", "", "  ", 5, null, "b c", "A", ["x"]]}}}));
    assert_eq!(settings.tools.bridge.exclude, ["a", "b c", "A"]);
    assert_eq!(warnings, ["tools.bridge.exclude: has 3 values that are no texts, which are left out"]);
    let surface = settings.surface(true);
    assert_eq!(surface.exclude, ["a", "b c", "A"]);
    assert!(surface.enabled && surface.own_display_tool && !surface.expose_builtins);
}

#[test]
fn statement_50_setting_sources_unset_empty_and_listed() {
    let sources = |value: Option<Value>| {
        let file =
            value.map_or_else(|| json!({"local": {}}), |value| json!({"local": {"settingSources": value}}));
        let (settings, warnings) = parse(&file);
        (settings.local.setting_sources, warnings.len())
    };
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(sources(None), (list(&["all"]), 0));
    assert_eq!(sources(Some(json!([]))), (list(&[]), 0));
    let odd = ["project", " user", "", "user", "Unknown", "user"];
    assert_eq!(sources(Some(json!(odd))), (list(&odd), 0));
    assert_eq!(sources(Some(json!("user"))), (list(&["all"]), 1));
    assert_eq!(sources(Some(json!(["user", 5]))), (list(&["user"]), 1));
}

#[test]
fn typos_are_told_with_the_key_that_was_meant() {
    let cases = [
        (json!({"tool": {}}), "tool: is unknown; did you mean tools"),
        (json!({"tools": {"manifst": true}}), "tools.manifst: is unknown; did you mean tools.manifest"),
        (
            json!({"tools": {"bridge": {"exposeBuiltIns": true}}}),
            "tools.bridge.exposeBuiltIns: is unknown; did you mean tools.bridge.exposeBuiltins",
        ),
        (
            json!({"tools": {"bridge": {"call_timeout_ms": 1}}}),
            "tools.bridge.call_timeout_ms: is unknown; did you mean tools.bridge.callTimeoutMs",
        ),
        (json!({"local": {"zzz": 1}}), "local.zzz: is unknown"),
        (json!({"": 1}), "\"\": is unknown"),
        (json!({"a\nb": 1}), "\"a\\nb\": is unknown"),
        (json!({"tools": 5}), "tools: is no object, so that everything in it has its default"),
        (json!({"tools": {"display": {"native": "On"}}}), "tools.display.native: is none of auto, on, off"),
        (json!({"models": {"fastDefaults": {"m": 1}}}), "models.fastDefaults.m: is neither true nor false"),
        (
            json!({"bridge": {"excludeTools": []}}),
            "bridge: is not read any more; tools.bridge has the switches, tools.bridge.exclude the deny list",
        ),
        (
            json!({"tools": {"bridge": {"excludeTools": []}}}),
            "tools.bridge.excludeTools: is not read any more; the deny list is tools.bridge.exclude",
        ),
    ];
    for (file, warning) in cases {
        assert_eq!(parse(&file), (Settings::default(), vec![warning.to_owned()]));
    }
}

#[test]
fn no_warning_repeats_a_value() {
    let secret = "sk-secret-value";
    let mut paths = Vec::new();
    leaves(&full(), "", &mut paths);
    for path in paths {
        for wrong in [json!({"x": secret}), json!([secret, {"x": secret}]), json!(secret)] {
            let mut file = full();
            *file.pointer_mut(&path).unwrap() = wrong;
            let (_, warnings) = parse(&file);
            assert!(!warnings.concat().contains(secret), "{path}: {warnings:?}");
        }
    }
}

#[test]
fn of_a_key_that_stands_twice_the_last_one_counts() {
    let (settings, _) =
        Settings::parse(br#"{"tools":{"manifest":true},"tools":{"manifest":false,"manifest":false}}"#);
    assert!(!settings.tools.manifest);
}

#[test]
fn thousands_of_unknown_keys_give_a_short_list() {
    let file: serde_json::Map<String, Value> =
        (0..20_000).map(|number| (format!("kay{number}"), json!(1))).collect();
    let (_, warnings) = parse(&Value::Object(file));
    assert_eq!(warnings.len(), 51);
    assert_eq!(warnings[50], "19950 more warnings");
    let (_, warnings) = parse(&json!({"k".repeat(100_000): 1}));
    assert!(warnings[0].len() < 120);
}

#[test]
fn a_mark_before_the_text_is_no_part_of_it() {
    let (settings, warnings) = Settings::parse(b"\xef\xbb\xbf{\"tools\":{\"manifest\":false}}");
    assert!(!settings.tools.manifest);
    assert_eq!(warnings, []);
}

#[test]
fn files_that_are_missing_too_large_or_none_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    assert_eq!(Settings::read(&path), (Settings::default(), Vec::new()));
    std::fs::write(&path, full().to_string()).unwrap();
    assert_eq!(Settings::read(&path), (full_settings(), Vec::new()));
    // 50 MB without a byte on disk.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(50_000_000).unwrap();
    let (settings, warnings) = Settings::read(&path);
    assert_eq!(settings, Settings::default());
    let large = "the settings file is larger than 1048576 bytes; all settings have their defaults";
    assert_eq!(warnings[0].to_string(), large);
    let (_, warnings) = Settings::read(folder.path());
    assert_eq!(warnings[0].to_string(), "the settings file is no file; all settings have their defaults");
}

#[test]
#[cfg(target_os = "linux")]
fn a_device_is_not_waited_for() {
    let (settings, warnings) = Settings::read(std::path::Path::new("/dev/zero"));
    assert_eq!(settings, Settings::default());
    assert_eq!(warnings[0].to_string(), "the settings file is no file; all settings have their defaults");
}

#[test]
fn what_is_laid_over_changes_only_what_it_says() {
    let above = |mut settings: Settings, json: &str| {
        let warnings = settings.lay_over(&RawJson::new(json.to_owned()).unwrap());
        (settings, warnings.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(above(full_settings(), "{}"), (full_settings(), Vec::new()));
    assert_eq!(above(full_settings(), "5").1, ["the settings above the file are no JSON object"]);
    let (settings, warnings) = above(
        full_settings(),
        r#"{"tools":{"bridge":{"exclude":[],"enabled":"x"}},"models":{"fastDefaults":{"n":true}}}"#,
    );
    let mut expected = full_settings();
    expected.tools.bridge.exclude.clear();
    expected.models.fast_defaults.insert("n".to_owned(), true);
    assert_eq!(settings, expected);
    assert_eq!(warnings, ["tools.bridge.enabled: is neither true nor false"]);
    assert_eq!(above(Settings::default(), &full().to_string()), (full_settings(), Vec::new()));
}

#[test]
fn lesson_40_only_the_user_file_is_read() {
    // A project that brings a file of the same name, read from inside that project.
    let project = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let hostile = r#"{"tools":{"bridge":{"exposeBuiltins":true}},"local":{"sandbox":false}}"#;
    for profile in crate::profile::Profile::ALL {
        for folder in [".pi", ".pi/agent", "toolway", "."] {
            std::fs::create_dir_all(project.path().join(folder)).unwrap();
            std::fs::write(project.path().join(folder).join(profile.user_file), hostile).unwrap();
        }
        let path = settings_path(&profile, Some(home.path()), Some(home.path()), None).unwrap();
        assert!(path.starts_with(home.path()));
        assert_eq!(Settings::read(&path), (Settings::default(), Vec::new()));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>()) {
        Settings::parse(&bytes);
        let full = full().to_string();
        let cut = cut.index(full.len());
        prop_assert_eq!(Settings::parse(&full.as_bytes()[..cut]).0, Settings::default());
    }
}
