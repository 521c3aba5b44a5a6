//! What a run tells, to whom, and in which order.

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;
use toolway_agent::{
    Agent, AgentError, Delta, EventKind, RunOperation, RunStatus, SendOptions, Steered, ToolCallStatus,
};

use super::engine::{Bench, Scripted, call, done, names, observed, refused, said, soon, streamed};

#[tokio::test]
async fn statement_a45_the_first_message_of_a_run_is_its_init() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::echo())?;
    let run = agent.send("hello", SendOptions::default()).await?;
    let events = streamed(&run).await?;
    assert_eq!(names(&events), ["system", "Running", "user", "assistant", "usage", "Finished"]);
    let EventKind::System(init) = &events[0].kind else { anyhow::bail!("{:?}", events[0]) };
    assert_eq!((init.model.as_deref(), init.runtime.as_str()), (Some("m"), "native"));
    assert_eq!(init.tools, ["shell"]);
    for event in &events {
        assert_eq!((&event.agent_id, &event.run_id), (agent.id(), run.id()));
    }
    let state = run.wait().await?;
    assert_eq!((state.status, state.result.as_deref()), (RunStatus::Finished, Some("ok")));
    assert_eq!(state.usage.map(|usage| usage.total()), Some(12));
    assert!(state.duration.is_some());
    agent.dispose().await;
    Ok(())
}

#[tokio::test]
async fn statement_a41_an_observer_gets_what_follows_its_offset_once_and_ends() -> Result<()> {
    let bench = Bench::new()?;
    let (go, gate) = (mpsc::channel::<()>(1), std::sync::Mutex::new(None));
    let (sender, receiver) = go;
    *gate.lock().map_err(|_| anyhow::anyhow!("poisoned"))? = Some(receiver);
    let engine = Scripted::new(move |_, sink| {
        let gate = gate.lock().ok().and_then(|mut gate| gate.take());
        async move {
            for number in 0..300 {
                sink.event(said(&number.to_string())).await?;
            }
            if let Some(mut gate) = gate {
                gate.recv().await;
            }
            for number in 300..600 {
                sink.event(said(&number.to_string())).await?;
            }
            Ok(done("ok"))
        }
    });
    let agent = bench.agent(engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    // From the beginning, from the middle, from what is not there yet; and from another handle.
    let mut first = run.observe(0)?;
    for offset in 1..=200 {
        assert_eq!(soon(first.next()).await?.context("an event")??.offset, offset);
    }
    let detached = Agent::get_run(agent.id(), run.id(), &bench.options()).await?;
    let observers = [
        (200, first),
        (150, run.observe(150)?),
        (500, run.observe(500)?),
        (0, detached.observe(0)?),
        (303, detached.observe(303)?),
    ];
    let mut reading = tokio::task::JoinSet::new();
    for (after, observation) in observers {
        reading.spawn(async move { (after, observed(observation).await) });
    }
    sender.send(()).await?;
    // init, running, user, 600, usage, finished
    while let Some(read) = reading.join_next().await {
        let (after, read) = read?;
        let read = read?;
        let offsets: Vec<u64> = read.iter().map(|one| one.offset).collect();
        assert_eq!(offsets, (after + 1..=605).collect::<Vec<_>>());
        let last = &read.last().context("a last one")?.event.kind;
        assert!(matches!(last, EventKind::Status { status: RunStatus::Finished, .. }), "{last:?}");
    }
    // Behind the last one there is nothing, and it ends.
    assert!(observed(run.observe(605)?).await?.is_empty());
    assert!(observed(run.observe(9999)?).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn statement_a46_what_is_too_large_is_left_out_and_flagged() -> Result<()> {
    let bench = Bench::new()?;
    let engine = Scripted::new(|_, sink| async move {
        let large = format!("{{\"n\":123456789012345678901234567890,\"t\":\"{}\"}}", "x".repeat(100_000));
        let small = "{\"n\":123456789012345678901234567890}";
        sink.event(call("a", &large, None)?).await?;
        sink.event(call("a", &large, Some(small))?).await?;
        sink.event(call("b", small, Some(&large))?).await?;
        Ok(done("ok"))
    });
    let agent = bench.agent(engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    let live = streamed(&run).await?;
    let kept = observed(run.observe(0)?).await?;
    assert_eq!(kept.iter().map(|one| &one.event).collect::<Vec<_>>(), live.iter().collect::<Vec<_>>());
    let mut told = Vec::new();
    for event in &live {
        if let EventKind::ToolCall(call) = &event.kind {
            let text =
                |value: &Option<toolway_bridge::RawJson>| value.as_ref().map(|value| value.text().to_owned());
            told.push((call.truncated.args, call.truncated.result, text(&call.args), text(&call.result)));
        }
    }
    let small = Some("{\"n\":123456789012345678901234567890}".to_owned());
    assert_eq!(
        told,
        [(true, false, None, None), (true, false, None, small.clone()), (false, true, small, None)]
    );
    Ok(())
}

#[tokio::test]
async fn a_stream_has_one_reader_and_observers_are_many() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::echo())?;
    let run = agent.send("hello", SendOptions::default()).await?;
    let first = run.stream()?;
    let error = refused(run.stream())?;
    assert_eq!(error.code(), "unsupported_run_operation");
    assert!(error.to_string().contains("observe()"), "{error}");
    drop(first);
    assert_eq!(observed(run.observe(0)?).await?.len(), observed(run.observe(0)?).await?.len());
    Ok(())
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_told_and_the_run_goes_on() -> Result<()> {
    let bench = Bench::new()?;
    let engine = Scripted::new(|_, sink| async move {
        for number in 0..9000 {
            sink.event(said(&number.to_string())).await?;
        }
        Ok(done("ok"))
    });
    let agent = bench.agent(engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    let mut stream = run.stream()?;
    assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);
    for _ in 0..8192 {
        soon(stream.next()).await?.context("an event")??;
    }
    let error = refused(soon(stream.next()).await?.context("the overflow")?)?;
    assert!(matches!(error, AgentError::StreamBufferOverflow { capacity: 8192 }), "{error}");
    assert!(soon(stream.next()).await?.is_none());
    assert_eq!(observed(run.observe(0)?).await?.len(), 9005);
    Ok(())
}

#[tokio::test]
async fn a_run_waits_for_its_listener_and_for_nobody_where_there_is_none() -> Result<()> {
    let bench = Bench::new()?;
    let engine = Scripted::new(|_, sink| async move {
        for number in 0..50 {
            // Nothing that ends so may be the beginning of a secret, and wait for what comes next.
            sink.delta(Delta::Text(format!("{number} "))).await;
        }
        Ok(done("ok"))
    });
    let agent = bench.agent(engine)?;
    let run = agent.send("nobody", SendOptions::default()).await?;
    assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);

    let (sender, mut deltas) = mpsc::channel(1);
    let run = agent.send("slow", SendOptions { deltas: Some(sender), ..SendOptions::default() }).await?;
    let mut texts = Vec::new();
    while texts.len() < 48 {
        let Some(Delta::Text(text)) = soon(deltas.recv()).await? else { anyhow::bail!("no delta") };
        texts.push(text);
    }
    // Two are not read: at most one of them waits.
    assert_eq!(run.status(), RunStatus::Running);
    while let Some(Delta::Text(text)) = soon(deltas.recv()).await? {
        texts.push(text);
    }
    assert_eq!(texts, (0..50).map(|number: u32| format!("{number} ")).collect::<Vec<_>>());
    assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);

    // A listener that goes away holds nothing up, and one that never reads does not hold up a cancellation.
    let (sender, deltas) = mpsc::channel(1);
    let run = agent.send("gone", SendOptions { deltas: Some(sender), ..SendOptions::default() }).await?;
    drop(deltas);
    assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);
    let (sender, deltas) = mpsc::channel(1);
    let run = agent.send("deaf", SendOptions { deltas: Some(sender), ..SendOptions::default() }).await?;
    soon(run.cancel()).await??;
    drop(deltas);
    Ok(())
}

#[tokio::test]
async fn text_on_the_way_is_delivered_or_goes_back() -> Result<()> {
    let bench = Bench::new()?;
    let engine = Scripted::new(|mut turn, sink| async move {
        sink.event(said("working")).await?;
        let text = turn.steering.take().await.unwrap_or_default();
        sink.event(EventKind::User { text: text.clone() }).await?;
        // A second one is never taken.
        turn.cancel.cancelled().await;
        Ok(done(&text))
    });
    let agent = bench.agent(engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    assert_eq!(soon(run.steer("to the left")).await??, Steered::Delivered);
    assert!(run.supports(RunOperation::Steer));
    let (late, cancelled) = tokio::join!(soon(run.steer("too late")), async {
        tokio::task::yield_now().await;
        soon(run.cancel()).await
    });
    cancelled??;
    assert_eq!(late??, Steered::RevertToFollowup);
    assert_eq!(run.steer("after the end").await?, Steered::RevertToFollowup);
    assert_eq!(run.unsupported_reason(RunOperation::Steer).as_deref(), Some("the run is over"));
    let said: Vec<_> = run.conversation().await?.into_iter().map(|event| event.kind).collect();
    assert_eq!(said.len(), 3);
    assert_eq!(said[2], EventKind::User { text: "to the left".into() });
    Ok(())
}

#[tokio::test]
async fn a_conversation_has_calls_that_ended() -> Result<()> {
    let bench = Bench::new()?;
    let engine = Scripted::new(|_, sink| async move {
        sink.event(call("a", "{}", None)?).await?;
        sink.event(call("a", "{}", Some("{}"))?).await?;
        // Not the engine's to tell.
        sink.event(EventKind::Status { status: RunStatus::Finished, message: None }).await?;
        Ok(done("ok"))
    });
    let agent = bench.agent(engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    soon(run.wait()).await??;
    let talk = run.conversation().await?;
    assert_eq!(names(&talk), ["user", "tool_call"]);
    assert!(matches!(&talk[1].kind, EventKind::ToolCall(call) if call.status == ToolCallStatus::Completed));
    let messages = Agent::messages(agent.id(), &bench.options()).await?;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].offset, 3);
    Ok(())
}
