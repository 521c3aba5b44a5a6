//! Many agents with three servers each at one time in one process, made, used and ended: what is left of them.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolway_agent::{Agent, EventKind, McpServers, SendOptions, ToolCallStatus};

use crate::args::Args;
use crate::place::{Model, Place, ended, upstream};
use crate::process::{Held, more, ms};

pub(crate) async fn measure(args: &Args) -> Result<Vec<Value>> {
    let (place, model) = (Arc::new(Place::new(args)?), Arc::new(Model::start()?));
    let count = args.count(50)?;
    // What the first one loads once for all stays.
    all(&place, &model, 1).await?;
    let start = Held::now();
    let start = Held::settled(Held { threads: 1, ..start }).await;
    let begin = Instant::now();
    let peak = all(&place, &model, count).await?;
    let time = ms(begin.elapsed());
    let once = Held::settled(start).await;
    all(&place, &model, count).await?;
    let twice = Held::settled(start).await;
    Ok(vec![json!({
        "front": "agent",
        "many": count,
        "many_ms": time,
        "many_processes": peak.processes,
        "many_mb": peak.rss_mb,
        "processes_more": more(twice.processes, start.processes),
        "descriptors_more": more(twice.descriptors, start.descriptors),
        "threads_more": more(twice.threads, start.threads),
        "anonymous_more_mb": once.anonymous_mb - start.anonymous_mb,
        "anonymous_again_mb": twice.anonymous_mb - once.anonymous_mb,
        "memory_more_mb": once.rss_mb - start.rss_mb,
        "memory_again_mb": twice.rss_mb - once.rss_mb,
    })])
}

/// Makes that many, lets each call a tool, ends them when all have; what there was when all had.
async fn all(place: &Arc<Place>, model: &Arc<Model>, count: usize) -> Result<Held> {
    let mut working = JoinSet::new();
    for _ in 0..count {
        let (place, model) = (Arc::clone(place), Arc::clone(model));
        working.spawn(async move { used(&place, &model).await });
    }
    let mut agents = Vec::new();
    while let Some(agent) = working.join_next().await {
        agents.push(agent??);
    }
    let peak = Held::now();
    let mut ending = JoinSet::new();
    for agent in agents {
        ending.spawn(async move { agent.dispose().await });
    }
    ending.join_all().await;
    Ok(peak)
}

async fn used(place: &Place, model: &Model) -> Result<Agent> {
    let mut options = place.options(&model.url)?;
    let servers = ["one", "two", "three"];
    options.mcp_servers = servers.iter().try_fold(McpServers::new(), |all, name| {
        anyhow::Ok(all.with(*name, upstream(name, &["--max-life", "300"])?))
    })?;
    let agent = Agent::create(options)?;
    let run = agent.send("echo", SendOptions::default()).await?;
    ended(&run).await?;
    let called = |kind: &EventKind| matches!(kind, EventKind::ToolCall(call) if call.status == ToolCallStatus::Completed);
    let said = run.conversation().await?;
    ensure!(said.iter().any(|event| called(&event.kind)), "the tool was not called: {said:?}");
    Ok(agent)
}
