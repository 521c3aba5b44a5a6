//! Calls of the host's tools in turns, cards, skills and reports.

use super::*;
use crate::replay::AgentToolEvent;

async fn result(waiter: &mut Waiter) -> String {
    loop {
        match waiter.next().await {
            Update::Progress(_) => {}
            Update::Result(result) => return String::from_utf8(result.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_the_turn_and_the_next_one_brings_its_result_to_the_same_agent() {
    let mut stage = Stage::new().await;
    let turn = stage.start(&[user("do it")]).await;
    let mut agent = stage.agent().await;
    agent.prompts.recv().await.unwrap();
    agent.text("I look").await;
    assert_eq!(stage.event(turn).await["kind"], "text");
    let mut waiter = stage.call("pi__todo");
    let begun = stage.event(turn).await;
    let id = begun["call"].as_str().unwrap().to_owned();
    assert!(id.starts_with("cursor-pi-bridge-run-") && id.len() <= 64, "{id}");
    assert_eq!(begun, json!({"kind": "toolCallStart", "index": 1, "call": id, "tool": "todo"}));
    let arguments = r#"{"n":9007199254740993}"#;
    assert_eq!(stage.event(turn).await, json!({"kind": "toolCallDelta", "index": 1, "json": arguments}));
    let whole = stage.event(turn).await;
    assert_eq!(
        (whole["kind"].as_str(), whole["arguments"].to_string().as_str()),
        (Some("toolCallEnd"), arguments)
    );
    let end = stage.event(turn).await;
    assert_eq!(
        (end["stop"].as_str(), end["content"][1]["call"].as_str()),
        (Some("toolUse"), Some(id.as_str()))
    );

    assert_eq!(stage.ask("call/admit", json!({"call": id})).await, json!({"admitted": true}));
    let progress = json!({"call": id, "progress": 1});
    assert_eq!(stage.ask("call/progress", progress).await, json!({"accepted": true}));
    let report = stage.ask("report/read", json!({})).await;
    let run = &report["data"]["run"];
    assert_eq!((run["pending"].as_u64(), run["run"].as_str()), (Some(1), Some(stage.run().id())), "{report}");

    let [call, done] = ran(&end["content"][1], "milk");
    let next = stage.start(&[user("do it"), call, done]).await;
    assert!(result(&mut waiter).await.contains("milk"));
    agent.text("there is milk").await;
    agent.finish().await;
    let end = stage.end(next).await;
    assert_eq!((&end["stop"], &end["content"][0]["text"]), (&json!("stop"), &json!("there is milk")));
    assert!(agent.prompts.try_recv().is_err(), "it was sent to once");
    assert!(stage.agents.try_recv().is_err());
    let late = stage.ask("call/admit", json!({"call": id})).await;
    assert_eq!(late["admitted"], false, "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_host() {
    let mut stage = Stage::new().await;
    let (_agent, _waiter, _, call) = stage.at_work().await;
    let run = stage.run().id().to_owned();
    stage.run().cancel_request(Origin { session: 1, request: Id::from_number(1) });
    let (method, params) = stage.note().await;
    assert_eq!(method, "call/cancelled");
    assert_eq!((&params["call"], &params["run"]), (&call["call"], &json!(run)));
    assert_eq!(stage.ask("call/admit", json!({"call": call["call"]})).await["admitted"], false);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_the_host_removes_is_gone_at_once_and_changed_ones_with_the_next_agent() {
    let mut stage = Stage::new().await;
    let (mut agent, mut waiter, _, call) = stage.at_work().await;
    let declared = stage.declare(&["sem", "more"]).await;
    assert_eq!(declared["removed"], json!(["todo"]));
    assert!(result(&mut waiter).await.contains("has removed its tool"));
    let (method, _) = stage.note().await;
    assert_eq!(method, "call/cancelled");
    agent.finish().await;
    let [called, done] = ran(&call, "too late");
    let said = [user("do it"), called, done, json!({"role": "assistant", "content": "ok"}), user("and now?")];
    let turn = stage.start(&said).await;
    let mut other = stage.agent().await;
    let prompt = other.prompts.recv().await.unwrap().text;
    assert!(prompt.contains("pi__more") && !prompt.contains("pi__todo"), "{prompt}");
    other.finish().await;
    stage.end(turn).await;
    assert!(agent.prompts.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_itself_did_is_a_card_whose_record_is_taken_once() {
    let mut stage = Stage::new().await;
    let more = json!({"contextTools": ["bash"], "wrappers": ["bash"], "display": "tui"});
    let turn = stage.start_with(&[user("look")], more.clone()).await;
    let mut agent = stage.agent().await;
    agent.prompts.recv().await.unwrap();
    for kind in ["tool-call-started", "tool-call-completed"] {
        let event = json!({"type": kind, "callId": "c1", "toolCall": {"type": "shell", "args": {"command": "ls"},
            "result": {"status": "success", "value": {"stdout": "a\nb", "exitCode": 0}}}});
        agent.tell(AgentEvent::Tool(AgentToolEvent::read(&RawJson::of(&event)).unwrap())).await;
    }
    let end = stage.end(turn).await;
    assert_eq!(end["stop"], "toolUse", "{end}");
    let card = end["content"].as_array().unwrap().last().unwrap().clone();
    let id = card["call"].as_str().unwrap().to_owned();
    assert!(id.starts_with("cursor-replay-"), "{card}");
    assert_eq!(card["tool"], "bash");
    let take = |tool: &str| json!({"id": id, "tool": tool});
    assert_eq!(stage.ask("call/admit", json!({"call": id})).await, json!({"admitted": true}));
    let foreign = stage.ask("replay/take", take("read")).await;
    assert_eq!(foreign["code"], -32001, "{foreign}");
    let taken = stage.ask("replay/take", take("bash")).await;
    assert_eq!((&taken["recorded"], &taken["isError"]), (&json!(true), &json!(false)));
    assert!(taken["content"].to_string().contains("a\\nb"), "{taken}");
    assert_eq!(stage.ask("replay/take", take("bash")).await["code"], -32001);

    let [called, done] = ran(&card, "a\nb");
    let next = stage.start_with(&[user("look"), called, done], more).await;
    agent.text("two files").await;
    agent.finish().await;
    assert_eq!(stage.end(next).await["content"], json!([{"kind": "text", "text": "two files"}]));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_has_the_skill_tool_itself_asks_for_the_skill() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("SKILL.md");
    std::fs::write(&file, "---\nname: knots\n---\nOver, under.").unwrap();
    let mut stage = Stage::new().await;
    let tools = json!([{"name": "todo"}, {"name": "cursor_activate_skill"}]);
    let declare = json!({"tools": tools, "ownSkillTool": true});
    // Without a skill there is nothing to activate.
    stage.ask("tools/declare", declare.clone()).await;
    let names = |manifest: Value| manifest["names"].clone();
    assert_eq!(names(stage.ask("manifest/read", json!({})).await), json!(["pi__todo"]));
    let skill = json!({"name": "knots", "description": "ropes", "filePath": file});
    stage.ask("skills/declare", json!({"skills": [skill]})).await;
    assert_eq!(
        names(stage.ask("manifest/read", json!({})).await),
        json!(["pi__cursor_activate_skill", "pi__todo"])
    );
    let turn = stage.start(&[user("tie it")]).await;
    let mut agent = stage.agent().await;
    let prompt = agent.prompts.recv().await.unwrap().text;
    assert!(prompt.contains("knots") && prompt.contains("pi__cursor_activate_skill"), "{prompt}");
    let _waiter = stage.call("pi__cursor_activate_skill");
    let end = stage.end(turn).await;
    assert_eq!(end["content"][0]["tool"], "cursor_activate_skill");
    let given = stage.ask("skill/activate", json!({"arguments": {"name": " knots "}})).await;
    assert!(given["content"][0]["text"].as_str().unwrap().contains("Over, under."), "{given}");
    assert_eq!((&given["isError"], &given["details"]["name"]), (&json!(false), &json!("knots")));
    let unknown = stage.ask("skill/activate", json!({"arguments": {"name": "../knots"}})).await;
    assert_eq!((&unknown["isError"], &unknown["details"]), (&json!(true), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn the_host_is_told_which_wrappers_to_have() {
    let mut stage = Stage::new().await;
    let active = json!(["read", "bash", "edit", "write"]);
    let at = |moment: &str, display: &str| json!({"moment": moment, "active": active, "display": display, "foreign": ["ls"]});
    let plan = stage.ask("wrappers/sync", at("sessionStart", "tui")).await;
    assert_eq!(plan["register"], json!(["read", "bash", "grep", "find", "edit", "write", "cursor"]));
    assert_eq!(plan["activate"], json!(["grep", "find", "cursor"]));
    assert_eq!(plan["warnings"].as_array().unwrap().len(), 1);
    let later = stage.ask("wrappers/sync", at("turnStart", "tui")).await;
    assert_eq!((&later["register"], &later["activate"]), (&json!([]), &plan["activate"]));
    assert_eq!(later["wrappers"].as_array().unwrap().len(), 7);
    stage.ask("session/open", json!({"session": "printed"})).await;
    let mut params = at("sessionStart", "print");
    params["session"] = json!("printed");
    assert_eq!(stage.ask("wrappers/sync", params).await["register"], json!([]), "what prints has no cards");
}
