//! What is on disk, and what is not.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_agent::{
    Agent, AgentOptions, Checkpoint, EventKind, McpServer, McpServers, Place, RunStatus, SendOptions,
    ServerChange, ServerReport, StoreChoice, SystemInit,
};
use toolway_secret::Secret;

use super::engine::{Bench, Scripted, call, done, observed, refused, said, soon, streamed};

const SECRETS: [&str; 7] =
    ["s3cr3t", "tok-4711", "key-of-model", "h.example", "inquery", "X-Own-Header", "You are a pirate"];

const ARGS: &str = r#"{"n":9007199254740993,"f":1.10,"e":1e400,"s":"\u00e9 s3cr3t"}"#;

fn servers(url: &str) -> McpServers {
    McpServers::new()
        .with("db", McpServer::command("no-such-program-at-all").env("PW", "s3cr3t").args(["db.script"]))
        .with(
            "web",
            McpServer::url(url).header("Authorization", "Bearer tok-4711").header("X-Own-Header", "tok-4711"),
        )
}

fn options(bench: &Bench, store: StoreChoice, servers: McpServers) -> AgentOptions {
    let mut options = bench.options_in(store);
    options.mcp_servers = servers;
    options.api_key = Some(Secret::new("key-of-model"));
    if let Place::Local(local) = &mut options.place {
        local.system_prompt = Some("You are a pirate, and this is nobody's business.".into());
    }
    options
}

/// An engine that says all that it should not.
fn loud() -> Arc<Scripted> {
    Scripted::new(|turn, sink| async move {
        let all = "s3cr3t tok-4711 key-of-model https://h.example/mcp?k=inquery You are a pirate, and this is nobody's business.";
        sink.event(said(all)).await?;
        sink.event(EventKind::Thinking { text: all.into(), thinking_duration_ms: None }).await?;
        sink.event(EventKind::Task { status: None, text: Some(all.into()) }).await?;
        let args = json!({"command": format!("echo {all}"), "n": 1}).to_string();
        sink.event(call("a", &args, None)?).await?;
        sink.event(call("a", &args, Some(&json!({"output": all}).to_string()))?).await?;
        sink.checkpoint(Checkpoint(json!({"system": all, "n": 1.5}).to_string().into())).await?;
        let talk = turn.checkpoint.map(|talk| String::from_utf8_lossy(&talk.0).into_owned());
        Ok(done(&format!("{} {all}", talk.unwrap_or_default())))
    })
}

fn stores(bench: &Bench) -> [StoreChoice; 2] {
    [StoreChoice::Sqlite(bench.path().join("sqlite")), StoreChoice::Jsonl(bench.path().join("jsonl"))]
}

fn assert_clean(bench: &Bench) -> Result<()> {
    let mut seen = 0;
    for file in bench.files()? {
        let bytes = std::fs::read(&file)?;
        seen += bytes.len();
        let text = String::from_utf8_lossy(&bytes);
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} is in {}", file.display());
        }
    }
    assert!(seen > 1000, "{seen}");
    Ok(())
}

async fn init(agent: &Agent, send: SendOptions) -> Result<SystemInit> {
    let run = agent.send("hello", send).await?;
    let events = streamed(&run).await?;
    let EventKind::System(init) = &events.first().context("a first event")?.kind else {
        anyhow::bail!("{:?}", events.first());
    };
    Ok((**init).clone())
}

fn state(reports: &[ServerReport], name: &str) -> Option<String> {
    reports.iter().find(|report| report.name == name).map(|report| report.state.clone())
}

#[tokio::test]
async fn statement_a38_nothing_of_servers_but_names_transports_and_digests_is_on_disk() -> Result<()> {
    let bench = Bench::new()?;
    for store in stores(&bench) {
        let given = options(&bench, store.clone(), servers("https://h.example/mcp?k=inquery"));
        let agent = Agent::create_on(given, loud())?;
        let run = agent.send("the secret is s3cr3t", SendOptions::default()).await?;
        soon(run.wait()).await??;
        // Not while it runs either.
        assert_clean(&bench)?;
        let id = agent.id().clone();
        soon(agent.dispose()).await?;
        drop(agent);
        assert_clean(&bench)?;

        let nothing = options(&bench, store.clone(), McpServers::new());
        let record = Agent::get(&id, &nothing).await?;
        let kept: Vec<_> =
            record.servers.iter().map(|one| (one.name.as_str(), one.transport.as_str())).collect();
        assert_eq!(kept, [("db", "stdio"), ("web", "http")]);
        let agent = Agent::resume_on(&id, nothing.clone(), Scripted::echo()).await?;
        let told = init(&agent, SendOptions::default()).await?;
        assert!(told.mcp_tools.is_empty());
        for name in ["db", "web"] {
            assert_eq!(state(&told.mcp_servers, name).as_deref(), Some("missing"), "{told:?}");
        }
        soon(agent.dispose()).await?;

        let mut strict = nothing;
        if let Place::Local(local) = &mut strict.place {
            local.require_servers = true;
        }
        let error = refused(Agent::resume_on(&id, strict, Scripted::echo()).await)?;
        assert_eq!(error.code(), "validation_error");
        for name in ["mcpServers.db", "mcpServers.web"] {
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_clean(&bench)?;
    }
    Ok(())
}

#[tokio::test]
async fn trial_15_a_resume_with_some_or_changed_servers_says_so() -> Result<()> {
    let bench = Bench::new()?;
    for store in stores(&bench) {
        let all = |url: &str| options(&bench, store.clone(), servers(url));
        let agent = Agent::create_on(all("https://h.example/mcp"), Scripted::echo())?;
        let run = agent.send("one", SendOptions::default()).await?;
        soon(run.wait()).await??;
        let id = agent.id().clone();
        soon(agent.dispose()).await?;

        let db = McpServers::new()
            .with("db", McpServer::command("no-such-program-at-all").env("PW", "s3cr3t").args(["db.script"]));
        let agent = Agent::resume_on(&id, options(&bench, store.clone(), db), Scripted::echo()).await?;
        let told = init(&agent, SendOptions::default()).await?;
        assert_eq!(state(&told.mcp_servers, "web").as_deref(), Some("missing"));
        assert_ne!(state(&told.mcp_servers, "db").as_deref(), Some("missing"));
        soon(agent.dispose()).await?;

        let agent = Agent::resume_on(&id, all("http://127.0.0.1:9/elsewhere"), Scripted::echo()).await?;
        let other = McpServers::new().with("only", McpServer::command("no-such-program-either"));
        let send = SendOptions { mcp_servers: ServerChange::Replace(other), ..SendOptions::default() };
        let told = init(&agent, send).await?;
        let note = told.diagnostics.iter().find(|note| note.contains("in place of")).context("a note")?;
        assert!(note.contains("(only)") && note.contains("(db, web)"), "{note}");
        let told = init(&agent, SendOptions::default()).await?;
        let web = told.mcp_servers.iter().find(|report| report.name == "web").context("web")?;
        assert!(web.reason.as_ref().context("a reason")?.contains("changed"), "{web:?}");
        soon(agent.dispose()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn statement_a39_a_conversation_goes_on_after_a_resume() -> Result<()> {
    let bench = Bench::new()?;
    for store in stores(&bench) {
        let engine = || {
            Scripted::new(|turn, sink| async move {
                let before = turn.checkpoint.map(|talk| String::from_utf8_lossy(&talk.0).into_owned());
                let talk = format!("{}{}\n", before.unwrap_or_default(), turn.prompt.text);
                sink.checkpoint(Checkpoint(talk.clone().into())).await?;
                assert!(turn.interrupted.is_empty());
                Ok(done(&talk))
            })
        };
        let given = bench.options_in(store.clone());
        let agent = Agent::create_on(given.clone(), engine())?;
        for prompt in ["one", "two"] {
            soon(agent.send(prompt, SendOptions::default()).await?.wait()).await??;
        }
        let id = agent.id().clone();
        soon(agent.dispose()).await?;
        let agent = Agent::resume_on(&id, given.clone(), engine()).await?;
        let state = soon(agent.send("three", SendOptions::default()).await?.wait()).await??;
        assert_eq!(state.result.as_deref(), Some("one\ntwo\nthree\n"));
        assert_eq!(Agent::messages(&id, &given).await?.len(), 3);
        let usage = agent.usage(None).await?;
        assert_eq!((usage.runs.len(), usage.usage.input, usage.usage.total()), (3, 30, 36));
        soon(agent.dispose()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn numbers_and_bytes_of_arguments_are_kept_as_they_came() -> Result<()> {
    let bench = Bench::new()?;
    for store in stores(&bench) {
        let engine = Scripted::new(|_, sink| async move {
            sink.event(call("a", ARGS, None)?).await?;
            Ok(done("ok"))
        });
        let agent = Agent::create_on(options(&bench, store, servers("https://h.example/mcp")), engine)?;
        let run = agent.send("go", SendOptions::default()).await?;
        assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);
        let kept = observed(run.observe(3)?).await?;
        let EventKind::ToolCall(call) = &kept[0].event.kind else { anyhow::bail!("{:?}", kept[0]) };
        let args = call.args.as_ref().context("arguments")?.text();
        assert_eq!(args, r#"{"n":9007199254740993,"f":1.10,"e":1e400,"s":"é [redacted]"}"#);
    }
    Ok(())
}
