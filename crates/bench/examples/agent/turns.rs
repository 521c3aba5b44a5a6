//! What a turn costs beside the model and the tool: a run of many turns, and a bare client that sends the same requests
//! to the same model.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_agent::{Agent, CustomOutput, CustomTool, Place as Where};
use toolway_testkit::{ModelExchange, ModelReply, ModelServer};

use crate::args::Args;
use crate::place::{Place, ran};
use crate::process::{float, ms};

fn replies(turns: usize) -> Vec<ModelReply> {
    // Never the same: who asks the same again and again is stopped.
    let call = |turn: usize| json!({"text": format!("What is the answer to {turn}?")});
    let calls = (1..turns).map(|turn| ModelReply::call("custom-user-tools__ping", &call(turn)));
    calls.chain([ModelReply::text("It is 42, as always.")]).collect()
}

pub(crate) async fn measure(args: &Args) -> Result<Vec<Value>> {
    let turns = args.count(50)?;
    let place = Place::new(args)?;
    let mut said = vec![ModelReply::text("Hello.")];
    said.extend(replies(turns));
    let model = ModelServer::replies(said)?;
    let mut options = place.options(&model.base_url())?;
    let ping =
        CustomTool::new("ping", "Answers.", |_| async { Ok(CustomOutput::Text("The answer is 42.".into())) });
    if let Where::Local(local) = &mut options.place {
        local.custom_tools = vec![ping];
    }
    let agent = Agent::create(options)?;
    ran(&agent, "Good day").await?;
    let begin = Instant::now();
    ran(&agent, "Ask again and again").await?;
    let own = ms(begin.elapsed());
    agent.dispose().await;

    let asked = model.requests();
    ensure!(asked.len() == turns + 1, "{} requests for {turns} turns", asked.len());
    let bare = bare(asked.get(1..).unwrap_or_default(), turns).await?;
    let each = |all: f64| all / float(turns);
    Ok(vec![
        json!({"front": "bare", "turn_ms": each(bare)}),
        json!({"front": "agent", "turn_ms": each(own), "overhead_ms": each(own - bare)}),
    ])
}

/// The same requests to a model with the same answers, one after the other over one connection.
async fn bare(asked: &[ModelExchange], turns: usize) -> Result<f64> {
    // Two libraries may have set one: either will do.
    rustls::crypto::ring::default_provider().install_default().ok();
    let model = ModelServer::replies(replies(turns))?;
    let url = format!("{}/chat/completions", model.base_url());
    let client = reqwest::Client::builder().no_proxy().build()?;
    client.get(format!("{}/models", model.base_url())).send().await?.bytes().await?;
    let begin = Instant::now();
    for one in asked {
        let post = client.post(&url).header("Content-Type", "application/json").body(one.text.clone());
        let answer = post.send().await?.error_for_status()?.bytes().await?;
        ensure!(answer.ends_with(b"data: [DONE]\n\n"), "the answer is cut");
    }
    let time = ms(begin.elapsed());
    let got = model.requests();
    let last = got.last().context("no request")?;
    ensure!(last.results() == asked.last().context("no request")?.results(), "other requests");
    Ok(time)
}
