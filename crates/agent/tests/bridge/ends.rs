//! Ends: of calls, of agents, of sessions.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_bridge::{AgentEvent, AssistantBlock, Profile, SessionOptions, StopReason, ToolCall};

use super::rig::{BOTH, Rig, Runtime, lock, soon};
use super::scene::{Scene, Step, host};
use super::talk::{Talk, nothing};

/// The call with which a turn ended.
async fn asked(talk: &mut Talk, text: &str) -> Result<ToolCall> {
    talk.user(text);
    let message = talk.turn().await?;
    message
        .content
        .iter()
        .find_map(|block| match block {
            AssistantBlock::ToolCall(call) => Some(call.clone()),
            _ => None,
        })
        .with_context(|| format!("no call: {message:?}"))
}

fn scene() -> Scene {
    Scene::default()
        .on("alpha", vec![host("pi__todo", json!({})), Step::Say("Done.")])
        .on("beta", vec![Step::Say("Still there.")])
}

/// A turn that the host gives up while the agent thinks.
async fn aborted_in_the_middle(rig: &Rig, talk: &mut Talk, text: &str) -> Result<()> {
    let abort = talk.request.abort.clone();
    talk.user(text);
    let begins = |event: &AgentEvent| matches!(event, AgentEvent::Text(text) if text.starts_with("I t"));
    let cut = async {
        let heard = async {
            while !lock(&rig.seen.events).iter().any(begins) {
                tokio::task::yield_now().await;
            }
        };
        soon(heard).await?;
        abort.cancel();
        Ok::<_, anyhow::Error>(())
    };
    let (message, cut) = tokio::join!(talk.turn(), cut);
    cut?;
    anyhow::ensure!(matches!(message?.stop, StopReason::Aborted(_)), "it is given up");
    talk.request.abort = tokio_util::sync::CancellationToken::new();
    Ok(())
}

/// Nobody listens where the agent's server was.
async fn is_closed(rig: &Rig) -> Result<bool> {
    let url = lock(&rig.seen.made)[0].mcp_servers.first().context("no server")?.url.clone();
    let address = url.expose().trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned();
    Ok(soon(tokio::net::TcpStream::connect(address)).await?.is_err())
}

#[tokio::test]
async fn both_runtimes_statement_29_the_end_of_the_process_ends_calls_and_agents() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &scene())?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let call = asked(&mut talk, "alpha").await?;
        soon(rig.coordinator.shutdown("interrupted by the user")).await?;
        assert_eq!(rig.host.aborted(), [(call.id.to_string(), "interrupted by the user".to_owned())]);
        assert!(is_closed(&rig).await?, "{runtime:?}");
        assert_eq!(rig.seen.ended(), 1);
        rig.check_gone()?;
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_30_calls_are_rejected_before_the_server_closes() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &scene())?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        asked(&mut talk, "alpha").await?;
        soon(talk.session.shutdown("the session is over")).await?;
        assert_eq!(rig.host.aborted().len(), 1);
        assert!(is_closed(&rig).await?, "{runtime:?}");
        if runtime == Runtime::Acp {
            let results = rig.results()?.concat();
            assert!(results.contains("the session is over"), "the agent was told: {results}");
        }
        assert_eq!(rig.seen.ended(), 1);
        rig.check_gone()?;
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_cancelled_turns_end_the_call_and_keep_the_agent() -> Result<()> {
    for runtime in BOTH {
        let rig =
            Rig::new(runtime, &scene().on("gamma", vec![Step::Hang]).on("delta", vec![Step::Say("Here.")]))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let abort = talk.request.abort.clone();
        let call = asked(&mut talk, "alpha").await?;
        abort.cancel();
        let reason = soon(rig.host.abort_of(&call.id)).await?;
        assert!(reason.contains("aborted"), "{reason}");
        talk.bring(&call, "aborted", true);
        talk.request.abort = tokio_util::sync::CancellationToken::new();
        let answer = talk.say("beta", nothing).await?;
        assert_eq!(
            (answer.stop, answer.text.as_str()),
            (Some(StopReason::Stop), "Still there."),
            "{runtime:?}"
        );
        assert_eq!(rig.host.aborted().len(), 1);

        // The same while the agent thinks.
        aborted_in_the_middle(&rig, &mut talk, "gamma").await?;
        let answer = talk.say("delta", nothing).await?;
        assert_eq!(answer.text, "Here.", "{runtime:?} {answer:?}");
        talk.session.shutdown("the end").await;
        rig.check_gone()?;
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_32_a_pending_call_keeps_its_agent_and_idleness_ends_it() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &scene())?;
        let idle = Duration::from_millis(300);
        let mut talk = Talk::new(&rig, rig.open(|options| options.idle = idle)?);
        let answer = talk
            .say("alpha", async |call| {
                let given_up = tokio::time::timeout(idle * 4, rig.host.abort_of(&call.id)).await;
                assert!(given_up.is_err(), "the call is waited for");
                Ok("late".to_owned())
            })
            .await?;
        assert_eq!(answer.text, "Done.", "{runtime:?}");
        assert_eq!((rig.seen.made(), rig.seen.ended()), (1, 0), "{runtime:?}");
        soon(rig.seen.all_ended(1)).await?;
        rig.check_gone()?;
        let answer = talk.say("beta", nothing).await?;
        assert_eq!((answer.text.as_str(), rig.seen.made()), ("Still there.", 2), "{runtime:?}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_33_a_nested_sessions_end_leaves_the_parents_call_alone() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &scene())?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk
            .say("alpha", async |_| {
                let child = SessionOptions::new("child", Profile::PI);
                let child = rig.coordinator.open(std::sync::Arc::clone(&rig.host) as _, child);
                let mut inner = Talk::new(&rig, child.map_err(|error| error.to_string())?);
                let said = inner.say("beta", nothing).await.map_err(|error| format!("{error:#}"))?;
                inner.session.shutdown("the child is done").await;
                Ok(format!("the child says: {}", said.text))
            })
            .await?;
        assert_eq!(answer.text, "Done.", "{runtime:?} {answer:?}");
        assert!(rig.results()?.concat().contains("the child says: Still there."), "{runtime:?}");
        assert!(rig.host.aborted().is_empty());
        assert_eq!((rig.seen.made(), rig.seen.ended()), (2, 1));
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_an_agent_that_hangs_holds_neither_turn_nor_session() -> Result<()> {
    for runtime in BOTH {
        let scene =
            Scene::default().on("alpha", vec![Step::Deaf]).on("beta", vec![Step::Say("Another one.")]);
        let rig = Rig::new(runtime, &scene)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        aborted_in_the_middle(&rig, &mut talk, "alpha").await?;
        // What does not stop within its time is replaced.
        let begun = tokio::time::Instant::now();
        let answer = talk.say("beta", nothing).await?;
        assert_eq!(answer.text, "Another one.", "{runtime:?} {answer:?}");
        soon(talk.session.shutdown("the end")).await?;
        assert!(begun.elapsed() < Duration::from_secs(30), "{runtime:?} {:?}", begun.elapsed());
        soon(rig.seen.all_ended(rig.seen.made())).await?;
        rig.check_gone()?;
    }
    Ok(())
}
