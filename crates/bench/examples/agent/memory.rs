//! The memory of agents that have answered and wait: this process with one and with ten, beside itself with none.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use toolway_agent::Agent;

use crate::args::Args;
use crate::place::{Model, Place, ran};
use crate::process::{Held, float};

/// So long after the last answer.
const REST: Duration = Duration::from_secs(1);

pub(crate) async fn measure(args: &Args) -> Result<Vec<Value>> {
    let (place, model) = (Place::new(args)?, Model::start()?);
    let more = args.count(9)?;
    let none = Held::now();
    let mut agents = vec![answered(&place, &model).await?];
    tokio::time::sleep(REST).await;
    let one = Held::now();
    for _ in 0..more {
        agents.push(answered(&place, &model).await?);
    }
    tokio::time::sleep(REST).await;
    let all = Held::now();
    for agent in agents {
        agent.dispose().await;
    }
    Ok(vec![json!({
        "front": "agent",
        "none_mb": none.rss_mb,
        "one_mb": one.rss_mb,
        "one_pss_mb": one.pss_mb,
        "rest_mb": one.rss_mb - none.rss_mb,
        "rest_anonymous_mb": one.anonymous_mb - none.anonymous_mb,
        "each_more_mb": (all.rss_mb - one.rss_mb) / float(more),
        "rest_threads": one.threads,
        "rest_descriptors": one.descriptors,
    })])
}

async fn answered(place: &Place, model: &Model) -> Result<Agent> {
    let agent = Agent::create(place.options(&model.url)?)?;
    ran(&agent, "Good day").await?;
    Ok(agent)
}
