//! Subagents: their own conversation, servers and words, inside of one call.

use std::collections::BTreeMap;

use serde_json::json;

use super::rig::{Setup, function};
use super::*;
use crate::custom_tools::CustomOutput;
use crate::options::{AgentDefinition, Limits, SubagentServers};

fn setup(servers: Option<Vec<SubagentServers>>) -> Setup {
    let echo = function("echo", |args| CustomOutput::Text(format!("echo {args}")));
    let reader = AgentDefinition {
        description: "reads".into(),
        prompt: "You read only.".into(),
        model: Some("other".into()),
        mcp_servers: servers,
    };
    Setup { custom: vec![echo], agents: BTreeMap::from([("reader".to_owned(), reader)]), ..Setup::default() }
}

fn task(prompt: &str) -> rig::Reply {
    answer(vec![call("t", "task", json!({"agent": "reader", "prompt": prompt, "description": "it reads"}))])
}

#[tokio::test]
async fn a_subagent_works_by_itself_and_answers_once() {
    let mut rig = Rig::with(
        setup(None),
        vec![
            task("find the number"),
            answer(vec![text("I call."), call("e", "custom-user-tools__echo", json!({"n": 7}))]),
            says("It is 7."),
            says("The reader says 7."),
        ],
    );
    let end = rig.run("ask it").await.unwrap();
    assert_eq!(end.usage.total(), 440, "its tokens count");
    assert_eq!(rig.results(3), "t: It is 7.");
    let its = rig.asked(1);
    assert_eq!(its.model, "other");
    assert!(its.system.starts_with("You read only."), "{}", its.system);
    assert!(!its.tools.contains(&"task".to_owned()), "one level only");
    assert!(its.tools.contains(&"custom-user-tools__echo".to_owned()), "it has all of its parent's servers");
    assert_eq!(its.messages.len(), 1, "a conversation of its own");
    let lines = rig.lines();
    assert!(lines.contains("task subagent: reader: I call."), "{lines}");
    assert!(lines.contains("task subagent: reader: calls echo of custom-user-tools"), "{lines}");
    assert!(!lines.contains("running e"), "its calls are no calls of the run: {lines}");
}

#[tokio::test]
async fn a_subagent_has_only_the_servers_that_it_names() {
    let mut rig = Rig::with(
        setup(Some(Vec::new())),
        vec![
            task("call echo"),
            answer(vec![call("e", "custom-user-tools__echo", json!({}))]),
            says("I have none."),
            says("done"),
        ],
    );
    rig.run("ask it").await.unwrap();
    assert!(!rig.asked(1).tools.iter().any(|tool| tool.contains("echo")), "{:?}", rig.asked(1).tools);
    assert!(rig.results(2).contains("There is no tool"), "{}", rig.results(2));
    let named = Some(vec![SubagentServers::Named("custom-user-tools".into())]);
    let mut rig = Rig::with(setup(named), vec![task("look"), says("yes"), says("done")]);
    rig.run("ask it").await.unwrap();
    assert!(rig.asked(1).tools.contains(&"custom-user-tools__echo".to_owned()));
}

#[tokio::test]
async fn a_subagent_whose_server_is_not_in_this_run_says_so() {
    let named = Some(vec![SubagentServers::Named("gone".into())]);
    let mut rig = Rig::with(setup(named), vec![task("look"), says("done")]);
    rig.run("ask it").await.unwrap();
    assert!(rig.results(1).contains("there is no server \"gone\""), "{}", rig.results(1));
}

#[tokio::test]
async fn the_limits_of_a_run_hold_for_its_subagents() {
    let mut rig = Rig::with(
        setup(None),
        vec![
            task("go on and on"),
            answer(vec![call("e1", "custom-user-tools__echo", json!({"n": 1}))]),
            answer(vec![call("e2", "custom-user-tools__echo", json!({"n": 2}))]),
            says("never asked"),
        ],
    );
    rig.turn.limits = Limits { tokens: Some(300), ..Limits::default() };
    let end = rig.run("ask it").await.unwrap();
    assert!(matches!(end.stop, crate::engine::TurnStop::Limit(_)), "{:?}", end.stop);
    assert_eq!(rig.script.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_cancellation_reaches_a_subagent() {
    let mut rig = Rig::with(setup(None), vec![task("wait"), Vec::new()]);
    let cancel = tokio_util::sync::CancellationToken::new();
    rig.turn.cancel = cancel.clone();
    *rig.notes.cancel_at_call.lock().unwrap() = Some(cancel);
    let run = tokio::time::timeout(std::time::Duration::from_mins(1), rig.run("ask it"));
    assert_eq!(run.await.unwrap().unwrap().stop, crate::engine::TurnStop::Cancelled);
    assert!(rig.lines().contains("error t"));
}

#[tokio::test]
async fn a_host_that_tells_of_skills_tells_its_model_and_subagents_read_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("SKILL.md");
    std::fs::write(&file, "---\nname: tidy\ndescription: how to tidy up\n---\nTidy.\n").unwrap();
    let skill = toolway_bridge::Skill {
        name: "tidy".into(),
        description: "how to tidy up".into(),
        file_path: file.display().to_string(),
        base_dir: dir.path().display().to_string(),
        disable_model_invocation: false,
    };
    for (skills_by_host, told) in [(false, true), (true, false)] {
        let mut setup = Setup { skills_by_host, ..setup(None) };
        setup.context.skills.push(skill.clone());
        let mut rig = Rig::with(setup, vec![task("look"), says("yes"), says("done")]);
        rig.run("ask it").await.unwrap();
        assert_eq!(rig.asked(0).system.contains("how to tidy up"), told);
        assert!(rig.asked(1).system.contains("how to tidy up"), "{}", rig.asked(1).system);
    }
}
