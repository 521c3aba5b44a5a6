//! Skills of the host, activated by an agent that is alive.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use toolway_bridge::{
    HostSystem, Profile, RawJson, Settings, Skill, SkillList, ToolCall, activate, is_tool_active, skill_tool,
};

use super::rig::{BOTH, Rig, text, tool};
use super::scene::{Scene, Step};
use super::talk::{Talk, nothing};

const TOOL: &str = "pi__cursor_activate_skill";
const SYSTEM: &str = "You are in the host.\n\nThe following skills provide specialized instructions for specific tasks.\n\
<available_skills>\n  <skill>\n    <name>swim</name>\n  </skill>\n</available_skills>";

async fn shelf(dir: &Path) -> Result<SkillList> {
    let mut skills = Vec::new();
    for (name, hidden) in [("swim", false), ("dive", false), ("secret", true)] {
        let folder = dir.join("skills").join(name);
        std::fs::create_dir_all(folder.join("scripts"))?;
        std::fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\n---\n# How to {name}, whole\n"))?;
        for number in 0..100 {
            std::fs::write(folder.join(format!("scripts/{number:03}.sh")), "CONTENTS-OF-A-FILE")?;
        }
        // None of these is a resource: a link, and a file elsewhere in the folder.
        std::fs::write(folder.join("stray.txt"), "CONTENTS-OF-A-FILE")?;
        std::os::unix::fs::symlink("/etc/passwd", folder.join("scripts/000-linked.sh"))?;
        std::os::unix::fs::symlink("/etc", folder.join("assets"))?;
        skills.push(Skill {
            name: name.to_owned(),
            description: format!("how to {name}"),
            file_path: text(&folder.join("SKILL.md")),
            base_dir: text(&folder),
            disable_model_invocation: hidden,
        });
    }
    Ok(SkillList::load(skills).await)
}

/// The host runs the tool that activates.
async fn run(list: &SkillList, call: &ToolCall) -> Result<String, String> {
    let (content, is_error) = match activate(list, &call.arguments).await {
        Ok(activation) => (activation.result().content, false),
        Err(error) => (error.result().content, true),
    };
    let text: String = said(&content);
    if is_error { Err(text) } else { Ok(text) }
}

fn said(content: &RawJson) -> String {
    match content.tree() {
        serde_json::Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
        }
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

#[tokio::test]
async fn both_runtimes_statement_40_41_42_a_skill_is_named_and_activated() -> Result<()> {
    for runtime in BOTH {
        let both = Step::Host(vec![
            (TOOL, json!({"name": "swim"})),
            (TOOL, json!({"name": "../swim"})),
            (TOOL, json!({"name": "fly"})),
        ]);
        let rig = Rig::new(runtime, &Scene::default().on("alpha", vec![both, Step::Say("I can swim.")]))?;
        let list = shelf(rig.dir.path()).await?;
        rig.host.set(vec![tool("todo", "keeps a list"), skill_tool(&Profile::PI)]);
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        talk.request.skills = list.clone();
        talk.request.system = HostSystem::Text(SYSTEM.to_owned());
        let answer = talk.say("alpha", async |call| run(&list, call).await).await?;
        assert_eq!(
            (answer.text.as_str(), answer.calls().len()),
            ("I can swim.", 3),
            "{runtime:?} {answer:?}"
        );
        let prompt = &rig.seen.prompts()[0].1;
        assert!(prompt.contains(TOOL) && prompt.contains("dive") && !prompt.contains("secret"), "{prompt}");
        let results = rig.results()?.concat();
        assert!(results.contains("# How to swim, whole"), "{runtime:?}: {results}");
        assert_eq!(results.matches(".sh").count(), 80, "{runtime:?}");
        assert!(results.contains("name: swim"), "the whole file: {results}");
        assert!(results.contains(text(&rig.dir.path().join("skills/swim")).as_str()), "{results}");
        for absent in ["CONTENTS-OF-A-FILE", "linked", "stray", "passwd", "080.sh"] {
            assert!(!results.contains(absent), "{runtime:?}: {absent} in {results}");
        }
        assert_eq!(results.matches("dive, swim").count(), 2, "both errors name what there is: {results}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_43_with_the_bridge_off_the_catalogue_names_the_file() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &Scene::default().on("alpha", vec![Step::Say("I read it.")]))?;
        let list = shelf(rig.dir.path()).await?;
        let mut settings = Settings::default();
        settings.tools.bridge.enabled = false;
        let conditions = toolway_bridge::ToolConditions {
            host_has_active_tools: true,
            is_agent_model: true,
            bridge_enabled: false,
            has_visible_skill: true,
        };
        assert!(!is_tool_active(conditions));
        let mut talk = Talk::new(&rig, rig.open(|options| options.settings = Arc::new(settings))?);
        talk.request.skills = list;
        talk.request.system = HostSystem::Text(SYSTEM.to_owned());
        talk.say("alpha", nothing).await?;
        let prompt = &rig.seen.prompts()[0].1;
        assert!(!prompt.contains(TOOL) && prompt.contains("swim/SKILL.md"), "{prompt}");
    }
    Ok(())
}
