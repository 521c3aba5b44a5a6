//! Several sessions over one connection, skills, prompts.

use anyhow::Result;
use serde_json::json;

use crate::agent::Agent;
use crate::host::Host;

#[test]
fn statement_33_a_child_session_ends_without_touching_its_parents_calls() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["delegate"])?;
    let parent = agent.call_later(1, "host__delegate", &json!({}));
    let outer = host.call()?;

    host.ask("session/open", json!({"session": "child"}))?;
    let tools = json!([{"name": "inner"}]);
    host.ask("tools/declare", json!({"session": "child", "tools": tools}))?;
    let run = host.open(json!({"session": "child"}))?;
    assert_eq!(run.opened["exposed"], json!([{"name": "host__inner", "tool": "inner"}]));
    let child = Agent::connect(&run.url)?;
    let pending = child.call_later(1, "host__inner", &json!({}));
    let started = host.told("calls/started")?;
    assert_eq!((&started["session"], &started["run"]), (&json!("child"), &json!(run.id)));
    let closed = host.ask("session/close", json!({"session": "child", "reason": "the child is done"}))?;
    assert_eq!(closed, json!({"rejectedCalls": 1}));
    let cancelled = host.told("call/cancelled")?;
    assert_eq!((&cancelled["session"], &cancelled["reason"]), (&json!("child"), &json!("the child is done")));
    assert!(pending.answer()?.error()?.contains("the child is done"));
    assert_eq!(host.refused("run/open", json!({"session": "child"}))?["code"], -32001);

    assert!(host.answer(&outer, "from the child")?);
    assert_eq!(parent.answer()?.text()?, "from the child");
    Ok(())
}

#[test]
fn skills_are_activated_without_the_host() -> Result<()> {
    for (profile, tool) in [("pi", "pi__cursor_activate_skill"), ("host", "host__activate_skill")] {
        let mut host = Host::start(profile)?;
        let folder = host.home().join("skills/tables");
        std::fs::create_dir_all(folder.join("references"))?;
        std::fs::write(folder.join("SKILL.md"), "---\nname: tables\n---\nUse pipes.\n")?;
        std::fs::write(folder.join("references/more.md"), "more")?;
        host.declare(&["a"])?;
        let skill = json!({"name": "tables", "description": "Tables.", "filePath": folder.join("SKILL.md")});
        let hidden = json!({"name": "own", "description": "", "filePath": "/x/SKILL.md", "disableModelInvocation": true});
        let declared = host.ask("skills/declare", json!({"skills": [skill, hidden]}))?;
        assert_eq!(declared, json!({"visible": ["tables"], "toolActive": true, "warnings": []}));
        let run = host.open(json!({}))?;
        let agent = Agent::connect(&run.url)?;
        let text = agent.call(1, tool, &json!({"name": "tables"}))?.text()?;
        assert!(text.contains("Use pipes.") && text.contains("references/more.md"), "{text}");
        let told = host.told("skill/activated")?;
        assert_eq!((&told["skill"], &told["isError"]), (&json!("tables"), &json!(false)));
        assert_eq!(told["details"]["resources"], json!(["references/more.md"]));
        let wrong = agent.call(2, tool, &json!({"name": "../tables"}))?;
        assert_eq!(wrong.response()?["result"]["isError"], true);
        let section = host.ask("prompt/section", json!({"section": "skills", "run": run.id}))?;
        assert!(section["text"].as_str().is_some_and(|text| text.contains(tool)), "{section}");
        host.told("skill/activated")?;
        host.shut_down()?;
        assert!(host.client.kept().is_empty(), "the host was asked to run a skill");
    }
    Ok(())
}

#[test]
fn statement_41_a_skill_is_whole_up_to_a_mebibyte_whatever_the_client_takes() -> Result<()> {
    let mut host = Host::start("host")?;
    let file = host.home().join("SKILL.md");
    host.declare(&["a"])?;
    let skill = json!({"name": "long", "description": "", "filePath": file});
    host.ask("skills/declare", json!({"skills": [skill]}))?;
    let run = host.open(json!({}))?;
    let agent = Agent::connect(&run.url)?;
    for (id, length) in [(1, 50_000), (2, 1 << 20), (3, (1 << 20) + 1)] {
        std::fs::write(&file, "x".repeat(length))?;
        let text = agent.call(id, "host__activate_skill", &json!({"name": "long"}))?.text()?;
        assert!(text.contains(&"x".repeat(length.min(1 << 20))), "{length}: {} bytes", text.len());
        assert_eq!(text.contains("[cut: the first 1048576 of 1048577 bytes"), length > 1 << 20);
    }
    Ok(())
}

#[test]
fn prompts_go_on_until_something_forces_a_new_agent() -> Result<()> {
    let mut host = Host::start("pi")?;
    host.declare(&["todo"])?;
    let run = host.open(json!({}))?;
    let user = |text: &str| json!({"role": "user", "content": text});
    let ask = |messages: serde_json::Value, system: &str| json!({"run": run.id, "system": {"text": system}, "messages": messages, "agent": {"model": "m"}});
    let first = host.ask("prompt/next", ask(json!([user("hello")]), "Be brief."))?;
    assert_eq!((&first["kind"], &first["newAgent"]), (&json!("bootstrap"), &json!(false)));
    let text = first["text"].as_str().unwrap_or_default();
    assert!(text.contains("pi__todo") && text.contains("Be brief.") && text.contains("hello"), "{text}");
    host.ask("prompt/sent", json!({"ticket": first["ticket"]}))?;
    assert_eq!(host.refused("prompt/sent", json!({"ticket": first["ticket"]}))?["code"], -32001);

    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "hi"}]});
    let messages = json!([user("hello"), answer, user("and now?")]);
    let second = host.ask("prompt/next", ask(messages.clone(), "Be brief."))?;
    assert_eq!((&second["kind"], &second["reason"]), (&json!("incremental"), &json!(null)));
    let text = second["text"].as_str().unwrap_or_default();
    assert!(text.contains("and now?") && !text.contains("Be brief.") && !text.contains("hello"), "{text}");
    host.ask("prompt/sent", json!({"ticket": second["ticket"]}))?;

    let third = host.ask("prompt/next", ask(messages.clone(), "Be long."))?;
    assert_eq!((&third["kind"], &third["newAgent"]), (&json!("bootstrap"), &json!(true)));
    host.ask("prompt/reset", json!({"cause": "compaction"}))?;
    let fourth = host.ask("prompt/next", ask(messages, "Be brief."))?;
    assert_eq!(fourth["reason"], "the conversation was compacted");
    Ok(())
}
