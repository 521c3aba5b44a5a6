//! Aborts, idle time, shutdown, and sessions within sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::rig::{Rig, answer, calls, expected, options, settled};
use crate::call::{CallId, RejectionKind};
use crate::coordinator::SessionOptions;
use crate::error::BridgeError;
use crate::host_port::{HostEvent, StopReason};

const WINDOW: Duration = Duration::from_mins(5);
const ALMOST: Duration = Duration::from_secs(299);

#[tokio::test(start_paused = true)]
async fn statement_32_a_pending_call_holds_the_run_and_a_full_window_follows_its_settlement() {
    let mut rig = Rig::new();
    let (agent, mut waiter, message) = rig.at_work().await;
    tokio::time::sleep(WINDOW * 3).await;
    assert!(!agent.is_gone(), "lesson 7: a question that waits is not cleaned up");
    let turn = rig.go_on(&message).await;
    answer(&mut waiter).await.unwrap();
    agent.finish().await;
    turn.message().await;
    settled().await;
    tokio::time::sleep(ALMOST).await;
    assert!(!agent.is_gone(), "the window starts whole");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(agent.is_gone());
    assert!(rig.session.run().is_none());
}

#[tokio::test(start_paused = true)]
async fn lesson_08_a_clean_up_that_is_due_during_a_turn_waits_for_a_window_after_it() {
    let mut rig = Rig::new();
    let turn = rig.say("take your time").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    tokio::time::sleep(WINDOW * 2).await;
    assert!(!agent.is_gone());
    agent.finish().await;
    turn.message().await;
    tokio::time::sleep(ALMOST).await;
    assert!(!agent.is_gone());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(agent.is_gone());
}

#[tokio::test(start_paused = true)]
async fn another_sessions_pending_call_does_not_delay_the_clean_up() {
    let mut rig = Rig::new();
    let (agent, _waiter, _message) = rig.at_work().await;
    let child = SessionOptions { scope: "child".to_owned(), ..options() };
    let child = rig.coordinator.open(Arc::clone(&rig.host) as _, child).unwrap();
    let turn = child.turn(rig.request()).await;
    let mut other = rig.agent().await;
    other.prompt().await;
    other.finish().await;
    turn.message().await;
    tokio::time::sleep(WINDOW + Duration::from_secs(1)).await;
    assert!(other.is_gone());
    assert!(!agent.is_gone());
}

#[tokio::test(start_paused = true)]
async fn lesson_07_a_call_that_ends_without_the_host_frees_the_run_too() {
    let mut rig = Rig::new();
    let (agent, waiter, _message) = rig.at_work().await;
    tokio::time::sleep(WINDOW * 2).await;
    waiter.cancel("the client cancelled the request");
    tokio::time::sleep(ALMOST).await;
    assert!(!agent.is_gone());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(agent.is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_host_abort_during_execution_rejects_the_call_and_stops_it_once() {
    let mut rig = Rig::new();
    let (agent, mut waiter, message) = rig.at_work().await;
    let id = calls(&message)[0].id.clone();
    rig.abort.cancel();
    let rejection = answer(&mut waiter).await.unwrap_err();
    assert_eq!(rejection.kind, RejectionKind::Cancelled);
    settled().await;
    assert_eq!(rig.host.aborted(), [(id.to_string(), "the host aborted the turn".to_owned())]);
    assert_eq!(agent.cancelled.load(Ordering::SeqCst), 1);
    assert!(rig.session.admit(&id).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_was_given_before_the_start_blocks_the_call() {
    let mut rig = Rig::new();
    let (_agent, _waiter, message) = rig.at_work().await;
    let id = calls(&message)[0].id.clone();
    assert_eq!(rig.session.admit(&id), Ok(()));
    rig.abort.cancel();
    // Before the session's task had a chance to hear of it.
    assert!(rig.session.admit(&id).is_err());
    assert_eq!(rig.session.admit(&CallId::new("toolu_1")), Ok(()), "other calls are none of the bridge's");
}

#[tokio::test(start_paused = true)]
async fn an_aborted_turn_ends_and_an_agent_that_stopped_serves_the_next() {
    let mut rig = Rig::new();
    let turn = rig.say("long").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.text("a").await;
    settled().await;
    rig.abort.cancel();
    let message = turn.message().await;
    assert!(matches!(message.stop, StopReason::Aborted(_)));
    rig.note(&message);
    rig.abort = tokio_util::sync::CancellationToken::new();
    let turn = rig.say("next").await;
    settled().await;
    assert!(agent.prompts.try_recv().is_err(), "it has to stop first");
    agent.tell(crate::agent_port::AgentEvent::Ended(crate::agent_port::AgentEnd::Cancelled)).await;
    agent.prompt().await;
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
    assert_eq!(rig.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_stop_is_replaced() {
    let mut rig = Rig::new();
    let turn = rig.say("long").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    settled().await;
    drop(turn);
    settled().await;
    let start = tokio::time::Instant::now();
    let _turn = rig.say("next").await;
    rig.agent().await.prompt().await;
    assert!(start.elapsed() <= Duration::from_secs(5), "{:?}", start.elapsed());
    agent.disposed.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn statement_30_shutdown_rejects_every_call_before_anything_closes() {
    let mut rig = Rig::new();
    let (agent, mut waiter, message) = rig.at_work().await;
    let queued = rig.call("pi__sem");
    rig.session.shutdown("the session was shut down").await;
    let rejection = answer(&mut waiter).await.unwrap_err();
    assert_eq!(rejection.reason, "the session was shut down");
    drop(queued);
    assert_eq!(rig.host.aborted().len(), 1, "only what the host was handed is stopped");
    assert!(agent.is_gone());
    assert!(rig.session.is_over());
    let late = rig.go_on(&message).await.message().await;
    assert!(matches!(late.stop, StopReason::Aborted(_)));
}

#[tokio::test(start_paused = true)]
async fn statement_29_the_end_of_the_process_stops_every_session() {
    let mut rig = Rig::new();
    let (agent, mut waiter, _message) = rig.at_work().await;
    let other = SessionOptions { scope: "other".to_owned(), ..options() };
    let other = rig.coordinator.open(Arc::clone(&rig.host) as _, other).unwrap();
    rig.coordinator.shutdown("interrupted").await;
    assert_eq!(answer(&mut waiter).await.unwrap_err().reason, "interrupted");
    assert_eq!(rig.host.aborted().len(), 1);
    assert!(agent.is_gone());
    assert!(rig.session.is_over() && other.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_reload_rejects_all_with_its_reason_and_old_hooks_are_inert() {
    let mut rig = Rig::new();
    let (_agent, mut waiter, message) = rig.at_work().await;
    let id = calls(&message)[0].id.clone();
    rig.session.tell(HostEvent::AdapterReload).await;
    assert_eq!(answer(&mut waiter).await.unwrap_err().reason, "the adapter was reloaded");
    let old = rig.session.clone();
    assert!(old.admit(&id).is_err(), "nobody waits for it, whichever hook is asked");
    rig.session = rig.coordinator.open(Arc::clone(&rig.host) as _, options()).unwrap();
    assert!(rig.session.admit(&id).is_err(), "the new one knows that nobody waits for it");
    // Lesson 18: the old registration's hook does not stand in the way of the new one's calls.
    rig.messages.clear();
    let (_agent, _waiter, message) = rig.at_work().await;
    let new = calls(&message)[0].id.clone();
    assert_eq!((old.admit(&new), rig.session.admit(&new)), (Ok(()), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn an_abort_that_panics_does_not_keep_the_others_from_theirs() {
    let mut rig = Rig::new();
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let (mut one, mut two) = (rig.call("pi__todo"), rig.call("pi__sem"));
    turn.message().await;
    rig.host.panics.store(true, Ordering::SeqCst);
    rig.session.shutdown("the end").await;
    assert!(answer(&mut one).await.is_err() && answer(&mut two).await.is_err());
    assert_eq!(rig.host.aborted().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn lesson_06_a_reload_in_a_child_leaves_the_parents_call_alone() {
    let mut rig = Rig::new();
    let (_agent, mut waiter, message) = rig.at_work().await;
    let child = SessionOptions { scope: "child".to_owned(), ..options() };
    let child = rig.coordinator.open(Arc::clone(&rig.host) as _, child).unwrap();
    let turn = child.turn(rig.request()).await;
    let mut other = rig.agent().await;
    other.prompt().await;
    let mut inner = rig.call_in(&child, "pi__todo");
    turn.message().await;
    assert_ne!(child.run().unwrap().id(), rig.session.run().unwrap().id());
    child.tell(HostEvent::AdapterReload).await;
    assert!(answer(&mut inner).await.is_err());
    assert!(other.is_gone());
    let _turn = rig.go_on(&message).await;
    assert_eq!(answer(&mut waiter).await.unwrap(), expected(r#"todo {"n":9007199254740993}"#));
}

#[tokio::test(start_paused = true)]
async fn lesson_05_a_scope_that_is_open_is_not_taken_over() {
    let rig = Rig::new();
    let again = rig.coordinator.open(Arc::clone(&rig.host) as _, options());
    assert!(matches!(again, Err(BridgeError::SessionOpen(scope)) if scope == "parent"));
    assert!(!rig.session.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_host_forgot_it_ends() {
    let mut rig = Rig::new();
    let (agent, mut waiter, _message) = rig.at_work().await;
    let spare = SessionOptions { scope: "spare".to_owned(), ..options() };
    let spare = rig.coordinator.open(Arc::clone(&rig.host) as _, spare).unwrap();
    let old = std::mem::replace(&mut rig.session, spare);
    drop(old);
    assert!(answer(&mut waiter).await.is_err());
    agent.disposed.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_never_made_ends_the_turn_in_time_and_can_be_given_up_before() {
    let mut rig = Rig::new();
    rig.hangs.store(true, Ordering::SeqCst);
    let start = tokio::time::Instant::now();
    let message = rig.say("hello").await.message().await;
    assert!(matches!(&message.stop, StopReason::Error(why) if why.contains("60 s")), "{message:?}");
    assert_eq!(start.elapsed().as_secs(), 60);
    let turn = rig.say("again").await;
    settled().await;
    rig.abort.cancel();
    let start = tokio::time::Instant::now();
    assert!(matches!(turn.message().await.stop, StopReason::Aborted(_)));
    assert!(start.elapsed() < Duration::from_millis(10));
    rig.session.shutdown("the end").await;
    assert!(start.elapsed() < Duration::from_millis(10), "nothing waits for it");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_read_makes_the_agent_wait_and_loses_nothing() {
    let mut rig = Rig::new();
    let turn = rig.say("talk").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let piece = "x".repeat(64 << 10);
    let mut told = 0;
    // Until the agent has to wait for good: nobody reads.
    while tokio::time::timeout(Duration::from_secs(1), agent.text(&piece)).await.is_ok() {
        told += 1;
        assert!(told < 400, "25 MiB are kept for a host that does not read");
    }
    let talk = async {
        agent.text("the end").await;
        agent.finish().await;
    };
    let (message, ()) = tokio::join!(turn.message(), talk);
    let whole = super::rig::text(&message);
    assert_eq!((whole.len(), whole.ends_with("the end")), (told * piece.len() + 7, true));
}
