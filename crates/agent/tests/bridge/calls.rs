//! Calls of the host's tools by an agent that is alive.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolway_bridge::{Profile, Settings, StopReason};
use toolway_secret::Secret;

use super::rig::{BOTH, Rig, Runtime, lock, soon, tool};
use super::scene::{Scene, Step, host};
use super::talk::{Talk, nothing};

#[tokio::test]
async fn both_runtimes_statement_18_a_call_comes_back_to_the_same_agent_run() -> Result<()> {
    for runtime in BOTH {
        let scene = Scene::default().on(
            "alpha",
            vec![
                Step::Say("I ask."),
                host("pi__todo", json!({"item": "milk", "big": 1})),
                Step::Say("It is noted."),
            ],
        );
        let rig = Rig::new(runtime, &scene)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", async |_| Ok("noted: milk".to_owned())).await?;
        assert_eq!(answer.stop, Some(StopReason::Stop), "{runtime:?} {answer:?}");
        let [call] = answer.calls()[..] else { anyhow::bail!("{runtime:?}: {answer:?}") };
        assert_eq!((call.name.as_str(), call.arguments.tree()), ("todo", json!({"item": "milk", "big": 1})));
        assert!(call.id.as_str().starts_with(Profile::PI.run_prefix));
        assert_eq!(answer.text, "I ask.It is noted.", "{runtime:?}");
        assert!(rig.results()?.concat().contains("noted: milk"), "{runtime:?}: {:?}", rig.results()?);
        assert_eq!((rig.seen.made(), rig.seen.prompts().len()), (1, 1), "made once, sent once");
        let facts = talk.session.run().context("no run")?.facts();
        assert_eq!((facts.exposed, facts.called), (2, 1), "{runtime:?}");
        assert!(facts.connected >= 1 && facts.listed >= 1, "{runtime:?} {facts:?}");
        talk.session.shutdown("the end").await;
        assert_eq!(rig.seen.ended(), 1);
        rig.check_gone()?;
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_19_calls_at_once_are_one_message() -> Result<()> {
    for runtime in BOTH {
        let both = Step::Host(vec![("pi__todo", json!({"n": 1})), ("pi__ask", json!({"n": 2}))]);
        let rig = Rig::new(runtime, &Scene::default().on("alpha", vec![both, Step::Say("Both are there.")]))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer =
            talk.say("alpha", async |call| Ok(format!("by {} {}", call.name, call.arguments.text()))).await?;
        let [batch] = &answer.batches[..] else { anyhow::bail!("{runtime:?}: {answer:?}") };
        let mut names: Vec<&str> = batch.iter().map(|call| call.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["ask", "todo"], "{runtime:?}");
        assert_ne!(batch[0].id, batch[1].id);
        assert_eq!(answer.text, "Both are there.");
        let results = rig.results()?.concat().replace('\\', "");
        assert!(results.contains(r#"by todo {"n":1}"#) && results.contains(r#"by ask {"n":2}"#), "{results}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_16_another_surface_is_another_agent() -> Result<()> {
    for runtime in BOTH {
        let scene = Scene::default()
            .on("alpha", vec![host("pi__todo", json!({})), host("pi__new", json!({})), Step::Say("One.")])
            .on("beta", vec![host("pi__new", json!({})), Step::Say("Two.")]);
        let rig = Rig::new(runtime, &scene)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk
            .say("alpha", async |_| {
                // The agent that runs does not see what is registered meanwhile.
                rig.host.set(vec![tool("todo", "keeps a list"), tool("new", "is new")]);
                Ok("noted".to_owned())
            })
            .await?;
        assert_eq!((answer.text.as_str(), answer.calls().len()), ("One.", 1), "{runtime:?} {answer:?}");
        let results = rig.results()?;
        assert!(results.last().is_some_and(|last| last.contains("pi__new")), "{runtime:?}: {results:?}");
        let answer = talk.say("beta", async |call| Ok(format!("ran {}", call.name))).await?;
        assert_eq!((answer.text.as_str(), answer.calls().len()), ("Two.", 1), "{runtime:?} {answer:?}");
        assert_eq!(answer.calls()[0].name, "new");
        let agents: Vec<usize> = rig.seen.prompts().iter().map(|(agent, _)| *agent).collect();
        assert_eq!(agents, [1, 2], "{runtime:?}");
        soon(rig.seen.all_ended(1)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_22_errors_and_refusals_reach_the_model_as_such() -> Result<()> {
    for runtime in BOTH {
        let both = Step::Host(vec![("pi__todo", json!({})), ("pi__ask", json!({}))]);
        let rig = Rig::new(runtime, &Scene::default().on("alpha", vec![both, Step::Say("I see.")]))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk
            .say("alpha", async |call| {
                Err(if call.name == "todo" { "the disk is full" } else { "the user forbids it" }.to_owned())
            })
            .await?;
        assert_eq!(answer.text, "I see.", "{runtime:?}");
        let results = rig.results()?.concat();
        assert!(results.contains("the disk is full") && results.contains("the user forbids it"), "{results}");
        // Both runtimes tell of a call that gave an error as of one that failed.
        let events = lock(&rig.seen.events).clone();
        let failed = events.iter().filter(|event| match event {
            toolway_bridge::AgentEvent::Tool(toolway_bridge::AgentToolEvent::Completed(activity)) => {
                activity.status == toolway_bridge::ToolStatus::Failed
            }
            _ => false,
        });
        assert_eq!(failed.count(), 2, "{runtime:?}: {events:?}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_26_a_stuck_tool_is_aborted_and_the_agent_is_told_the_deadline() -> Result<()>
{
    for runtime in BOTH {
        let rig = Rig::new(
            runtime,
            &Scene::default().on("alpha", vec![host("pi__todo", json!({})), Step::Say("It is stuck.")]),
        )?;
        let mut settings = Settings::default();
        settings.tools.bridge.call_timeout_ms = Some(500.0);
        let mut talk = Talk::new(&rig, rig.open(|options| options.settings = Arc::new(settings))?);
        let begun = tokio::time::Instant::now();
        let answer = talk
            .say("alpha", async |call| {
                let reason = rig.host.abort_of(&call.id).await;
                assert!(reason.contains("500"), "{reason}");
                Err("aborted".to_owned())
            })
            .await?;
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!((answer.text.as_str(), answer.calls().len()), ("It is stuck.", 1), "{runtime:?}");
        let results = rig.results()?.concat();
        assert!(results.contains("500"), "{runtime:?}: {results}");
        assert_eq!(rig.host.aborted().len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_28_the_deadlines_of_the_file_hold_for_a_living_agent() -> Result<()> {
    // What the file says for all MCP calls and for those of the host's tools; what holds then.
    let table = [
        (json!(null), json!(7_200_000), 3_600_000, 3_600_000),
        (json!(60_000), json!(120_000), 60_000, 60_000),
        (json!(null), json!(120_000), 3_600_000, 120_000),
        (json!(7_200_000), json!(null), 7_200_000, 7_200_000),
        (json!(-1), json!(-1), 3_600_000, 3_600_000),
        (json!(0), json!(0), 3_600_000, 3_600_000),
        (json!("x"), json!("x"), 3_600_000, 3_600_000),
    ];
    for runtime in BOTH {
        for (tool, call, of_tool, of_call) in &table {
            let scene = Scene::default().on("alpha", vec![host("pi__todo", json!({})), Step::Say("Yes.")]);
            let rig = Rig::new(runtime, &scene)?;
            let file = rig.dir.path().join("cursor-sdk.json");
            let tools = json!({"mcp": {"callTimeoutMs": tool}, "bridge": {"callTimeoutMs": call}});
            std::fs::write(&file, json!({"tools": tools}).to_string())?;
            let settings = Arc::new(Settings::read(&file).0);
            let mut talk = Talk::new(&rig, rig.open(|options| options.settings = settings)?);
            let answer = talk.say("alpha", async |_| Ok("noted".to_owned())).await?;
            assert_eq!((answer.text.as_str(), answer.calls().len()), ("Yes.", 1), "{runtime:?} {answer:?}");
            let given = lock(&rig.seen.made).first().context("no agent")?.timeouts;
            assert_eq!(given.tool, Duration::from_millis(*of_tool), "{runtime:?} {tool}");
            assert_eq!(given.connect, Duration::from_secs(10));
            let held = talk.session.run().context("no run")?.deadlines();
            assert_eq!(held.bridge, Duration::from_millis(*of_call), "{runtime:?} {tool} {call}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_31_a_call_after_the_answer_is_rejected_at_once() -> Result<()> {
    // A native agent cannot call then. A program behind the protocol can, and does. For both a client with the agent's own
    // address does too.
    for runtime in BOTH {
        let late = vec![Step::Say("Done."), Step::Late("pi__todo")];
        let scene = Scene::default().on("alpha", late).on("beta", vec![Step::Say("Two.")]);
        let rig = Rig::new(runtime, &scene)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        talk.say("alpha", nothing).await?;
        let url: Secret = lock(&rig.seen.made)[0].mcp_servers.first().context("no server")?.url.clone();
        let answered = call_by_hand(&url, "pi__todo").await?;
        assert!(answered.contains("no active live run"), "{runtime:?}: {answered}");
        if runtime == Runtime::Acp {
            let called = async {
                loop {
                    let results = rig.results()?;
                    if let Some(result) = results.first() {
                        return Ok::<_, anyhow::Error>(result.clone());
                    }
                    tokio::task::yield_now().await;
                }
            };
            let called = soon(called).await??;
            // The end of its answer and the call come by different ways, and may meet.
            let told = ["no active live run", "the agent's answer ended"];
            assert!(told.iter().any(|told| called.contains(told)), "{called}");
        }
        let answer = talk.say("beta", nothing).await?;
        assert_eq!((answer.text.as_str(), answer.calls().len()), ("Two.", 0), "the host hears of none");
        assert!(rig.host.aborted().is_empty());
    }
    Ok(())
}

/// A call by a client of its own.
pub(super) async fn call_by_hand(url: &Secret, tool: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let rest = url.expose().strip_prefix("http://").context("no http")?;
    let (address, path) = rest.split_once('/').context("no path")?;
    let mut session = String::new();
    let mut told = String::new();
    for (id, method, params) in [
        (
            1,
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "late", "version": "1"}}),
        ),
        (2, "tools/call", json!({"name": tool, "arguments": {}})),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let mut stream = soon(tokio::net::TcpStream::connect(address)).await??;
        let head = format!(
            "POST /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        soon(stream.read_to_end(&mut answer)).await?.ok();
        told = String::from_utf8_lossy(&answer).into_owned();
        let own = told.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"));
        if let Some(own) = own {
            session = format!("{}\r\n", own.trim());
        }
    }
    ensure!(!told.is_empty(), "no answer");
    Ok(told)
}

#[tokio::test]
async fn both_runtimes_statement_25_a_client_that_gives_up_stops_the_tool_once() -> Result<()> {
    for runtime in BOTH {
        let scene = Scene::default()
            .on("alpha", vec![host("pi__todo", json!({})), Step::Say("Never.")])
            .on("beta", vec![Step::Say("Back.")]);
        // The agent gives its own call up when its run has lasted too long.
        let rig = Rig::with(runtime, &scene, &|options, _| {
            options.limits.time = Some(Duration::from_secs(4));
        })?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk
            .say("alpha", async |call| {
                rig.host.abort_of(&call.id).await;
                Err("stopped".to_owned())
            })
            .await?;
        assert!(matches!(answer.stop, Some(StopReason::Error(_))), "{runtime:?} {answer:?}");
        assert_eq!(rig.host.aborted().len(), 1, "{runtime:?} {:?}", rig.host.aborted());
        let pending = talk.session.run().map(|run| run.pending());
        assert!(pending.unwrap_or_default() == 0, "{runtime:?}: {pending:?}");
        if runtime == Runtime::Acp {
            let journal = rig.journal()?;
            assert!(journal.iter().any(|event| event["method"] == "session/cancel"));
        }
        let answer = talk.say("beta", nothing).await?;
        assert_eq!(answer.text, "Back.", "{runtime:?} {answer:?}");
    }
    Ok(())
}
