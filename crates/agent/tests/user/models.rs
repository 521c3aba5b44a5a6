//! Models that misbehave: runs end, say why, and no server gets what was not meant.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_agent::{Agent, Limits, LocalOptions, McpServers, RunStatus, SendOptions};

use super::bench::{Bench, Told, ended, script, soon, told};

/// A run with one server, whose model follows this script.
async fn run(replies: &Value, limits: Limits) -> Result<(Told, Vec<String>, usize)> {
    let mut bench = Bench::new()?;
    let model = script(replies)?;
    let mut options = bench.options(
        &model,
        McpServers::new().with("one", bench.server("on tools/call/echo -> text it ran")?),
        LocalOptions::default(),
    );
    options.limits = limits;
    let told = told(options, "go").await?;
    let mut peer = bench.hub.arrival("server", super::bench::DEADLINE)?;
    let calls = String::from_utf8_lossy(&peer.received()).matches("\"tools/call\"").count();
    bench.leaks().check(super::bench::DEADLINE)?;
    Ok((told, model.requests().into_iter().map(|one| one.last()).collect(), calls))
}

#[tokio::test]
async fn calls_of_tools_that_do_not_exist_are_told_what_there_is() -> Result<()> {
    for name in ["nope", "one__nope", "two__echo", "", "one__echo__", "ONE__ECHO "] {
        let replies = json!({"replies": [
            {"text": "I try.", "calls": [{"name": name, "arguments": {"a": 1}}]}, {"text": "done"},
        ]});
        let (told, asked, calls) = run(&replies, Limits::default()).await.context(name)?;
        ensure!(told.state.status == RunStatus::Finished, "{name}: {:?}", told.state);
        let ended = told.calls();
        ensure!(ended.len() == 1, "{name}: {ended:?}");
        if calls == 0 {
            ensure!(!ended[0].0, "{name}: {ended:?}");
            let last = asked.last().context("no request")?;
            ensure!(last.contains("one__echo"), "{name}: {last}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn arguments_that_are_no_object_reach_no_server() -> Result<()> {
    for arguments in
        ["{\"a\": ", "not json", "[1, 2]", "null", "\"text\"", "17", "{\"a\":1}{\"b\":2}", "{'a': 1}"]
    {
        let replies = json!({"replies": [
            {"calls": [{"name": "one__echo", "arguments": arguments}]}, {"text": "done"},
        ]});
        let (told, asked, calls) = run(&replies, Limits::default()).await.context(arguments)?;
        ensure!(told.state.status == RunStatus::Finished, "{arguments}: {:?}", told.state);
        let ended = told.calls();
        let refused = ended.len() == 1 && !ended[0].0 && calls == 0;
        // What is nothing may be taken for no arguments.
        ensure!(refused || arguments == "null", "{arguments}: {ended:?} {calls}");
        ensure!(asked.len() == 2, "{arguments}: {asked:?}");
    }
    // No arguments at all are none, and white space around an object is nothing.
    for arguments in ["", " \n", "\n {\"a\": 1}\n"] {
        let replies = json!({"replies": [{"calls": [{"name": "one__echo", "arguments": arguments}]}, {"text": "done"}]});
        let (told, _, calls) = run(&replies, Limits::default()).await?;
        ensure!(calls == 1 && told.calls()[0].0, "{arguments:?}: {:?}", told.calls());
    }
    Ok(())
}

#[tokio::test]
async fn a_model_that_never_stops_calling_is_stopped() -> Result<()> {
    let forever = json!({"otherwise": {"calls": [{"name": "one__echo", "arguments": {}}]}});
    let limits = Limits { turns: Some(4), ..Limits::default() };
    let (told, asked, calls) = run(&forever, limits).await?;
    let error = told.state.error.context("no error")?;
    ensure!(error.code == "limit_reached" && error.message.contains("turns"), "{error:?}");
    ensure!(asked.len() == 4 && calls <= 4, "{} {calls}", asked.len());
    let limits = Limits { time: Some(Duration::from_millis(1500)), ..Limits::default() };
    let (told, ..) = run(&forever, limits).await?;
    ensure!(told.state.error.context("no error")?.message.contains("time"));
    let limits = Limits { tokens: Some(60), ..Limits::default() };
    let (told, ..) = run(&forever, limits).await?;
    ensure!(told.state.error.context("no error")?.message.contains("tokens"));
    Ok(())
}

#[tokio::test]
async fn a_model_that_never_stops_talking_is_stopped_or_cancelled() -> Result<()> {
    let endless = json!({"otherwise": {"text": ["la "], "endless": true}});
    let (told, asked, _) = run(&endless, Limits::default()).await?;
    ensure!(told.state.status == RunStatus::Error, "{:?}", told.state);
    ensure!(told.state.error.context("no error")?.message.contains("same"));
    ensure!(asked.len() == 1, "{}", asked.len());
    let bench = Bench::new()?;
    let model = script(&json!({"otherwise": {"text": ["one "], "endless": true, "pause": 20}}))?;
    let agent = Agent::create(bench.options(&model, McpServers::new(), LocalOptions::default()))?;
    let run = agent.send("go", SendOptions::default()).await?;
    while model.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    soon(run.cancel()).await??;
    ensure!(run.status() == RunStatus::Cancelled);
    // The next prompt goes through.
    drop(model);
    soon(agent.dispose()).await
}

#[tokio::test]
async fn half_a_call_is_not_made_and_the_answer_is_asked_again() -> Result<()> {
    let call = |cut: &str, clean: bool| {
        json!({"text": "I call.", "calls": [{"name": "one__echo", "arguments": {"path": "a long enough text"}, "pieces": 6}],
               "cut": cut, "clean": clean})
    };
    for clean in [false, true] {
        let replies = json!({"replies": [call("middle", clean), {"text": "done"}]});
        let (told, asked, calls) = run(&replies, Limits::default()).await?;
        ensure!(told.state.status == RunStatus::Finished, "{clean}: {:?}", told.state);
        ensure!(told.state.result.as_deref() == Some("done"), "{clean}: {:?}", told.state);
        ensure!(calls == 0 && told.calls().is_empty(), "{clean}: {calls} {:?}", told.calls());
        ensure!(asked.len() == 2, "{clean}: {asked:?}");
    }
    // One that never gets through fails, and says so.
    let replies = json!({"otherwise": call("middle", false)});
    let (told, asked, calls) = run(&replies, Limits::default()).await?;
    ensure!(told.state.status == RunStatus::Error && calls == 0, "{:?}", told.state);
    ensure!(told.state.error.context("no error")?.code == "network_error");
    ensure!(asked.len() < 10, "{}", asked.len());
    Ok(())
}

#[tokio::test]
async fn calls_with_one_id_are_two_calls() -> Result<()> {
    let call = json!({"id": "same", "name": "one__echo", "arguments": {"n": 1}});
    let replies = json!({"replies": [{"calls": [call, call]}, {"calls": [call]}, {"text": "done"}]});
    let (told, _, calls) = run(&replies, Limits::default()).await?;
    ensure!(told.state.status == RunStatus::Finished && calls == 3, "{calls} {:?}", told.state);
    ensure!(told.calls().len() == 3 && told.calls().iter().all(|call| call.0), "{:?}", told.calls());
    Ok(())
}

#[tokio::test]
async fn what_a_model_costs_is_told_and_kept() -> Result<()> {
    let bench = Bench::new()?;
    let model =
        script(&json!({"replies": [{"text": "one", "usage": {"input": 1_000_000, "output": 1_000_000}}]}))?;
    let options = || bench.options(&model, McpServers::new(), LocalOptions::default());
    let agent = Agent::create(options())?;
    let run = agent.send("go", SendOptions::default()).await?;
    let told = ended(&run).await?;
    let cost = told.state.cost.context("no cost")?;
    ensure!((cost - 12.5).abs() < 0.01, "{cost}");
    let report = Agent::usage_of(agent.id(), None, &options()).await?;
    ensure!(report.cost == Some(cost), "{report:?}");
    soon(agent.dispose()).await
}
