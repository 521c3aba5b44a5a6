//! Agents that hang, die, write garbage, flood and lie: each ends well, with an error that says what happened.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::timeout;
use toolway_agent::{Engine as _, TurnStop};

use crate::rig::{LONG, Recorder, Rig, script};

/// The error of one prompt to an agent with this script.
async fn error(script: &Value, change: impl FnOnce(&mut Rig)) -> Result<String> {
    let mut rig = Rig::new(script)?;
    change(&mut rig);
    let (end, _) = rig.prompt("go").await?;
    let error = end.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(!error.is_empty() && !error.contains("s3cr3t"), "{error:?}");
    ensure!(rig.is_gone()?, "a process is left after {error}");
    Ok(error)
}

#[tokio::test]
async fn an_agent_that_does_not_start_well_is_told_with_what_it_wrote() -> Result<()> {
    let start = json!([{"stderr": "no licence for s3cr3t-value\n"}, {"die": 3}]);
    let told = error(&json!({"start": start}), |_| {}).await?;
    ensure!(told.contains("code 3") && told.contains("no licence"), "{told}");
    let told = error(&json!({"start": [{"stderr": "waiting\n"}, {"hang": true}]}), |rig| {
        rig.command.timeouts.start = Duration::from_secs(4);
    })
    .await?;
    ensure!(told.contains("initialize") && told.contains("4s") && told.contains("waiting"), "{told}");
    let told = error(&json!({"methods": {"session/new": [{"hang": true}]}}), |rig| {
        rig.command.timeouts.session = Duration::from_millis(300);
    })
    .await?;
    ensure!(told.contains("session/new"), "{told}");
    let told = error(&json!({"initialize": {"protocolVersion": 9}}), |_| {}).await?;
    ensure!(told.contains("version 9"), "{told}");
    let told = error(&json!({"methods": {"initialize": [{"answer": "hello"}]}}), |_| {}).await?;
    ensure!(told.contains("initialize cannot be read"), "{told}");
    let told = error(&json!({"methods": {"session/new": [{"answer": {}}]}}), |_| {}).await?;
    ensure!(told.contains("names no session"), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_with_where_it_was_looked_for() -> Result<()> {
    let mut rig = Rig::new(&json!({}))?;
    rig.command.program = "no-such-agent".to_owned();
    let told = rig.prompt("go").await?.0.unwrap_err().to_string();
    ensure!(told.contains("no-such-agent") && told.contains("/usr/bin"), "{told}");
    rig.command.preset = toolway_agent::AcpPreset::named("opencode");
    let told = rig.prompt("go").await?.0.unwrap_err().to_string();
    ensure!(told.contains("npm install"), "{told}");
    Ok(())
}

#[tokio::test]
async fn lines_that_are_no_messages_are_let_pass_until_there_are_too_many() -> Result<()> {
    let greeting = json!({"start": [{"line": "Welcome!"}, {"line": ""}, {"line": "[]"}, {"line": "{\"id\":99,\"result\":1}"}]});
    let rig = Rig::new(&greeting)?;
    assert_eq!(rig.prompt("go").await?.0?.stop, TurnStop::Finished);
    let garbage: Vec<Value> = (0..300).map(|number| json!({"line": format!("log line {number}")})).collect();
    let told = error(&json!({"start": garbage}), |_| {}).await?;
    ensure!(told.contains("no message of the protocol") && told.contains("log line 0"), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_cancelled_prompt_ends_and_the_process_stays() -> Result<()> {
    let rig = Rig::new(&script(json!([
        {"say": "working"},
        {"permission": {"toolCall": {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "x"}}, "options": []}},
        {"await_cancel": true}, {"say": "stopping"}, {"end": "cancelled"},
    ])))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let turn = rig.turn("go", &servers);
    let cancel = turn.cancel.clone();
    let sink = Arc::new(Recorder::default());
    let cancelling = async {
        let told = sink.until_something_is_said().await;
        cancel.cancel();
        told
    };
    let (end, told) = tokio::join!(engine.run(turn, sink.clone()), cancelling);
    told?;
    assert_eq!(end?.stop, TurnStop::Cancelled);
    let again = engine.run(rig.turn("more", &servers), Arc::new(Recorder::default())).await?;
    engine.close().await;
    assert_eq!((again.result.as_deref(), rig.pids()?.len()), (Some("You said: more"), 1));
    Ok(())
}

#[tokio::test]
async fn an_agent_that_does_not_stop_is_ended() -> Result<()> {
    let mut script = script(json!([{"say": "working"}, {"hang": true}]));
    script["deaf"] = true.into();
    let mut rig = Rig::new(&script)?;
    rig.command.timeouts.cancel = Duration::from_millis(300);
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let turn = rig.turn("go", &servers);
    let cancel = turn.cancel.clone();
    let sink = Arc::new(Recorder::default());
    let cancelling = async {
        let told = sink.until_something_is_said().await;
        cancel.cancel();
        told
    };
    let (end, told) = tokio::join!(engine.run(turn, sink.clone()), cancelling);
    told?;
    assert_eq!(end?.stop, TurnStop::Cancelled);
    ensure!(rig.is_gone()?);
    engine.close().await;
    Ok(())
}

#[tokio::test]
async fn a_closed_engine_ends_what_runs() -> Result<()> {
    let mut rig = Rig::new(&script(json!([{"say": "working"}, {"hang": true}])))?;
    rig.command.timeouts.cancel = LONG * 10;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let sink = Arc::new(Recorder::default());
    let closing = async {
        let told = sink.until_something_is_said().await;
        engine.close().await;
        told
    };
    let turn = rig.turn("go", &servers);
    let (end, told) = tokio::join!(timeout(LONG, engine.run(turn, sink.clone())), closing);
    told?;
    let end = end?;
    // An agent that hangs is not waited for as long as when its prompt is cancelled.
    ensure!(matches!(&end, Ok(end) if end.stop == TurnStop::Cancelled), "{end:?}");
    ensure!(rig.is_gone()?);
    let late = engine.run(rig.turn("late", &servers), Arc::new(Recorder::default())).await;
    ensure!(late.is_err_and(|error| error.code() == "agent_closed"));
    Ok(())
}

#[tokio::test]
async fn floods_and_double_answers_change_nothing() -> Result<()> {
    let rig = Rig::new(&script(json!([{"flood": 20_000}, {"twice": {"stopReason": "end_turn"}}])))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let sink = Arc::new(Recorder::default());
    let end = engine.run(rig.turn("go", &servers), sink.clone()).await?;
    assert_eq!((end.stop, sink.deltas().len()), (TurnStop::Finished, 20_000));
    let again = engine.run(rig.turn("more", &servers), Arc::new(Recorder::default())).await?;
    engine.close().await;
    assert_eq!(again.result.as_deref(), Some("You said: more"));
    Ok(())
}

#[tokio::test]
async fn a_huge_message_ends_the_agent_and_a_large_one_does_not() -> Result<()> {
    let rig = Rig::new(&script(json!([{"huge": 5 << 20}, {"end": "end_turn"}])))?;
    let end = rig.prompt("go").await?.0?;
    assert_eq!(end.result.map(|text| text.len()), Some(1 << 20));
    let told = error(&script(json!([{"huge": 40 << 20}, {"hang": true}])), |_| {}).await?;
    ensure!(told.contains("32 MiB"), "{told}");
    Ok(())
}

#[tokio::test]
async fn an_error_of_the_model_and_an_unknown_end_are_told() -> Result<()> {
    let failing = json!([{"error": {"code": -32603, "message": "Internal error", "data": {"details": "quota used up"}}}]);
    let rig = Rig::new(&script(failing))?;
    let error = rig.prompt("go").await?.0.unwrap_err();
    ensure!(error.code() == "model_error" && error.to_string().contains("quota used up"), "{error}");
    let rig = Rig::new(&script(json!([{"end": "bored"}])))?;
    let error = rig.prompt("go").await?.0.unwrap_err();
    ensure!(error.to_string().contains("bored"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_run_that_was_dropped_in_the_middle_is_not_told_as_the_next_one() -> Result<()> {
    let rig = Rig::new(&json!({"prompts": [
        {"when": "one", "do": [{"say": "of the first"}, {"await_cancel": true}, {"say": "late"}]},
        {"when": "two", "do": [{"say": "of the second"}]},
    ]}))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let sink = Arc::new(Recorder::default());
    {
        let run = engine.run(rig.turn("one", &servers), sink.clone());
        tokio::select! {
            end = run => anyhow::bail!("it ended: {end:?}"),
            told = sink.until_something_is_said() => told?,
        }
    }
    let mut turn = rig.turn("two", &servers);
    turn.checkpoint = sink.checkpoint();
    let end = engine.run(turn, Arc::new(Recorder::default())).await?;
    engine.close().await;
    assert_eq!((rig.pids()?.len(), rig.calls("session/load")?.len()), (2, 1), "{end:?}");
    assert_eq!(end.result.as_deref(), Some("of the second"));
    ensure!(rig.is_gone()?);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_asks_on_and_on_and_reads_no_answers_ends_in_time() -> Result<()> {
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "fs/read_text_file", "params": {"path": "x".repeat(4000)}});
    let start: Vec<Value> =
        (0..1000).map(|_| json!({"line": ask.to_string()})).chain([json!({"hang": true})]).collect();
    let told =
        error(&json!({"start": start}), |rig| rig.command.timeouts.start = Duration::from_secs(4)).await?;
    ensure!(told.contains("initialize"), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_key_that_was_passed_to_an_agent_is_in_none_of_its_texts() -> Result<()> {
    let start =
        json!([{"stderr": "bad key sk-of-the-user\n"}, {"line": "sk-of-the-user is no key"}, {"die": 3}]);
    let mut rig = Rig::new(&json!({"start": start}))?;
    rig.command.preset = toolway_agent::AcpPreset::named("codex");
    rig.surroundings.machine = rig.machine_with("OPENAI_API_KEY", "sk-of-the-user");
    let told = rig.prompt("go").await?.0.unwrap_err().to_string();
    ensure!(
        told.contains("bad key") && told.contains("is no key") && !told.contains("sk-of-the-user"),
        "{told}"
    );
    let started = rig.journal()?;
    ensure!(started[0]["env"]["OPENAI_API_KEY"] == "sk-of-the-user", "{}", started[0]);
    Ok(())
}
