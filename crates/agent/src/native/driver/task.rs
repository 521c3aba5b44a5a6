//! Owns the run of a subagent: with its own conversation, its own words and the servers that it may use, inside of one call
//! of its parent. It has no subagents itself.

use std::sync::Arc;

use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::told::failed;
use super::{Driver, Work};
use crate::engine::{BoxFuture, Checkpoint, RunSink, Steering, TurnEnd, TurnStop};
use crate::error::AgentError;
use crate::event::{AssistantBlock, Delta, EventKind, ToolCallEvent, ToolCallStatus, Usage};
use crate::native::conversation::Conversation;
use crate::native::model::UserPart;
use crate::native::turn_loop::{CallDone, PlannedCall};
use crate::options::{Limits, ModelChoice};
use crate::subagent::Subagent;

/// The arguments of `task`. Other usual names are taken as meant.
#[derive(Deserialize)]
struct TaskArguments {
    #[serde(default, alias = "subagent", alias = "subagent_type", alias = "subagentType", alias = "name")]
    agent: Option<String>,
    #[serde(alias = "task")]
    prompt: String,
}

/// Runs a subagent to its end.
pub(super) fn run<'a>(
    work: &'a Work,
    call: PlannedCall,
    left: Limits,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, CallDone> {
    Box::pin(async move {
        let id = call.id.clone();
        match begin(work, &call) {
            Ok((subagent, prompt)) => execute(work, &subagent, prompt, id, left, cancel).await,
            Err(text) => failed(id, &text),
        }
    })
}

fn begin(work: &Work, call: &PlannedCall) -> Result<(Subagent, String), String> {
    let arguments: TaskArguments = serde_json::from_slice(call.arguments.bytes())
        .map_err(|error| format!("The arguments of task are no good: {error}."))?;
    if arguments.prompt.trim().is_empty() {
        return Err("`prompt` is empty: write the whole task into it.".to_owned());
    }
    let subagent = work.subagents.find(arguments.agent.as_deref())?;
    Ok((subagent.clone(), arguments.prompt))
}

async fn execute(
    work: &Work,
    subagent: &Subagent,
    prompt: String,
    id: String,
    left: Limits,
    cancel: &CancellationToken,
) -> CallDone {
    let name = &subagent.name;
    let servers = match work.servers.for_subagent(name, &subagent.definition).await {
        Ok(servers) => servers,
        Err(error) => return failed(id, &format!("The subagent {name} cannot begin: {error}")),
    };
    let (model, choice) = match &subagent.definition.model {
        None => (Arc::clone(&work.model), work.choice.clone()),
        Some(other) => {
            let choice = ModelChoice { id: other.clone(), params: Vec::new() };
            match work.setup.models.open(&choice) {
                Ok(model) => (model, choice),
                Err(error) => return failed(id, &format!("The subagent {name} cannot begin: {error}")),
            }
        }
    };
    let sink = SubagentSink { parent: Arc::clone(&work.sink), call_id: id.clone(), name: name.clone() };
    let own = Work {
        servers: Arc::clone(&servers),
        sink: Arc::new(sink),
        model,
        choice,
        words: subagent.prompt().map(str::to_owned),
        is_subagent: true,
        tools: subagent.tools.clone(),
        reads_only: work.reads_only || subagent.read_only,
        limits: Limits { turns: work.limits.turns, ..left },
        ..work.clone()
    };
    let cancel = cancel.child_token();
    tokio::select! {
        () = servers.ready() => {}
        () = cancel.cancelled() => {}
    }
    let mut driver = Driver::new(Arc::new(own), Conversation::default(), Steering::none(), cancel).await;
    let end = driver.run(vec![UserPart::Text(prompt)]).await;
    let (usage, cost) = driver.spent();
    if !Arc::ptr_eq(&servers, &work.servers) {
        servers.shutdown().await;
    }
    ended(id, name, end, usage, cost)
}

fn ended(
    id: String,
    name: &str,
    end: Result<TurnEnd, AgentError>,
    usage: Usage,
    cost: Option<f64>,
) -> CallDone {
    let (text, is_error) = match end {
        Ok(TurnEnd { stop: TurnStop::Finished, result, .. }) => {
            (result.unwrap_or_else(|| format!("The subagent {name} ended and said nothing.")), false)
        }
        Ok(TurnEnd { stop, result, .. }) => {
            let why = match stop {
                TurnStop::Limit(reason) => format!("was stopped: {reason}"),
                TurnStop::Refused(reason) => format!("refused: {reason}"),
                TurnStop::Cancelled | TurnStop::Finished => {
                    "was cancelled; what it began may have run".to_owned()
                }
            };
            let said = result.map(|text| format!(" The last that it said:\n{text}")).unwrap_or_default();
            (format!("The subagent {name} {why}.{said}"), true)
        }
        Err(error) => (format!("The subagent {name} failed: {error}"), true),
    };
    let result = RawJson::of(&serde_json::json!({ "text": text, "isError": is_error, "agent": name }));
    CallDone { id, content: vec![UserPart::Text(text)], is_error, result, is_part: false, usage, cost }
}

/// What a subagent tells, as its parent's run tells it: notes with its name. Nothing of it is kept as a conversation.
struct SubagentSink {
    parent: Arc<dyn RunSink>,
    call_id: String,
    name: String,
}

impl SubagentSink {
    fn note(&self, text: &str) -> EventKind {
        EventKind::Task { status: Some("subagent".to_owned()), text: Some(format!("{}: {text}", self.name)) }
    }
}

impl RunSink for SubagentSink {
    fn event(&self, kind: EventKind) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            match kind {
                EventKind::Assistant { content } => {
                    for block in content {
                        if let AssistantBlock::Text(text) = block {
                            self.parent.event(self.note(&text)).await?;
                        }
                    }
                    Ok(())
                }
                EventKind::ToolCall(call) => match call_text(&call) {
                    Some(text) => self.parent.event(self.note(&text)).await,
                    None => Ok(()),
                },
                EventKind::Task { text: Some(text), .. } => self.parent.event(self.note(&text)).await,
                _ => Ok(()),
            }
        })
    }

    fn delta(&self, delta: Delta) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let message = match delta {
                Delta::ToolCallStarted(call) => call_text(&call),
                Delta::ToolCallProgress { message, .. } => Some(message),
                _ => None,
            };
            if let Some(message) = message {
                let message = format!("{}: {message}", self.name);
                self.parent.delta(Delta::ToolCallProgress { call_id: self.call_id.clone(), message }).await;
            }
        })
    }

    fn checkpoint(&self, _checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn call_text(call: &ToolCallEvent) -> Option<String> {
    let tool = match (call.name.as_str(), &call.args) {
        ("mcp", Some(args)) => {
            let args = args.tree();
            let member =
                |name: &str| args.get(name).and_then(|it| it.as_str()).unwrap_or_default().to_owned();
            format!("{} of {}", member("toolName"), member("providerIdentifier"))
        }
        (name, _) => name.to_owned(),
    };
    match call.status {
        ToolCallStatus::Running => Some(format!("calls {tool}")),
        ToolCallStatus::Error => Some(format!("{tool} failed")),
        ToolCallStatus::Completed => None,
    }
}
