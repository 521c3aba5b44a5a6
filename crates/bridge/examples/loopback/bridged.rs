//! A bridge whose host lives in this process: calls go to a task of the host, and their results come back from there.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use toolway_bridge::{
    Bridge, BridgeConfig, CallId, CallSink, HostCall, HostResult, HostTool, HostTools, Profile, Provenance,
    RawJson, Run, Snapshot, SurfaceOptions,
};

use super::bare::wanted;

/// Calls that wait for the host's task.
const WAITING: usize = 8192;

/// Hands calls to the host's task.
struct Hand(mpsc::Sender<HostCall>);

impl CallSink for Hand {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        self.0.try_send(call).map_err(|error| error.to_string())
    }

    fn cancelled(&mut self, _: &CallId, _: &str) {}
}

/// Measures what is measured in this process, then serves until the process ends; says both first.
pub(crate) async fn run() -> Result<()> {
    let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
    let snapshot = snapshot(&[tool("echo"), tool("gate")]);
    let run = bridge.open(Arc::clone(&snapshot)).await?.context("nothing is exposed")?;
    let figures = serde_json::json!({
        "open_ms": opening(&bridge, &snapshot).await?,
        "open_first_ms": opening_first(&snapshot).await?,
        "snapshot_ms": snapshotting(),
    });
    let (sender, calls) = mpsc::channel(WAITING);
    let _binding = run.bind(Box::new(Hand(sender)));
    let server = run.server();
    let (echo, gate) = (format!("{}echo", Profile::PI.prefix), format!("{}gate", Profile::PI.prefix));
    println!(
        "{}",
        serde_json::json!({"url": server.url.expose(), "echo": echo, "gate": gate, "figures": figures})
    );
    // A task of its own: waking the runtime's first future costs a system call.
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { host(&run, calls).await });
    tasks.join_next().await;
    Ok(())
}

async fn host(run: &Run, mut calls: mpsc::Receiver<HostCall>) {
    let mut gated = Vec::new();
    while let Some(call) = calls.recv().await {
        if call.tool != "gate" {
            settle(run, &call);
            continue;
        }
        let enough = wanted(call.arguments.text());
        gated.push(call);
        if gated.len() >= enough {
            gated.drain(..).for_each(|call| settle(run, &call));
        }
    }
}

fn settle(run: &Run, call: &HostCall) {
    run.settle(&call.id, HostResult::text(call.arguments.text()));
}

fn tool(name: &str) -> HostTool {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    HostTool {
        name: name.to_owned(),
        description: format!("Gives its arguments back ({name})."),
        guidelines: vec!["Use it when something is to come back.".to_owned()],
        parameters: RawJson::new(schema.as_bytes()).unwrap_or_else(|_| RawJson::empty_object()),
        provenance: Provenance { source: "extension".to_owned(), ..Provenance::default() },
    }
}

fn snapshot(tools: &[HostTool]) -> Arc<Snapshot> {
    let active = tools.iter().map(|tool| tool.name.clone()).collect();
    let tools = HostTools { all: tools.to_vec(), active };
    Arc::new(Snapshot::take(&Profile::PI, &SurfaceOptions::default(), &tools))
}

/// Milliseconds of one more run on an open bridge: the median of many.
async fn opening(bridge: &Bridge, snapshot: &Arc<Snapshot>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..200 {
        let begin = Instant::now();
        let run = bridge.open(Arc::clone(snapshot)).await?.context("nothing is exposed")?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        run.dispose("measured").await;
    }
    Ok(median(times))
}

/// The same for the first run of a bridge, whose listener is opened with it.
async fn opening_first(snapshot: &Arc<Snapshot>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..50 {
        let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
        let begin = Instant::now();
        bridge.open(Arc::clone(snapshot)).await?.context("nothing is exposed")?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        bridge.shutdown("measured").await;
    }
    Ok(median(times))
}

/// Milliseconds for 500 tools, a third of them with names that have to be changed.
fn snapshotting() -> f64 {
    let names = (0..500).map(|n| if n % 3 == 0 { format!("tool number {n}") } else { format!("tool_{n}") });
    let tools: Vec<HostTool> = names.map(|name| tool(&name)).collect();
    let active = tools.iter().map(|tool| tool.name.clone()).collect();
    let tools = HostTools { all: tools, active };
    let times = (0..50).map(|_| {
        let begin = Instant::now();
        let taken = Snapshot::take(&Profile::PI, &SurfaceOptions::default(), &tools);
        let time = begin.elapsed().as_secs_f64() * 1e3;
        assert_eq!(taken.exposed().len(), tools.all.len());
        time
    });
    median(times.collect())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
