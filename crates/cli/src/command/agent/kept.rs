//! `toolway agent list`, `cancel` and what changes an agent that is kept.

use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolway_agent::{Agent, AgentError, AgentId, AgentOptions, AgentRecord, Page, RunId};

use crate::exit::Exit;
use crate::render::{Output, age, plain};
use crate::table::{Align, columns};

/// The most characters of a name, a folder, a server.
const NAME: usize = 60;

/// Shows agents.
pub(super) async fn list(
    options: AgentOptions,
    all: bool,
    limit: usize,
    json: bool,
) -> Result<Exit, AgentError> {
    let page = Page { limit: limit.max(1), after: None, include_archived: all };
    let list = Agent::list(&options, page).await?;
    if json {
        let items: Vec<Value> = list.items.iter().map(described).collect();
        print(&format!("{:#}\n", json!({"agents": items, "more": list.next.is_some()})));
        return Ok(Exit::Done);
    }
    if list.items.is_empty() {
        print("no agents yet: toolway agent run PROMPT makes one\n");
        return Ok(Exit::Done);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let mut rows = vec![["AGENT", "AGE", "RUNTIME", "STATE", "FOLDER", "NAME"].map(String::from).to_vec()];
    rows.extend(list.items.iter().map(|agent| row(agent, now)));
    print(&columns(&[Align::Left; 6], &rows));
    if list.next.is_some() {
        print(&format!("there are more: --limit {}\n", limit.saturating_mul(10)));
    }
    Ok(Exit::Done)
}

fn row(agent: &AgentRecord, now: u64) -> Vec<String> {
    let updated = u64::try_from(agent.updated_at.unix_timestamp()).unwrap_or(0);
    let state = match (&agent.active_run, agent.archived) {
        (Some(_), _) => "running",
        (None, true) => "archived",
        (None, false) => "idle",
    };
    vec![
        agent.id.to_string(),
        age(now.saturating_sub(updated)),
        plain(&agent.runtime, NAME),
        state.to_owned(),
        plain(&agent.cwd, NAME),
        plain(agent.name.as_deref().unwrap_or_default(), NAME),
    ]
}

/// An agent, without what belongs to the store alone.
pub(super) fn described(agent: &AgentRecord) -> Value {
    let servers: Vec<Value> = agent
        .servers
        .iter()
        .map(|server| json!({"name": server.name, "transport": server.transport}))
        .collect();
    let mut value = serde_json::to_value(agent).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.insert("servers".to_owned(), servers.into());
    }
    value
}

/// Cancels a run: the one that is named, or the one on its way.
pub(super) async fn cancel(
    options: AgentOptions,
    agent: AgentId,
    run: Option<RunId>,
    json: bool,
) -> Result<Exit, AgentError> {
    let active = match run {
        Some(run) => Some(run),
        None => Agent::get(&agent, &options).await?.active_run,
    };
    let Some(run) = active else {
        if json {
            print(&format!("{}\n", json!({"agent": agent, "cancelled": null})));
        } else {
            print(&format!("{agent} does nothing that could be cancelled\n"));
        }
        return Ok(Exit::Done);
    };
    Agent::cancel_run(&agent, &run, &options).await?;
    if json {
        print(&format!("{}\n", json!({"agent": agent, "cancelled": run})));
    } else {
        print(&format!("{run} is cancelled\n"));
    }
    Ok(Exit::Done)
}

/// Says that it was done.
pub(super) fn said(agent: &AgentId, done: &str, json: bool) -> Exit {
    if json {
        print(&format!("{}\n", json!({"agent": agent, "done": done})));
    } else {
        print(&format!("{agent} is {done}\n"));
    }
    Exit::Done
}

/// To stdout; whoever reads it may be gone.
pub(super) fn print(text: &str) {
    let mut out = Output::new();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}
