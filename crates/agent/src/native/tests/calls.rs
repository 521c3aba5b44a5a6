//! Calls of built-in tools and of servers, through gate and guard.

use expect_test::expect;
use serde_json::json;

use super::rig::{Setup, content, function};
use super::*;
use crate::custom_tools::CustomOutput;
use crate::event::EventKind;
use crate::native::model::Message;
use crate::options::{Mode, PromptImage};

#[tokio::test]
async fn a_run_writes_reads_and_ends() {
    let mut rig = Rig::new(vec![
        answer(vec![text("I write."), call("w", "write", json!({"path": "a.txt", "content": "hello"}))]),
        answer(vec![call("r", "read", json!({"path": "a.txt"})), call("l", "ls", json!({"path": "."}))]),
        says("It says hello."),
    ]);
    let end = rig.run("write and read").await.unwrap();
    assert_eq!(end.result.as_deref(), Some("It says hello."));
    assert_eq!(end.usage.total(), 330);
    assert_eq!(end.cost, Some(330.0));
    assert_eq!(std::fs::read_to_string(rig.cwd().join("a.txt")).unwrap(), "hello");
    assert!(rig.results(2).contains("hello"), "{}", rig.results(2));
    let lines = rig.lines();
    let ends = |line: &str| lines.lines().position(|one| one == line).unwrap();
    assert!(
        ends("running r read") < ends("completed r") && ends("running l ls") < ends("completed r"),
        "{lines}"
    );
    expect![[r"
        keep
        assistant I write. w=write
        usage 110
        keep
        running w write
        completed w
        keep
        assistant r=read l=ls
        usage 220"]]
    .assert_eq(&lines.lines().take(9).collect::<Vec<_>>().join("\n"));
    assert!(lines.ends_with("assistant It says hello.\nusage 330\nkeep"), "{lines}");
}

#[tokio::test]
async fn a_programs_function_is_called_and_shown_as_mcp() {
    let echo = function("echo", |args| CustomOutput::Text(format!("you said {args}")));
    let setup = Setup { custom: vec![echo], ..Setup::default() };
    let replies = vec![answer(vec![call("e", "custom-user-tools__echo", json!({"n": 1}))]), says("done")];
    let mut rig = Rig::with(setup, replies);
    rig.run("call it").await.unwrap();
    assert_eq!(rig.results(1), "e: you said {\"n\":1}");
    let events = rig.notes.events.lock().unwrap().clone();
    let call = events.iter().find_map(|event| match event {
        EventKind::ToolCall(call) => Some(call.clone()),
        _ => None,
    });
    let call = call.unwrap();
    assert_eq!(call.name, "mcp");
    assert_eq!(
        call.args.unwrap().text(),
        r#"{"providerIdentifier":"custom-user-tools","toolName":"echo","args":{"n":1}}"#
    );
}

#[tokio::test]
async fn pictures_of_tools_and_of_the_user_reach_the_model() {
    let shot = json!({"content": [{"type": "text", "text": "see"}, {"type": "image", "data": "QUJD", "mimeType": "image/png"}]});
    let shot = shot.as_object().cloned().unwrap();
    let tool = function("shot", move |_| CustomOutput::Result(shot.clone()));
    let setup = Setup { custom: vec![tool], ..Setup::default() };
    let replies = vec![answer(vec![call("s", "custom-user-tools__shot", json!({}))]), says("a picture")];
    let mut rig = Rig::with(setup, replies);
    rig.turn.images = vec![PromptImage { mime_type: "image/jpeg".into(), data: "QUJD".into() }];
    rig.run("look").await.unwrap();
    assert_eq!(rig.results(1), "s: see\n<image/png>");
    let Some(Message::User(parts)) = rig.asked(0).messages.first().cloned() else { panic!("no prompt") };
    assert_eq!(content(&parts), "look\n<image/jpeg>");
}

#[tokio::test]
async fn a_denied_call_gets_a_refusal_and_touches_nothing() {
    let setup = Setup { deny: vec!["Write(**/secret.txt)".into()], ..Setup::default() };
    let replies = vec![
        answer(vec![call("w", "write", json!({"path": "secret.txt", "content": "x"}))]),
        says("refused"),
    ];
    let mut rig = Rig::with(setup, replies);
    rig.run("write").await.unwrap();
    assert!(rig.results(1).contains("permission denied"), "{}", rig.results(1));
    assert!(!rig.cwd().join("secret.txt").exists());
    assert!(rig.lines().contains("error w"));
}

#[tokio::test]
async fn a_large_answer_of_a_built_in_tool_is_shown_in_part_and_read_on() {
    let replies = vec![answer(vec![call("s", "shell", json!({"command": "seq 1 60000"}))]), says("large")];
    let setup = Setup { disallowed: vec!["mcp".into()], ..Setup::default() };
    let mut rig = Rig::with(setup, replies);
    rig.run("count").await.unwrap();
    let shown = rig.results(1);
    assert!(shown.chars().count() <= 40_100, "{}", shown.len());
    assert!(rig.asked(1).tools.contains(&"toolway_saved".to_owned()), "{:?}", rig.asked(1).tools);
}

#[tokio::test]
async fn without_mcp_no_tool_of_a_server_is_offered() {
    let echo = function("echo", |_| CustomOutput::Text("x".into()));
    let setup = Setup { custom: vec![echo], disallowed: vec!["mcp".into()], ..Setup::default() };
    let mut rig = Rig::with(setup, vec![says("nothing")]);
    rig.run("go").await.unwrap();
    let tools = rig.asked(0).tools;
    assert!(!tools.iter().any(|tool| tool.contains("echo")), "{tools:?}");
    assert!(tools.contains(&"shell".to_owned()) && tools.contains(&"task".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn a_plan_is_made_without_tools_that_write() {
    let quiet = function("quiet", |_| CustomOutput::Text("x".into()));
    let mut reads = function("reads", |_| CustomOutput::Text("x".into()));
    reads.annotations = json!({"readOnlyHint": true}).as_object().cloned();
    let setup = Setup { custom: vec![quiet, reads], plan_reads_only: true, ..Setup::default() };
    let mut rig = Rig::with(setup, vec![says("the plan")]);
    rig.turn.mode = Mode::Plan;
    rig.run("plan").await.unwrap();
    let asked = rig.asked(0);
    for gone in ["shell", "write", "edit", "delete", "custom-user-tools__quiet"] {
        assert!(!asked.tools.contains(&gone.to_owned()), "{gone} {:?}", asked.tools);
    }
    for there in ["read", "grep", "updateTodos", "task", "custom-user-tools__reads"] {
        assert!(asked.tools.contains(&there.to_owned()), "{there} {:?}", asked.tools);
    }
    assert!(asked.system.contains("change nothing"));
}

#[tokio::test]
async fn a_turn_is_one_request_and_kept_twice() {
    let look = |number: usize| answer(vec![call("", "glob", json!({"pattern": format!("*.{number}")}))]);
    let mut replies: Vec<_> = (0..100).map(look).collect();
    replies.push(says("done"));
    let mut rig = Rig::new(replies);
    rig.run("go").await.unwrap();
    assert_eq!(rig.script.asked.lock().unwrap().len(), 101);
    let kept = rig.lines().lines().filter(|line| *line == "keep").count();
    // With its answer before the call is made, and with the result.
    assert_eq!(kept, 202);
}
