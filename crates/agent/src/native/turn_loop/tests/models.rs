//! Models that break off, answer nothing, are cut, refuse, never stop or say the same for ever.

use expect_test::expect;

use super::*;

fn broken() -> Input {
    Input::Broken { error: AgentError::Network { message: "gone".into() }, remedy: Remedy::Again }
}

#[test]
fn a_stream_that_breaks_is_asked_again_a_few_times_and_what_was_shown_is_told() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    rig.give(Input::Text("half".into()));
    rig.give(Input::CallDelta { id: "a".into(), name: "write".into(), arguments: "{\"x".into() });
    rig.give(broken());
    rig.give(broken());
    rig.give(Input::Text("again".into()));
    rig.give(broken());
    expect![[r#"
        ~half
        ~PartialToolCall { call_id: "a", name: "write", arguments: "{\"x" }
        task retry: the model's answer broke off ([network_error] gone); the 4 bytes of it that were shown do not count, no tool was called, and it is asked again (2 of 3)
        ask after 800 ms
        task retry: the model's answer broke off ([network_error] gone); nothing of its answer was shown, no tool was called, and it is asked again (3 of 3)
        ask after 1600 ms
        ~again
        assistant again
        keep
        fail [network_error] gone"#]]
    .assert_eq(&rig.lines());
    expect![[r"
        user: hello
        model: again"]]
    .assert_eq(&rig.talk());
}

#[test]
fn a_step_that_was_asked_again_counts_once() {
    let mut rig = Rig::new(Limits { turns: Some(1), ..Limits::default() });
    rig.give(broken());
    rig.says("there");
    assert!(rig.lines().ends_with("end Finished"));
}

#[test]
fn what_cannot_be_helped_is_not_asked_again() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    let error = AgentError::Authentication { message: "no key".into() };
    rig.give(Input::Broken { error, remedy: Remedy::None });
    assert_eq!(rig.lines(), "keep\nfail [unauthenticated] no key");
}

#[test]
fn a_conversation_that_is_too_long_is_made_shorter_once() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    let long =
        || Input::Broken { error: AgentError::Model { message: "too long".into() }, remedy: Remedy::Shorten };
    rig.give(long());
    assert!(rig.lines().ends_with("ask shorter after 0 ms"));
    rig.give(long());
    assert!(rig.lines().ends_with("fail [model_error] too long"));
}

#[test]
fn an_answer_with_nothing_in_it_is_asked_again_and_then_fails() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    for _ in 0..3 {
        rig.answer(vec![AnswerPart::Text(String::new())], ModelStop::End);
    }
    let lines = rig.lines();
    assert!(lines.contains("(2 of 3)") && lines.contains("(3 of 3)"), "{lines}");
    assert!(lines.ends_with("fail [model_error] the model answered nothing, 3 times"), "{lines}");
}

#[test]
fn nothing_to_add_to_results_is_an_end() {
    let mut rig = Rig::new(Limits::default());
    rig.answer(vec![AnswerPart::Text("I look".into()), call("a", "look", "{}")], ModelStop::Calls);
    rig.done("a", "seen");
    rig.answer(Vec::new(), ModelStop::End);
    assert!(rig.lines().ends_with("end Finished"));
    assert_eq!(rig.turn.said(), Some("I look"));
}

#[test]
fn a_refusal_ends_the_run_without_calls() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    rig.answer(
        vec![AnswerPart::Text("No.".into()), call("a", "write", "{}")],
        ModelStop::Refused("content_filter".into()),
    );
    assert!(rig.lines().ends_with("assistant No.\nusage 15\n~\nkeep\nend Refused(\"content_filter\")"));
    assert!(rig.running.is_empty());
}

#[test]
fn an_answer_that_was_cut_goes_on_three_times() {
    let mut rig = Rig::new(Limits::default());
    for part in ["a", "b", "c"] {
        rig.answer(vec![AnswerPart::Text(part.into())], ModelStop::MaxTokens);
        assert!(rig.lines().ends_with("ask after 0 ms"));
    }
    rig.answer(vec![AnswerPart::Text("d".into())], ModelStop::MaxTokens);
    assert!(rig.lines().contains("end Limit(\"the model's answer was cut at its length limit 4 times"));
    assert!(rig.talk().contains("model: a\nuser: Your answer was cut at its length limit. Go on exactly"));
}

#[test]
fn whole_calls_of_an_answer_that_was_cut_are_made_and_the_model_is_told() {
    let mut rig = Rig::new(Limits::default());
    rig.answer(vec![call("a", "look", "{}")], ModelStop::MaxTokens);
    rig.done("a", "seen");
    assert!(rig.talk().ends_with(
        "tools: a: seen\nuser: Your last answer was cut at its length limit. If you were writing another call, it was \
         not made. Write less in one answer."
    ));
}

#[test]
fn a_model_that_never_stops_is_stopped() {
    let mut rig = Rig::new(Limits::default());
    let mut number = 0u64;
    while !rig.lines().contains("end ") {
        number += 1;
        assert!(number < 2000, "it goes on for ever");
        let words: Vec<_> = (0..1000).map(|word| ((number * 7919 + word) % 10_007).to_string()).collect();
        let piece = words.join(" ");
        rig.give(Input::Text(piece));
    }
    assert!(rig.talk().starts_with("user: hello\nmodel: "), "what was said stays said");
}

#[test]
fn a_model_that_says_the_same_for_ever_is_stopped_early() {
    let mut rig = Rig::new(Limits::default());
    let mut bytes = 0;
    loop {
        rig.give(Input::Text("and so on ".into()));
        bytes += 10;
        if rig.lines().contains("end Limit(\"the model wrote the same") {
            break;
        }
        assert!(bytes < 100_000);
    }
    assert!((16_000..40_000).contains(&bytes), "{bytes}");
}

#[test]
fn long_texts_with_much_in_common_are_no_loop() {
    let mut rig = Rig::new(Limits::default());
    for number in 0..5000 {
        rig.give(Input::Text(format!("| row {number} | the same words in each row |\n")));
    }
    assert!(!rig.lines().contains("end "));
}
