//! What hooks say, and what becomes of them.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;

fn cancel() -> CancellationToken {
    CancellationToken::new()
}

#[tokio::test]
async fn a_hook_is_told_what_is_called_and_numbers_stay() {
    let machine = Machine::new();
    let seen = machine.home.join("seen");
    let keep =
        |name: &str| format!("cat > {}/{name}; pwd > {}/cwd", machine.home.display(), machine.home.display());
    machine.hooks(&json!({
        "preToolUse": [{"command": keep("pre")}],
        "beforeMCPExecution": [{"command": keep("before")}],
        "afterMCPExecution": [{"command": keep("after")}],
        "postToolUse": [{"command": keep("post")}],
    }));
    let hooks = machine.project_hooks();
    let call = Call::of_server(r#"{"n":9007199254740993123,"s":"é"}"#);
    let result = RawJson::new(r#"{"content":[],"big":1e400}"#).unwrap();
    assert_eq!(
        hooks.before_tool(call.call(), &cancel()).await,
        crate::hooks::sequence::Beforehand::default()
    );
    hooks.before_server(call.call(), &cancel()).await;
    hooks.after(call.call(), &result, Duration::from_millis(7), &cancel()).await;
    let text = |name: &str| std::fs::read_to_string(machine.home.join(name)).unwrap();
    assert!(text("pre").contains(r#""tool_input":{"n":9007199254740993123,"s":"é"}"#), "{}", text("pre"));
    assert_eq!(text("cwd").trim(), machine.project.display().to_string());
    let parsed = |name: &str| -> serde_json::Value { serde_json::from_str(&text(name)).unwrap() };
    assert_eq!(parsed("pre")["tool_name"], "MCP:query");
    let before = parsed("before");
    assert_eq!(before["hook_event_name"], "beforeMCPExecution");
    assert_eq!((&before["tool_name"], &before["server_name"]), (&json!("query"), &json!("db")));
    assert_eq!(before["tool_input"], json!(r#"{"n":9007199254740993123,"s":"é"}"#));
    assert_eq!(before["command"], "npx db-server");
    assert_eq!((&before["conversation_id"], &before["generation_id"]), (&json!("agent-1"), &json!("run-1")));
    let after = parsed("after");
    assert_eq!((&after["result_json"], &after["duration"]), (&json!(result.text()), &json!(7)));
    assert_eq!(parsed("post")["tool_output"], json!(result.text()));
    assert!(!seen.exists());
}

#[tokio::test]
async fn answers_add_up_and_a_denial_stands_above_all() {
    let machine = Machine::new();
    let say = |answer: serde_json::Value| json!({"command": format!("cat >/dev/null; echo '{answer}'")});
    machine.hooks(&json!({"preToolUse": [
        say(json!({"permission": "allow", "updated_input": {"a": 1}})),
        say(json!({"permission": "ask", "user_message": "sure?"})),
        {"command": "grep -q '\"a\":1' && echo '{\"updated_input\": {\"a\": 2}}'"},
    ]}));
    let call = Call::of_tool("{}");
    let before = machine.project_hooks().before_tool(call.call(), &cancel()).await;
    assert_eq!(before.input.unwrap().text(), r#"{"a": 2}"#);
    assert_eq!((before.ask.as_deref(), before.deny), (Some("sure?"), None));
    machine.hooks(&json!({"preToolUse": [
        say(json!({"permission": "deny", "agent_message": "not today"})),
        {"command": format!("touch {}/second", machine.home.display())},
    ]}));
    let before = machine.project_hooks().before_tool(call.call(), &cancel()).await;
    let text = before.deny.unwrap();
    assert!(
        text.contains("permission denied") && text.contains("not today") && text.contains("hooks.json:1"),
        "{text}"
    );
    assert!(!machine.home.join("second").exists(), "nothing runs behind a denial");
}

#[tokio::test]
async fn exit_code_two_blocks_and_other_failures_pass_unless_they_are_to_close() {
    let machine = Machine::new();
    let call = Call::of_tool("{}");
    for (command, blocks) in [
        ("exit 2", true),
        ("echo because >&2; exit 2", true),
        ("exit 1", false),
        ("exit 127", false),
        ("kill -9 $$", false),
        ("echo not json", false),
        ("echo '[]'", false),
        ("echo '{\"permission\": \"maybe\"}'", false),
        ("echo '{\"updated_input\": 7}'", false),
        ("/does/not/exist", false),
        ("sleep 30", false),
        ("yes | head -c 5000000", false),
    ] {
        for fail_closed in [false, true] {
            let timeout = if command.starts_with("sleep") { 0.2 } else { 30.0 };
            machine.hook(
                "preToolUse",
                &json!({"command": command, "failClosed": fail_closed, "timeout": timeout}),
            );
            let before = machine.project_hooks().before_tool(call.call(), &cancel()).await;
            assert_eq!(before.deny.is_some(), blocks || fail_closed, "{command} {fail_closed}: {before:?}");
            if command.starts_with("echo because") {
                assert!(before.deny.unwrap().contains("because"));
            }
        }
    }
}

#[tokio::test]
async fn matchers_choose_tools() {
    let machine = Machine::new();
    for (matcher, tool, server) in [
        (None, true, true),
        (Some("*"), true, true),
        (Some("Shell|Write"), true, false),
        (Some("^shell$"), true, false),
        (Some("MCP:query"), false, true),
        (Some("MCP:"), false, true),
        (Some("MCP:db:.*"), false, true),
        (Some("Read"), false, false),
    ] {
        let mut entry = json!({"command": "exit 2"});
        if let Some(matcher) = matcher {
            entry["matcher"] = json!(matcher);
        }
        machine.hook("preToolUse", &entry);
        let hooks = machine.project_hooks();
        let of_tool = hooks.before_tool(Call::of_tool("{}").call(), &cancel()).await.deny.is_some();
        let of_server = hooks.before_tool(Call::of_server("{}").call(), &cancel()).await.deny.is_some();
        assert_eq!((of_tool, of_server), (tool, server), "{matcher:?}");
    }
}

#[tokio::test]
async fn results_of_servers_are_changed_and_others_are_not() {
    let machine = Machine::new();
    let result = RawJson::new(r#"{"content":[{"type":"text","text":"secret"}]}"#).unwrap();
    for (output, expected) in [
        (json!("hidden"), json!({"content": [{"type": "text", "text": "hidden"}]})),
        (json!({"content": [], "isError": true}), json!({"content": [], "isError": true})),
        (json!({"a": 1}), json!({"content": [{"type": "text", "text": "{\"a\":1}"}]})),
    ] {
        let answer = json!({"updated_mcp_tool_output": output, "additional_context": "more"});
        machine.hook("postToolUse", &json!({"command": format!("echo '{answer}'")}));
        let hooks = machine.project_hooks();
        let after = hooks.after(Call::of_server("{}").call(), &result, Duration::ZERO, &cancel()).await;
        assert_eq!(after.result.unwrap().tree(), expected);
        assert_eq!(after.context, ["more"]);
        let after = hooks.after(Call::of_tool("{}").call(), &result, Duration::ZERO, &cancel()).await;
        assert_eq!((after.result, after.context), (None, vec!["more".to_owned()]));
    }
    machine.hook("postToolUse", &json!({"command": "echo no >&2; exit 2"}));
    let after =
        machine.project_hooks().after(Call::of_tool("{}").call(), &result, Duration::ZERO, &cancel()).await;
    assert!(after.withheld.unwrap().contains("no"));
}

#[tokio::test]
async fn secrets_in_a_hooks_words_are_not_shown() {
    let machine = Machine::new();
    let words = "echo \"token: $SERVICE_TOKEN, Authorization: Bearer abcdefghijklmnop123456\" >&2; exit 2";
    machine.hook("preToolUse", &json!({"command": words}));
    let before = machine.project_hooks().before_tool(Call::of_tool("{}").call(), &cancel()).await;
    let text = before.deny.unwrap();
    assert!(!text.contains("hunter2") && !text.contains("abcdefghijklmnop123456"), "{text}");
    assert!(text.contains("token"), "{text}");
}

/// Waits until the process that a script wrote down is gone: it has been killed, which takes effect when it is its
/// turn.
async fn gone(pid_file: &std::path::Path) {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let gone = async {
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_of_a_hook_outlives_it() {
    let machine = Machine::new();
    let pid = machine.home.join("pid");
    let leaves = format!("sleep 600 & echo $! > {}", pid.display());
    for (command, timeout) in [(leaves.clone(), 30.0), (format!("{leaves}; sleep 600"), 3.0)] {
        machine.hook("preToolUse", &json!({"command": command, "timeout": timeout}));
        machine.project_hooks().before_tool(Call::of_tool("{}").call(), &cancel()).await;
        gone(&pid).await;
        std::fs::remove_file(&pid).unwrap();
    }
    machine.hook("preToolUse", &json!({"command": format!("{leaves}; sleep 600")}));
    let stop = cancel();
    let hooks = machine.project_hooks();
    let call = Call::of_tool("{}");
    let (before, ()) = tokio::join!(hooks.before_tool(call.call(), &stop), async {
        while !std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
    });
    assert!(before.deny.unwrap().contains("cancelled"));
    gone(&pid).await;
}
