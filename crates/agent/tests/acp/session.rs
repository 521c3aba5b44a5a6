//! Conversations go on where the agent can, and it is said where it cannot; models and modes are chosen or refused.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use toolway_agent::{AgentError, Checkpoint, Engine as _, Mode, TurnStop};

use crate::rig::{Recorder, Rig, script};

#[tokio::test]
async fn a_second_prompt_uses_the_same_process_and_session() -> Result<()> {
    let rig = Rig::new(&json!({}))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    for text in ["one", "two"] {
        let end = engine.run(rig.turn(text, &servers), Arc::new(Recorder::default())).await?;
        assert_eq!(end.result, Some(format!("You said: {text}")));
    }
    engine.close().await;
    engine.close().await;
    assert_eq!((rig.pids()?.len(), rig.calls("session/new")?.len()), (1, 1));
    ensure!(rig.is_gone()?);
    Ok(())
}

#[tokio::test]
async fn a_resumed_conversation_opens_its_session_and_repeats_nothing() -> Result<()> {
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old"}});
    let rig = Rig::new(&json!({"replay": [chunk]}))?;
    let (_, first) = rig.prompt("one").await?;
    let servers = rig.generation().await?;
    let (engine, sink) = (rig.engine(), Arc::new(Recorder::default()));
    let mut turn = rig.turn("two", &servers);
    turn.checkpoint = first.checkpoint();
    let end = engine.run(turn, sink.clone()).await?;
    engine.close().await;
    assert_eq!(end.result.as_deref(), Some("You said: two"));
    let loads = rig.calls("session/load")?;
    let prompts = rig.calls("session/prompt")?;
    assert_eq!((loads.len(), &loads[0]["sessionId"]), (1, &prompts[0]["sessionId"]));
    assert_eq!(prompts[0]["sessionId"], prompts[1]["sessionId"]);
    ensure!(sink.notes("new_session").is_empty());
    Ok(())
}

#[tokio::test]
async fn an_agent_that_forgets_says_so_and_one_that_lies_about_it_as_well() -> Result<()> {
    let forgets = json!({"initialize": {"agentCapabilities": {"loadSession": false}}});
    let lies =
        json!({"methods": {"session/load": [{"error": {"code": -32601, "message": "Method not found"}}]}});
    for script in [forgets, lies] {
        let rig = Rig::new(&script)?;
        let (_, first) = rig.prompt("one").await?;
        let servers = rig.generation().await?;
        let (engine, sink) = (rig.engine(), Arc::new(Recorder::default()));
        let mut turn = rig.turn("two", &servers);
        turn.checkpoint = first.checkpoint();
        let end = engine.run(turn, sink.clone()).await?;
        engine.close().await;
        assert_eq!(end.stop, TurnStop::Finished);
        let notes = sink.notes("new_session");
        ensure!(notes.len() == 1 && notes[0].contains("knows nothing"), "{notes:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_agent_that_only_says_it_resumes_is_asked_to_load() -> Result<()> {
    let rig = Rig::new(&json!({
        "initialize": {"agentCapabilities": {"sessionCapabilities": {"resume": {}}}},
        "methods": {"session/resume": [{"error": {"code": -32601, "message": "Method not found"}}]},
    }))?;
    let (_, first) = rig.prompt("one").await?;
    let servers = rig.generation().await?;
    let (engine, sink) = (rig.engine(), Arc::new(Recorder::default()));
    let mut turn = rig.turn("two", &servers);
    turn.checkpoint = first.checkpoint();
    let end = engine.run(turn, sink.clone()).await?;
    engine.close().await;
    assert_eq!((end.stop, rig.calls("session/load")?.len()), (TurnStop::Finished, 1));
    ensure!(sink.notes("new_session").is_empty(), "{:?}", sink.notes("new_session"));
    Ok(())
}

#[tokio::test]
async fn what_another_runtime_has_kept_is_told_as_lost() -> Result<()> {
    let rig = Rig::new(&json!({}))?;
    let servers = rig.generation().await?;
    let (engine, sink) = (rig.engine(), Arc::new(Recorder::default()));
    let mut turn = rig.turn("two", &servers);
    turn.checkpoint = Some(Checkpoint(br#"{"version":1,"messages":[]}"#.to_vec().into()));
    let end = engine.run(turn, sink.clone()).await?;
    engine.close().await;
    assert_eq!((end.stop, sink.notes("new_session").len()), (TurnStop::Finished, 1));
    Ok(())
}

#[tokio::test]
async fn other_servers_mean_the_same_conversation_opened_again() -> Result<()> {
    let rig =
        Rig::new(&json!({"initialize": {"agentCapabilities": {"sessionCapabilities": {"resume": {}}}}}))?;
    let engine = rig.engine();
    for text in ["one", "two"] {
        let servers = rig.generation().await?;
        engine.run(rig.turn(text, &servers), Arc::new(Recorder::default())).await?;
    }
    engine.close().await;
    let resumed = rig.calls("session/resume")?;
    let prompts = rig.calls("session/prompt")?;
    assert_eq!((rig.pids()?.len(), resumed.len()), (1, 1));
    assert_eq!(resumed[0]["sessionId"], prompts[0]["sessionId"]);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_died_is_started_again_and_its_session_opened() -> Result<()> {
    let rig = Rig::new(&json!({"prompts": [
        {"when": "die", "do": [{"stderr": "out of memory, s3cr3t-value\n"}, {"die": 7}]},
    ]}))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    engine.run(rig.turn("one", &servers), Arc::new(Recorder::default())).await?;
    let sink = Arc::new(Recorder::default());
    let error = engine.run(rig.turn("die", &servers), sink.clone()).await.unwrap_err();
    let text = error.to_string();
    ensure!(matches!(error, AgentError::Runtime { .. }), "{error:?}");
    ensure!(text.contains("code 7") && text.contains("out of memory") && !text.contains("s3cr3t"), "{text}");
    let mut turn = rig.turn("three", &servers);
    turn.checkpoint = sink.checkpoint();
    let end = engine.run(turn, Arc::new(Recorder::default())).await?;
    engine.close().await;
    assert_eq!(end.result.as_deref(), Some("You said: three"));
    assert_eq!((rig.pids()?.len(), rig.calls("session/load")?.len()), (2, 1));
    Ok(())
}

fn offers() -> Value {
    json!({"session": {"configOptions": [
        {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small",
         "options": [{"value": "small", "name": "S"}, {"value": "large", "name": "L"}]},
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "build",
         "options": [{"value": "build", "name": "B"}, {"value": "plan", "name": "P"}]},
    ]}})
}

#[tokio::test]
async fn models_and_modes_are_chosen_and_unknown_ones_name_what_there_is() -> Result<()> {
    let rig = Rig::new(&offers())?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let mut turn = rig.turn("one", &servers);
    turn.model.id = "large".to_owned();
    turn.mode = Mode::Plan;
    engine.run(turn, Arc::new(Recorder::default())).await?;
    let set = rig.calls("session/set_config_option")?;
    let values: Vec<&Value> = set.iter().map(|call| &call["value"]).collect();
    assert_eq!(values, ["large", "plan"]);
    let mut turn = rig.turn("two", &servers);
    turn.model.id = "huge".to_owned();
    let error = engine.run(turn, Arc::new(Recorder::default())).await.unwrap_err();
    engine.close().await;
    ensure!(error.code() == "validation_error" && error.to_string().contains("small, large"), "{error}");
    Ok(())
}

#[tokio::test]
async fn who_is_not_signed_in_is_told_what_to_do() -> Result<()> {
    let rig = Rig::new(&json!({
        "initialize": {"authMethods": [{"id": "login", "name": "Log in", "description": "run acme login"}]},
        "methods": {"session/new": [{"error": {"code": -32000, "message": "Authentication required"}}]},
    }))?;
    let error = rig.prompt("go").await?.0.unwrap_err();
    ensure!(error.code() == "unauthenticated" && error.to_string().contains("run acme login"), "{error}");
    Ok(())
}

#[tokio::test]
async fn limits_are_kept_or_refused() -> Result<()> {
    let rig = Rig::new(&script(json!([{"say": "working"}, {"await_cancel": true}, {"end": "cancelled"}])))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let mut turn = rig.turn("go", &servers);
    turn.limits.time = Some(Duration::from_secs(5));
    let end = engine.run(turn, Arc::new(Recorder::default())).await?;
    ensure!(matches!(&end.stop, TurnStop::Limit(why) if why.contains("limits.time")), "{end:?}");
    assert_eq!(end.result.as_deref(), Some("working"));
    // The way to the prompt counts, too.
    let hangs = Rig::new(&json!({"methods": {"session/new": [{"hang": true}]}}))?;
    let mut turn = hangs.turn("go", &servers);
    turn.limits.time = Some(Duration::from_secs(4));
    let slow = hangs.engine();
    let end = slow.run(turn, Arc::new(Recorder::default())).await?;
    ensure!(matches!(&end.stop, TurnStop::Limit(why) if why.contains("limits.time")), "{end:?}");
    ensure!(hangs.is_gone()?);
    slow.close().await;
    let mut turn = rig.turn("go", &servers);
    turn.limits.turns = Some(3);
    let error = engine.run(turn, Arc::new(Recorder::default())).await.unwrap_err();
    ensure!(error.to_string().contains("limits.turns"), "{error}");
    engine.close().await;
    Ok(())
}
