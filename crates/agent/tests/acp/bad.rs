//! Agents that hang, die, write garbage, flood and lie: each ends well, with an error that says what happened.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolway_agent::{Engine as _, TurnStop};

use crate::rig::{Recorder, Rig, script};

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
        while sink.events().is_empty() && sink.deltas().is_empty() {
            tokio::task::yield_now().await;
            sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (end, ()) = tokio::join!(engine.run(turn, sink.clone()), cancelling);
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
        while sink.deltas().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
        Instant::now()
    };
    let (end, since) = tokio::join!(engine.run(turn, sink.clone()), cancelling);
    assert_eq!(end?.stop, TurnStop::Cancelled);
    ensure!(since.elapsed() < Duration::from_secs(15));
    ensure!(rig.is_gone()?);
    engine.close().await;
    Ok(())
}

#[tokio::test]
async fn a_closed_engine_ends_what_runs() -> Result<()> {
    let rig = Rig::new(&script(json!([{"say": "working"}, {"hang": true}])))?;
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let sink = Arc::new(Recorder::default());
    let closing = async {
        while sink.deltas().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        let begun = Instant::now();
        engine.close().await;
        begun.elapsed()
    };
    let mut turn = rig.turn("go", &servers);
    turn.limits.time = Some(Duration::from_mins(1));
    let (end, took) = tokio::join!(engine.run(turn, sink.clone()), closing);
    ensure!(matches!(&end, Ok(end) if end.stop == TurnStop::Cancelled), "{end:?}");
    // An agent that hangs is not waited for as long as when its prompt is cancelled.
    ensure!(took < Duration::from_secs(8), "{took:?}");
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
