//! Behaviour of the stage: which of the events are shown, once, and when.

#![expect(clippy::needless_pass_by_value, reason = "values are built where they are passed")]

mod properties;

use std::time::Duration;

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
fn a_secret_that_is_cut_in_two_shows_in_neither_piece() {
    let now = Instant::now();
    let (word, token) = ("Zq9xW8vU7tS6rQ5p", "3f2b8c1e-9d4a-4f6b-8a7c-0123456789ab");
    let github = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    for (text, secret) in [
        (format!("see {github} there"), github.as_str()),
        (format!("Authorization: Bearer {word}"), word),
        (format!("API_KEY={word} make"), word),
        (format!("{{\"token\":\"{word}\"}}"), word),
        (format!("clone https://joe:{word}@h.example/x"), word),
        (format!("Cookie: sid={word}"), word),
        (format!("http://127.0.0.1:4312/{}/{token}/mcp", Profile::PI.path_segment), token),
    ] {
        for cut in 1..text.len() {
            let mut stage = stage();
            stage.on(&shell("a"), now);
            let mut shown = String::new();
            let (before, after) = text.split_at(cut);
            for piece in [before, after] {
                let piece =
                    AgentToolEvent::Output { id: None, stream: OutputStream::Stdout, text: piece.to_owned() };
                shown.extend(lines(&stage.on(&piece, now)).into_iter().map(str::to_owned));
            }
            // Parts of a few letters cannot be told from anything else.
            for part in secret.as_bytes().windows(6) {
                let part = std::str::from_utf8(part).unwrap();
                assert!(!shown.contains(part), "{text} cut at {cut}: {shown}");
            }
        }
    }
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
