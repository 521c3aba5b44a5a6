//! Both halves of the protocol at once: `toolway agent run`, whose runtime is `toolway acp`.

use std::process::{Output, Stdio};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::TOOLWAY;
use crate::editor::House;

/// `toolway agent run` on `toolway acp` on the scripted model.
fn run(house: &House, words: &[&str]) -> Result<Output> {
    let inner: Vec<String> = std::iter::once("acp".to_owned()).chain(house.words()).collect();
    let command = format!("{TOOLWAY} {}", inner.join(" "));
    let work = house.rig.path().join("work");
    let mut all: Vec<std::ffi::OsString> =
        ["agent", "run", "--acp-command", &command, "--cwd"].iter().map(Into::into).collect();
    all.push(work.into());
    all.extend(words.iter().map(Into::into));
    Ok(house.rig.command(all).stdin(Stdio::null()).output()?)
}

fn events(output: &Output) -> Result<Vec<Value>> {
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

#[test]
fn a_run_goes_through_both_halves() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"result": "made it"}, "reply": {"text": "All is done."}},
        {"when": {"user": "make it"}, "reply": {
            "thinking": "How?", "text": "Making it.",
            "calls": [{"name": "shell", "arguments": {"command": "touch made && echo made it"}}],
        }},
    ]}))?;
    let output = run(&house, &["--yes", "--json", "make it"])?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    ensure!(house.work("made").exists());
    let events = events(&output)?;
    let last = events.last().cloned().unwrap_or_default();
    ensure!(last["status"] == "FINISHED" && last["result"] == "All is done.", "{last}");
    let calls: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_call").collect();
    let told: Vec<(&str, &str)> =
        calls.iter().filter_map(|call| Some((call["name"].as_str()?, call["status"].as_str()?))).collect();
    assert_eq!(told, [("shell", "running"), ("shell", "completed")]);
    ensure!(calls[1].to_string().contains("made it"), "{}", calls[1]);

    // Nobody to ask on this side: the other side is told so.
    std::fs::remove_file(house.work("made"))?;
    let output = run(&house, &["make it"])?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!house.work("made").exists(), "{text}");
    house.leave()
}

#[test]
fn servers_of_the_one_half_are_tools_of_the_other() -> Result<()> {
    let script = "tool {\"name\":\"build\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/build -> text built {x*100} whole\n";
    let sleep = json!({"calls": [{"name": "shell", "arguments": {"command": "sleep 1"}}]});
    let house = House::new(&json!({"rules": [
        {"when": {"result": "built"}, "reply": {"text": "It was built."}},
        {"when": {"tool": "toolway__one__build"}, "reply": {"calls": [{"name": "toolway__one__build", "arguments": {}}]}},
    ], "otherwise": sleep}))?;
    let server = house.server("one", script)?;
    let entry = json!({"command": server["command"], "args": server["args"], "required": true});
    let file = house.rig.path().join("servers.json");
    std::fs::write(&file, json!({"mcpServers": {"one": entry}}).to_string())?;
    let output = run(&house, &["--yes", "--json", "--mcp-config", &file.to_string_lossy(), "build"])?;
    ensure!(output.status.code() == Some(0), "{output:?}");
    let events = events(&output)?;
    let last = events.last().cloned().unwrap_or_default();
    ensure!(last["result"] == "It was built.", "{last}");
    let call = events.iter().rfind(|event| event["type"] == "tool_call" && event["name"] == "mcp");
    let call = call.cloned().unwrap_or_default();
    let named = (&call["args"]["providerIdentifier"], &call["args"]["toolName"]);
    ensure!(named == (&json!("one"), &json!("build")) && call["status"] == "completed", "{call}");
    house.leave()
}

#[test]
fn what_an_agent_behind_the_protocol_tells_reaches_the_editor() -> Result<()> {
    let house = House::new(&json!({}))?;
    let plan = json!([
        {"content": "dig", "priority": "high", "status": "completed"},
        {"content": "fill", "priority": "low", "status": "in_progress"},
    ]);
    let mut editor = house.before(&json!({
        "initialize": {"agentCapabilities": {"loadSession": false}},
        "prompts": [{"do": [
            {"update": {"sessionUpdate": "plan", "entries": plan}},
            {"update": {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "review", "description": "d"}]}},
            {"permission": {
                "toolCall": {"toolCallId": "call-7", "kind": "execute", "rawInput": {"command": "touch made"}},
                "refused": [{"say": "Well, no."}],
            }},
            {"permission": {"toolCall": {"toolCallId": "call-8", "kind": "execute", "rawInput": {"command": "make it"}}}},
        ]}],
    }))?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "go")?;
    let asked = editor.asked("session/request_permission")?;
    ensure!(asked["params"]["toolCall"]["toolCallId"] == "call-7", "{asked}");
    editor.reply(&asked, &json!({"outcome": {"outcome": "selected", "optionId": "no"}}))?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    let told = &editor.updates("plan")[0]["entries"];
    let told: Vec<(&Value, &Value)> =
        told.as_array().into_iter().flatten().map(|entry| (&entry["content"], &entry["status"])).collect();
    assert_eq!(told, [(&json!("dig"), &json!("completed")), (&json!("fill"), &json!("in_progress"))]);
    assert_eq!(editor.updates("available_commands_update")[0]["availableCommands"][0]["name"], "review");
    assert_eq!(editor.said("agent_message_chunk"), "Well, no.");
    let aside = editor.said("agent_thought_chunk");
    ensure!(
        aside.contains("it was not let run make it: permission denied: the rule Shell(make *)"),
        "{aside}"
    );
    ensure!(!aside.contains("touch made"), "what they refused themselves they know: {aside}");
    assert_eq!(editor.close()?.0, Some(0));

    // A process of another day knows nothing of it, and that is said.
    let mut editor = house.before(&json!({"initialize": {"agentCapabilities": {"loadSession": false}}}))?;
    let mut params = house.place(&[]);
    params["sessionId"] = json!(session);
    editor.ask("session/load", &params)?;
    let prompt = editor.prompt(&session, "more")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    let aside = editor.said("agent_thought_chunk");
    ensure!(aside.contains("knows nothing of what was said"), "{aside}");
    drop(editor);
    house.leave()
}
