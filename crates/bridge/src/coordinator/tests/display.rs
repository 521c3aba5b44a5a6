//! What the host sees of the agent's own tools, and what it does not.

use std::time::Duration;

use super::rig::{Puppet, Rig, calls, options, settled, text};
use crate::agent_port::AgentEvent;
use crate::coordinator::SessionOptions;
use crate::host_port::{AssistantBlock, AssistantMessage, StopReason};
use crate::json::RawJson;
use crate::replay::{AgentToolEvent, Replayed, ToolActivity, ToolStatus};
use crate::settings::HostMode;

fn rig() -> Rig {
    Rig::of(SessionOptions { host_mode: Some(HostMode::Tui), ..options() })
}

pub(super) fn activity(id: &str, kind: &str, args: &str, result: Option<&str>) -> ToolActivity {
    let json = |text: &str| RawJson::new(text.as_bytes().to_vec()).unwrap();
    let status = if result.is_some() { ToolStatus::Completed } else { ToolStatus::Running };
    ToolActivity {
        id: id.to_owned(),
        kind: kind.to_owned(),
        args: json(args),
        result: result.map(json),
        status,
    }
}

async fn shell(agent: &Puppet, id: &str) {
    let result = r#"{"status":"success","value":{"exitCode":0,"stdout":"hello\n","stderr":""}}"#;
    agent
        .tell(AgentEvent::Tool(AgentToolEvent::Started(activity(id, "shell", r#"{"command":"echo"}"#, None))))
        .await;
    let done = activity(id, "shell", r#"{"command":"echo"}"#, Some(result));
    agent.tell(AgentEvent::Tool(AgentToolEvent::Completed(done))).await;
}

async fn ask(rig: &mut Rig) -> (crate::coordinator::Turn, Puppet) {
    let mut request = rig.request();
    request.messages.push(crate::prompt::Message::user("look"));
    request.wrappers = vec!["bash".to_owned(), "cursor".to_owned()];
    request.context_tools.clone_from(&request.wrappers);
    rig.messages.clone_from(&request.messages);
    let turn = rig.session.turn(request).await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    (turn, agent)
}

fn thinking(message: &AssistantMessage) -> String {
    let thought = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(text) => Some(text.clone()),
        _ => None,
    };
    message.content.iter().filter_map(thought).collect()
}

#[tokio::test(start_paused = true)]
async fn statement_44_a_card_is_a_recorded_call_and_the_same_agent_run_goes_on_after_it() {
    let mut rig = rig();
    let (turn, agent) = ask(&mut rig).await;
    shell(&agent, "a1").await;
    let message = turn.message().await;
    assert_eq!(message.stop, StopReason::ToolUse);
    let card = calls(&message)[0].clone();
    assert!(card.id.as_str().starts_with("cursor-replay-"), "{}", card.id);
    assert_eq!(card.name, "bash");
    assert_eq!(rig.session.admit(&card.id), Ok(()), "the wrapper shows it");
    let shown = rig.session.replayed("bash", card.id.as_str());
    assert!(matches!(&shown, Replayed::Result(card) if card.text().contains("hello")), "{shown:?}");
    assert!(matches!(rig.session.replayed("bash", card.id.as_str()), Replayed::Refused(_)), "once");
    let turn = rig.go_on(&message).await;
    agent.text("That was it.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), message.stop), ("That was it.", StopReason::Stop));
    assert_eq!(rig.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn statement_34_and_lesson_11_a_bridge_call_is_not_shown_again_and_another_mcp_call_is() {
    let mut rig = rig();
    let (turn, agent) = ask(&mut rig).await;
    let own = activity("m1", "mcp", r#"{"toolName":"pi__todo","args":{}}"#, None);
    agent.tell(AgentEvent::Tool(AgentToolEvent::Started(own))).await;
    let other = activity("m2", "mcp", r#"{"toolName":"search","args":{}}"#, Some(r#"{"text":"found"}"#));
    agent.tell(AgentEvent::Tool(AgentToolEvent::Completed(other))).await;
    // The completion of the bridge call leaves the name out.
    let own = activity("m1", "", "{}", Some(r#"{"text":"done"}"#));
    agent.tell(AgentEvent::Tool(AgentToolEvent::Completed(own))).await;
    let message = turn.message().await;
    let cards = calls(&message);
    assert_eq!(cards.len(), 1, "{cards:?}");
    assert_eq!(cards[0].name, "cursor");
    assert!(!cards[0].arguments.text().contains("todo"));
}

#[tokio::test(start_paused = true)]
async fn statement_46_without_a_wrapper_it_is_text_and_no_call() {
    let mut rig = rig();
    let turn = rig.say("look").await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    shell(&agent, "a1").await;
    agent.text("Done.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((message.stop.clone(), calls(&message).len()), (StopReason::Stop, 0));
    assert!(thinking(&message).contains("hello"), "{message:?}");
}

#[tokio::test(start_paused = true)]
async fn lesson_38_a_line_about_what_runs_is_not_in_the_final_message_of_what_ended_before() {
    let mut rig = rig();
    let (turn, agent) = ask(&mut rig).await;
    let started = |id: &str| {
        AgentEvent::Tool(AgentToolEvent::Started(activity(id, "shell", r#"{"command":"x"}"#, None)))
    };
    agent.tell(started("a1")).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    agent.text("Done.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((thinking(&message).as_str(), text(&message).as_str()), ("", "Done."));

    // One that takes its time has its line while the turn goes on.
    let mut agent = agent;
    let turn = rig.say("again").await;
    agent.prompt().await;
    agent.tell(started("a2")).await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    agent.text("Done.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert!(!thinking(&message).is_empty());
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_aborted_turn_says_as_text_what_did_not_complete() {
    let mut rig = rig();
    let (turn, agent) = ask(&mut rig).await;
    let started = activity("a1", "shell", r#"{"command":"sleep 9"}"#, None);
    agent.tell(AgentEvent::Tool(AgentToolEvent::Started(started))).await;
    settled().await;
    rig.abort.cancel();
    let message = turn.message().await;
    assert_eq!(calls(&message).len(), 0);
    assert!(thinking(&message).contains("the run was aborted"), "{message:?}");
}

#[tokio::test(start_paused = true)]
async fn a_local_file_is_shown_where_the_agent_said_nothing_of_its_content() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "in the file").unwrap();
    std::fs::write(folder.path().join(".env"), "KEY=in another file").unwrap();
    let mut rig = rig();
    let mut request = rig.request();
    request.messages.push(crate::prompt::Message::user("look"));
    request.cwd = folder.path().to_owned();
    rig.messages.clone_from(&request.messages);
    let turn = rig.session.turn(request).await;
    let mut agent = rig.agent().await;
    agent.prompt().await;
    let read = |id: &str, path: &str| {
        let result = Some(r#"{"status":"success","value":{}}"#);
        AgentToolEvent::Completed(activity(id, "read", &format!(r#"{{"path":"{path}"}}"#), result))
    };
    agent.tell(AgentEvent::Step(vec![read("a1", "a.txt"), read("a2", ".env"), read("a3", "none")])).await;
    agent.text("Done.").await;
    agent.finish().await;
    let shown = thinking(&turn.message().await);
    assert_eq!(shown.matches("in the file").count(), 1, "{shown}");
    assert_eq!(shown.matches("reported no content]\n").count(), 3, "{shown}");
    assert!(!shown.contains("another"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn the_key_that_the_agent_is_made_with_is_in_no_text() {
    let mut rig = rig();
    let (turn, agent) = ask(&mut rig).await;
    let result = r#"{"status":"success","value":{"stdout":"it is the key in use, as of now"}}"#;
    let echo = activity("a1", "grep", r#"{"pattern":"the key in use"}"#, Some(result));
    agent.tell(AgentEvent::Tool(AgentToolEvent::Completed(echo))).await;
    agent.text("Done.").await;
    agent.finish().await;
    let shown = thinking(&turn.message().await);
    assert!(shown.contains("[redacted]") && !shown.contains("the key in use"), "{shown}");
}
