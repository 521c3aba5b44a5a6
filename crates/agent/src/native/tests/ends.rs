//! Ends that the model does not choose, and what comes after them.

use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::rig::content;
use super::*;
use crate::engine::{Steer, Steering, TurnStop};
use crate::error::AgentError;
use crate::event::{Delta, ToolCallEvent, ToolCallStatus, Truncated};
use crate::native::model::{Message, ModelEvent};

#[tokio::test]
async fn a_cancelled_answer_ends_the_run_and_stays_said() {
    let mut rig = Rig::new(vec![vec![Ok(ModelEvent::Text("I begin".into()))]]);
    let cancel = CancellationToken::new();
    rig.turn.cancel = cancel.clone();
    let run = rig.run("go");
    let stop = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        cancel.cancel();
    };
    tokio::time::pause();
    let (end, ()) = tokio::join!(run, stop);
    tokio::time::resume();
    assert_eq!(end.unwrap().stop, TurnStop::Cancelled);
    assert!(rig.lines().contains("assistant I begin\nkeep"));
}

#[tokio::test]
async fn a_cancelled_call_has_a_result_and_the_next_prompt_goes_on() {
    let mut rig = Rig::new(vec![
        answer(vec![
            call("a", "shell", json!({"command": "sleep 1000"})),
            call("b", "shell", json!({"command": "touch x"})),
        ]),
        says("on I go"),
    ]);
    let cancel = CancellationToken::new();
    rig.turn.cancel = cancel.clone();
    *rig.notes.cancel_at_call.lock().unwrap() = Some(cancel);
    let run = tokio::time::timeout(Duration::from_mins(1), rig.run("go"));
    assert_eq!(run.await.unwrap().unwrap().stop, TurnStop::Cancelled);
    assert!(!rig.cwd().join("x").exists());
    rig.run("go on").await.unwrap();
    let messages = rig.asked(1).messages;
    let Some(Message::Tools(results)) = messages.get(2) else { panic!("{messages:?}") };
    assert_eq!(results.len(), 2);
    assert!(content(&results[1].content).contains("This call was not begun"));
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_time_ends_a_run() {
    let mut rig = Rig::new(vec![vec![Ok(ModelEvent::Text("I think".into()))]]);
    rig.turn.limits.time = Some(Duration::from_secs(30));
    let end = rig.run("go").await.unwrap();
    let TurnStop::Limit(reason) = end.stop else { panic!("{:?}", end.stop) };
    assert!(reason.contains("limits.time"), "{reason}");
    assert_eq!(end.result.as_deref(), Some("I think"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_asked_again_and_told() {
    let gone = || Err(AgentError::Network { message: "connection lost".into() });
    let mut rig = Rig::new(vec![
        vec![Ok(ModelEvent::Text("half a".into())), gone()],
        vec![
            Ok(ModelEvent::CallDelta {
                id: "x".into(),
                name: "write".into(),
                arguments: "{\"path\":\"a".into(),
            }),
            gone(),
        ],
        says("whole"),
    ]);
    let end = rig.run("go").await.unwrap();
    assert_eq!(end.result.as_deref(), Some("whole"));
    let lines = rig.lines();
    assert_eq!(lines.matches("task retry").count(), 2, "{lines}");
    assert!(lines.contains("the 6 bytes of it that were shown do not count"), "{lines}");
    assert_eq!(rig.asked(2).messages.len(), 1, "nothing of what broke off is in the conversation");
}

#[tokio::test]
async fn a_service_that_was_never_reached_is_not_asked_again_here() {
    let mut rig = Rig::new(vec![vec![Err(AgentError::Network { message: "refused".into() })]]);
    let error = rig.run("go").await.unwrap_err();
    assert_eq!(error.code(), "network_error");
    assert_eq!(rig.script.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn steering_goes_in_at_the_next_boundary_and_its_sender_learns_it() {
    let mut rig = Rig::new(vec![answer(vec![call("t", "readTodos", json!({}))]), says("yes")]);
    let (sender, steering) = Steering::channel();
    let (steer, went_in) = Steer::new("be quick".into());
    sender.try_send(steer).unwrap();
    rig.turn.steering = Some(steering);
    rig.run("go").await.unwrap();
    went_in.await.unwrap();
    let deltas = rig.notes.deltas.lock().unwrap().clone();
    assert!(deltas.contains(&Delta::UserMessageAppended("be quick".into())));
    assert!(rig.lines().contains("user be quick"));
}

#[tokio::test]
async fn after_a_crash_the_model_knows_which_calls_may_have_run() {
    let mut rig = Rig::new(vec![
        answer(vec![call("a", "shell", json!({"command": "sleep 1000"}))]),
        says("I look first"),
    ]);
    let crash = {
        let notes = std::sync::Arc::clone(&rig.notes);
        let run = rig.run("go");
        let begun = async {
            loop {
                if notes.lines.lock().unwrap().iter().any(|line| line == "running a shell") {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = run => false,
            () = begun => true,
        }
    };
    assert!(crash, "the run was dropped in the middle of its call");
    let unknown = ToolCallEvent {
        call_id: "elsewhere".into(),
        name: "write".into(),
        status: ToolCallStatus::Running,
        args: Some(RawJson::new(&br#"{"path":"b"}"#[..]).unwrap()),
        result: None,
        truncated: Truncated::default(),
    };
    let known = ToolCallEvent { call_id: "a".into(), ..unknown.clone() };
    rig.turn.interrupted = vec![known, unknown];
    rig.run("go on").await.unwrap();
    let said = format!("{:?}", rig.asked(1).messages);
    assert!(said.contains("It may have run, wholly or in part"), "{said}");
    assert!(
        said.contains("An earlier run of yours broke off") && said.contains(r#"- write {\"path\":\"b\"}"#),
        "{said}"
    );
    assert!(!said.contains(r#"- write {\"path\":\"b\"}\n- write"#), "each call is told once: {said}");
}
