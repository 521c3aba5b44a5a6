//! Conversations that outgrow their model.

use serde_json::json;

use super::rig::{Setup, function};
use super::*;
use crate::custom_tools::CustomOutput;
use crate::error::AgentError;
use crate::event::Delta;

fn setup(window: u64) -> Setup {
    let long = function("long", |args| CustomOutput::Text(format!("{args} {}", "word ".repeat(3000))));
    Setup { window: Some(window), custom: vec![long], ..Setup::default() }
}

#[tokio::test]
async fn old_results_make_room_first_and_can_be_read_again() {
    let mut replies: Vec<_> = (0..8)
        .map(|n| answer(vec![call(&format!("c{n}"), "custom-user-tools__long", json!({"n": n}))]))
        .collect();
    replies.push(says("done"));
    let mut rig = Rig::with(setup(8_000), replies);
    rig.run("read all").await.unwrap();
    let lines = rig.lines();
    assert!(lines.contains("old results made room"), "{lines}");
    let last = rig.script.asked.lock().unwrap().len() - 1;
    let said = format!("{:?}", rig.asked(last).messages);
    assert!(said.contains("toolway_saved") || said.contains("saved"), "{said}");
    assert!(said.contains("read all"));
    assert_eq!(last, 8, "no summary was asked for");
}

#[tokio::test]
async fn then_older_messages_become_notes_and_the_users_words_stay() {
    let mut replies: Vec<_> = (0..3).map(|_| says(&"I said much. ".repeat(1500))).collect();
    replies.push(says("NOTES: all is well"));
    replies.push(says("done"));
    let mut rig = Rig::with(setup(20_000), replies);
    for prompt in ["first", "second", "third"] {
        rig.run(prompt).await.unwrap();
    }
    rig.lines();
    rig.run("fourth, with care").await.unwrap();
    assert!(rig.lines().contains("older messages became notes"));
    let asked = rig.asked(3);
    assert!(asked.tools.is_empty() && format!("{:?}", asked.messages).contains("USER: first"));
    let said = format!("{:?}", rig.asked(4).messages);
    assert!(said.contains("NOTES: all is well") && said.contains("fourth, with care"), "{said}");
    assert!(!said.contains("\"first\""), "{said}");
    let deltas = rig.notes.deltas.lock().unwrap().clone();
    assert!(deltas.contains(&Delta::SummaryStarted));
    assert!(
        deltas
            .iter()
            .any(|delta| matches!(delta, Delta::SummaryCompleted { before, after } if after < before))
    );
}

#[tokio::test]
async fn a_summary_that_fails_leaves_messages_out_and_says_so() {
    let mut replies: Vec<_> = (0..3).map(|_| says(&"I said much. ".repeat(1500))).collect();
    replies.push(vec![Err(AgentError::Model { message: "no".into() })]);
    replies.push(says("done"));
    let mut rig = Rig::with(setup(20_000), replies);
    for prompt in ["first", "second", "third"] {
        rig.run(prompt).await.unwrap();
    }
    let end = rig.run("fourth").await.unwrap();
    assert_eq!(end.result.as_deref(), Some("done"));
    assert!(format!("{:?}", rig.asked(4).messages).contains("were left out to make room"));
}

#[tokio::test]
async fn a_service_that_finds_it_too_long_gets_less() {
    let too_long = AgentError::Model { message: "prompt is too long: 5 > 4".into() };
    let mut replies: Vec<_> = (0..3).map(|_| says(&"I said much. ".repeat(300))).collect();
    replies.push(vec![Err(too_long)]);
    replies.push(says("NOTES"));
    replies.push(says("done"));
    let mut rig = Rig::with(setup(1_000_000), replies);
    for prompt in ["first", "second", "third"] {
        rig.run(prompt).await.unwrap();
    }
    let end = rig.run("fourth").await.unwrap();
    assert_eq!(end.result.as_deref(), Some("done"));
    assert!(rig.lines().contains("task context: the conversation is too long for the model"));
}
