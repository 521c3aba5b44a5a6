//! What is kept comes back, and what broke off is made whole.

use super::*;
use crate::engine::Checkpoint;

fn answer(calls: &[&str]) -> Vec<AnswerPart> {
    let calls = calls.iter().map(|id| {
        AnswerPart::Call(ModelCall {
            id: (*id).into(),
            name: "write".into(),
            arguments: "{\"n\":12345678901234567890123}".into(),
            seal: None,
        })
    });
    std::iter::once(AnswerPart::Text("I do".into())).chain(calls).collect()
}

fn result(id: &str) -> ToolAnswer {
    ToolAnswer {
        call_id: id.into(),
        name: "write".into(),
        content: vec![UserPart::Text(format!("result of {id}"))],
        is_error: false,
    }
}

fn user(text: &str) -> Vec<UserPart> {
    vec![UserPart::Text(text.into())]
}

fn texts(conversation: &Conversation) -> String {
    serde_json::to_string(conversation.messages()).unwrap()
}

#[test]
fn a_conversation_of_an_agent_behind_a_protocol_is_not_called_damaged() {
    let kept = Checkpoint(br#"{"session":"s-1","agent":"opencode"}"#.to_vec().into());
    let error = Conversation::restore(&kept).unwrap_err();
    assert!(error.code() == "validation_error" && error.to_string().contains("kept by opencode"), "{error}");
}

#[test]
fn what_is_kept_comes_back() {
    let mut conversation = Conversation { ratio: 1.5, ..Conversation::default() };
    conversation.push_user(Origin::Prompt, user("go"));
    conversation.push_answer(answer(&["a", "b"]));
    conversation.push_result(result("b"));
    let kept = conversation.checkpoint().unwrap();
    let mut back = Conversation::restore(&kept).unwrap();
    assert_eq!(back.messages(), conversation.messages());
    assert!((back.ratio - 1.5).abs() < 1e-9);
    assert_eq!(back.checkpoint().unwrap(), kept, "and is written the same");
    assert_ne!(back.claim_id("a"), "a", "ids are remembered");
    back.push_result(result("a"));
    assert!(texts(&back).contains("result of a"));
    assert_eq!(conversation.checkpoint().unwrap(), kept, "what was written is used again");
}

#[test]
fn results_stand_in_the_order_of_their_calls() {
    let mut conversation = Conversation::default();
    conversation.push_answer(answer(&["a", "b"]));
    conversation.push_result(result("b"));
    conversation.push_result(result("a"));
    let Some(Message::Tools(results)) = conversation.messages().last() else { panic!("no results") };
    let ids: Vec<&str> = results.iter().map(|result| result.call_id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn after_a_crash_the_model_is_told_which_calls_may_have_run() {
    let mut conversation = Conversation::default();
    conversation.push_user(Origin::Prompt, user("go"));
    conversation.push_answer(answer(&["a", "b", "c"]));
    conversation.push_result(result("a"));
    let kept = conversation.checkpoint().unwrap();

    let mut back = Conversation::restore(&kept).unwrap();
    let doubtful = back.close_broken_calls(&["b".into()]);
    assert_eq!(doubtful.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["b"]);
    let Some(Message::Tools(results)) = back.messages().last() else { panic!("no results") };
    let said: Vec<String> = results.iter().map(|result| format!("{:?}", result.content)).collect();
    assert!(said.first().unwrap().contains("result of a"));
    assert!(said[1].contains("It may have run"));
    assert!(said[2].contains("It has not run"));

    let mut unknown = Conversation::restore(&kept).unwrap();
    assert_eq!(unknown.close_broken_calls(&[]).len(), 2, "nothing is known: both may have run");
}

#[test]
fn a_conversation_that_somebody_damaged_is_made_one_that_models_take() {
    let mut conversation = Conversation::default();
    conversation.push_user(Origin::Prompt, user("go"));
    conversation.push(Origin::Tools, Message::Tools(vec![result("stray")]));
    conversation.push_answer(answer(&["a"]));
    conversation.push_user(Origin::Prompt, user("and?"));
    conversation.push_answer(answer(&["b", "c"]));
    conversation.push(Origin::Tools, Message::Tools(vec![result("c")]));
    conversation.close_broken_calls(&[]);
    let mut waiting: Vec<&str> = Vec::new();
    for message in conversation.messages() {
        match message {
            Message::Assistant(parts) => {
                assert!(waiting.is_empty());
                waiting.extend(parts.iter().filter_map(|part| match part {
                    AnswerPart::Call(call) => Some(call.id.as_str()),
                    _ => None,
                }));
            }
            Message::Tools(results) => {
                let mut ids: Vec<&str> = results.iter().map(|result| result.call_id.as_str()).collect();
                ids.sort_unstable();
                assert_eq!(ids, std::mem::take(&mut waiting));
            }
            Message::User(_) => assert!(waiting.is_empty()),
        }
    }
    assert!(waiting.is_empty() && !texts(&conversation).contains("stray"));
}

#[test]
fn a_newer_form_and_a_damaged_one_are_told_apart() {
    let newer = Checkpoint(br#"{"version":99,"messages":"of another kind"}"#.as_slice().into());
    let error = Conversation::restore(&newer).unwrap_err();
    assert_eq!(error.code(), "store_error");
    assert!(error.to_string().contains("newer version"), "{error}");
    for damaged in ["", "{}", r#"{"version":1,"messages":[{"#] {
        let error = Conversation::restore(&Checkpoint(damaged.to_owned().into())).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }
}

#[test]
fn a_head_gives_way_to_a_summary_and_what_is_to_stay_stays() {
    let mut conversation = Conversation::default();
    conversation.push_user(Origin::Prompt, user("first"));
    conversation.push_answer(answer(&[]));
    conversation.push_user(Origin::Prompt, user("second"));
    conversation.push_answer(answer(&["a"]));
    conversation.push_result(result("a"));
    conversation.push_answer(answer(&["b"]));
    conversation.push_result(result("b"));
    conversation.replace_head(5, "in short".into(), &[2]);
    let origins: Vec<Origin> = conversation.marks().iter().map(|mark| mark.origin).collect();
    assert_eq!(origins, [Origin::Summary, Origin::Prompt, Origin::Model, Origin::Tools]);
    assert!(texts(&conversation).contains("second") && !texts(&conversation).contains("first"));
}
