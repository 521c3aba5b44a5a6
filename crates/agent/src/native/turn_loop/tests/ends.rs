//! Limits and cancellations.

use expect_test::expect;

use super::*;

#[test]
fn the_limit_of_turns_ends_a_run_before_the_next_step() {
    let mut rig = Rig::new(Limits { turns: Some(1), ..Limits::default() });
    rig.calls(&[("a", "look", "{}")]);
    rig.done("a", "seen");
    assert!(rig.lines().ends_with(
        "end Limit(\"the run has reached its limit of 1 turns: raise `limits.turns` to let it go on\")"
    ));
    assert!(rig.talk().ends_with("tools: a: seen"));
}

#[test]
fn a_run_without_limits_ends_too() {
    let mut rig = Rig::new(Limits::default());
    for number in 0..250 {
        assert!(!rig.lines().contains("end "));
        rig.calls(&[("", "look", "{}")]);
        let id = rig.running.first().map(|call| call.id.clone()).unwrap();
        rig.done(&id, &number.to_string());
    }
    assert!(rig.lines().contains("its limit of 250 turns"));
}

#[test]
fn the_limit_of_tokens_ends_a_run_also_in_the_middle_of_an_answer() {
    let mut rig = Rig::new(Limits { tokens: Some(100), ..Limits::default() });
    rig.calls(&[("a", "look", "{}")]);
    rig.done("a", "seen");
    rig.lines();
    for _ in 0..30 {
        rig.give(Input::Text("some more words ".into()));
    }
    let lines = rig.lines();
    assert!(lines.contains("hush\nassistant some more words"), "{lines}");
    assert!(lines.contains("its limit is 100: raise `limits.tokens`"), "{lines}");
}

#[test]
fn the_limit_of_cost_ends_a_run() {
    let mut rig = Rig::new(Limits { cost: Some(20.0), ..Limits::default() });
    rig.calls(&[("a", "look", "{}")]);
    rig.done("a", "seen");
    rig.calls(&[("b", "look", "{}")]);
    rig.done("b", "seen");
    assert!(rig.lines().contains("the run has cost 30.0000 US dollars, and its limit is 20.0000"));
    assert_eq!(rig.turn.spent().1, Some(30.0));
}

#[test]
fn a_cost_limit_without_prices_is_told() {
    let limits = Limits { cost: Some(20.0), ..Limits::default() };
    let mut turn = TurnLoop::new(Conversation::default(), limits, None, ATTEMPTS);
    turn.start(vec![UserPart::Text("hello".into())]);
    let effects: Vec<String> =
        std::iter::from_fn(|| turn.next_effect()).map(|effect| line(&effect)).collect();
    assert!(effects.join("\n").contains("task limit: the cost limit cannot be held"));
}

#[test]
fn a_cancelled_answer_stays_said() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    rig.give(Input::Text("I am about to".into()));
    rig.give(Input::Stop(TurnStop::Cancelled));
    rig.give(Input::Text("too late".into()));
    rig.says("too late");
    expect![[r"
        ~I am about to
        hush
        assistant I am about to
        keep
        end Cancelled"]]
    .assert_eq(&rig.lines());
    assert!(rig.talk().ends_with("model: I am about to"));
}

#[test]
fn calls_of_a_cancelled_run_have_results_whether_they_began_or_not() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "write", "{}"), ("b", "write", "{}")]);
    rig.lines();
    rig.give(Input::Stop(TurnStop::Cancelled));
    assert_eq!(rig.lines(), "cancel calls");
    rig.give(Input::Stop(TurnStop::Cancelled));
    assert_eq!(rig.lines(), "", "the second time it is nothing");
    rig.done("a", "was cancelled");
    expect![[r"
        completed a
        ~
        keep
        ~StepCompleted { step: 1 }
        end Cancelled"]]
    .assert_eq(&rig.lines());
    expect![[r"
        user: hello
        model: a=write b=write
        tools: a: was cancelled | b!: This call was not begun: the run was ended before it."]]
    .assert_eq(&rig.talk());
}

#[test]
fn a_store_that_fails_ends_the_run_at_once() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "write", "{}")]);
    rig.lines();
    rig.give(Input::Failed(AgentError::Store { message: "full".into() }));
    assert_eq!(rig.lines(), "cancel calls\nhush\nfail [store_error] full");
    rig.done("a", "late");
    assert_eq!(rig.lines(), "");
}

#[test]
fn tokens_of_subagents_count() {
    let mut rig = Rig::new(Limits { tokens: Some(1000), ..Limits::default() });
    rig.calls(&[("a", "look", "{}")]);
    rig.give(Input::CallDone(CallDone {
        id: "a".into(),
        content: vec![UserPart::Text("seen".into())],
        is_error: false,
        result: RawJson::empty_object(),
        is_part: false,
        usage: Usage { input: 900, output: 200, ..Usage::default() },
        cost: Some(2.0),
    }));
    assert!(rig.lines().contains("the run has used 1115 tokens"));
    assert_eq!(rig.turn.spent().1, Some(17.0));
}
