//! Behaviour of the stage: which of the events are shown, once, and when.

#![expect(clippy::needless_pass_by_value, reason = "values are built where they are passed")]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::RawJson;
use crate::replay::activity::ToolStatus;
use crate::replay::preview::Disk;
use crate::settings::TaskPresentation;

fn context() -> ReplayContext {
    let names = ["read", "bash", "grep", "find", "ls", "edit", "write", "cursor"].map(str::to_owned);
    ReplayContext {
        profile: Profile::PI,
        owner: "s".to_owned(),
        display: true,
        print_mode: false,
        wrappers: names.clone().into(),
        context_tools: names.into(),
        live_run: true,
        cwd: "/w".into(),
        task_presentation: TaskPresentation::default(),
        started_ms: 1_700_000_000_000,
        turn: 3,
    }
}

fn stage() -> Replay {
    Replay::new(context(), Scrubber::new(), Arc::new(Disk))
}

fn call(id: &str, kind: &str, args: Value, result: Option<Value>) -> ToolActivity {
    ToolActivity {
        id: id.to_owned(),
        kind: kind.to_owned(),
        args: RawJson::of(&args),
        status: if result.is_some() { ToolStatus::Completed } else { ToolStatus::Running },
        result: result.map(|value| RawJson::of(&json!({"status": "success", "value": value}))),
    }
}

fn shell(id: &str) -> AgentToolEvent {
    AgentToolEvent::Started(call(id, "shell", json!({"command": "make"}), None))
}

fn shell_over(id: &str, out: &str) -> AgentToolEvent {
    AgentToolEvent::Completed(call(
        id,
        "shell",
        json!({"command": "make"}),
        Some(json!({"stdout": out, "exitCode": 0})),
    ))
}

fn is_card(out: &[ReplayOutput]) -> bool {
    matches!(out, [ReplayOutput::Card { .. }])
}

fn lines(out: &[ReplayOutput]) -> Vec<&str> {
    out.iter()
        .map(|it| match it {
            ReplayOutput::Trace(trace) => trace.text.trim_end(),
            ReplayOutput::Debug(text) => text,
            ReplayOutput::Card { .. } => "a card",
        })
        .collect()
}

#[test]
fn ids_have_the_form_of_the_profile_and_each_its_own_number() {
    let now = Instant::now();
    for profile in Profile::ALL {
        let mut stage = Replay::new(ReplayContext { profile, ..context() }, Scrubber::new(), Arc::new(Disk));
        stage.on(&shell("a"), now);
        let out = stage.on(&shell_over("a", "x"), now);
        let [ReplayOutput::Card { id, .. }] = out.as_slice() else { panic!("{out:?}") };
        assert_eq!(id.as_str(), format!("{}1700000000000-3-tool-1", profile.replay_prefix));
        stage.on(&shell("b"), now);
        let out = stage.on(&shell_over("b", "x"), now);
        let [ReplayOutput::Card { id, .. }] = out.as_slice() else { panic!("{out:?}") };
        assert!(id.as_str().ends_with("-tool-2"));
    }
}

#[test]
fn a_completion_shows_once_however_often_it_arrives() {
    let (mut stage, now) = (stage(), Instant::now());
    stage.on(&shell("a"), now);
    assert!(is_card(&stage.on(&shell_over("a", "x"), now)));
    // The step, without an id, and the transcript after the run, with the same id.
    assert!(stage.on(&shell_over("", "x"), now).is_empty());
    assert!(stage.on(&shell_over("a", "x"), now).is_empty());
    assert!(stage.on(&shell_over("other", "x"), now).is_empty());
    assert!(is_card(&stage.on(&shell_over("", "y"), now)));
}

#[test]
fn two_started_calls_with_the_same_result_both_show() {
    let (mut stage, now) = (stage(), Instant::now());
    stage.on(&shell("a"), now);
    stage.on(&shell("b"), now);
    assert!(is_card(&stage.on(&shell_over("a", "x"), now)));
    assert!(is_card(&stage.on(&shell_over("b", "x"), now)));
}

#[test]
fn a_started_call_does_not_show_again_what_its_twin_without_a_start_has_shown() {
    let (mut stage, now) = (stage(), Instant::now());
    stage.on(&shell("a"), now);
    stage.on(&shell("b"), now);
    // Whose completion it is cannot be told: both starts fit.
    assert!(is_card(&stage.on(&shell_over("x", "x"), now)));
    assert!(stage.on(&shell_over("a", "x"), now).is_empty());
    assert!(is_card(&stage.on(&shell_over("b", "x"), now)));
}

#[test]
fn a_completion_under_another_id_clears_the_only_start_that_fits() {
    let (mut stage, now) = (stage(), Instant::now());
    let args = |id: &str| json!({"command": "make", "toolCallId": id});
    stage.on(&AgentToolEvent::Started(call("a", "shell", args("a"), None)), now);
    stage.on(
        &AgentToolEvent::Output { id: None, stream: OutputStream::Stdout, text: "hello".to_owned() },
        now,
    );
    let over = AgentToolEvent::Completed(call("b", "shell", args("b"), Some(json!({}))));
    let out = stage.on(&over, now);
    let [ReplayOutput::Card { card, .. }] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(card.text(), "hello");
    assert_eq!(stage.next_due(), None);
    assert!(stage.finish(RunEnd::Failed).is_empty());
}

#[test]
fn a_completion_under_another_id_counts_for_its_start_and_hides_no_later_call() {
    let (mut stage, now) = (stage(), Instant::now());
    for (start, end) in [("a", "x"), ("b", "y"), ("c", "c")] {
        stage.on(&shell(start), now);
        assert!(is_card(&stage.on(&shell_over(end, "same"), now)), "{start}");
        // The transcript after the run, under the id of the start.
        assert!(stage.on(&shell_over(start, "same"), now).is_empty(), "{start}");
    }
}

#[test]
fn lesson_38_pending_lines_come_after_75_ms_and_never_after_the_end() {
    let (mut stage, now) = (stage(), Instant::now());
    let at = |ms: u64| now + Duration::from_millis(ms);
    stage.on(&shell("a"), now);
    assert_eq!(stage.next_due(), Some(at(75)));
    assert!(stage.poll(at(74)).is_empty());
    assert_eq!(lines(&stage.poll(at(75))), ["Cursor shell is running: make"]);
    assert_eq!(stage.next_due(), None);
    // The same call again says nothing new.
    stage.on(&shell("b"), at(80));
    assert!(stage.poll(at(200)).is_empty());
    stage.on(
        &AgentToolEvent::Started(call(
            "c",
            "task",
            json!({"description": "look at https://h.example/x in /home/joe/src"}),
            None,
        )),
        at(200),
    );
    stage.on(&AgentToolEvent::Started(call("d", "mcp", json!({"toolName": "t"}), None)), at(200));
    assert_eq!(
        lines(&stage.poll(at(275))),
        ["Cursor subagent is running: look at (address) in src", "Cursor MCP is running: t"]
    );
    stage.on(&AgentToolEvent::Started(call("e", "semSearch", json!({"query": "q"}), None)), at(300));
    stage.finish(RunEnd::Succeeded { text: true });
    assert_eq!((stage.next_due(), stage.poll(at(1000)).len()), (None, 0));
}

#[test]
fn quick_looks_are_not_announced() {
    let (mut stage, now) = (stage(), Instant::now());
    for kind in ["read", "grep", "glob", "ls", "edit", "write", "delete", "odd"] {
        stage.on(&AgentToolEvent::Started(call(kind, kind, json!({"path": "x"}), None)), now);
    }
    assert_eq!(stage.next_due(), None);
    for kind in [
        "task",
        "shell",
        "mcp",
        "generateImage",
        "recordScreen",
        "semSearch",
        "webSearch",
        "createPlan",
        "updateTodos",
    ] {
        stage.on(&AgentToolEvent::Started(call(kind, kind, json!({"path": "x"}), None)), now);
        assert!(stage.next_due().is_some(), "{kind}");
        stage.on(&AgentToolEvent::Completed(call(kind, kind, json!({"path": "x"}), Some(json!({})))), now);
        assert_eq!(stage.next_due(), None, "{kind}");
    }
}

#[test]
fn output_of_a_running_command_shows_in_three_pieces_if_it_is_the_only_one() {
    let (mut stage, now) = (stage(), Instant::now());
    let piece =
        |text: &str| AgentToolEvent::Output { id: None, stream: OutputStream::Stdout, text: text.to_owned() };
    assert!(stage.on(&piece("nobody's"), now).is_empty());
    stage.on(&shell("a"), now);
    assert!(stage.on(&piece(" \n"), now).is_empty());
    let long = stage.on(&piece(&"x".repeat(500)), now);
    assert_eq!(lines(&long)[0].chars().count(), "Cursor shell stdout: ".len() + 160);
    assert_eq!(lines(&stage.on(&piece("token=abc12345"), now)), ["Cursor shell stdout: token=[redacted]"]);
    assert_eq!(stage.on(&piece("\n3\n"), now).len(), 1);
    assert!(stage.on(&piece("4"), now).is_empty());
    let mut torn = self::stage();
    torn.on(&shell("t"), now);
    torn.on(&piece("ghp_aB3dE6gH9jK2mN5p"), now);
    assert!(torn.on(&piece("Q8sT1vW4yZ7bC0eF3hJ6"), now).is_empty());
    stage.on(&shell("b"), now);
    assert!(stage.on(&piece("whose?"), now).is_empty());
    let out = stage.on(&shell_over("a", ""), now);
    let [ReplayOutput::Card { card, .. }] = out.as_slice() else { panic!("{out:?}") };
    assert!(card.text().ends_with("token=[redacted]\n3\n4"), "{}", card.text());
}

#[test]
fn an_update_adds_what_the_start_did_not_say() {
    let (mut stage, now) = (stage(), Instant::now());
    let event = |text: &str| AgentToolEvent::read(&RawJson::new(text.as_bytes().to_vec()).unwrap()).unwrap();
    stage.on(&event(r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Run it","kind":"execute","status":"pending","rawInput":{"command":"ls"}}"#), now);
    let out = stage.on(&event(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a"}}]}"#), now);
    let [ReplayOutput::Card { card, .. }] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(
        (card.tool.as_str(), card.args.text(), card.text().as_str()),
        ("bash", r#"{"command":"ls"}"#, "a")
    );
}

#[test]
fn open_calls_are_bounded() {
    let (mut stage, now) = (stage(), Instant::now());
    for n in 0..OPEN + 500 {
        stage.on(&AgentToolEvent::Started(call(&n.to_string(), "read", json!({}), None)), now);
    }
    assert_eq!(stage.open.len(), OPEN);
    assert_eq!(stage.finish(RunEnd::Aborted).len(), NOTICES + 1);
}

fn anything() -> impl Strategy<Value = Value> {
    let text = "(\\PC|\\n|\u{1b}\\[31m|\u{7}|[a-z /]{0,40}){0,60}";
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null)
    ];
    leaf.prop_recursive(3, 24, 6, move |inner| {
        let key = prop::sample::select(vec![
            "path",
            "command",
            "content",
            "status",
            "success",
            "error",
            "value",
            "oldText",
            "newText",
            "toolName",
            "files",
            "matches",
            "todos",
            "stdout",
            "exitCode",
            "timeout",
            "diff",
            "description",
            "plan",
            "workspaceResults",
            "text",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.prop_map(str::to_owned), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The texts of a value, with the names of members.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) => out.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|inner| texts(inner, out)),
        Value::Object(map) => map.values().for_each(|inner| texts(inner, out)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_output_exceeds_its_limit_or_holds_control_characters(
        kind in prop::sample::select(vec!["read", "shell", "grep", "glob", "ls", "edit", "write", "delete", "readLints", "updateTodos",
            "createPlan", "task", "generateImage", "mcp", "semSearch", "recordScreen", "webFetch", "\u{1b}[31mred\n"]),
        args in anything(), result in anything(), repeat in 1usize..400, route in 0u8..3,
    ) {
        let mut context = context();
        context.display = route != 0;
        if route == 1 { context.context_tools.clear(); }
        let mut stage = Replay::new(context, Scrubber::new(), Arc::new(Disk));
        let grown = match &result {
            Value::String(text) => Value::from(text.repeat(repeat)),
            other => other.clone(),
        };
        let mut over = call("a", kind, args, None);
        over.result = Some(RawJson::of(&grown));
        for output in stage.on(&AgentToolEvent::Completed(over), Instant::now()) {
            let mut all = Vec::new();
            match output {
                ReplayOutput::Trace(trace) => {
                    prop_assert!(trace.text.chars().count() <= TRANSCRIPT.chars + 1);
                    prop_assert!(trace.text.lines().count() <= TRANSCRIPT.lines);
                    prop_assert!(trace.kind != TraceKind::Inactive || trace.text.lines().count() <= 1);
                    all.push(trace.text);
                }
                ReplayOutput::Card { id, card } => {
                    prop_assert!(id.as_str().len() <= 64);
                    prop_assert!(card.summary.chars().count() <= 240 && !card.summary.contains('\n'));
                    prop_assert!(card.title.chars().count() <= 100 && !card.title.contains('\n'));
                    prop_assert!(!card.is_error || card.summary.is_empty());
                    let text = card.text();
                    prop_assert!(text.chars().count() <= TRANSCRIPT.chars && text.lines().count() <= TRANSCRIPT.lines);
                    if card.tool == "read" {
                        prop_assert!(text.chars().count() <= 4_000 && text.lines().count() <= 22);
                    }
                    texts(&card.tool_call("i"), &mut all);
                    texts(&card.tool_result("i"), &mut all);
                }
                ReplayOutput::Debug(text) => all.push(text),
            }
            for text in all {
                prop_assert!(text.chars().all(|char| !char.is_control() || char == '\n' || char == '\t'), "{text:?}");
                prop_assert!(text.chars().count() <= TRANSCRIPT.chars);
            }
        }
    }

    #[test]
    fn no_card_comes_of_a_call_of_the_bridge(steps in prop::collection::vec((0usize..4, 0usize..3), 1..30), hide_at in 0usize..30, end in 0u8..4) {
        let (mut stage, now) = (stage(), Instant::now());
        let own = format!("{}{}-t1", Profile::PI.run_prefix, "0".repeat(32));
        let ids = [own.as_str(), "hidden", "other"];
        stage.hide("hidden");
        let mut shown = 0;
        for (index, (step, id)) in steps.iter().enumerate() {
            if index == hide_at { stage.hide("hidden"); }
            let activity = call(ids[*id], "mcp", json!({"toolName": format!("pi__{id}")}), (*step == 2).then(|| json!({"content": id})));
            let event = match step {
                0 => AgentToolEvent::Started(activity),
                1 => AgentToolEvent::Partial(activity),
                2 => AgentToolEvent::Completed(activity),
                _ => AgentToolEvent::Output { id: Some(ids[*id].to_owned()), stream: OutputStream::Stdout, text: "x".to_owned() },
            };
            shown += stage.on(&event, now).len() + stage.poll(now + Duration::from_secs(1)).len();
        }
        let end = [RunEnd::Failed, RunEnd::Aborted, RunEnd::Drained, RunEnd::Succeeded { text: false }][usize::from(end)];
        shown += stage.finish(end).len();
        let others = steps.iter().any(|(step, id)| *id == 2 && *step < 3);
        prop_assert!(others || shown == 0);
    }
}
