//! What agents are told, and what they are made with.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_bridge::{HostEvent, HostSystem, Message, MessageBody, Settings, StopReason};

use super::rig::{BOTH, Rig, Runtime, lock, server};
use super::scene::{Scene, Step};
use super::talk::{Talk, nothing};

fn scene() -> Scene {
    Scene::default()
        .on("alpha", vec![Step::Say("One.")])
        .on("beta", vec![Step::Say("Two.")])
        .on("gamma", vec![Step::Say("Three.")])
}

/// These stand in the text, in this order.
fn in_order(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[tokio::test]
async fn both_runtimes_statement_36_the_first_prompt_has_it_all_and_the_second_the_news() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &scene())?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        talk.say("alpha", nothing).await?;
        talk.say("beta", nothing).await?;
        let prompts = rig.seen.prompts();
        let [(1, first), (1, second)] = &prompts[..] else { anyhow::bail!("{runtime:?} {prompts:?}") };
        let parts = ["pi__ask, pi__todo", "You are in the host.", "alpha", "Reminders"];
        assert!(in_order(first, &parts), "{first}");
        assert!(second.contains("beta") && second.contains("Reminders"), "{second}");
        for part in ["pi__ask, pi__todo", "You are in the host.", "alpha", "One."] {
            assert!(!second.contains(part), "{part}: {second}");
        }
        // What the bridge composed is what the model, or the program, is given.
        let heard = rig.heard()?;
        assert!(heard.contains(first.trim()) && heard.contains(second.trim()), "{runtime:?}: {heard}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_37_no_manifest_where_it_is_off_and_no_bridge_where_there_are_no_tools()
-> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &scene())?;
        let mut settings = Settings::default();
        settings.tools.manifest = false;
        let mut talk = Talk::new(&rig, rig.open(|options| options.settings = Arc::new(settings))?);
        talk.say("alpha", nothing).await?;
        let with = rig.seen.prompts();
        assert!(!with[0].1.contains("pi__ask, pi__todo") && !with[0].1.contains("manifest"), "{}", with[0].1);
        let rig = Rig::new(runtime, &scene())?;
        rig.host.set(Vec::new());
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        talk.say("alpha", nothing).await?;
        let without = rig.seen.prompts();
        assert!(!without[0].1.contains("pi__"), "{}", without[0].1);
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_38_what_breaks_the_conversation_makes_a_new_agent() -> Result<()> {
    for runtime in BOTH {
        for cause in ["system", "history", "summary", "compaction"] {
            let rig = Rig::new(runtime, &scene())?;
            let mut talk = Talk::new(&rig, rig.open(|_| {})?);
            talk.say("alpha", nothing).await?;
            talk.say("beta", nothing).await?;
            match cause {
                "system" => talk.request.system = HostSystem::Text("You are elsewhere.".to_owned()),
                "history" => talk.messages[0] = Message::user("another beginning"),
                "summary" => talk
                    .messages
                    .push(Message::new(MessageBody::BranchSummary { summary: "what was tried".to_owned() })),
                _ => talk.session.tell(HostEvent::Compaction).await,
            }
            let answer = talk.say("gamma", nothing).await?;
            assert_eq!(
                (answer.stop, answer.text.as_str()),
                (Some(StopReason::Stop), "Three."),
                "{runtime:?} {cause}"
            );
            let prompts = rig.seen.prompts();
            let agents: Vec<usize> = prompts.iter().map(|(agent, _)| *agent).collect();
            assert_eq!(agents, [1, 1, 2], "{runtime:?} {cause}");
            assert!(prompts[2].1.contains("pi__ask, pi__todo"), "all is told again: {}", prompts[2].1);
        }
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_38_the_twenty_first_news_is_a_new_agent() -> Result<()> {
    for runtime in BOTH {
        let rig = Rig::new(runtime, &Scene::default().on("again", vec![Step::Say("Again.")]))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        for number in 0..22 {
            let answer = talk.say(&format!("again {number}"), nothing).await?;
            assert_eq!(answer.text, "Again.", "{runtime:?} {number}");
        }
        let agents: Vec<usize> = rig.seen.prompts().iter().map(|(agent, _)| *agent).collect();
        assert_eq!((&agents[..21], agents[21]), (&[1; 21][..], 2), "{runtime:?}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_08_nothing_to_expose_is_no_server() -> Result<()> {
    for runtime in BOTH {
        for is_off in [true, false] {
            let rig = Rig::new(runtime, &scene())?;
            let mut settings = Settings::default();
            settings.tools.bridge.enabled = !is_off;
            if !is_off {
                rig.host.set(Vec::new());
            }
            let mut talk = Talk::new(&rig, rig.open(|options| options.settings = Arc::new(settings))?);
            let answer = talk.say("alpha", nothing).await?;
            assert_eq!(answer.text, "One.", "{runtime:?}");
            assert!(lock(&rig.seen.made)[0].mcp_servers.is_empty(), "{runtime:?}");
            if runtime == Runtime::Acp {
                let opened = rig.journal()?.into_iter().find(|event| event["method"] == "session/new");
                assert_eq!(opened.context("no session")?["params"]["mcpServers"], json!([]));
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_09_without_host_tools_the_agents_own_still_run() -> Result<()> {
    for runtime in BOTH {
        let scene = Scene::default().on(
            "alpha",
            vec![Step::Shell("echo by itself", "by itself"), Step::Other("echo"), Step::Say("Done.")],
        );
        let rig = Rig::with(runtime, &scene, &|options, _| {
            options.mcp_servers = server("echo", "from the other")
                .map(|server| toolway_agent::McpServers::new().with("other", server))
                .unwrap_or_default();
        })?;
        rig.host.set(Vec::new());
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", nothing).await?;
        assert_eq!(answer.text, "Done.", "{runtime:?} {answer:?}");
        assert!(lock(&rig.seen.made)[0].mcp_servers.is_empty());
        assert_eq!(answer.card_tools(), ["bash", "cursor"], "{runtime:?}");
        assert!(answer.cards[0].text.contains("by itself"), "{:?}", answer.cards);
        assert!(rig.results()?.concat().contains("from the other"));
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_50_setting_sources_are_passed_unchanged() -> Result<()> {
    type Row<'a> = (Option<&'a [&'a str]>, &'a [&'a str], bool);
    let table: [Row<'_>; 4] = [
        (Some(&[]), &[], false),
        (Some(&["user"]), &["user"], false),
        (Some(&["project", "user"]), &["project", "user"], true),
        (None, &["all"], true),
    ];
    for runtime in BOTH {
        for (wished, passed, is_loaded) in table {
            let scene = Scene::default().on("alpha", vec![Step::Other("echo"), Step::Say("Done.")]);
            let rig = Rig::new(runtime, &scene)?;
            // What the project's file says is there exactly where its source was chosen.
            let fake = toolway_testkit::fakemcp()?;
            let script = "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/echo -> text from the project";
            let file = json!({"mcpServers": {"other": {"command": fake, "args": ["--script", script], "required": true}}});
            std::fs::create_dir_all(rig.work().join(".cursor"))?;
            std::fs::write(rig.work().join(".cursor/mcp.json"), file.to_string())?;
            std::fs::create_dir_all(rig.work().join(".git"))?;
            let mut talk = Talk::new(&rig, rig.open(|_| {})?);
            talk.request.setting_sources =
                wished.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let answer = talk.say("alpha", nothing).await?;
            assert_eq!(lock(&rig.seen.made)[0].setting_sources, passed, "{runtime:?}");
            let results = rig.results();
            let has = results.as_ref().is_ok_and(|results| results.concat().contains("from the project"));
            assert_eq!(has, is_loaded, "{runtime:?} {wished:?} {answer:?} {results:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_models_that_there_is_a_key_for_are_told() -> Result<()> {
    use toolway_agent::{AgentOptions, LocalPort, Machine, ModelChoice};
    use toolway_bridge::AgentPort as _;
    let told = async |variables: &[(&str, &str)], model: Option<&str>| {
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut options = AgentOptions::local(Machine::new(variables, std::env::temp_dir()));
        options.model = model.map(|id| ModelChoice { id: id.to_owned(), params: Vec::new() });
        LocalPort::new(options).models().await
    };
    let none = told(&[], None).await?;
    assert!(none.is_empty(), "{none:?}");
    let both = told(&[("ANTHROPIC_API_KEY", "key")], Some("openai::own")).await?;
    assert_eq!(
        (both[0].id.as_str(), both[0].context_tokens),
        ("openai::own", None),
        "the chosen one is first"
    );
    assert!(both.len() > 1 && both[1..].iter().all(|model| model.id.starts_with("claude-")), "{both:?}");
    assert!(both[1..].iter().all(|model| model.context_tokens.is_some()), "{both:?}");
    // Which models there are at an address of one's own is not known.
    let elsewhere =
        told(&[("OPENAI_API_KEY", "key"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], None).await?;
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    let scene = scene();
    let rig = Rig::new(Runtime::Acp, &scene)?;
    assert!(rig.coordinator.models().await?.is_empty(), "a program tells of its models in a session");
    Ok(())
}
