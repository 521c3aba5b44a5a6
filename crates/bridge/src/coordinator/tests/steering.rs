//! What the user says while the agent is busy.

use super::rig::{Rig, answer, calls, text};
use crate::host_port::StopReason;
use crate::prompt::Message;

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_keeps_its_agent_and_the_users_text_is_the_next_prompt() {
    let mut rig = Rig::new();
    let (mut agent, mut waiter, message) = rig.at_work().await;
    rig.note(&message);
    let turn = rig.say("use the other file").await;
    assert!(answer(&mut waiter).await.is_ok(), "the result is delivered all the same");
    agent.text("First part. ").await;
    agent.finish().await;
    let prompt = agent.prompt().await;
    assert!(prompt.text.contains("use the other file"), "{}", prompt.text);
    agent.text("Second part.").await;
    agent.finish().await;
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), message.stop), ("First part. Second part.", StopReason::Stop));
    assert_eq!(rig.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_goes_on_with_tools_is_replaced_and_its_calls_are_cancelled() {
    let mut rig = Rig::new();
    let (agent, mut waiter, message) = rig.at_work().await;
    rig.note(&message);
    let turn = rig.say("stop that").await;
    answer(&mut waiter).await.unwrap();
    let mut more = rig.call("pi__sem");
    assert!(answer(&mut more).await.is_err());
    let mut second = rig.agent().await;
    let prompt = second.prompt().await;
    assert!(prompt.text.contains("stop that"));
    agent.disposed.cancelled().await;
    second.text("Stopped.").await;
    second.finish().await;
    let message = turn.message().await;
    assert_eq!((text(&message).as_str(), calls(&message).len()), ("Stopped.", 0));
    assert_eq!(rig.host.aborted(), [], "the host was never handed the second call");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_neither_ends_nor_goes_on_is_replaced_in_time() {
    let mut rig = Rig::new();
    let (agent, _waiter, message) = rig.at_work().await;
    rig.note(&message);
    rig.messages.push(Message::user("one"));
    let start = tokio::time::Instant::now();
    let _turn = rig.say("two").await;
    let mut second = rig.agent().await;
    let prompt = second.prompt().await;
    assert!(prompt.text.contains("two"));
    assert_eq!(start.elapsed().as_secs(), 10);
    agent.disposed.cancelled().await;
}
