//! Which agent a turn gets, and with what it is made.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::rig::{Host, Puppet, Rig, settled};
use crate::agent_port::{AgentMode, AgentOptions, SafetyOption};
use crate::coordinator::{Session, Turn};
use crate::host_port::{HostEvent, StopReason};
use crate::json::RawJson;
use crate::settings::Settings;

async fn plain(rig: &mut Rig, agent: &mut Puppet, text: &str) {
    let turn = rig.say(text).await;
    agent.prompt().await;
    agent.text("ok").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!(message.stop, StopReason::Stop);
    rig.note(&message);
}

async fn first(rig: &mut Rig) -> Puppet {
    let turn = rig.say("first").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    agent.text("ok").await;
    agent.finish().await;
    let message = turn.message().await;
    rig.note(&message);
    agent
}

async fn replaced(rig: &mut Rig, old: &Puppet, why: &str) -> Puppet {
    let turn = rig.say(why).await;
    let mut agent = rig.agent().await;
    let prompt = agent.prompt().await;
    assert!(prompt.text.contains("first"), "{why}: everything is sent anew");
    agent.text("ok").await;
    agent.finish().await;
    let message = turn.message().await;
    rig.note(&message);
    old.disposed.cancelled().await;
    agent
}

#[tokio::test(start_paused = true)]
async fn statement_16_a_new_tool_gets_a_new_agent_and_the_running_one_does_not_see_it() {
    let mut rig = Rig::new();
    let (agent, _waiter, message) = rig.at_work().await;
    rig.host.add("late");
    let run = rig.session.run().unwrap();
    assert!(run.snapshot().find("pi__late").is_none());
    let turn = rig.go_on(&message).await;
    agent.finish().await;
    let message = turn.message().await;
    rig.note(&message);
    assert_eq!(rig.made(), 1);
    let _turn = rig.say("next").await;
    let mut second = rig.agent().await;
    second.prompt().await;
    assert!(rig.session.run().unwrap().snapshot().find("pi__late").is_some());
    agent.disposed.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn lesson_19_a_changed_schema_alone_gets_a_new_agent() {
    let mut rig = Rig::new();
    let agent = first(&mut rig).await;
    change_schema(&rig.host);
    replaced(&mut rig, &agent, "again").await;
    assert_eq!(rig.made(), 2);
}

fn change_schema(host: &Host) {
    let schema = &br#"{"type":"object","properties":{"x":{"type":"string"}}}"#[..];
    host.tools.lock().unwrap().all[0].parameters = RawJson::new(schema).unwrap();
}

#[tokio::test(start_paused = true)]
async fn statement_38_what_breaks_continuity_gets_a_new_agent_and_a_plain_follow_up_does_not() {
    let mut rig = Rig::new();
    let mut agent = first(&mut rig).await;
    plain(&mut rig, &mut agent, "follow up").await;
    assert_eq!(rig.made(), 1, "a plain follow-up");

    rig.system = "be better".to_owned();
    let mut agent = replaced(&mut rig, &agent, "system prompt").await;

    rig.messages[1] = crate::prompt::Message::assistant("edited");
    agent = replaced(&mut rig, &agent, "edited history").await;

    rig.session.tell(HostEvent::Compaction).await;
    agent = replaced(&mut rig, &agent, "compaction").await;

    rig.session.tell(HostEvent::TreeNavigation).await;
    agent = replaced(&mut rig, &agent, "tree").await;

    agent.die();
    settled().await;
    agent = replaced(&mut rig, &agent, "dead transport").await;

    for n in 0..20 {
        plain(&mut rig, &mut agent, &format!("incremental {n}")).await;
    }
    replaced(&mut rig, &agent, "the 21st").await;
    assert_eq!(rig.made(), 7);
}

#[tokio::test(start_paused = true)]
async fn five_minutes_after_the_last_send_everything_is_sent_anew() {
    let mut rig = Rig::new();
    let agent = first(&mut rig).await;
    tokio::time::sleep(Duration::from_secs(301)).await;
    replaced(&mut rig, &agent, "late").await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_send_ends_the_turn_and_the_next_gets_a_new_agent() {
    let mut rig = Rig::new();
    let agent = first(&mut rig).await;
    rig.refuses.store(true, Ordering::SeqCst);
    let message = rig.say("refused").await.message().await;
    assert!(matches!(&message.stop, StopReason::Error(why) if why.contains("not now")), "{message:?}");
    rig.refuses.store(false, Ordering::SeqCst);
    replaced(&mut rig, &agent, "again").await;
}

#[tokio::test(start_paused = true)]
async fn statement_50_setting_sources_are_passed_as_they_are() {
    let sources = |named: Option<Vec<&'static str>>| async move {
        let mut rig = Rig::new();
        let mut request = rig.request();
        request.messages.push(crate::prompt::Message::user("hello"));
        request.setting_sources = named.map(|named| named.into_iter().map(str::to_owned).collect());
        let _turn = rig.session.turn(request).await;
        rig.agent().await.options.setting_sources
    };
    assert_eq!(sources(Some(vec![])).await, Vec::<String>::new());
    assert_eq!(sources(None).await, ["all"]);
    assert_eq!(sources(Some(vec!["project", "x y"])).await, ["project", "x y"]);
}

#[tokio::test(start_paused = true)]
async fn lesson_28_long_tools_have_an_hour_and_dead_servers_ten_seconds() {
    let mut rig = Rig::new();
    let _turn = rig.say("hello").await;
    let options = rig.agent().await.options;
    assert_eq!(options.timeouts.tool, Duration::from_hours(1));
    assert_eq!(options.timeouts.connect, Duration::from_secs(10));
    assert_eq!((options.safety.len(), options.http1), (0, false));
    assert_eq!(options.mcp_servers.len(), 1);
    assert_eq!(options.mcp_servers[0].key, "pi_tools");
    assert!(options.mcp_servers[0].url.expose().starts_with("http://127.0.0.1:"));
    assert!(!format!("{options:?}").contains("127.0.0.1"), "the endpoint is in nothing that is printed");
}

#[tokio::test(start_paused = true)]
async fn lesson_29_the_agent_is_told_its_mcp_times_and_nothing_else_changes_with_them() {
    let mut rig = Rig::new();
    let _turn = rig.say("hello").await;
    let plain = rig.agent().await.options;
    let mut settings = Settings::default();
    settings.tools.mcp.call_timeout_ms = Some(120_000.0);
    settings.tools.mcp.connect_timeout_ms = Some(1.0);
    let mut rig = Rig::with(settings);
    let _turn = rig.say("hello").await;
    let timed = rig.agent().await.options;
    assert_eq!(
        (timed.timeouts.tool, timed.timeouts.connect),
        (Duration::from_mins(2), Duration::from_secs(1))
    );
    assert_ne!(plain.timeouts, timed.timeouts);
    let rest = |options: &AgentOptions| {
        let AgentOptions { cwd, model, setting_sources, mcp_servers: _, timeouts: _, safety, http1 } =
            options.clone();
        (cwd, model, setting_sources, safety, http1)
    };
    assert_eq!(rest(&plain), rest(&timed));
}

#[tokio::test(start_paused = true)]
async fn safety_options_are_passed_when_they_are_on() {
    let mut settings = Settings::default();
    settings.local.sandbox = true;
    let mut rig = Rig::with(settings);
    let _turn = rig.say("hello").await;
    let options = rig.agent().await.options;
    assert_eq!(options.safety, [SafetyOption::Sandbox]);
}

#[tokio::test(start_paused = true)]
async fn statement_09_without_host_tools_the_bridge_is_empty_and_the_agent_runs() {
    let mut rig = Rig::new();
    rig.host.tools.lock().unwrap().active.clear();
    let turn = rig.say("hello").await;
    let mut agent = rig.agent().await;
    let prompt = agent.prompt().await;
    assert!(agent.options.mcp_servers.is_empty());
    assert!(!prompt.text.contains("pi__"), "{}", prompt.text);
    assert!(rig.session.run().is_none());
    agent.text("I looked myself.").await;
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
}

#[tokio::test(start_paused = true)]
async fn lesson_20_an_active_set_that_became_empty_is_respected_by_the_next_turn() {
    let mut rig = Rig::new();
    let agent = first(&mut rig).await;
    rig.host.tools.lock().unwrap().active.clear();
    let second = replaced(&mut rig, &agent, "without tools").await;
    assert!(second.options.mcp_servers.is_empty());
    assert_eq!(rig.host.tools.lock().unwrap().active, Vec::<String>::new(), "nothing was activated");
}

#[tokio::test(start_paused = true)]
async fn the_mode_goes_with_the_prompt_and_needs_no_other_agent() {
    let mut rig = Rig::new();
    let mut agent = first(&mut rig).await;
    rig.messages.push(crate::prompt::Message::user("plan it"));
    let mut request = rig.request();
    request.mode = AgentMode::Plan;
    let _turn = rig.session.turn(request).await;
    assert_eq!(agent.prompt().await.mode, AgentMode::Plan);
}

async fn answered(turn: Turn, agent: &Puppet) {
    agent.finish().await;
    assert_eq!(turn.message().await.stop, StopReason::Stop);
}

#[tokio::test(start_paused = true)]
async fn lesson_32_turns_of_a_session_are_served_one_after_the_other() {
    let mut rig = Rig::new();
    let one = rig.say("one").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let two = rig.session.turn(rig.request()).await;
    settled().await;
    assert!(agent.prompts.try_recv().is_err(), "the second waits");
    assert_eq!(rig.made(), 1);
    answered(one, &agent).await;
    agent.prompt().await;
    answered(two, &agent).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_given_up_while_it_waits_ends_as_aborted_and_creates_nothing() {
    let mut rig = Rig::new();
    let one = rig.say("one").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let abort = tokio_util::sync::CancellationToken::new();
    let mut request = rig.request();
    request.abort = abort.clone();
    let two = rig.session.turn(request).await;
    settled().await;
    abort.cancel();
    assert!(matches!(two.message().await.stop, StopReason::Aborted(_)));
    answered(one, &agent).await;
    settled().await;
    assert!(agent.prompts.try_recv().is_err());
    assert_eq!(rig.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn lesson_33_a_signal_that_was_given_before_the_turn_began_leaves_nothing() {
    let mut rig = Rig::new();
    rig.abort.cancel();
    let message = rig.say("hello").await.message().await;
    assert!(matches!(message.stop, StopReason::Aborted(_)));
    assert_eq!(rig.made(), 0);
    assert!(!rig.session.is_busy());
}

#[tokio::test(start_paused = true)]
async fn lesson_31_a_session_is_busy_from_the_first_wait_and_compaction_lets_the_agent_go() {
    let mut rig = Rig::new();
    assert!(!rig.session.is_busy());
    let turn = rig.say("do it").await;
    assert!(rig.session.is_busy(), "before anybody took the turn up");
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let mut waiter = rig.call("pi__todo");
    let message = turn.message().await;
    assert!(!rig.session.is_busy());
    rig.session.tell(HostEvent::Compaction).await;
    let rejection = super::rig::answer(&mut waiter).await.unwrap_err();
    assert!(rejection.reason.contains("compacted"), "{}", rejection.reason);
    agent.disposed.cancelled().await;
    // The summary is made by an agent that knows nothing of the old one's business.
    let _turn = rig.go_on(&message).await;
    rig.agent().await.prompt().await;
    assert_eq!(rig.made(), 2);
}

#[tokio::test(start_paused = true)]
async fn too_many_turns_that_wait_are_refused() {
    let mut rig = Rig::new();
    let _one = rig.say("one").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let mut waiting = Vec::new();
    for _ in 0..32 {
        waiting.push(rig.session.turn(rig.request()).await);
    }
    let message = rig.session.turn(rig.request()).await.message().await;
    assert!(matches!(message.stop, StopReason::Error(_)));
    let _: &Session = &rig.session;
}
