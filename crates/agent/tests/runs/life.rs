//! Handles from their making to their end, and what can be done by an id.

use anyhow::{Context as _, Result};
use toolway_agent::{
    Agent, AgentError, AgentOptions, Machine, ModelChoice, Page, Prompt, PromptImage, RunStatus, SendOptions,
    StoreChoice, memory_store,
};

use super::engine::{Bench, Scripted, done, refused, soon};

fn model(id: &str) -> ModelChoice {
    ModelChoice { id: id.into(), params: Vec::new() }
}

#[tokio::test]
async fn statement_a35_a_reload_before_the_first_prompt_does_nothing() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::echo())?;
    let report = agent.reload().await?;
    assert!(!report.reloaded && report.diagnostics.is_empty());
    // Nothing was made, read or kept.
    assert_eq!(bench.files()?, Vec::<std::path::PathBuf>::new());
    agent.dispose().await;
    assert_eq!(refused(agent.reload().await)?.code(), "agent_closed");
    Ok(())
}

#[tokio::test]
async fn the_model_of_the_last_prompt_is_that_of_the_next() -> Result<()> {
    let bench = Bench::new()?;
    let mut options = bench.options();
    options.model = None;
    let engine = Scripted::new(|turn, _| async move { Ok(done(&turn.model.id)) });
    let agent = Agent::create_on(options, engine)?;
    let error = refused(agent.send("x", SendOptions::default()).await)?;
    assert_eq!((error.code(), error.to_string().contains("model")), ("validation_error", true));
    for (named, used) in [(Some(model("a")), "a"), (None, "a"), (Some(model("b")), "b"), (None, "b")] {
        let run = agent.send("x", SendOptions { model: named, ..SendOptions::default() }).await?;
        assert_eq!(soon(run.wait()).await??.result.as_deref(), Some(used));
        assert_eq!(agent.model(), Some(model(used)));
    }
    Ok(())
}

#[tokio::test]
async fn an_image_at_an_address_is_refused_and_nothing_is_kept() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::echo())?;
    let image = PromptImage { mime_type: "image/png".into(), data: "https://h.example/x.png".into() };
    let prompt = Prompt { text: "look".into(), images: vec![image] };
    assert_eq!(refused(agent.send(prompt, SendOptions::default()).await)?.code(), "validation_error");
    assert!(bench.files()?.is_empty());
    Ok(())
}

#[tokio::test]
async fn the_same_key_gives_the_same_run_and_the_same_agent() -> Result<()> {
    let bench = Bench::new()?;
    let mut options = bench.options();
    options.idempotency_key = Some("create-1".into());
    let agent = Agent::create_on(options.clone(), Scripted::echo())?;
    let keyed = || SendOptions { idempotency_key: Some("send-1".into()), ..SendOptions::default() };
    let first = agent.send("x", keyed()).await?;
    let again = agent.send("x", keyed()).await?;
    assert_eq!(first.id(), again.id());
    soon(first.wait()).await??;
    let twin = Agent::create_on(options.clone(), Scripted::echo())?;
    assert_eq!(twin.id(), agent.id());
    let third = twin.send("x", keyed()).await?;
    assert_eq!((third.id(), third.status()), (first.id(), RunStatus::Finished));
    assert_eq!(Agent::list_runs(agent.id(), &options, Page::default()).await?.items.len(), 1);
    // The keys themselves are not kept.
    for file in bench.files()? {
        let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
        assert!(!text.contains("send-1") && !text.contains("create-1"), "{}", file.display());
    }
    Ok(())
}

#[tokio::test]
async fn an_agent_is_listed_archived_taken_back_and_removed() -> Result<()> {
    let bench = Bench::new()?;
    let mut options = bench.options();
    options.name = Some("the first".into());
    let agent = Agent::create_on(options.clone(), Scripted::echo())?;
    let error = refused(Agent::get(agent.id(), &options).await)?;
    assert_eq!(error.code(), "agent_not_found");
    assert!(error.to_string().contains("agents.db"), "{error}");
    soon(agent.send("x", SendOptions::default()).await?.wait()).await??;
    let listed = Agent::list(&options, Page::default()).await?;
    assert_eq!((listed.items.len(), listed.next.is_none()), (1, true));
    assert_eq!(listed.items[0].name.as_deref(), Some("the first"));
    assert_eq!(listed.items[0].id, *agent.id());

    Agent::archive(agent.id(), &options).await?;
    assert!(Agent::list(&options, Page::default()).await?.items.is_empty());
    let error = refused(agent.send("x", SendOptions::default()).await)?;
    assert!(matches!(error, AgentError::AgentArchived { .. }), "{error}");
    Agent::unarchive(agent.id(), &options).await?;
    let run = agent.send("x", SendOptions::default()).await?;
    soon(run.wait()).await??;
    assert_eq!(refused(agent.usage(Some(toolway_agent::RunId::random())).await)?.code(), "run_not_found");

    let mut taken = options.clone();
    taken.agent_id = Some(agent.id().clone());
    let twin = Agent::create_on(taken, Scripted::echo())?;
    assert!(refused(twin.send("x", SendOptions::default()).await)?.to_string().contains("resume it"));
    Agent::delete(agent.id(), &options).await?;
    assert_eq!(refused(Agent::get(agent.id(), &options).await)?.code(), "agent_not_found");
    assert_eq!(refused(agent.send("x", SendOptions::default()).await)?.code(), "agent_not_found");
    let gone = refused(Agent::resume_on(agent.id(), options, Scripted::echo()).await)?;
    assert_eq!(gone.code(), "agent_not_found");
    Ok(())
}

#[tokio::test]
async fn an_agent_that_is_removed_while_it_works_stops() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::stuck())?;
    let run = agent.send("x", SendOptions::default()).await?;
    soon(Agent::delete(agent.id(), &bench.options())).await??;
    assert!(soon(run.wait()).await??.status.is_terminal());
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_handle_ends_its_run_once_and_for_all() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::stuck())?;
    let run = agent.send("x", SendOptions::default()).await?;
    agent.close();
    agent.close();
    soon(agent.dispose()).await?;
    assert_eq!(run.status(), RunStatus::Cancelled);
    soon(agent.dispose()).await?;
    assert!(matches!(refused(agent.send("x", SendOptions::default()).await)?, AgentError::Closed { .. }));

    let agent = bench.agent(Scripted::stuck())?;
    let run = agent.send("x", SendOptions::default()).await?;
    drop(agent);
    assert_eq!(soon(run.wait()).await??.status, RunStatus::Cancelled);
    // One that was never used has nothing to end.
    soon(bench.agent(Scripted::stuck())?.dispose()).await
}

#[tokio::test]
async fn a_handle_ends_in_time_whatever_its_engine_does() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::new(|_, _| std::future::pending()))?;
    let run = agent.send("x", SendOptions::default()).await?;
    soon(agent.dispose()).await?;
    assert!(run.status().is_terminal());
    Ok(())
}

#[tokio::test]
async fn artifacts_are_none_on_this_machine() -> Result<()> {
    let bench = Bench::new()?;
    let agent = bench.agent(Scripted::echo())?;
    assert!(agent.list_artifacts().await?.is_empty());
    assert_eq!(refused(agent.download_artifact("x.txt").await)?.code(), "validation_error");
    assert!(agent.usage(None).await?.runs.is_empty());
    Ok(())
}

#[tokio::test]
async fn agents_in_memory_leave_no_file_and_share_what_they_are_given() -> Result<()> {
    let bench = Bench::new()?;
    let options = bench.options_in(StoreChoice::Shared(memory_store()?));
    let agent = Agent::create_on(options.clone(), Scripted::echo())?;
    soon(agent.send("x", SendOptions::default()).await?.wait()).await??;
    let other = Agent::resume_on(agent.id(), options, Scripted::echo()).await?;
    soon(other.send("x", SendOptions::default()).await?.wait()).await??;
    assert_eq!(other.usage(None).await?.runs.len(), 2);
    assert!(bench.files()?.is_empty());
    Ok(())
}

#[tokio::test]
async fn what_belongs_to_the_cloud_is_refused_here() -> Result<()> {
    let bench = Bench::new()?;
    let cloud = "bc-00000000-0000-4000-8000-000000000000".parse()?;
    for error in [
        refused(Agent::get(&cloud, &bench.options()).await)?,
        refused(Agent::resume_on(&cloud, bench.options(), Scripted::echo()).await)?,
        refused(Agent::create_on(
            AgentOptions::cloud(Machine::new(Vec::new(), bench.path().to_owned())),
            Scripted::echo(),
        ))?,
    ] {
        assert_eq!(error.code(), "validation_error", "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn runs_of_one_agent_come_one_after_the_other() -> Result<()> {
    let bench = Bench::new()?;
    let options = bench.options();
    let agent = Agent::create_on(options.clone(), Scripted::echo())?;
    for number in 1..=5_u32 {
        let run = agent.send(number.to_string(), SendOptions::default()).await?;
        soon(run.wait()).await??;
    }
    let runs = Agent::list_runs(agent.id(), &options, Page { limit: 2, ..Page::default() }).await?;
    assert_eq!(runs.items.iter().map(|run| run.turn).collect::<Vec<_>>(), [5, 4]);
    let more = Page { limit: 5, after: runs.next.clone(), ..Page::default() };
    let more = Agent::list_runs(agent.id(), &options, more).await?;
    assert_eq!(more.items.iter().map(|run| run.turn).collect::<Vec<_>>(), [3, 2, 1]);
    assert!(more.next.is_none());
    runs.next.context("a place")?;
    Ok(())
}
