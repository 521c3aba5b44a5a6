//! Calls: their order, what is told of them, and those that cannot be made.

use expect_test::expect;

use super::*;

#[test]
fn calls_that_read_run_together_and_others_in_order() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    rig.calls(&[
        ("a", "look", "{}"),
        ("b", "peek", ""),
        ("c", "write", r#"{"n":1e400}"#),
        ("d", "look", "{}"),
    ]);
    rig.done("b", "two");
    rig.done("a", "one");
    rig.done("c", "three");
    rig.done("d", "four");
    expect![[r#"
        assistant a=look{} b=peek{} c=write{"n":1e400} d=look{}
        usage 15
        ~
        keep
        running a look {}
        ~
        running b peek {}
        ~
        run a b
        completed b
        ~
        completed a
        ~
        keep
        running c write {"n":1e400}
        ~
        run c
        completed c
        ~
        keep
        running d look {}
        ~
        run d
        completed d
        ~
        keep
        ~StepCompleted { step: 1 }
        ~StepStarted { step: 2 }
        ask after 0 ms"#]]
    .assert_eq(&rig.lines());
    expect![[r"
        user: hello
        model: a=look b=peek c=write d=look
        tools: a: one | b: two | c: three | d: four"]]
    .assert_eq(&rig.talk());
}

#[test]
fn a_tool_of_a_server_on_its_way_is_not_called_with_arguments_that_are_none() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "late__put", r#"{"n":1}"#), ("b", "late__put", r#"{"n":"#), ("c", "late__put", "[1]")]);
    let begun: Vec<(&str, &str)> =
        rig.running.iter().map(|call| (call.id.as_str(), call.arguments.text())).collect();
    assert_eq!(begun, [("a", r#"{"n":1}"#)]);
    rig.done("a", "one");
    let talk = rig.talk();
    assert!(talk.contains("a: one | b!: late__put was not called: its arguments are no JSON"), "{talk}");
    assert!(talk.contains("c!: late__put was not called: its arguments have to be a JSON object"), "{talk}");
}

#[test]
fn white_space_around_arguments_is_nobodys() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "files__get", "\n {\"n\": 1}\r\n"), ("b", "look", "\"\\n{}\"")]);
    let begun: Vec<&str> = rig.running.iter().map(|call| call.arguments.text()).collect();
    assert_eq!(begun, [r#"{"n": 1}"#, "{}"]);
}

#[test]
fn a_servers_tool_is_shown_as_mcp_with_its_pair() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "files__get", r#"{"big":123456789012345678901234567890}"#)]);
    assert!(rig.lines().contains(
        r#"running a mcp {"providerIdentifier":"files","toolName":"get","args":{"big":123456789012345678901234567890}}"#
    ));
}

#[test]
fn calls_that_cannot_be_made_have_results_and_the_others_run() {
    let mut rig = Rig::new(Limits::default());
    rig.lines();
    rig.calls(&[
        ("a", "Get", "{}"),
        ("b", "look", "{oops"),
        ("c", "look", "[1]"),
        ("d", "look", "{}"),
        ("e", "", "{}"),
        ("f", "look", &format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200))),
    ]);
    assert_eq!(rig.running.len(), 1);
    rig.done("d", "seen");
    let talk = rig.talk();
    for part in [
        "a!: There is no tool \"Get\". Did you mean files__get? There are: files__get, look, peek, write.",
        "b!: look was not called: its arguments are no JSON",
        "c!: look was not called: its arguments have to be a JSON object, and they are: [1]",
        "d: seen",
        "e!: There is no tool \"\".",
        "f!: look was not called: its arguments are nested more than 100 deep.",
    ] {
        assert!(talk.contains(part), "{part}\n{talk}");
    }
    let lines = rig.lines();
    assert!(lines.contains("running b look \"{oops\"\nerror b"), "{lines}");
    assert!(lines.ends_with("ask after 0 ms"), "{lines}");
}

#[test]
fn an_object_that_was_written_as_a_text_is_taken_as_meant() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "look", r#""{\"path\":\"x\"}""#), ("b", "look", "null")]);
    let arguments: Vec<&str> = rig.running.iter().map(|call| call.arguments.text()).collect();
    assert_eq!(arguments, [r#"{"path":"x"}"#, "{}"]);
}

#[test]
fn ids_that_are_empty_or_were_there_are_replaced() {
    let mut rig = Rig::new(Limits::default());
    rig.calls(&[("a", "look", "{}"), ("a", "peek", "{}"), ("", "look", "{}")]);
    let ids: Vec<String> = rig.running.iter().map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), 3);
    assert_eq!(ids.first().map(String::as_str), Some("a"));
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert!(distinct.len() == 3 && !ids.iter().any(String::is_empty), "{ids:?}");
    for id in ids {
        rig.done(&id, "x");
    }
    rig.calls(&[("a", "look", "{}")]);
    assert!(rig.running.iter().all(|call| call.id != "a"));
}

#[test]
fn a_model_that_only_makes_calls_that_cannot_be_made_is_stopped() {
    let mut rig = Rig::new(Limits::default());
    for number in 0..8 {
        assert!(!rig.lines().contains("end "));
        rig.calls(&[("", &format!("none{number}"), "{}")]);
    }
    assert!(
        rig.lines().contains("end Limit(\"the model asked 8 times in a row for calls that cannot be made")
    );
}

#[test]
fn a_model_that_makes_the_same_call_again_and_again_is_told_and_then_stopped() {
    let mut rig = Rig::new(Limits::default());
    for number in 1..=20 {
        assert!(!rig.lines().contains("end "), "{number}");
        rig.calls(&[("", "look", "{}")]);
        let id = rig.running.first().map(|call| call.id.clone()).unwrap();
        rig.done(&id, "the same");
    }
    assert!(rig.talk().contains("user: You have made the same calls 5 times in a row"));
    assert!(rig.lines().contains("end Limit(\"the model made the same calls 20 times in a row"));
}

#[test]
fn waiting_for_something_that_changes_is_no_loop() {
    let mut rig = Rig::new(Limits::default());
    for number in 1..=60 {
        rig.calls(&[("", "look", "{}")]);
        let id = rig.running.first().map(|call| call.id.clone()).unwrap();
        rig.done(&id, &format!("{number} per cent"));
    }
    assert!(!rig.lines().contains("end ") && !rig.talk().contains("in a row"));
}

#[test]
fn an_answer_with_more_calls_than_are_made_gets_results_for_all() {
    let mut rig = Rig::new(Limits::default());
    let many: Vec<(String, &str, &str)> =
        (0..100).map(|number| (format!("c{number}"), "write", "{}")).collect();
    let many: Vec<(&str, &str, &str)> =
        many.iter().map(|(id, name, args)| (id.as_str(), *name, *args)).collect();
    rig.calls(&many);
    for number in 0..64 {
        rig.done(&format!("c{number}"), "x");
    }
    assert!(rig.talk().contains("c99!: This call was not made: an answer may have 64 calls"));
    assert!(rig.lines().ends_with("ask after 0 ms"));
}
