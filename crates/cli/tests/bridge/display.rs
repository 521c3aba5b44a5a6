//! What the agent's own tools did, as the host is to show it, and the records behind it.

use anyhow::Result;
use serde_json::{Value, json};

use crate::host::Host;

fn started(id: &str, tool: &str, args: &Value) -> Value {
    json!({"event": {"type": "tool-call-started", "callId": id, "toolCall": {"type": tool, "args": args}}})
}

fn completed(id: &str, tool: &str, args: &Value, result: &Value) -> Value {
    let call = json!({"type": tool, "args": args, "result": result});
    json!({"event": {"type": "tool-call-completed", "callId": id, "toolCall": call}})
}

fn begin(run: &str, wrappers: &Value, context: &Value) -> Value {
    json!({"run": run, "cwd": "/w", "mode": "tui", "wrappers": wrappers, "contextTools": context})
}

#[test]
fn statement_44_a_recorded_shell_card_runs_nothing_and_is_given_once() -> Result<()> {
    for profile in ["pi", "host"] {
        let mut host = Host::start(profile)?;
        host.declare(&["todo"])?;
        let run = host.open(json!({}))?;
        let wrappers = json!(["bash", "agent", "cursor"]);
        host.ask("display/begin", begin(&run.id, &wrappers, &wrappers))?;
        let touched = host.home().join("touched");
        let args = json!({"command": format!("touch {}", touched.display())});
        let taken = host.ask("display/tool", started("a1", "shell", &args))?;
        assert_eq!(taken, json!({"tool": true, "own": false}));
        let result = json!({"status": "success", "value": {"stdout": "done and done\n", "exitCode": 0}});
        host.ask("display/tool", completed("a1", "shell", &args, &result))?;
        let shown = host.told("display/show")?;
        let card = shown["items"][0].clone();
        assert_eq!(
            (&card["kind"], &card["tool"], &shown["run"]),
            (&json!("card"), &json!("bash"), &json!(run.id))
        );
        let take = json!({"id": card["id"], "tool": "bash"});
        let wrong = json!({"id": card["id"], "tool": "read"});
        assert_eq!(host.refused("replay/take", wrong)?["code"], -32001);
        let record = host.ask("replay/take", take.clone())?;
        assert_eq!((&record["recorded"], &record["isError"]), (&json!(true), &json!(false)));
        assert!(
            record["content"][0]["text"].as_str().is_some_and(|text| text.contains("done and done")),
            "{record}"
        );
        assert_eq!(host.refused("replay/take", take)?["data"]["kind"], "record");
        assert!(!touched.exists());

        // After a new session, also a record that nobody took fails; ordinary ids go to the real tool.
        host.ask("display/tool", completed("a2", "shell", &json!({"command": "ls"}), &result))?;
        let shown = host.told("display/show")?;
        host.ask("session/close", json!({"session": "main"}))?;
        host.ask("session/open", json!({"session": "main"}))?;
        let take = json!({"id": shown["items"][0]["id"], "tool": "bash"});
        assert_eq!(host.refused("replay/take", take)?["code"], -32001);
        let ordinary = host.ask("replay/take", json!({"id": "call_1", "tool": "bash"}))?;
        assert_eq!(ordinary["recorded"], false);
    }
    Ok(())
}

#[test]
fn statement_46_a_tool_outside_of_the_context_is_one_line() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["todo"])?;
    let run = host.open(json!({}))?;
    host.ask("display/begin", begin(&run.id, &json!(["bash"]), &json!([])))?;
    let result = json!({"status": "success", "value": {"stdout": "a\nb\n", "exitCode": 0}});
    host.ask("display/tool", completed("x", "shell", &json!({"command": "ls"}), &result))?;
    let item = host.told("display/show")?["items"][0].clone();
    assert_eq!((&item["kind"], &item["trace"]), (&json!("trace"), &json!("inactive")));
    assert_eq!(item["text"].as_str().map(|text| text.trim_end().lines().count()), Some(1));
    Ok(())
}

#[test]
fn statement_34_the_agents_report_of_a_bridge_call_is_not_shown_twice() -> Result<()> {
    let mut host = Host::start("host")?;
    let (run, agent) = host.with_agent(&["todo"])?;
    let wrappers = json!(["agent"]);
    host.ask("display/begin", begin(&run.id, &wrappers, &wrappers))?;
    let pending = agent.call_later(1, "host__todo", &json!({}));
    let call = host.call()?;
    let own = json!({"providerIdentifier": "host_tools", "toolName": "host__todo", "args": {}});
    assert_eq!(host.ask("display/tool", started("m1", "mcp", &own))?, json!({"tool": true, "own": true}));
    host.answer(&call, "listed")?;
    pending.answer()?;
    let result = json!({"status": "success", "value": {"content": []}});
    host.ask("display/tool", completed("m1", "mcp", &own, &result))?;
    let other = json!({"providerIdentifier": "github", "toolName": "search", "args": {}});
    host.ask("display/tool", completed("m2", "mcp", &other, &result))?;
    let shown = host.told("display/show")?;
    assert_eq!(shown["items"].as_array().map(Vec::len), Some(1));
    host.ask("display/end", json!({"outcome": "answered"}))?;
    host.shut_down()?;
    assert!(host.client.kept().is_empty(), "{:?}", host.client.kept());
    Ok(())
}

#[test]
fn statement_47_a_pending_line_comes_while_a_tool_runs_and_a_notice_when_it_never_ended() -> Result<()> {
    let mut host = Host::start("pi")?;
    host.declare(&["todo"])?;
    let run = host.open(json!({}))?;
    host.ask("display/begin", begin(&run.id, &json!([]), &json!([])))?;
    host.ask("display/tool", started("t1", "task", &json!({"description": "look around"})))?;
    let item = host.told("display/show")?["items"][0].clone();
    assert_eq!(item["trace"], "pending", "{item}");
    host.ask("display/end", json!({"outcome": "failed"}))?;
    let item = host.told("display/show")?["items"][0].clone();
    assert_eq!(item["trace"], "incomplete", "{item}");
    assert_eq!(host.refused("display/tool", started("t2", "task", &json!({})))?["data"]["kind"], "display");
    Ok(())
}

#[test]
fn the_self_test_tells_four_facts_and_calls_no_tool_of_the_host() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["a", "b"])?;
    let test = host.ask("selftest/run", json!({}))?;
    assert_eq!(test["passed"], true, "{test}");
    for fact in ["exposed", "connected", "listed", "called"] {
        assert_eq!(test[fact]["holds"], true, "{test}");
    }
    assert!(test["text"].as_str().is_some_and(|text| text.lines().count() == 4));
    host.ask("settings/declare", json!({"settings": {"tools": {"bridge": {"enabled": false}}}}))?;
    assert_eq!(host.ask("selftest/run", json!({}))?["passed"], false);
    host.shut_down()?;
    assert!(host.client.kept().is_empty(), "{:?}", host.client.kept());
    Ok(())
}
