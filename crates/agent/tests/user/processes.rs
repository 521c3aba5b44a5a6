//! Two processes and one agent: what a second one is told, and what is left of one that was killed in the middle of a call.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use toolway_agent::{
    Agent, AgentError, AgentId, LocalOptions, LocalSend, McpServer, McpServers, RunStatus, SendOptions,
    SendPlace, StoreChoice,
};

use super::bench::{Bench, DEADLINE, ended, options, script, soon};

/// What the other process is to do: `DIR|MODEL|STORE|SERVER AS JSON`.
const WORK: &str = "TOOLWAY_TEST_WORK";

fn store(kind: &str, dir: &std::path::Path) -> StoreChoice {
    match kind {
        "jsonl" => StoreChoice::Jsonl(dir.join("home/jsonl")),
        _ => StoreChoice::Sqlite(dir.join("home/store")),
    }
}

/// Not a test by itself: the other process.
#[tokio::test]
#[ignore = "the other process of the tests below"]
async fn other_process() -> Result<()> {
    let Ok(work) = std::env::var(WORK) else { return Ok(()) };
    let mut words = work.splitn(4, '|');
    let mut next = || words.next().context("a word is missing");
    let (dir, model, kind, server) = (PathBuf::from(next()?), next()?, next()?, next()?);
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(server)?;
    let mut servers = McpServers::new();
    servers.insert("one", McpServer::from_json(members));
    let local = LocalOptions { store: store(kind, &dir), ..LocalOptions::default() };
    let agent = Agent::create(options(&dir, model, servers, local))?;
    let run = agent.send("go", SendOptions::default()).await?;
    std::fs::write(dir.join("begun"), format!("{}\n{}", agent.id(), run.id()))?;
    run.wait().await?;
    Ok(())
}

struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

fn start(work: &str) -> Result<Other> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--ignored", "--exact", "processes::other_process"]).env(WORK, work);
    Ok(Other(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?))
}

#[tokio::test]
async fn a_process_that_was_killed_in_a_call_leaves_an_agent_that_goes_on() -> Result<()> {
    for kind in ["sqlite", "jsonl"] {
        let mut bench = Bench::new()?;
        let model = script(&json!({"rules": [
            {"when": {"user": "go on"}, "reply": {"text": "I look first."}},
            {"when": {"user": "go"}, "reply": {"text": "I call.", "calls": [{"name": "one__echo", "arguments": {"n": 41}}]}},
        ]}))?;
        let server = bench.server("on tools/call/echo\n    never")?;
        let members = serde_json::Value::Object(server.members().clone()).to_string();
        let dir = bench.path("");
        let mut other = start(&format!("{}|{}|{kind}|{members}", dir.display(), model.base_url()))?;
        let mut peer = bench.hub.arrival("server", DEADLINE)?;
        peer.wait_for("tools/call", DEADLINE)?;
        let begun = bench.path("begun");
        let until = Instant::now() + DEADLINE;
        while !begun.exists() {
            ensure!(Instant::now() < until, "{kind}: the other process did not begin");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let begun = std::fs::read_to_string(begun)?;
        let id: AgentId = begun.lines().next().context("no id")?.parse()?;
        let local = || LocalOptions { store: store(kind, &dir), ..LocalOptions::default() };
        let given = || bench.options(&model, McpServers::new(), local());
        let agent = Agent::resume(&id, given()).await?;
        // Alive: busy, and the other one goes on.
        match agent.send("me too", SendOptions::default()).await {
            Err(AgentError::AgentBusy { is_alive: true, .. }) => {}
            other => bail!("{kind}: {other:?}"),
        }
        other.0.kill()?;
        other.0.wait()?;
        let error = match agent.send("go on", SendOptions::default()).await {
            Err(error @ AgentError::AgentBusy { is_alive: false, .. }) => error,
            other => bail!("{kind}: {other:?}"),
        };
        ensure!(error.code() == "agent_busy" && error.to_string().contains("force"), "{error}");
        let force = SendOptions {
            place: SendPlace::Local(LocalSend { force: true, ..LocalSend::default() }),
            ..SendOptions::default()
        };
        let run = agent.send("go on", force).await?;
        let told = ended(&run).await?;
        ensure!(told.state.status == RunStatus::Finished, "{kind}: {:?}", told.state);
        // The model learns which call may have run.
        let requests = model.requests();
        let last = requests.last().context("no request")?;
        ensure!(last.text.contains("may have run") && last.text.contains("41"), "{kind}: {}", last.text);
        let runs = Agent::list_runs(&id, &given(), toolway_agent::Page::default()).await?.items;
        let statuses: Vec<RunStatus> = runs.iter().map(|run| run.status).collect();
        ensure!(statuses == [RunStatus::Finished, RunStatus::Expired], "{kind}: {statuses:?}");
        soon(agent.dispose()).await?;
        // The server of the killed process sees its end of input.
        bench.leaks().check(DEADLINE)?;
    }
    Ok(())
}
