//! What agents and hosts do that is in no contract: each costs its own turn, at the most, and nobody waits for ever.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::rig::{Rig, answer, calls, expected, options, result, settled, text};
use crate::agent_port::{AgentEnd, AgentEvent, AgentFailure};
use crate::coordinator::SessionOptions;
use crate::host_port::{HostEvent, StopReason};

/// Where an agent breaks off, or never comes back from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Create,
    Send,
    Next,
    Cancel,
    Dispose,
    Reload,
}

/// What is wrong with agents.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) panics: Mutex<Option<At>>,
    pub(super) hangs: Mutex<Vec<At>>,
    pub(super) reloads: AtomicUsize,
    pub(super) reload_fails: Mutex<Option<String>>,
}

impl Faults {
    pub(super) async fn meet(&self, at: At) {
        assert!(*self.panics.lock().unwrap() != Some(at), "an agent breaks off");
        let hangs = self.hangs.lock().unwrap().contains(&at);
        if hangs {
            std::future::pending::<()>().await;
        }
    }
}

const MOST: Duration = Duration::from_mins(10);

#[tokio::test(start_paused = true)]
async fn an_agent_that_breaks_off_costs_its_turn_and_the_next_gets_another() {
    for at in [At::Create, At::Send, At::Next] {
        let mut rig = Rig::new();
        *rig.faults.panics.lock().unwrap() = Some(at);
        let turn = rig.say("hello").await;
        let puppet = match at {
            At::Create => None,
            _ => Some(rig.agent().await),
        };
        if let (At::Next, Some(puppet)) = (at, &puppet) {
            puppet.text("hello").await;
        }
        let message = tokio::time::timeout(MOST, turn.message()).await.unwrap();
        assert!(matches!(&message.stop, StopReason::Error(_)), "{at:?} {message:?}");
        *rig.faults.panics.lock().unwrap() = None;
        let turn = rig.say("again").await;
        let mut second = rig.agent().await;
        second.prompt().await;
        assert_eq!(rig.session.run().unwrap().pending(), 0);
        second.finish().await;
        assert_eq!(turn.message().await.stop, StopReason::Stop, "{at:?}");
        rig.session.shutdown("the end").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_breaks_off_while_the_host_works_has_its_calls_stopped() {
    let mut rig = Rig::new();
    let (agent, mut waiter, _message) = rig.at_work().await;
    *rig.faults.panics.lock().unwrap() = Some(At::Next);
    agent.text("boom").await;
    assert!(answer(&mut waiter).await.is_err());
    settled().await;
    assert_eq!(rig.host.aborted().len(), 1);
    assert!(rig.session.run().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_answers_neither_cancel_nor_dispose_holds_no_end() {
    for panics in [None, Some(At::Cancel), Some(At::Dispose)] {
        let mut rig = Rig::new();
        let (_agent, mut waiter, _message) = rig.at_work().await;
        *rig.faults.panics.lock().unwrap() = panics;
        *rig.faults.hangs.lock().unwrap() = vec![At::Cancel, At::Dispose];
        let start = Instant::now();
        rig.session.shutdown("the end").await;
        assert!(answer(&mut waiter).await.is_err());
        assert!(start.elapsed() <= Duration::from_secs(8), "{:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_reload_holds_neither_the_end_nor_the_next_prompt() {
    let mut rig = Rig::new();
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.finish().await;
    turn.message().await;
    *rig.faults.hangs.lock().unwrap() = vec![At::Reload];
    for _ in 0..100 {
        rig.session.tell(HostEvent::AgentConfiguration).await;
    }
    rig.faults.hangs.lock().unwrap().clear();
    let turn = rig.say("and now").await;
    agent.prompt().await;
    assert_eq!(rig.faults.reloads.load(Ordering::SeqCst), 2, "one for all that came while one was under way");
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
    assert_eq!(rig.made(), 1);
    *rig.faults.hangs.lock().unwrap() = vec![At::Reload];
    rig.session.tell(HostEvent::AgentConfiguration).await;
    settled().await;
    let start = Instant::now();
    rig.session.shutdown("the end").await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(agent.is_gone());
}

#[tokio::test(start_paused = true)]
async fn a_second_shutdown_ends_with_the_first() {
    let mut rig = Rig::new();
    let (agent, _waiter, _message) = rig.at_work().await;
    *rig.faults.hangs.lock().unwrap() = vec![At::Cancel];
    let start = Instant::now();
    let second = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        rig.session.shutdown("again").await;
        assert!(agent.is_gone());
        start.elapsed()
    };
    let ((), second) = tokio::join!(rig.session.shutdown("the end"), second);
    assert_eq!(second, start.elapsed());
    assert!(second >= Duration::from_secs(2));
    rig.session.shutdown("a third").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_whole_before_the_connection_died_is_shown_whole() {
    let mut rig = Rig::new();
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    // More than the host reads at once, so that the death comes before it has seen all.
    for n in 0..60 {
        agent.tell(AgentEvent::Thinking(format!("{n}"))).await;
        agent.text(&format!("{n} ")).await;
    }
    agent.finish().await;
    agent.die();
    settled().await;
    let message = turn.message().await;
    assert_eq!((text(&message).ends_with("59 "), message.stop), (true, StopReason::Stop));
    settled().await;
    assert!(rig.session.run().is_none(), "and the agent is not used again");
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_stream_ends_in_the_middle_shows_what_it_said_and_the_failure() {
    let mut rig = Rig::new();
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    for n in 0..60 {
        agent.tell(AgentEvent::Thinking(format!("{n}"))).await;
        agent.text(&format!("{n} ")).await;
    }
    agent.die();
    settled().await;
    let message = turn.message().await;
    assert!(text(&message).ends_with("59 "), "{message:?}");
    assert_eq!(message.stop, StopReason::Error("the connection to the agent is lost".to_owned()));
    settled().await;
    assert!(rig.session.run().is_none());
    agent.disposed.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_names_the_endpoint_is_shown_without_it() {
    let mut rig = Rig::new();
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let url = agent.options.mcp_servers[0].url.expose().to_owned();
    let token = url.rsplit('/').nth(1).unwrap().to_owned();
    let failure = AgentFailure::new(format!("cannot reach {url}"));
    agent.tell(AgentEvent::Ended(AgentEnd::Failed(failure))).await;
    let message = turn.message().await;
    let StopReason::Error(why) = &message.stop else { panic!("{message:?}") };
    assert!(why.contains("cannot reach") && !why.contains(&token), "{why}");

    let turn = rig.say("again").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let url = agent.options.mcp_servers[0].url.expose().to_owned();
    let token = url.rsplit('/').nth(1).unwrap();
    *rig.faults.reload_fails.lock().unwrap() = Some(format!("{url} is strange"));
    rig.session.tell(HostEvent::AgentConfiguration).await;
    settled().await;
    let notices = rig.host.notices.lock().unwrap().clone();
    assert!(notices[0].contains("strange") && !notices[0].contains(token), "{notices:?}");
    drop(turn);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_panics_when_asked_costs_a_turn_and_not_the_session() {
    let mut rig = Rig::new();
    rig.host.tools_panic.store(true, Ordering::SeqCst);
    let message = rig.say("hello").await.message().await;
    assert!(matches!(&message.stop, StopReason::Error(why) if why.contains("tools")), "{message:?}");
    assert_eq!(rig.made(), 0);
    rig.host.tools_panic.store(false, Ordering::SeqCst);
    let turn = rig.say("again").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    rig.host.panics.store(true, Ordering::SeqCst);
    *rig.faults.reload_fails.lock().unwrap() = Some("no".to_owned());
    rig.session.tell(HostEvent::AgentConfiguration).await;
    settled().await;
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
}

#[tokio::test(start_paused = true)]
async fn a_short_idle_window_does_not_lose_a_turn_that_waits_for_an_agent_to_stop() {
    let mut rig = Rig::of(SessionOptions { idle: Duration::from_secs(1), ..options() });
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    settled().await;
    rig.abort.cancel();
    turn.message().await;
    rig.abort = tokio_util::sync::CancellationToken::new();
    let turn = rig.say("again").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    agent.text("still stopping").await;
    settled().await;
    agent.tell(AgentEvent::Ended(AgentEnd::Cancelled)).await;
    let prompt = tokio::time::timeout(Duration::from_secs(1), agent.prompt()).await.unwrap();
    assert!(prompt.text.contains("again"));
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_host_leaves_out_is_an_end_of_its_call() {
    let mut rig = Rig::new();
    let turn = rig.say("do it").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let (mut one, mut two) = (rig.call("pi__todo"), rig.call("pi__sem"));
    let message = turn.message().await;
    let [first, second] = &calls(&message)[..] else { panic!("{message:?}") };
    rig.note(&message);
    rig.messages.pop();
    let turn = rig.session.turn(rig.request()).await;
    assert_eq!(answer(&mut one).await.unwrap(), expected(r#"todo {"n":9007199254740993}"#));
    assert_eq!(answer(&mut two).await.unwrap_err().reason, "the host went on without a result of this call");
    settled().await;
    assert_eq!(
        rig.host.aborted().iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        [second.id.as_str()]
    );
    assert!(rig.session.admit(&second.id).is_err() && rig.session.admit(&first.id).is_err());
    // The same agent goes on, and the result that comes late is nobody's.
    let mut third = rig.call("pi__todo");
    let message = turn.message().await;
    rig.note(&message);
    rig.messages.push(result(&second.id, "late"));
    let turn = rig.session.turn(rig.request()).await;
    assert!(answer(&mut third).await.is_ok());
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
    assert_eq!((rig.made(), rig.host.aborted().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_given_up_unread_does_not_hold_the_next_and_has_its_end_all_the_same() {
    let mut rig = Rig::new();
    let mut turn = rig.say("talk").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    for n in 0..100 {
        agent.tell(AgentEvent::Thinking(format!("{n}"))).await;
        agent.text(&format!("{n} ")).await;
        settled().await;
    }
    agent.finish().await;
    settled().await;
    let next = {
        let mut request = rig.request();
        request.abort = tokio_util::sync::CancellationToken::new();
        rig.session.turn(request).await
    };
    settled().await;
    assert!(agent.prompts.try_recv().is_err(), "the first is not read yet");
    rig.abort.cancel();
    let prompt = tokio::time::timeout(MOST, agent.prompt()).await;
    assert!(prompt.unwrap().text.contains("talk"));
    agent.finish().await;
    assert_eq!(next.message().await.stop, StopReason::Stop);
    let mut ends = Vec::new();
    while let Some(event) = turn.next().await {
        if let crate::host_port::TurnEvent::End(message) = event {
            ends.push(message);
        }
    }
    assert_eq!(ends.len(), 1);
    assert!(text(&ends[0]).contains("30 "), "what it did not read is in the message");
}

#[tokio::test(start_paused = true)]
async fn calls_that_a_client_makes_and_gives_up_leave_nothing_behind() {
    let mut rig = Rig::new();
    let (agent, _waiter, message) = rig.at_work().await;
    for _ in 0..1000 {
        let waiter = rig.call("pi__sem");
        waiter.cancel("the client cancelled the request");
        settled().await;
    }
    assert_eq!(rig.session.run().unwrap().pending(), 1);
    let turn = rig.go_on(&message).await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((calls(&message).len(), message.stop), (0, StopReason::Stop));
}
