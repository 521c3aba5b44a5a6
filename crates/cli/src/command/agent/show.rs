//! `toolway agent show`: what an agent and its user said, its runs, and their tokens.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolway_agent::{
    Agent, AgentError, AgentId, AgentOptions, AssistantBlock, Event, EventKind, Page, RunId, RunRecord,
    ToolCallStatus,
};

use super::delta::{dollars, tokens};
use super::kept::{described, print};
use super::tell::summary;
use crate::exit::Exit;
use crate::render::grouped;
use crate::show::one_line;

/// Runs that are shown, the last ones.
const RUNS: usize = 200;
/// Characters of a line.
const LINE: usize = 400;

/// Shows an agent, or one of its runs.
pub(super) async fn show(
    options: AgentOptions,
    agent: AgentId,
    run: Option<RunId>,
    json: bool,
) -> Result<Exit, AgentError> {
    match run {
        Some(run) => one(options, agent, run, json).await,
        None => whole(options, agent, json).await,
    }
}

async fn whole(options: AgentOptions, id: AgentId, json: bool) -> Result<Exit, AgentError> {
    let record = Agent::get(&id, &options).await?;
    let page = Page { limit: RUNS, after: None, include_archived: true };
    let mut runs = Agent::list_runs(&id, &options, page).await?.items;
    runs.reverse();
    let usage = Agent::usage_of(&id, None, &options).await?;
    let messages = Agent::messages(&id, &options).await?;
    if json {
        let messages: Vec<Value> = messages.iter().map(|seen| event_json(&seen.event)).collect();
        let runs: Vec<Value> = runs.iter().map(run_json).collect();
        let whole = json!({
            "agent": described(&record),
            "runs": runs,
            "usage": tokens(&usage.usage),
            "cost_usd": usage.cost,
            "messages": messages,
        });
        print(&format!("{whole:#}\n"));
        return Ok(Exit::Done);
    }
    let name = record.name.as_deref().map(|name| format!(" ({})", one_line(name, LINE))).unwrap_or_default();
    let archived = if record.archived { ", archived" } else { "" };
    let mut text = format!("{id}{name}: {} in {}{archived}\n\n", record.runtime, one_line(&record.cwd, LINE));
    for seen in &messages {
        message(&mut text, &seen.event, Calls::AsAsked);
    }
    text.push_str("Runs:\n");
    for run in &runs {
        run_line(&mut text, run);
    }
    writeln!(
        text,
        "In all: {} tokens ({} read, {} written, {} from a cache){}",
        grouped(usage.usage.total()),
        grouped(usage.usage.input),
        grouped(usage.usage.output),
        grouped(usage.usage.cache_read),
        usage.cost.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default()
    )
    .unwrap_or_default();
    print(&text);
    Ok(Exit::Done)
}

async fn one(options: AgentOptions, id: AgentId, run: RunId, json: bool) -> Result<Exit, AgentError> {
    let run = Agent::get_run(&id, &run, &options).await?;
    if json && run.status().is_terminal() {
        // What is kept, with its offsets.
        let mut seen = run.observe(0)?;
        while let Some(next) = seen.next().await {
            let next = next?;
            let mut value = event_json(&next.event);
            if let Some(map) = value.as_object_mut() {
                map.insert("offset".to_owned(), next.offset.into());
            }
            print(&format!("{value}\n"));
        }
        return Ok(Exit::Done);
    }
    let events = run.conversation().await?;
    let state = run.state();
    if json {
        for event in &events {
            print(&format!("{}\n", event.to_json()));
        }
        return Ok(Exit::Done);
    }
    let mut text = format!("{}: {:?}\n\n", run.id(), state.status);
    for event in &events {
        message(&mut text, event, Calls::AsEnded);
    }
    if let Some(fault) = &state.error {
        writeln!(text, "[{}] {}", fault.code, fault.message).unwrap_or_default();
    }
    print(&text);
    Ok(Exit::Done)
}

fn event_json(event: &Event) -> Value {
    serde_json::from_str(&event.to_json()).unwrap_or_default()
}

fn run_json(run: &RunRecord) -> Value {
    let mut value = serde_json::to_value(run).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.remove("idempotency");
        let error = run.error.as_ref().map(|(code, message)| json!({"code": code, "message": message}));
        map.insert("error".to_owned(), error.into());
    }
    value
}

/// Which of the two places of a call is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    /// Where the model asked for it: among messages there is no other.
    AsAsked,
    /// Where it ended.
    AsEnded,
}

fn message(text: &mut String, event: &Event, calls: Calls) {
    let before = text.len();
    match &event.kind {
        EventKind::User { text: said } => said.lines().for_each(|line| text.extend(["> ", line, "\n"])),
        EventKind::Assistant { content } => {
            for block in content {
                match block {
                    AssistantBlock::Text(said) => text.extend([said.trim_end(), "\n"]),
                    AssistantBlock::ToolUse { .. } if calls == Calls::AsEnded => {}
                    AssistantBlock::ToolUse { name, input, .. } => {
                        text.extend(["- ", &summary(name, Some(input)), "\n"]);
                    }
                }
            }
        }
        EventKind::ToolCall(call) if call.status != ToolCallStatus::Running => {
            let failed = if call.status == ToolCallStatus::Error { " (failed)" } else { "" };
            text.extend(["- ", &summary(&call.name, call.args.as_ref()), failed, "\n"]);
            return;
        }
        _ => return,
    }
    if text.len() > before {
        text.push('\n');
    }
}

fn run_line(text: &mut String, run: &RunRecord) {
    let status = format!("{:?}", run.status).to_lowercase();
    write!(text, "  {} {status}", run.id).unwrap_or_default();
    if let Some(model) = &run.model {
        write!(text, ", {}", one_line(model, 80)).unwrap_or_default();
    }
    if let Some(usage) = run.usage {
        write!(text, ", {} tokens", grouped(usage.total())).unwrap_or_default();
    }
    if let Some(cost) = run.cost {
        write!(text, ", {}", dollars(cost)).unwrap_or_default();
    }
    if let Some(time) = run.duration {
        write!(text, ", {:.1} s", time.as_secs_f64()).unwrap_or_default();
    }
    if let Some((code, reason)) = &run.error {
        write!(text, ": [{code}] {}", one_line(reason, LINE)).unwrap_or_default();
    }
    text.push('\n');
}
