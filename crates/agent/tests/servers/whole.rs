//! The same statements through the whole agent: made, sent, resumed, reloaded and disposed by its handle. What executes
//! the prompts calls tools as their text says: one exposed name a line, `hold` waits until the test lets it go on.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use toolway_agent::{
    Agent, AgentError, AgentOptions, BoxFuture, Engine, EngineTurn, EventKind, LocalOptions, McpCall,
    McpServer, McpServers, ModelChoice, Run, RunSink, RunStatus, SendOptions, ServerChange, StoreChoice,
    SystemInit, TurnEnd, TurnStop, Usage,
};
use toolway_bridge::RawJson;
use toolway_config::SettingSource::Project;

use super::support::{Bench, DEADLINE, on_disk, text};

/// Calls what the prompt says.
#[derive(Debug, Default)]
struct Caller {
    go_on: Arc<Notify>,
}

impl Caller {
    async fn execute(&self, turn: EngineTurn) -> TurnEnd {
        let mut said = Vec::new();
        for line in turn.prompt.text.lines() {
            if line == "hold" {
                self.go_on.notified().await;
                continue;
            }
            let call = McpCall { exposed: line, arguments: RawJson::empty_object() };
            let result = turn.servers.call(call, |_| {}, &turn.cancel).await;
            said.push(text(&result));
        }
        TurnEnd {
            stop: TurnStop::Finished,
            result: Some(said.join("|")),
            usage: Usage::default(),
            cost: None,
        }
    }
}

impl Engine for Caller {
    fn name(&self) -> &'static str {
        "caller"
    }

    fn tools(&self) -> Vec<String> {
        vec!["read".to_owned()]
    }

    fn run(&self, turn: EngineTurn, _sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>> {
        Box::pin(async move { Ok(self.execute(turn).await) })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn options(bench: &Bench, servers: McpServers, local: LocalOptions) -> AgentOptions {
    let store = StoreChoice::Jsonl(bench.path("store"));
    let mut options = bench.options(servers, LocalOptions { store, ..local });
    options.model = Some(ModelChoice { id: "none".to_owned(), params: Vec::new() });
    options
}

fn from_project() -> LocalOptions {
    LocalOptions { setting_sources: vec![Project], ..LocalOptions::default() }
}

fn agent(options: AgentOptions) -> Result<(Agent, Arc<Notify>)> {
    let caller = Caller::default();
    let go_on = Arc::clone(&caller.go_on);
    Ok((Agent::create_on(options, Arc::new(caller))?, go_on))
}

/// The final text of a run that ended well.
async fn said(run: &Run) -> Result<String> {
    let state = timeout(DEADLINE, run.wait()).await??;
    anyhow::ensure!(state.status == RunStatus::Finished, "{state:?}");
    state.result.context("no result")
}

async fn ask(agent: &Agent, prompt: &str, options: SendOptions) -> Result<String> {
    said(&agent.send(prompt, options).await?).await
}

/// The first message of a run.
async fn init(run: &Run) -> Result<SystemInit> {
    let mut stream = run.stream()?;
    let first = timeout(DEADLINE, stream.next()).await?.context("no message")??;
    match first.kind {
        EventKind::System(init) => Ok(*init),
        other => anyhow::bail!("the first message is {other:?}"),
    }
}

fn states(init: &SystemInit) -> Vec<(&str, &str)> {
    init.mcp_servers.iter().map(|one| (one.name.as_str(), one.state.as_str())).collect()
}

#[tokio::test]
async fn statement_a01_and_a13_tools_of_started_commands_are_called_and_a_missing_one_is_told() -> Result<()>
{
    let mut bench = Bench::new()?;
    let servers = McpServers::new()
        .with("a", bench.scripted("on tools/call/x -> text it ran")?)
        .with("gone", McpServer::command("no-such-binary-xyz"));
    let (agent, _) = agent(options(&bench, servers, LocalOptions::default()))?;
    assert!(!bench.hub.has_arrived("server"), "nothing starts before the first prompt");
    let run = agent.send("a__x\ngone__x", SendOptions::default()).await?;
    let init = init(&run).await?;
    let gone = init.mcp_servers.iter().find(|one| one.name == "gone").context("gone is not told")?;
    assert_eq!(gone.state, "failed");
    assert!(gone.reason.as_deref().is_some_and(|reason| reason.contains("/usr/bin")), "{gone:?}");
    let said = said(&run).await?;
    assert!(said.starts_with("it ran|") && said.contains("no-such-binary-xyz"), "{said}");
    agent.dispose().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a16_disposal_is_bounded_complete_and_harmless_twice() -> Result<()> {
    let mut bench = Bench::new()?;
    let script = "set term ignore\nset eof ignore\non start\n    spawn stubborn\n";
    let (agent, _) = agent(options(
        &bench,
        McpServers::new().with("a", bench.scripted(script)?),
        LocalOptions::default(),
    ))?;
    ask(&agent, "a__echo", SendOptions::default()).await?;
    let _linger = bench.hub.arrival("linger", DEADLINE)?;
    timeout(DEADLINE, agent.dispose()).await?;
    bench.leaks().check(Duration::from_secs(1))?;
    agent.dispose().await;
    Ok(())
}

#[tokio::test]
async fn statement_a17_handles_that_come_and_go_leave_nothing() -> Result<()> {
    let bench = Bench::new()?;
    for n in 0..50 {
        let servers = McpServers::new().with("a", bench.scripted("")?);
        let (agent, _) = agent(options(&bench, servers, LocalOptions::default()))?;
        if n % 4 == 0 {
            // It ends half-way.
            agent.send("hold", SendOptions::default()).await?;
        } else {
            ask(&agent, "a__echo", SendOptions::default()).await?;
        }
        agent.dispose().await;
    }
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a33_and_a34_a_reload_is_for_the_runs_to_come() -> Result<()> {
    let mut bench = Bench::new()?;
    let file = "project/.cursor/mcp.json";
    bench.servers(file, &[("x", bench.entry("on tools/call/who -> text x is here")?)])?;
    let (agent, go_on) = agent(options(&bench, McpServers::new(), from_project()))?;
    let in_flight = agent.send("x__who\nhold\nx__who", SendOptions::default()).await?;
    while in_flight.status() != RunStatus::Running {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut peer = bench.peer()?;
    bench.servers(file, &[("y", bench.entry("on tools/call/who -> text y is here")?)])?;
    assert!(agent.reload().await?.reloaded);
    go_on.notify_one();
    assert_eq!(said(&in_flight).await?, "x is here|x is here");
    tokio::task::spawn_blocking(move || peer.wait_gone(DEADLINE)).await??;
    assert_eq!(ask(&agent, "y__who", SendOptions::default()).await?, "y is here");
    let gone = ask(&agent, "x__who", SendOptions::default()).await?;
    assert!(gone.contains("unknown tool"), "{gone}");
    agent.dispose().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a37_other_servers_are_for_one_run() -> Result<()> {
    let bench = Bench::new()?;
    bench.servers("project/.cursor/mcp.json", &[("ambient", bench.entry("")?)])?;
    let own = McpServers::new().with("own", bench.scripted("on tools/call/who -> text own")?);
    let (agent, _) = agent(options(&bench, own, from_project()))?;
    assert_eq!(ask(&agent, "own__who", SendOptions::default()).await?, "own");
    let other = McpServers::new().with("other", bench.scripted("on tools/call/who -> text other")?);
    let with = |change: ServerChange| SendOptions { mcp_servers: change, ..SendOptions::default() };
    let run = agent.send("other__who\nown__who", with(ServerChange::Replace(other))).await?;
    let told = init(&run).await?;
    let mut told = states(&told);
    told.sort_unstable();
    assert_eq!(told, [("ambient", "connected"), ("other", "connected"), ("own", "shadowed")]);
    let said = said(&run).await?;
    assert!(said.starts_with("other|") && said.contains("unknown tool"), "{said}");
    let run = agent.send("own__who", with(ServerChange::None)).await?;
    assert!(init(&run).await?.mcp_tools.is_empty());
    self::said(&run).await?;
    assert_eq!(ask(&agent, "own__who", SendOptions::default()).await?, "own");
    agent.dispose().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a38_and_a39_a_resume_has_what_is_given_again_and_tells_of_the_rest() -> Result<()> {
    let bench = Bench::new()?;
    let servers = || {
        let db = bench.scripted("on tools/call/who -> text db")?.env("PW", "s3cr3t-env");
        let web = McpServer::url("http://127.0.0.1:9/mcp-s3cr3t-url").header("X-Key", "s3cr3t-header");
        Ok::<_, anyhow::Error>(McpServers::new().with("db", db).with("web", web))
    };
    let (first, _) = agent(options(&bench, servers()?, LocalOptions::default()))?;
    let id = first.id().clone();
    assert_eq!(ask(&first, "db__who", SendOptions::default()).await?, "db");
    first.dispose().await;
    for secret in ["s3cr3t-env", "s3cr3t-url", "s3cr3t-header", "fakemcp", "X-Key"] {
        assert!(!on_disk(&bench.path("store"), secret), "{secret} is kept");
    }
    let bare = || options(&bench, McpServers::new(), LocalOptions::default());
    let again = Agent::resume_on(&id, bare(), Arc::new(Caller::default())).await?;
    let run = again.send("db__who", SendOptions::default()).await?;
    let told = init(&run).await?;
    assert!(told.mcp_tools.is_empty());
    assert_eq!(states(&told), [("db", "missing"), ("web", "missing")]);
    assert!(said(&run).await?.contains("unknown tool"));
    again.dispose().await;
    let strict = LocalOptions { require_servers: true, ..LocalOptions::default() };
    let strict = options(&bench, McpServers::new(), strict);
    let error = Agent::resume_on(&id, strict, Arc::new(Caller::default())).await;
    let error = error.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("mcpServers.db") && error.contains("mcpServers.web"), "{error}");
    let whole = options(&bench, servers()?, LocalOptions::default());
    let again = Agent::resume_on(&id, whole, Arc::new(Caller::default())).await?;
    assert_eq!(ask(&again, "db__who", SendOptions::default()).await?, "db");
    let messages = Agent::messages(&id, &bare()).await?;
    let asked = messages.iter().filter(|one| matches!(one.event.kind, EventKind::User { .. })).count();
    assert_eq!(asked, 3, "the conversation is whole: {messages:?}");
    again.dispose().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a45_the_first_message_tells_tools_and_every_server() -> Result<()> {
    let bench = Bench::new()?;
    let mut off = bench.entry("")?;
    off["enabled"] = json!(false);
    bench.servers("project/.cursor/mcp.json", &[("off", off), ("same", bench.entry("")?)])?;
    let servers = McpServers::new()
        .with("same", bench.scripted("on tools/call/x -> text x")?)
        .with("gone", McpServer::command("no-such-binary-xyz"));
    let (agent, _) = agent(options(&bench, servers, from_project()))?;
    let run = agent.send("same__x", SendOptions::default()).await?;
    let told = init(&run).await?;
    assert_eq!((told.model.as_deref(), told.tools.clone()), (Some("none"), vec!["read".to_owned()]));
    let pairs: Vec<(&str, &str)> =
        told.mcp_tools.iter().map(|pair| (pair.server.as_str(), pair.tool.as_str())).collect();
    assert_eq!(pairs, [("same", "echo"), ("same", "x")]);
    let mut found: Vec<(&str, &str, &str, bool)> = told
        .mcp_servers
        .iter()
        .map(|one| (one.name.as_str(), one.source.as_str(), one.state.as_str(), one.reason.is_some()))
        .collect();
    found.sort_unstable();
    let expected = [
        ("gone", "inline", "failed", true),
        ("off", "project", "disabled", true),
        ("same", "inline", "connected", false),
        ("same", "project", "shadowed", true),
    ];
    assert_eq!(found, expected);
    assert!(told.mcp_servers.iter().all(|one| one.transport.as_deref() == Some("stdio")));
    agent.dispose().await;
    Ok(())
}
