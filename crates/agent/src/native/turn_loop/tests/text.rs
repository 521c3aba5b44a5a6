//! Answers in text: what is shown, kept and said, and steering.

use expect_test::expect;

use super::*;

#[test]
fn an_answer_is_shown_kept_and_ends_the_run() {
    let mut rig = Rig::new(Limits::default());
    rig.give(Input::Thinking("hm".into()));
    rig.give(Input::Text("Good ".into()));
    rig.give(Input::Text("day".into()));
    let thought = AnswerPart::Thinking { text: "hm".into(), seal: None };
    rig.answer(vec![thought, AnswerPart::Text("Good day".into())], ModelStop::End);
    expect![[r#"
        ~UserMessageAppended("hello")
        keep
        ~StepStarted { step: 1 }
        ask after 0 ms
        ~Thinking("hm")
        ~ThinkingCompleted { duration_ms: 10 }
        ~Good 
        ~day
        thinking hm Some(10)
        assistant Good day
        usage 15
        ~
        keep
        ~StepCompleted { step: 1 }
        end Finished"#]]
    .assert_eq(&rig.lines());
    assert_eq!(rig.turn.said(), Some("Good day"));
    assert_eq!(rig.turn.spent().0.total(), 15);
}

#[test]
fn steering_goes_in_where_the_model_would_end() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    rig.steering.push("and now?".into());
    rig.says("Done");
    rig.says("Nothing");
    expect![[r#"
        assistant Done
        usage 15
        ~
        keep
        ~StepCompleted { step: 1 }
        user and now?
        ~UserMessageAppended("and now?")
        keep
        ~StepStarted { step: 2 }
        ask after 0 ms
        assistant Nothing
        usage 30
        ~
        keep
        ~StepCompleted { step: 2 }
        end Finished"#]]
    .assert_eq(&rig.lines());
    expect![[r"
        user: hello
        model: Done
        user: and now?
        model: Nothing"]]
    .assert_eq(&rig.talk());
}

#[test]
fn steering_goes_in_behind_results() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "look", "{}")]);
    rig.steering.push("hurry".into());
    rig.done("a", "seen");
    expect![[r"
        user: hello
        model: a=look
        tools: a: seen
        user: hurry"]]
    .assert_eq(&rig.talk());
}

#[test]
fn arguments_that_grow_are_not_shown_at_every_letter() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    for size in 0..20_000 {
        let arguments = "x".repeat(size);
        rig.give(Input::CallDelta { id: "a".into(), name: "write".into(), arguments });
    }
    let shown = rig.lines().lines().filter(|line| line.contains("PartialToolCall")).count();
    assert!((2000..2100).contains(&shown), "{shown}");
}
