//! A skill that is activated over a real socket, by clients of both generations: what comes back is the host's result.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_bridge::{
    BridgeConfig, Profile, RawJson, Skill, SkillList, Skills, activate, is_tool_active, skill_tool,
};

use crate::rig::{Rig, call, list, modern, text_of, tool};
use crate::wire::Wire;

const SECRET: &str = "root:x:0:0";

/// A folder with two skills, and a secret beside them.
struct Shelf {
    folder: tempfile::TempDir,
    list: SkillList,
}

impl Shelf {
    async fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut skills = Vec::new();
        for name in ["swim", "dive"] {
            fs::create_dir_all(folder.path().join(name).join("scripts"))?;
            let file = folder.path().join(name).join("SKILL.md");
            fs::write(&file, format!("---\nname: {name}\n---\n# How to {name}\n"))?;
            skills.push(Skill {
                name: name.to_owned(),
                description: String::new(),
                file_path: text(&file)?,
                base_dir: text(&folder.path().join(name))?,
                disable_model_invocation: false,
            });
        }
        fs::write(folder.path().join("swim/scripts/stroke.sh"), SECRET)?;
        fs::write(folder.path().join("SKILL.md"), SECRET)?;
        Ok(Self { folder, list: SkillList::load(skills).await })
    }
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("the folder's name is a text")?.to_owned())
}

/// The host: it runs the next call, and gives back whatever activation comes to.
async fn serve(rig: &mut Rig, list: &SkillList) -> Result<()> {
    let call = rig.started().await?;
    anyhow::ensure!(call.tool == Profile::PI.skill_tool, "{}", call.tool);
    let result = match activate(list, &call.arguments).await {
        Ok(activation) => activation.result(),
        Err(error) => error.result(),
    };
    rig.run.settle(&call.id, result);
    Ok(())
}

/// Both generations ask for a skill; their answers must be one.
async fn ask(rig: &mut Rig, list: &SkillList, arguments: &Value) -> Result<Value> {
    let name = format!("{}{}", Profile::PI.prefix, Profile::PI.skill_tool);
    let session = rig.legacy().await?;
    let legacy = session.post(rig, &call(1, &name, arguments));
    let params = json!({"name": name, "arguments": arguments});
    let modern = rig.modern(&modern(1, "tools/call", params));
    let mut answers = Vec::new();
    for bytes in [legacy, modern] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&bytes).await?;
        serve(rig, list).await?;
        let answer = wire.answer().await?;
        let answer = if answer.head.is_events() { last_event(&answer.body)? } else { answer.json()? };
        answers.push(answer);
    }
    let [legacy, modern] = &answers[..] else { anyhow::bail!("two answers") };
    anyhow::ensure!(legacy["result"]["content"] == modern["result"]["content"], "{legacy}\n{modern}");
    Ok(legacy.clone())
}

fn last_event(body: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(body)?;
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    Ok(serde_json::from_str(data.context("no event")?)?)
}

async fn rig() -> Result<Rig> {
    Rig::of(BridgeConfig::new(Profile::PI), vec![tool("echo"), skill_tool(&Profile::PI)]).await
}

#[tokio::test]
async fn statement_41_a_client_gets_the_whole_skill_through_the_bridge() -> Result<()> {
    let (mut rig, shelf) = (rig().await?, Shelf::new().await?);
    let session = rig.legacy().await?;
    let listed = session.ask(&rig, &list(7)).await?.json()?;
    let tools = listed["result"]["tools"].as_array().context("no tools")?;
    let own = tools.iter().find(|tool| tool["name"] == "pi__cursor_activate_skill").context("not listed")?;
    assert_eq!(own["inputSchema"]["required"], json!(["name"]));

    let answer = ask(&mut rig, &shelf.list, &json!({"name": " swim "})).await?;
    let given = text_of(&answer);
    assert!(given.contains("---\nname: swim\n---\n# How to swim\n"), "{given}");
    assert!(given.contains("<file>scripts/stroke.sh</file>") && !given.contains(SECRET), "{given}");
    assert!(given.contains(&text(&shelf.folder.path().join("swim"))?), "{given}");
    assert_eq!(answer["result"]["isError"].as_bool(), None, "{answer}");
    Ok(())
}

#[tokio::test]
async fn statement_42_a_wrong_name_and_a_path_are_errors_that_list_the_names() -> Result<()> {
    let (mut rig, shelf) = (rig().await?, Shelf::new().await?);
    let absolute = text(&shelf.folder.path().join("swim"))?;
    for name in ["fly", "../x", "..", "swim/../dive", "Swim", "swim\0", &absolute, "/etc/passwd"] {
        let answer = ask(&mut rig, &shelf.list, &json!({ "name": name })).await?;
        assert_eq!(answer["result"]["isError"], true, "{name:?}: {answer}");
        assert!(text_of(&answer).ends_with("; available: dive, swim"), "{answer}");
        assert!(!answer.to_string().contains(SECRET));
    }
    let answer = ask(&mut rig, &SkillList::default(), &json!({"name": "swim"})).await?;
    assert!(text_of(&answer).ends_with("; available: none"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn arguments_that_are_no_object_and_files_that_are_gone_are_errors_too() -> Result<()> {
    let (mut rig, shelf) = (rig().await?, Shelf::new().await?);
    for arguments in [json!({}), json!({"name": 7}), json!({"path": "swim"})] {
        let answer = ask(&mut rig, &shelf.list, &arguments).await?;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text_of(&answer).starts_with("the name of a skill is missing"), "{answer}");
    }
    fs::remove_dir_all(shelf.folder.path().join("swim"))?;
    let answer = ask(&mut rig, &shelf.list, &json!({"name": "swim"})).await?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text_of(&answer).starts_with("the skill \"swim\" cannot be read from "), "{answer}");
    Ok(())
}

#[tokio::test]
async fn many_agents_activate_at_once() -> Result<()> {
    let (mut rig, shelf) = (rig().await?, Shelf::new().await?);
    let session = rig.legacy().await?;
    let mut wires = Vec::new();
    for id in 0..40 {
        let name = if id % 2 == 0 { "swim" } else { "dive" };
        let mut wire = Wire::open(rig.port).await?;
        let asked = call(id, "pi__cursor_activate_skill", &json!({ "name": name }));
        wire.send(&session.post(&rig, &asked)).await?;
        wires.push((id, name, wire));
    }
    for _ in 0..wires.len() {
        serve(&mut rig, &shelf.list).await?;
    }
    for (id, name, mut wire) in wires {
        let answer = wire.answer().await?;
        let answer = if answer.head.is_events() { last_event(&answer.body)? } else { answer.json()? };
        assert_eq!(answer["id"], id);
        assert!(text_of(&answer).contains(&format!("# How to {name}")), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn statement_43_the_tool_of_an_inactive_session_is_not_in_the_list() -> Result<()> {
    let shelf = Shelf::new().await?;
    let mut skills = Skills::new();
    skills.model_selected(true);
    for (list, is_agent_model, bridge, others) in [
        (SkillList::default(), true, true, true),
        (shelf.list.clone(), false, true, true),
        (shelf.list.clone(), true, false, true),
        (shelf.list.clone(), true, true, false),
    ] {
        skills.model_selected(is_agent_model);
        skills.before_agent_start(list);
        assert!(!skills.is_tool_active(bridge, others));
    }
    skills.before_agent_start(shelf.list.clone());
    assert!(skills.is_tool_active(true, true));
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let answer = session.ask(&rig, &call(1, "pi__cursor_activate_skill", &json!({"name": "swim"}))).await?;
    assert_eq!(answer.json()?["result"]["isError"], true, "a run without the tool does not know it");
    let asked = RawJson::of(&json!({"name": "swim"}));
    assert!(activate(&SkillList::default(), &asked).await.is_err());
    assert!(!is_tool_active(toolway_bridge::ToolConditions {
        host_has_active_tools: true,
        is_agent_model: true,
        bridge_enabled: true,
        has_visible_skill: false,
    }));
    Ok(())
}
