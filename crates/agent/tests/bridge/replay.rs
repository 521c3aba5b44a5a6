//! What the agent did with its own tools, as the host shows it.

use anyhow::Result;
use serde_json::json;
use std::time::Duration;
use toolway_bridge::StopReason;

use super::rig::{BOTH, Change, Rig, server};
use super::scene::{Scene, Step, host};
use super::talk::{Talk, nothing};

/// A command with more letters than are shown of one.
const LONG: &str = "sleep 60 # ........................................................................................\
...............................................................................................................\
...............................................................................................................\
............................................................................................... THE-END";

const WITH_OTHER: &Change = &|options, _| {
    options.mcp_servers = server("echo", "from the other")
        .map(|server| toolway_agent::McpServers::new().with("other", server))
        .unwrap_or_default();
};

#[tokio::test]
async fn both_runtimes_statement_34_own_calls_have_no_card_and_others_keep_theirs() -> Result<()> {
    for runtime in BOTH {
        let scene = Scene::default().on(
            "alpha",
            vec![
                host("pi__todo", json!({"n": 1})),
                Step::Other("echo"),
                Step::Shell("echo by itself", "by itself"),
                Step::Say("Done."),
            ],
        );
        let rig = Rig::with(runtime, &scene, WITH_OTHER)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", async |_| Ok("noted by the host".to_owned())).await?;
        assert_eq!(answer.text, "Done.", "{runtime:?} {answer:?}");
        assert_eq!(answer.calls().len(), 1, "{runtime:?}");
        assert_eq!(answer.card_tools(), ["cursor", "bash"], "{runtime:?} {:?}", answer.cards);
        let [other, shell] = &answer.cards[..] else { anyhow::bail!("{answer:?}") };
        assert!(other.text.contains("from the other") && other.text.contains("MCP"), "{runtime:?} {other:?}");
        assert!(shell.text.contains("by itself"), "{runtime:?} {shell:?}");
        let all = format!("{:?}{}", answer.cards, answer.thinking);
        assert!(!all.contains("pi__todo") && !all.contains("noted by the host"), "{runtime:?} {all}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_44_a_card_shows_what_was_and_runs_nothing() -> Result<()> {
    for runtime in BOTH {
        let command = "echo once >> ran; echo out";
        let scene = Scene::default().on("alpha", vec![Step::Shell(command, "out"), Step::Say("Ran.")]);
        let rig = Rig::new(runtime, &scene)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", nothing).await?;
        // That the same id gives nothing a second time is looked at wherever a card is drawn.
        let [card] = &answer.cards[..] else { anyhow::bail!("{runtime:?} {answer:?}") };
        assert!(card.tool == "bash" && card.text.contains("out"), "{runtime:?} {card:?}");
        let ran = std::fs::read_to_string(rig.work().join("ran")).unwrap_or_default();
        assert!(ran.lines().count() <= 1, "{ran}");
        assert!(card.id.starts_with("cursor-replay-"));
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_45_an_edit_is_shown_as_one_and_changes_nothing_again() -> Result<()> {
    for runtime in BOTH {
        let scene =
            Scene::default().on("alpha", vec![Step::Edit("a.txt", "before", "after"), Step::Say("Edited.")]);
        let rig = Rig::new(runtime, &scene)?;
        std::fs::write(rig.work().join("a.txt"), "before\n")?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", nothing).await?;
        let edit = answer.cards.iter().find(|card| card.tool == "edit");
        let Some(edit) = edit else { anyhow::bail!("{runtime:?} {answer:?}") };
        assert!(edit.text.contains("before") && edit.text.contains("after"), "{runtime:?} {edit:?}");
        let text = std::fs::read_to_string(rig.work().join("a.txt"))?;
        let expected = if runtime == super::rig::Runtime::Native { "after\n" } else { "before\n" };
        assert_eq!(text, expected, "{runtime:?}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_45_an_edit_that_is_not_known_or_failed_is_none() -> Result<()> {
    for runtime in BOTH {
        let edit = match runtime {
            // It always knows what it does: here that it could not.
            super::rig::Runtime::Native => Step::Edit("b.txt", "before", "after"),
            super::rig::Runtime::Acp => Step::Touch("b.txt"),
        };
        let rig = Rig::new(runtime, &Scene::default().on("alpha", vec![edit, Step::Say("Tried.")]))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", nothing).await?;
        assert_eq!(answer.text, "Tried.", "{runtime:?} {answer:?}");
        let last = answer.cards.last().map(|card| card.tool.as_str());
        match runtime {
            super::rig::Runtime::Native => {
                let cards = format!("{:?}", answer.cards);
                assert!(!cards.contains("+after"), "nothing was changed: {cards}");
            }
            super::rig::Runtime::Acp => assert_eq!(last, Some("cursor"), "{answer:?}"),
        }
        assert!(!rig.work().join("b.txt").exists(), "{runtime:?}");
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_46_a_tool_that_the_host_does_not_offer_is_a_line() -> Result<()> {
    for runtime in BOTH {
        let scene = Scene::default().on("alpha", vec![Step::Shell("echo out", "out"), Step::Say("Ran.")]);
        let rig = Rig::new(runtime, &scene)?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        talk.request.context_tools = vec!["read".to_owned()];
        let answer = talk.say("alpha", nothing).await?;
        assert!(answer.cards.is_empty() && answer.batches.is_empty(), "{runtime:?} {answer:?}");
        let lines: Vec<&str> = answer.thinking.lines().filter(|line| line.contains("echo out")).collect();
        assert_eq!(lines.len(), 1, "{runtime:?} {:?}", answer.thinking);
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_47_what_never_completed_is_told_of_a_failed_run() -> Result<()> {
    for runtime in BOTH {
        let scene = match runtime {
            super::rig::Runtime::Native => {
                Scene::default().on("alpha", vec![Step::Shell(LONG, ""), Step::Say("No.")])
            }
            super::rig::Runtime::Acp => Scene::default().on("alpha", vec![Step::Unfinished(LONG)]),
        };
        let rig =
            Rig::with(runtime, &scene, &|options, _| options.limits.time = Some(Duration::from_secs(3)))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", nothing).await?;
        assert!(matches!(answer.stop, Some(StopReason::Error(_))), "{runtime:?} {answer:?}");
        let told = format!("{:?} {}", answer.cards, answer.thinking);
        assert!(told.contains("sleep 60"), "{runtime:?} {answer:?}");
        match runtime {
            // It ends its own commands, and says so.
            super::rig::Runtime::Native => assert!(told.contains("the command ended"), "{answer:?}"),
            // The command is longer than a label may be, and its end is in no text.
            super::rig::Runtime::Acp => {
                assert!(told.contains("did not complete: the agent's run failed"), "{answer:?}");
                assert!(told.len() < 2000 && !told.contains("THE-END"), "{} {answer:?}", told.len());
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn both_runtimes_statement_47_after_a_good_answer_nothing_is_told_of_it() -> Result<()> {
    for runtime in BOTH {
        let steps = vec![Step::Untold("sleep 60"), Step::Say("A good answer.")];
        let rig = Rig::new(runtime, &Scene::default().on("alpha", steps))?;
        let mut talk = Talk::new(&rig, rig.open(|_| {})?);
        let answer = talk.say("alpha", nothing).await?;
        assert_eq!((answer.stop.as_ref(), answer.text.as_str()), (Some(&StopReason::Stop), "A good answer."));
        assert!(answer.cards.is_empty(), "{runtime:?} {answer:?}");
        assert!(!answer.thinking.contains("did not complete"), "{runtime:?} {answer:?}");
    }
    Ok(())
}
