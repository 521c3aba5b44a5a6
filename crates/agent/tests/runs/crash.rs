//! Runs that were left behind, runs of other processes, and runs that are given up.

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use toolway_agent::{
    Agent, AgentError, AgentId, AgentRecord, Begin, Begun, Checkpoint, Event, EventKind, EventRecord,
    Presence, RunId, RunOperation, RunStatus, SendOptions, Steered, StoreChoice, ToolCallEvent, TurnEnd,
    TurnStop, Usage, Writes,
};

use super::engine::{Bench, Scripted, call, done, force, names, observed, refused, soon};

/// A store, and again the same one as another process would open it.
fn stores(bench: &Bench) -> [StoreChoice; 2] {
    [StoreChoice::Sqlite(bench.path().join("sqlite")), StoreChoice::Jsonl(bench.path().join("jsonl"))]
}

/// A run that its process left: a call that began, one that ended, a conversation. It holds no claim.
async fn left_behind(bench: &Bench, choice: &StoreChoice) -> Result<(AgentId, RunId)> {
    let engine = Scripted::new(|_, sink| async move {
        sink.event(call("done", "{\"command\":\"ls\"}", None)?).await?;
        sink.event(call("done", "{}", Some("{}"))?).await?;
        sink.checkpoint(Checkpoint("{\"so\":\"far\"}".into())).await?;
        sink.event(call("open", "{\"command\":\"make install\"}", None)?).await?;
        std::future::pending().await
    });
    // Its threads are gone with this runtime in the middle of the run, as with a process that dies.
    let options = bench.options_in(choice.clone());
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let left = runtime.block_on(async {
            let agent = std::mem::ManuallyDrop::new(Agent::create_on(options, engine)?);
            let run = agent.send("go", SendOptions::default()).await?;
            let mut observation = run.observe(0)?;
            for _ in 0..6 {
                soon(observation.next()).await?.context("an event")??;
            }
            let ids = (agent.id().clone(), run.id().clone());
            // Nothing of it is ended in an orderly way.
            anyhow::Ok(ids)
        });
        runtime.shutdown_background();
        sender.send(left).map_err(|_| anyhow::anyhow!("nobody waits"))
    });
    let left = receiver.await??;
    thread.join().map_err(|_| anyhow::anyhow!("the thread broke off"))??;
    Ok(left)
}

#[tokio::test]
async fn statement_a40_a_wedged_run_is_busy_until_force_gives_it_up_for_all_to_see() -> Result<()> {
    let bench = Bench::new()?;
    for choice in stores(&bench) {
        let (id, wedged) = left_behind(&bench, &choice).await?;
        let options = bench.options_in(choice);
        let interrupted: Arc<Mutex<Vec<ToolCallEvent>>> = Arc::default();
        let kept = Arc::clone(&interrupted);
        let engine = Scripted::new(move |turn, _| {
            if let Ok(mut kept) = kept.lock() {
                *kept = turn.interrupted.clone();
            }
            async move {
                let talk = turn.checkpoint.map(|talk| String::from_utf8_lossy(&talk.0).into_owned());
                Ok(done(&talk.unwrap_or_default()))
            }
        });
        let agent = Agent::resume_on(&id, options.clone(), engine).await?;
        let error = refused(agent.send("again", SendOptions::default()).await)?;
        assert_eq!(error.code(), "agent_busy");
        assert!(!error.is_retryable());
        assert!(matches!(&error, AgentError::AgentBusy { run, is_alive: false, .. } if *run == wedged));
        assert!(error.to_string().contains("send with force"), "{error}");

        let watched = Agent::get_run(&id, &wedged, &options).await?;
        assert_eq!(watched.status(), RunStatus::Running);
        let observation = watched.observe(0)?;
        let (events, forced) = tokio::join!(observed(observation), agent.send("again", force()));
        let events = events?;
        let last = &events.last().context("a last event")?.event;
        match &last.kind {
            EventKind::Status { status: RunStatus::Expired, message: Some(message) } => {
                assert!(message.contains("force"), "{message}");
            }
            other => anyhow::bail!("{other:?}"),
        }
        let state = Agent::get_run(&id, &wedged, &options).await?.state();
        assert_eq!(state.status, RunStatus::Expired);
        assert_eq!(state.error.context("why")?.code, "force_send");
        // The new run goes on from what was kept, and is told of the call that may have run.
        let state = soon(forced?.wait()).await??;
        assert_eq!((state.status, state.result.as_deref()), (RunStatus::Finished, Some("{\"so\":\"far\"}")));
        let interrupted = interrupted.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.clone();
        let told: Vec<_> = interrupted.iter().map(|call| call.call_id.as_str()).collect();
        assert_eq!(told, ["open"]);
        assert_eq!(
            interrupted[0].args.as_ref().map(toolway_bridge::RawJson::text),
            Some("{\"command\":\"make install\"}")
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_wedged_run_can_be_cancelled_instead() -> Result<()> {
    let bench = Bench::new()?;
    for choice in stores(&bench) {
        let (id, wedged) = left_behind(&bench, &choice).await?;
        let options = bench.options_in(choice);
        soon(Agent::cancel_run(&id, &wedged, &options)).await??;
        let run = Agent::get_run(&id, &wedged, &options).await?;
        assert_eq!(run.status(), RunStatus::Cancelled);
        let agent = Agent::resume_on(&id, options, Scripted::echo()).await?;
        let run = agent.send("again", SendOptions::default()).await?;
        assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);
    }
    Ok(())
}

#[tokio::test]
async fn a_second_handle_finds_the_agent_busy_and_observes_and_cancels() -> Result<()> {
    let bench = Bench::new()?;
    for choice in stores(&bench) {
        let options = bench.options_in(choice);
        let agent = Agent::create_on(options.clone(), Scripted::stuck())?;
        let run = agent.send("go", SendOptions::default()).await?;
        let other = Agent::resume_on(agent.id(), options.clone(), Scripted::echo()).await?;
        let error = refused(other.send("me too", SendOptions::default()).await)?;
        assert!(
            matches!(&error, AgentError::AgentBusy { run: busy, is_alive: true, .. } if busy == run.id())
        );

        let seen = Agent::get_run(agent.id(), run.id(), &options).await?;
        for (operation, reason) in [
            (RunOperation::Wait, "observe it"),
            (RunOperation::Steer, "another handle"),
            (RunOperation::Deltas, "another handle"),
        ] {
            assert!(!seen.supports(operation));
            assert!(seen.unsupported_reason(operation).context("a reason")?.contains(reason));
        }
        assert_eq!(refused(seen.wait().await)?.code(), "unsupported_run_operation");
        assert_eq!(seen.steer("left").await?, Steered::RevertToFollowup);
        let observation = seen.observe(0)?;
        let (events, cancelled) = tokio::join!(observed(observation), soon(seen.cancel()));
        cancelled??;
        let events: Vec<Event> = events?.into_iter().map(|one| one.event).collect();
        assert_eq!(names(&events).last().map(String::as_str), Some("Cancelled"));
        assert_eq!(soon(run.wait()).await??.status, RunStatus::Cancelled);
        let run = other.send("now", SendOptions::default()).await?;
        assert_eq!(soon(run.wait()).await??.status, RunStatus::Finished);
    }
    Ok(())
}

#[tokio::test]
async fn force_gives_up_a_run_that_is_alive_here_and_elsewhere() -> Result<()> {
    let bench = Bench::new()?;
    let options = bench.options();
    let agent = Agent::create_on(options.clone(), Scripted::stuck())?;
    let first = agent.send("one", SendOptions::default()).await?;
    let mut stream = first.stream()?;
    let second = agent.send("two", force()).await?;
    let state = soon(first.wait()).await??;
    assert_eq!(state.status, RunStatus::Expired);
    assert_eq!(state.error.context("why")?.code, "force_send");
    let mut told = Vec::new();
    while let Some(event) = soon(stream.next()).await? {
        told.push(event?);
    }
    assert_eq!(ends(&told), ["Expired"], "one end, and it is the one that counts");
    // Another handle takes over from this one, which learns of it when it next writes or ends.
    let other = Agent::resume_on(agent.id(), options, Scripted::echo()).await?;
    let third = other.send("three", force()).await?;
    assert_eq!(soon(third.wait()).await??.status, RunStatus::Finished);
    soon(second.cancel()).await??;
    assert_eq!(second.status(), RunStatus::Expired);
    Ok(())
}

#[tokio::test]
async fn an_engine_that_breaks_off_fails_or_does_not_stop_ends_its_run() -> Result<()> {
    let bench = Bench::new()?;
    let engine = Scripted::new(|turn, _| async move {
        match turn.prompt.text.as_str() {
            "fail" => Err(AgentError::Network { message: "the service is down".into() }),
            "limit" => Ok(TurnEnd {
                stop: TurnStop::Limit("10 turns; raise limits.turns".into()),
                result: Some("so far".into()),
                usage: Usage::default(),
                cost: None,
            }),
            "refuse" => Ok(TurnEnd {
                stop: TurnStop::Refused("no".into()),
                result: None,
                usage: Usage::default(),
                cost: None,
            }),
            "deaf" => std::future::pending().await,
            other => {
                let empty: Vec<u8> = Vec::new();
                Ok(done(&format!("{other}{}", empty[usize::from(other == "panic")])))
            }
        }
    });
    let agent = bench.agent(engine)?;
    for (prompt, status, code) in [
        ("fail", RunStatus::Error, "network_error"),
        ("limit", RunStatus::Error, "limit_reached"),
        ("refuse", RunStatus::Error, "refused"),
        ("panic", RunStatus::Error, "runtime_error"),
    ] {
        let run = agent.send(prompt, SendOptions::default()).await?;
        let state = soon(run.wait()).await??;
        assert_eq!((state.status, state.error.context("why")?.code.as_str()), (status, code), "{prompt}");
        let events: Vec<Event> = observed(run.observe(0)?).await?.into_iter().map(|one| one.event).collect();
        assert_eq!(names(&events).first().map(String::as_str), Some("system"));
        assert_eq!(names(&events).last().map(String::as_str), Some("Error"));
    }
    let run = agent.send("deaf", SendOptions::default()).await?;
    soon(run.cancel()).await??;
    assert_eq!(run.status(), RunStatus::Cancelled);
    Ok(())
}

#[tokio::test]
async fn a_store_that_is_lost_in_the_middle_ends_the_run() -> Result<()> {
    let bench = Bench::new()?;
    let dir = bench.path().join("jsonl");
    let options = bench.options_in(StoreChoice::Jsonl(dir.clone()));
    let engine = Scripted::new(move |_, sink| {
        let dir = dir.clone();
        async move {
            // Somebody breaks a file under it.
            std::fs::write(dir.join("run_events.ndjson"), "not a store any more\n")
                .map_err(|error| AgentError::Runtime { message: error.to_string() })?;
            sink.event(call("a", "{}", None)?).await?;
            Ok(done("never"))
        }
    });
    let agent = Agent::create_on(options, engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    let mut stream = run.stream()?;
    let state = soon(run.wait()).await??;
    assert_eq!(state.status, RunStatus::Error);
    let error = state.error.context("why")?;
    assert_eq!(error.code, "store_error");
    assert!(error.message.contains("run_events.ndjson is damaged"), "{}", error.message);
    let mut told = Vec::new();
    while let Some(event) = soon(stream.next()).await? {
        told.push(event?);
    }
    assert_eq!(ends(&told), ["Error"]);
    soon(agent.dispose()).await?;
    Ok(())
}

/// A store that takes everything but the end of a run.
#[tokio::test]
async fn what_the_store_does_not_take_is_told_to_nobody_as_the_end() -> Result<()> {
    let bench = Bench::new()?;
    let dir = bench.path().join("jsonl");
    let options = bench.options_in(StoreChoice::Jsonl(dir.clone()));
    let engine = Scripted::new(move |_, sink| {
        let dir = dir.clone();
        async move {
            sink.event(call("a", "{}", None)?).await?;
            std::fs::write(dir.join("run_events.ndjson"), "not a store any more\n")
                .map_err(|error| AgentError::Runtime { message: error.to_string() })?;
            Ok(done("all went well"))
        }
    });
    let agent = Agent::create_on(options, engine)?;
    let run = agent.send("go", SendOptions::default()).await?;
    let mut stream = run.stream()?;
    let mut told = Vec::new();
    while let Some(event) = soon(stream.next()).await? {
        told.push(event?);
    }
    assert_eq!(ends(&told), ["Error"], "a run that is not kept has not finished");
    let state = soon(run.wait()).await??;
    assert_eq!(state.status, RunStatus::Error);
    assert_eq!(state.result.as_deref(), Some("all went well"), "what was said is not lost");
    soon(agent.dispose()).await?;
    Ok(())
}

/// The terminal statuses among these.
fn ends(events: &[Event]) -> Vec<String> {
    let is_end =
        |event: &&Event| matches!(event.kind, EventKind::Status { status, .. } if status.is_terminal());
    let ends: Vec<Event> = events.iter().filter(is_end).cloned().collect();
    names(&ends)
}

#[test]
fn records_of_a_store_of_ones_own_can_be_made() {
    // What a program needs to implement a store is public.
    let _: fn(AgentRecord, RunId) -> Begin = |agent, run| Begin {
        at: agent.created_at,
        agent,
        presence: Presence::Any,
        run,
        model: None,
        idempotency: None,
        force: None,
    };
    let _: fn(Begun) = drop;
    let _ = Writes { events: vec![EventRecord { offset: 1, json: "{}".into() }], ..Writes::default() };
}
