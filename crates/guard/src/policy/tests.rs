use toolway_wire::{Scanner, Verdict};

use super::*;
use crate::Glob;

fn decide(config: &GuardConfig, message: &str, call: Option<&CallInfo>) -> Action {
    let mut scanner = Scanner::new();
    scanner.feed(message.as_bytes());
    match scanner.finish() {
        Verdict::Message(envelope) => action(config, envelope, call),
        other => panic!("{other:?}"),
    }
}

fn config() -> GuardConfig {
    GuardConfig::new("/nowhere".into())
}

fn call(method: &str, tool: Option<&str>) -> CallInfo {
    CallInfo { method: method.into(), tool: tool.map(Into::into), ..CallInfo::default() }
}

/// `template` with `~` replaced so that the message has exactly `chars` characters.
fn sized(template: &str, chars: usize) -> String {
    let fixed = template.chars().count() - 1;
    template.replace('~', &"é".repeat(chars - fixed))
}

const TOOL: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"~"}]}}"#;

#[test]
fn the_border_is_exact_for_every_shape() {
    let cases = [
        ("tools/call", TOOL, Shape::Tool),
        ("tasks/result", TOOL, Shape::TaskTool),
        (
            "resources/read",
            r#"{"jsonrpc":"2.0","id":1,"result":{"contents":[{"uri":"x:y","text":"~"}]}}"#,
            Shape::Resource,
        ),
        (
            "prompts/get",
            r#"{"jsonrpc":"2.0","id":1,"result":{"messages":[{"role":"user","content":{"type":"text","text":"~"}}]}}"#,
            Shape::Prompt,
        ),
        ("x-vendor/thing", r#"{"jsonrpc":"2.0","id":1,"result":{"x":"~"}}"#, Shape::UnknownResult),
        ("tools/call", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"~"}}"#, Shape::Error),
        ("tools/list", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"~"}}"#, Shape::Error),
    ];
    for (method, template, shape) in cases {
        let call = call(method, Some("t"));
        for chars in [200, 9_999, 10_000] {
            assert_eq!(
                decide(&config(), &sized(template, chars), Some(&call)),
                Action::Pass,
                "{method} {chars}"
            );
        }
        for chars in [10_001, 20_000] {
            let expected = Action::Replace { shape, limit: 10_000 };
            assert_eq!(decide(&config(), &sized(template, chars), Some(&call)), expected, "{method} {chars}");
        }
    }
}

#[test]
fn insignificant_white_space_and_long_escapes_do_not_count() {
    let call = call("tools/call", None);
    let spaced = sized(TOOL, 10_000).replace(':', " : ").replace(',', "\t,");
    assert_eq!(decide(&config(), &spaced, Some(&call)), Action::Pass);
    let escaped = sized(TOOL, 10_000).replace('é', "\\u00e9");
    assert_eq!(decide(&config(), &escaped, Some(&call)), Action::Pass);
    let over = sized(TOOL, 10_000).replacen('é', "\\n", 1);
    assert_ne!(decide(&config(), &over, Some(&call)), Action::Pass);
}

#[test]
fn known_methods_and_input_required_always_pass() {
    let big = sized(r#"{"jsonrpc":"2.0","id":1,"result":{"x":"~"}}"#, 30_000);
    for method in WHOLE {
        assert_eq!(decide(&config(), &big, Some(&call(method, None))), Action::Pass, "{method}");
    }
    let input = sized(
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"~"}}"#,
        30_000,
    );
    for method in ["tools/call", "resources/read", "prompts/get", "x-vendor/thing", "tasks/result"] {
        assert_eq!(decide(&config(), &input, Some(&call(method, None))), Action::Pass, "{method}");
    }
    assert_eq!(decide(&config(), &big, None), Action::Pass);
}

#[test]
fn unknown_results_pass_when_told_so() {
    let big = sized(r#"{"jsonrpc":"2.0","id":1,"result":{"x":"~"}}"#, 30_000);
    let config = GuardConfig { unknown_results: UnknownResults::Pass, ..config() };
    assert_eq!(decide(&config, &big, Some(&call("x-vendor/thing", None))), Action::Pass);
}

#[test]
fn of_notifications_only_log_messages_are_cut() {
    let log = sized(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"~"}}"#,
        10_001,
    );
    assert_eq!(decide(&config(), &log, None), Action::Replace { shape: Shape::LogMessage, limit: 10_000 });
    for other in [
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"~"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"x":"~"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"notifications/message","params":{"x":"~"}}"#,
    ] {
        assert_eq!(decide(&config(), &sized(other, 30_000), None), Action::Pass, "{other}");
    }
}

#[test]
fn media_counts_only_from_its_limit_on() {
    let message = |bytes: usize, text: usize| {
        let data = "A".repeat(bytes / 3 * 4);
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"image","data":"{data}","mimeType":"image/png"}},{{"type":"text","text":"{}"}}]}}}}"#,
            "t".repeat(text)
        )
    };
    let config = GuardConfig { media_limit: 30_000, ..config() };
    let call = call("tools/call", None);
    assert_eq!(decide(&config, &message(29_997, 100), Some(&call)), Action::Pass);
    assert_ne!(decide(&config, &message(30_000, 100), Some(&call)), Action::Pass);
    assert_ne!(decide(&config, &message(29_997, 10_000), Some(&call)), Action::Pass);
}

#[test]
fn the_first_tool_rule_that_fits_decides() {
    let rules = [
        ("big_*", ToolRule::Limit(20_000)),
        ("log", ToolRule::Pass),
        ("s*", ToolRule::Save),
        ("*", ToolRule::Limit(1_000)),
    ];
    let rules = rules.map(|(glob, rule)| (Glob::new(glob).unwrap(), rule)).into();
    let config = GuardConfig { tool_rules: rules, ..config() };
    let decide = |tool: &str, chars: usize| {
        decide(&config, &sized(TOOL, chars), Some(&call("tools/call", Some(tool))))
    };
    let replace = |limit| Action::Replace { shape: Shape::Tool, limit };
    assert_eq!(decide("big_rows", 20_000), Action::Pass);
    assert_eq!(decide("big_rows", 20_001), replace(20_000));
    assert_eq!(decide("log", 500_000), Action::Pass);
    assert_eq!(decide("save", 200), replace(10_000));
    assert_eq!(decide("else", 1_001), replace(1_000));
}
