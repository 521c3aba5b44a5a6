//! Agents as the bridge drives them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use toolway_agent::{
    Delta, LocalPort, Mode, Place, StoreChoice, ToolCallEvent, ToolCallStatus, Truncated, Usage, memory_store,
};
use toolway_bridge::{
    Agent as _, AgentEnd, AgentEvent, AgentMode, AgentOptions, AgentPort as _, AgentPrompt, AgentToolEvent,
    InlineServer, McpTimeouts, OutputStream, RawJson, SafetyOption, ToolStatus,
};
use toolway_secret::Secret;

use super::engine::{Bench, Scripted, done, soon};

fn session(bench: &Bench) -> AgentOptions {
    AgentOptions {
        cwd: bench.path().join("work"),
        model: "m2".into(),
        setting_sources: vec!["project".into()],
        mcp_servers: vec![InlineServer { key: "pi", url: Secret::new("http://127.0.0.1:1/token/mcp") }],
        timeouts: McpTimeouts { tool: Duration::from_secs(7), connect: Duration::from_secs(8) },
        safety: vec![SafetyOption::AutoReview],
        http1: false,
    }
}

fn prompt(text: &str) -> AgentPrompt {
    AgentPrompt { text: text.into(), images: Vec::new(), mode: AgentMode::Plan }
}

fn call(status: ToolCallStatus, result: Option<&str>) -> ToolCallEvent {
    let raw = |text: &str| RawJson::new(text.to_owned()).unwrap_or_else(|_| RawJson::empty_object());
    ToolCallEvent {
        call_id: "c".into(),
        name: "shell".into(),
        status,
        args: Some(raw("{\"command\":\"ls\"}")),
        result: result.map(raw),
        truncated: Truncated::default(),
    }
}

async fn told(agent: &toolway_agent::PortAgent) -> Result<Vec<AgentEvent>> {
    let mut events = Vec::new();
    loop {
        let event = soon(agent.next()).await?.context("an event")?;
        let is_end = matches!(event, AgentEvent::Ended(_));
        events.push(event);
        if is_end {
            return Ok(events);
        }
    }
}

#[tokio::test]
async fn what_a_run_tells_becomes_the_bridges_events() -> Result<()> {
    let bench = Bench::new()?;
    let options = bench.options_in(StoreChoice::Shared(memory_store()?));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let port = LocalPort::new(options).with_engine(move |options| {
        let local = options.local_options().cloned().unwrap_or_default();
        if let Ok(mut kept) = kept.lock() {
            let server = local.direct_servers.first().map(|server| server.name.clone()).unwrap_or_default();
            kept.push(format!(
                "{} {:?} {} {:?} {:?}",
                server, local.setting_sources, local.auto_review, local.timeouts.call, local.timeouts.startup
            ));
            assert!(matches!(options.place, Place::Local(_)));
        }
        Ok(Scripted::new(|turn, sink| async move {
            assert_eq!((turn.model.id.as_str(), turn.mode), ("m2", Mode::Plan));
            if turn.prompt.text == "wait" {
                sink.delta(Delta::Text("partly".into())).await;
                turn.cancel.cancelled().await;
                return Ok(done("late"));
            }
            for delta in [
                Delta::StepStarted { step: 1 },
                Delta::Thinking("hm".into()),
                Delta::Text("a".into()),
                Delta::ToolCallStarted(call(ToolCallStatus::Running, None)),
                Delta::ShellOutput { call_id: "c".into(), stream: "stderr", text: "x".into() },
                Delta::ToolCallCompleted(call(ToolCallStatus::Error, Some("{\"exitCode\":1}"))),
                Delta::TurnEnded(Usage { input: 3, output: 4, ..Usage::default() }),
                Delta::StepCompleted { step: 1 },
            ] {
                sink.delta(delta).await;
            }
            Ok(done("ab"))
        }))
    });
    let agent = port.create(session(&bench)).await?;
    assert_eq!(
        *seen.lock().map_err(|_| anyhow::anyhow!("poisoned"))?,
        ["pi [Project] true Some(7s) Some(8s)"]
    );
    soon(agent.send(prompt("go"))).await??;
    let events = told(&agent).await?;
    assert_eq!(events[..2], [AgentEvent::Thinking("hm".into()), AgentEvent::Text("a".into())]);
    let AgentEvent::Tool(AgentToolEvent::Started(started)) = &events[2] else { anyhow::bail!("{events:?}") };
    assert_eq!(
        (started.id.as_str(), started.kind.as_str(), started.args.text()),
        ("c", "shell", "{\"command\":\"ls\"}")
    );
    let output =
        AgentToolEvent::Output { id: Some("c".into()), stream: OutputStream::Stderr, text: "x".into() };
    assert_eq!(events[3], AgentEvent::Tool(output));
    let AgentEvent::Tool(AgentToolEvent::Completed(ended)) = &events[4] else { anyhow::bail!("{events:?}") };
    assert_eq!(ended.status, ToolStatus::Failed);
    assert_eq!(
        events[5..],
        [
            AgentEvent::TurnEnded(toolway_bridge::Usage {
                input: 3,
                output: 4,
                cache_read: 0,
                cache_write: 0
            }),
            AgentEvent::Step(vec![AgentToolEvent::Completed(ended.clone())]),
            AgentEvent::Ended(AgentEnd::Finished(Some("ab".into()))),
        ]
    );

    // A cancelled prompt has one end, and the next one goes.
    soon(agent.send(prompt("wait"))).await??;
    assert_eq!(soon(agent.next()).await?, Some(AgentEvent::Text("partly".into())));
    soon(agent.cancel()).await?;
    assert_eq!(told(&agent).await?, [AgentEvent::Ended(AgentEnd::Finished(Some("late".into())))]);
    soon(agent.cancel()).await?;
    soon(agent.reload()).await??;
    soon(agent.send(prompt("go"))).await??;
    assert_eq!(told(&agent).await?.len(), 8);
    soon(agent.dispose()).await
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() -> Result<()> {
    let bench = Bench::new()?;
    let port = LocalPort::new(bench.options_in(StoreChoice::Memory)).with_engine(|_| {
        Ok(Scripted::new(|_, sink| async move {
            for number in 0..200 {
                sink.delta(Delta::Text(number.to_string())).await;
                tokio::task::yield_now().await;
            }
            Ok(done("ok"))
        }))
    });
    let agent = port.create(session(&bench)).await?;
    soon(agent.send(prompt("go"))).await??;
    let mut texts = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            event = agent.next() => event.context("an event")?,
            () = tokio::task::yield_now() => continue,
        };
        match event {
            AgentEvent::Text(text) => texts.push(text),
            AgentEvent::Ended(end) => {
                assert_eq!(end, AgentEnd::Finished(Some("ok".into())));
                break;
            }
            other => anyhow::bail!("{other:?}"),
        }
    }
    // A piece that may be the beginning of a secret comes with the next one.
    assert_eq!(texts.concat(), (0..200).map(|number: u32| number.to_string()).collect::<String>());
    soon(agent.dispose()).await
}
