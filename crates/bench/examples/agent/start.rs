//! From the making of an agent to the first request that its model gets: alone, and with ten servers.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolway_agent::{Agent, AgentOptions, McpServers, SendOptions};
use toolway_testkit::{ModelReply, ModelServer};

use crate::args::Args;
use crate::place::{LIMIT, Place, ended, upstream};
use crate::process::{median, ms};

/// A model that says when its first request is there.
struct Waiting {
    seen: JoinHandle<Result<(Instant, SystemTime, ModelServer)>>,
    url: String,
}

impl Waiting {
    async fn start() -> Result<Self> {
        let model = ModelServer::replies([ModelReply::text("Hello.")])?;
        let url = model.base_url();
        let (sender, ready) = tokio::sync::oneshot::channel();
        let seen = tokio::task::spawn_blocking(move || {
            sender.send(()).ok();
            model.wait_for_requests(1, LIMIT)?;
            Ok((Instant::now(), SystemTime::now(), model))
        });
        ready.await?;
        Ok(Self { seen, url })
    }
}

/// Makes an agent, sends it a prompt: how long until the model is asked, and when that was.
async fn once(place: &Place, change: impl FnOnce(&mut AgentOptions)) -> Result<(f64, SystemTime)> {
    let model = Waiting::start().await?;
    let mut options = place.options(&model.url)?;
    change(&mut options);
    let begin = Instant::now();
    let agent = Agent::create(options)?;
    let run = agent.send("Good day", SendOptions::default()).await?;
    ended(&run).await?;
    let (seen, at, _model) = model.seen.await??;
    agent.dispose().await;
    Ok((ms(seen.duration_since(begin)), at))
}

pub(crate) async fn without_servers(args: &Args) -> Result<Vec<Value>> {
    let place = Place::new(args)?;
    let (first, _) = once(&place, |_| {}).await?;
    let mut times = Vec::new();
    for _ in 0..args.count(20)? {
        times.push(once(&place, |_| {}).await?.0);
    }
    Ok(vec![json!({"front": "agent", "first_ms": first, "begin_ms": median(&mut times)})])
}

/// How much later than the others one of the ten answers.
const LATE: &str = "300";

pub(crate) async fn with_servers(args: &Args) -> Result<Vec<Value>> {
    let (mut after, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..args.count(5)? {
        let place = Place::new(args)?;
        let stamps = place.path().join("stamps");
        let folder = stamps.to_str().context("a folder whose path is no text")?;
        let mut servers = McpServers::new();
        for number in 0..10 {
            let name = format!("s{number}");
            let delay = if number == 4 { LATE } else { "0" };
            servers.insert(&*name, upstream(&name, &["--init-delay", delay, "--stamps", folder])?);
        }
        let (time, at) = once(&place, |options| options.mcp_servers = servers).await?;
        let mut latest = SystemTime::UNIX_EPOCH;
        for stamp in std::fs::read_dir(&stamps)? {
            let nanos: u64 = std::fs::read_to_string(stamp?.path())?.trim().parse()?;
            latest = latest.max(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos));
        }
        after.push(at.duration_since(latest).map_or(0.0, ms));
        whole.push(time);
    }
    let (after, whole) = (median(&mut after), median(&mut whole));
    Ok(vec![json!({"front": "agent", "servers_after_ms": after, "servers_ms": whole})])
}
