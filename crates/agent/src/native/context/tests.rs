//! What makes room: old results first, then a summary, and never the user's last words or half a call.

use proptest::prelude::*;

use super::*;
use crate::native::model::ModelCall;

fn call(id: &str) -> AnswerPart {
    AnswerPart::Call(ModelCall { id: id.into(), name: "read".into(), arguments: "{}".into(), seal: None })
}

fn push_step(conversation: &mut Conversation, id: &str, size: usize) {
    conversation.push_answer(vec![AnswerPart::Text(format!("step {id}")), call(id)]);
    conversation.push_result(ToolAnswer {
        call_id: id.into(),
        name: "read".into(),
        content: vec![UserPart::Text(format!("result {id} {}", "word ".repeat(size)))],
        is_error: false,
    });
}

fn push_prompt(conversation: &mut Conversation, text: &str) {
    conversation.push_user(Origin::Prompt, vec![UserPart::Text(text.into())]);
}

#[test]
fn old_results_make_room_oldest_first_and_recent_ones_stay() {
    let mut conversation = Conversation::default();
    push_prompt(&mut conversation, "go");
    for number in 0..6 {
        push_step(&mut conversation, &format!("c{number}"), 2000);
    }
    let ids = |units| -> Vec<String> {
        droppable(&conversation, units).into_iter().map(|one| one.call_id).collect()
    };
    assert_eq!(ids(100), ["c0"]);
    assert_eq!(ids(1_000_000), ["c0", "c1", "c2"]);
}

#[test]
fn small_results_are_not_worth_it() {
    let mut conversation = Conversation::default();
    push_prompt(&mut conversation, "go");
    for number in 0..6 {
        push_step(&mut conversation, &format!("c{number}"), 3);
    }
    assert!(droppable(&conversation, 1_000_000).is_empty());
}

#[test]
fn a_summary_keeps_the_prompt_of_a_long_run_and_its_last_steps() {
    let mut conversation = Conversation::default();
    push_prompt(&mut conversation, "first");
    conversation.push_answer(vec![AnswerPart::Text("done".into())]);
    push_prompt(&mut conversation, "second, and mind the gap");
    for number in 0..10 {
        push_step(&mut conversation, &format!("c{number}"), 500);
    }
    let chosen = compaction(&conversation, Window::new(None), 2000).unwrap();
    assert_eq!(chosen.keep, [2], "the prompt of this run");
    assert!(chosen.transcript.contains("USER: first") && chosen.transcript.contains("result c0"));
    assert!(!chosen.transcript.contains("mind the gap") && !chosen.transcript.contains("result c9"));
    conversation.replace_head(chosen.until, summary_text("notes"), &chosen.keep);
    let origins: Vec<Origin> = conversation.marks().iter().map(|mark| mark.origin).collect();
    assert_eq!(origins.get(..3), Some([Origin::Summary, Origin::Prompt, Origin::Model].as_slice()));
    assert_eq!(origins.last(), Some(&Origin::Tools));
}

#[test]
fn what_is_a_summary_already_is_not_summed_up_again() {
    let mut conversation = Conversation::default();
    conversation.push_user(Origin::Summary, vec![UserPart::Text("notes".into())]);
    push_prompt(&mut conversation, &"long ".repeat(100_000));
    assert_eq!(compaction(&conversation, Window::new(None), 100), None);
}

#[test]
fn what_is_summed_up_fits_its_request() {
    let mut conversation = Conversation::default();
    for number in 0..200 {
        push_prompt(&mut conversation, &format!("prompt {number} {}", "x".repeat(10_000)));
        conversation.push_answer(vec![AnswerPart::Text("done".into())]);
    }
    push_prompt(&mut conversation, "last");
    let chosen = compaction(&conversation, Window::new(Some(10_000)), 100).unwrap();
    assert!(chosen.transcript.chars().count() < 15_100, "{}", chosen.transcript.len());
    assert!(chosen.transcript.contains("characters left out"));
}

proptest! {
    #[test]
    fn room_is_made_without_losing_words_of_the_user_or_splitting_pairs(
        steps in proptest::collection::vec((0usize..3, 0usize..800), 1..30),
        units in 1u64..5_000,
    ) {
        let mut conversation = Conversation::default();
        push_prompt(&mut conversation, "start");
        for (number, (kind, size)) in steps.iter().enumerate() {
            match kind {
                0 => push_prompt(&mut conversation, &format!("prompt {number}")),
                1 => conversation.push_answer(vec![AnswerPart::Text("said ".repeat(*size + 1))]),
                _ => push_step(&mut conversation, &format!("c{number}"), *size),
            }
        }
        let last_prompt = conversation.marks().iter().rposition(|mark| mark.origin == Origin::Prompt);
        let last_prompt = conversation.messages().get(last_prompt.unwrap()).cloned();
        if let Some(chosen) = compaction(&conversation, Window::new(None), units) {
            conversation.replace_head(chosen.until, "notes".into(), &chosen.keep);
        }
        prop_assert!(conversation.messages().contains(&last_prompt.unwrap()));
        let mut open: Vec<String> = Vec::new();
        for message in conversation.messages() {
            match message {
                Message::Assistant(parts) => {
                    prop_assert!(open.is_empty());
                    open = parts.iter().filter_map(|part| match part {
                        AnswerPart::Call(call) => Some(call.id.clone()),
                        _ => None,
                    }).collect();
                }
                Message::Tools(results) => {
                    let ids: Vec<String> = results.iter().map(|one| one.call_id.clone()).collect();
                    prop_assert_eq!(&ids, &open);
                    open.clear();
                }
                Message::User(_) => prop_assert!(open.is_empty()),
            }
        }
        prop_assert!(open.is_empty());
    }
}
