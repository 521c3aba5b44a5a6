//! Calls on their way from agent to host and back.

use std::time::Duration;

use tokio::time::Instant;

use super::rig::{Rig, answer, calls, expected, options, result, settled, text};
use crate::agent_port::{AgentEvent, Usage};
use crate::coordinator::SessionOptions;
use crate::host_port::{StopReason, TurnEvent};
use crate::live::Pace;
use crate::prompt::Message;
use crate::run::Began;

#[tokio::test(start_paused = true)]
async fn statement_18_a_call_is_run_by_the_host_and_answered_to_the_same_agent_run() {
    let mut rig = Rig::new();
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.text("Let me look.").await;
    settled().await;
    let mut waiter = rig.call("pi__todo");
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), &message.stop), ("Let me look.", &StopReason::ToolUse));
    let call = &calls(&message)[0];
    assert_eq!((call.name.as_str(), call.arguments.text()), ("todo", r#"{"n":9007199254740993}"#));
    assert!(call.id.as_str().starts_with("cursor-pi-bridge-run-"), "{}", call.id);
    assert_eq!(rig.session.admit(&call.id), Ok(()));

    let turn = rig.go_on(&message).await;
    assert_eq!(answer(&mut waiter).await.unwrap(), expected(r#"todo {"n":9007199254740993}"#));
    agent.text("Done.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), &message.stop), ("Done.", &StopReason::Stop));
    assert_eq!(rig.made(), 1, "one agent");
    assert!(agent.prompts.try_recv().is_err(), "one send");
}

#[tokio::test(start_paused = true)]
async fn statement_19_calls_within_75_ms_are_one_message_and_later_ones_the_next() {
    let mut rig = Rig::new();
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.tell(AgentEvent::TurnEnded(Usage { input: 3, output: 4, ..Usage::default() })).await;
    settled().await;
    let start = Instant::now();
    let (mut first, mut second) = (rig.call("pi__todo"), {
        tokio::time::sleep(Duration::from_millis(70)).await;
        rig.call("pi__sem")
    });
    let message = turn.message().await;
    assert_eq!(start.elapsed(), Duration::from_millis(75), "the usage record was there");
    assert_eq!((message.usage.input, message.usage.output), (3, 4));
    let both = calls(&message);
    assert_eq!(both.iter().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["todo", "sem"]);
    assert_ne!(both[0].id, both[1].id);
    let mut third = rig.call("pi__todo");
    let turn = rig.go_on(&message).await;
    answer(&mut first).await.unwrap();
    answer(&mut second).await.unwrap();
    let message = turn.message().await;
    assert_eq!(calls(&message).len(), 1);
    let _turn = rig.go_on(&message).await;
    answer(&mut third).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_batch_waits_200_ms_for_a_usage_record_that_does_not_come() {
    let mut rig = Rig::new();
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    settled().await;
    let start = Instant::now();
    let _waiter = rig.call("pi__todo");
    turn.message().await;
    assert_eq!(start.elapsed(), Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_takes_calls_as_they_come_waits_for_nothing() {
    let mut rig = Rig::of(SessionOptions { pace: Pace::AsTheyCome, ..options() });
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    settled().await;
    let start = Instant::now();
    let _waiter = rig.call("pi__todo");
    turn.message().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_told_by_start_delta_and_end() {
    let mut rig = Rig::new();
    let mut turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.tell(AgentEvent::Thinking("hm".to_owned())).await;
    assert_eq!(turn.next().await, Some(TurnEvent::Thinking("hm".to_owned())));
    let _waiter = rig.call("pi__todo");
    let mut kinds = Vec::new();
    while let Some(event) = turn.next().await {
        kinds.push(match event {
            TurnEvent::ToolCallStart { index, name, .. } => format!("start {index} {name}"),
            TurnEvent::ToolCallDelta { index, json } => format!("delta {index} {json}"),
            TurnEvent::ToolCallEnd { index, .. } => format!("end {index}"),
            TurnEvent::End(message) => format!("{:?}", message.stop),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(kinds, ["start 1 todo", r#"delta 1 {"n":9007199254740993}"#, "end 1", "ToolUse"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_while_no_turn_asks_are_kept_for_the_next() {
    let mut rig = Rig::new();
    let (_agent, _first, message) = rig.at_work().await;
    let mut second = rig.call("pi__sem");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let message = rig.go_on(&message).await.message().await;
    assert_eq!(calls(&message)[0].name, "sem");
    let _turn = rig.go_on(&message).await;
    assert!(answer(&mut second).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_client_gave_up_makes_no_turn() {
    let mut rig = Rig::new();
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let waiter = rig.call("pi__todo");
    waiter.cancel("the client cancelled the request");
    tokio::time::sleep(Duration::from_secs(1)).await;
    agent.text("Never mind.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), message.stop), ("Never mind.", StopReason::Stop));
    assert_eq!(rig.host.aborted(), [], "the host was never handed it");
}

#[tokio::test(start_paused = true)]
async fn statement_25_a_client_that_cancels_a_running_call_has_it_stopped_once() {
    let mut rig = Rig::new();
    let (_agent, waiter, message) = rig.at_work().await;
    let id = calls(&message)[0].id.clone();
    waiter.cancel("the client cancelled the request");
    settled().await;
    let aborted = [(id.to_string(), "the client cancelled the request".to_owned())];
    assert_eq!(rig.host.aborted(), aborted);
    assert_eq!(rig.session.run().unwrap().pending(), 0);
    assert!(rig.session.admit(&id).is_err(), "it is not run any more");
    // The late result is nobody's, and the answer goes on all the same.
    let turn = rig.go_on(&message).await;
    settled().await;
    drop(turn);
    assert_eq!(rig.host.aborted().len(), 1);
    assert_eq!(rig.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn statement_31_a_call_after_the_turn_ended_is_rejected_at_once() {
    let mut rig = Rig::new();
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
    let started = Instant::now();
    let reason = match rig.begin(&rig.session, "pi__todo") {
        Began::Rejected(rejection) => rejection.reason,
        Began::Waiting(mut waiter) => answer(&mut waiter).await.unwrap_err().reason,
        Began::Answer(answer) => panic!("{answer:?}"),
    };
    assert!(reason.contains("no active live run"), "{reason}");
    assert_eq!(started.elapsed(), Duration::ZERO);
    // The next turn of the same agent takes calls again.
    let turn = rig.say("and now").await;
    agent.prompt().await;
    let _waiter = rig.call("pi__todo");
    assert_eq!(turn.message().await.stop, StopReason::ToolUse);
    assert_eq!(rig.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ended_leaves_no_call_behind() {
    let mut rig = Rig::new();
    let (agent, mut waiter, message) = rig.at_work().await;
    agent.finish().await;
    let rejection = answer(&mut waiter).await.unwrap_err();
    assert_eq!(rejection.reason, "the agent's answer ended");
    assert_eq!(rig.host.aborted().len(), 1);
    let message = rig.go_on(&message).await.message().await;
    assert_eq!(message.stop, StopReason::Stop);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_vanished_is_begun_anew_from_the_transcript_and_nothing_runs_twice() {
    let mut rig = Rig::new();
    let (mut agent, _waiter, message) = rig.at_work().await;
    agent.die();
    settled().await;
    assert_eq!(rig.host.aborted().len(), 1, "the call is stopped with its agent");
    let turn = rig.go_on(&message).await;
    let mut second = rig.agent().await;
    let prompt = second.prompt().await;
    assert!(prompt.text.contains(r#"{"n":9007199254740993}"#), "the result is in the transcript");
    second.text("I see.").await;
    second.finish().await;
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), calls(&message).len()), ("I see.", 0));
}

#[tokio::test(start_paused = true)]
async fn a_fork_with_old_ids_leaves_the_parents_answer_alone() {
    let mut rig = Rig::new();
    let (_agent, mut waiter, message) = rig.at_work().await;
    let fork = SessionOptions { scope: "fork".to_owned(), ..options() };
    let fork = rig.coordinator.open(std::sync::Arc::clone(&rig.host) as _, fork).unwrap();
    let mut request = rig.request();
    request.messages.extend([Message::user("fork"), result(&calls(&message)[0].id, "stolen")]);
    let turn = fork.turn(request).await;
    let mut other = rig.agent().await;
    other.prompt().await;
    other.finish().await;
    turn.message().await;
    assert_eq!(rig.session.run().unwrap().pending(), 1, "the parent's call waits still");
    let _turn = rig.go_on(&message).await;
    assert_eq!(answer(&mut waiter).await.unwrap(), expected(r#"todo {"n":9007199254740993}"#));
}

#[tokio::test(start_paused = true)]
async fn statement_23_results_of_other_calls_change_nothing() {
    let mut rig = Rig::new();
    let (_agent, mut waiter, message) = rig.at_work().await;
    let id = &calls(&message)[0].id;
    let other = crate::call::CallId::new(&id.as_str().replace("-t1", "-t2"));
    rig.note(&message);
    rig.messages.push(result(&other, "of another"));
    rig.messages.push(result(id, "twice"));
    let _turn = rig.session.turn(rig.request()).await;
    assert_eq!(answer(&mut waiter).await.unwrap(), expected(r#"todo {"n":9007199254740993}"#));
    assert_eq!(rig.session.run().unwrap().pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_brings_results_and_is_dropped_gives_its_answer_up() {
    let mut rig = Rig::new();
    let (agent, mut waiter, message) = rig.at_work().await;
    drop(rig.go_on(&message).await);
    // Delivered or rejected, whichever came first.
    answer(&mut waiter).await.ok();
    settled().await;
    assert_eq!(rig.session.run().map_or(0, |run| run.pending()), 0, "nothing waits for an hour");
    assert_eq!(agent.cancelled.load(std::sync::atomic::Ordering::SeqCst), 1);
}
