//! Sessions: their servers, what may be chosen for them, and those of another day.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::editor::House;

const ECHO: &str = r#"tool {"name":"build","inputSchema":{"type":"object"}}
on tools/call/build -> text built it
"#;

#[test]
fn servers_of_the_editor_are_there_and_the_state_of_those_that_are_not_is_told() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Done."}},
        {"when": {"user": "wait"}, "reply": {"text": "Waited.", "wait": 3000}},
        {"when": {"tool": "one__build"}, "reply": {"calls": [{"name": "one__build", "arguments": {}}]}},
    ], "otherwise": {"text": "No such tool."}}))?;
    let one = house.server("one", ECHO)?;
    let gone = json!({"name": "gone", "command": "/nowhere/at-all", "args": [], "env": []});
    let mut editor = house.editor(&[])?;
    let session = editor.open(&house.place(&[one, gone]))?;
    for text in ["wait for the servers", "build"] {
        let prompt = editor.prompt(&session, text)?;
        assert_eq!(editor.end(prompt)?, "end_turn");
    }
    let told = editor.said("agent_thought_chunk");
    ensure!(told.contains("The server gone is not there: failed") && !told.contains("server one"), "{told}");
    let tools = house.model.requests()[1].tools();
    let calls = editor.updates("tool_call");
    ensure!(!calls.is_empty(), "{tools:?}");
    let ended = editor.updates("tool_call_update");
    let ended = ended.last().copied().cloned().unwrap_or_default();
    ensure!(ended["title"] == "build (one)" && ended["status"] == "completed", "{ended}");
    ensure!(ended["content"][0]["content"]["text"] == "built it", "{ended}");
    // The same again is no news.
    editor.seen.clear();
    let prompt = editor.prompt(&session, "build")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    assert_eq!(editor.said("agent_thought_chunk"), "");
    drop(editor);

    // Editors that show notes get one.
    let mut editor = house.editor_that_can(&[], &json!({"session": {"notices": {}}}))?;
    let gone = json!({"name": "gone", "command": "/nowhere/at-all", "args": [], "env": []});
    let session = editor.open(&house.place(&[gone]))?;
    for _ in 0..2 {
        let prompt = editor.prompt(&session, "wait")?;
        assert_eq!(editor.end(prompt)?, "end_turn");
    }
    let notice = editor.updates("notice");
    ensure!(notice.len() == 1 && notice[0]["severity"] == "warning", "{notice:?}");
    drop(editor);
    house.leave()
}

#[test]
fn faults_of_folders_and_servers_are_told_at_once() -> Result<()> {
    let house = House::new(&json!({}))?;
    let mut editor = house.editor(&[])?;
    let params = json!({"cwd": "here", "mcpServers": [
        {"name": "a"}, {"type": "acp", "name": "b", "id": "x"},
        {"name": "c", "command": "x", "args": [], "env": {"K": "v"}},
    ]});
    let (code, text) = editor.refused("session/new", &params)?;
    assert_eq!(code, -32602);
    for part in [
        "cwd: must be",
        "mcpServers[0]: command is missing",
        "mcpServers[1]: type \"acp\"",
        "mcpServers[2]: env",
    ] {
        ensure!(text.contains(part), "{part} is not in {text}");
    }
    let params = json!({"cwd": house.work("none"), "mcpServers": {"a": {"command": "x"}}});
    let (code, text) = editor.refused("session/new", &params)?;
    assert_eq!(code, -32602);
    for part in ["none is no folder", "mcpServers: must be a list"] {
        ensure!(text.contains(part), "{part} is not in {text}");
    }
    let twice = json!({"name": "a", "command": "x", "args": [], "env": []});
    let (_, text) = editor.refused("session/new", &house.place(&[twice.clone(), twice]))?;
    ensure!(text.contains("two servers of the name \"a\""), "{text}");
    drop(editor);
    house.leave()
}

#[test]
fn modes_and_models_are_chosen_by_the_editor() -> Result<()> {
    let house = House::new(&json!({"otherwise": {"text": "Yes."}}))?;
    let mut editor = house.editor(&["--offer-model", "other"])?;
    let opened = editor.ask("session/new", &house.place(&[]))?;
    let session = opened["sessionId"].clone();
    ensure!(opened["modes"]["currentModeId"] == "agent", "{opened}");
    let prompt = |editor: &mut crate::editor::Editor| {
        let blocks = json!([{"type": "text", "text": "go"}]);
        editor.ask("session/prompt", &json!({"sessionId": session, "prompt": blocks}))
    };
    prompt(&mut editor)?;
    editor.ask("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}))?;
    prompt(&mut editor)?;
    let set = json!({"sessionId": session, "configId": "model", "value": "other"});
    let set = editor.ask("session/set_config_option", &set)?;
    ensure!(set["configOptions"][1]["currentValue"] == "other", "{set}");
    let set = json!({"sessionId": session, "configId": "mode", "value": "agent"});
    editor.ask("session/set_config_option", &set)?;
    prompt(&mut editor)?;
    let asked = house.model.requests();
    let has_shell: Vec<bool> =
        asked.iter().map(|asked| asked.tools().iter().any(|tool| tool == "shell")).collect();
    assert_eq!(has_shell, [true, false, true]);
    let models: Vec<&Value> = asked.iter().map(|asked| &asked.body["model"]).collect();
    assert_eq!(models, ["scripted", "scripted", "other"]);
    let kinds = ["config_option_update", "current_mode_update"].map(|kind| editor.updates(kind).len());
    assert_eq!(kinds, [1, 1]);
    for (id, value) in [("model", "third"), ("mode", "ask"), ("colour", "red")] {
        let params = json!({"sessionId": session, "configId": id, "value": value});
        let (code, text) = editor.refused("session/set_config_option", &params)?;
        ensure!(code == -32602 && text.contains("there is no"), "{code} {text}");
    }
    drop(editor);
    house.leave()
}

#[test]
fn a_session_of_another_day_is_listed_repeated_and_gone_on_with() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"user": "second"}, "reply": {"text": "I remember."}},
        {"when": {"result": ""}, "reply": {"text": "There it is."}},
        {"when": {"user": "first"}, "reply": {"text": "Looking.", "calls": [{"name": "ls", "arguments": {}}]}},
    ]}))?;
    let mut editor = house.editor(&[])?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "the first thing")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    assert_eq!(editor.close()?.0, Some(0));

    let mut editor = house.editor(&[])?;
    let list = editor.ask("session/list", &json!({}))?;
    let found = &list["sessions"][0];
    ensure!(found["sessionId"] == session.as_str() && found["title"] == "the first thing", "{list}");
    let elsewhere = editor.ask("session/list", &json!({"cwd": "/"}))?;
    ensure!(elsewhere["sessions"] == json!([]), "{elsewhere}");
    let mut params = house.place(&[]);
    params["sessionId"] = json!(session);
    editor.ask("session/load", &params)?;
    assert_eq!(editor.said("user_message_chunk"), "the first thing");
    assert_eq!(editor.said("agent_message_chunk"), "Looking.There it is.");
    let calls = [editor.updates("tool_call").len(), editor.updates("tool_call_update").len()];
    ensure!(calls[0] == 1, "{:#?}", editor.seen);
    let ended =
        editor.seen.iter().filter(|message| message["params"]["update"]["status"] == "completed").count();
    assert_eq!(ended, 1);
    let prompt = editor.prompt(&session, "the second thing")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    let asked = house.model.requests();
    ensure!(asked.last().is_some_and(|asked| asked.text.contains("the first thing")));

    // Without repeating.
    editor.ask("session/close", &json!({"sessionId": session}))?;
    let blocks = json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]});
    assert_eq!(editor.refused("session/prompt", &blocks)?.0, -32002);
    editor.seen.clear();
    editor.ask("session/resume", &params)?;
    ensure!(editor.updates("user_message_chunk").is_empty());

    editor.ask("session/delete", &json!({"sessionId": session}))?;
    let list = editor.ask("session/list", &json!({}))?;
    ensure!(list["sessions"] == json!([]), "{list}");
    let (code, text) = editor.refused("session/load", &params)?;
    ensure!(code == -32002 && text.contains(&session), "{code} {text}");
    drop(editor);
    house.leave()
}
