//! Owns the words: what a run tells, as the bridge's events. Pure.

use toolway_bridge::{
    AgentEnd, AgentEvent, AgentFailure, AgentToolEvent, OutputStream, RawJson, ToolActivity, ToolStatus,
    Usage as PortUsage,
};

use crate::event::{Delta, RunStatus, ToolCallEvent, ToolCallStatus};
use crate::run::RunState;

/// What has been told in the step that is on its way.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// Calls that ended in this step.
    completed: Vec<AgentToolEvent>,
    /// Calls of whose end the agent never told. What is said of them is the bridge's business, which knows how the run ended.
    untold: Vec<String>,
}

impl Telling {
    /// The event that says it; `None`: the bridge has no word for it.
    pub(super) fn tell(&mut self, delta: Delta) -> Option<AgentEvent> {
        Some(match delta {
            Delta::Text(text) => AgentEvent::Text(text),
            Delta::Thinking(text) => AgentEvent::Thinking(text),
            Delta::PartialToolCall { call_id, name, arguments } => {
                // Arguments that are not whole yet are no JSON: the name alone tells enough.
                let args = RawJson::new(arguments).ok().filter(RawJson::is_object);
                AgentEvent::Tool(AgentToolEvent::Partial(ToolActivity {
                    id: call_id,
                    kind: name,
                    args: args.unwrap_or_else(RawJson::empty_object),
                    result: None,
                    status: ToolStatus::Running,
                }))
            }
            Delta::ToolCallStarted(call) => AgentEvent::Tool(AgentToolEvent::Started(activity(call))),
            Delta::ToolCallUntold { call_id } => {
                self.untold.push(call_id);
                return None;
            }
            Delta::ToolCallCompleted(call) => {
                if let Some(at) = self.untold.iter().position(|id| *id == call.call_id) {
                    self.untold.remove(at);
                    return None;
                }
                let event = AgentToolEvent::Completed(activity(call));
                self.completed.push(event.clone());
                AgentEvent::Tool(event)
            }
            Delta::ShellOutput { call_id, stream, text } => {
                let stream = if stream == "stderr" { OutputStream::Stderr } else { OutputStream::Stdout };
                AgentEvent::Tool(AgentToolEvent::Output { id: Some(call_id), stream, text })
            }
            Delta::TurnEnded(usage) => AgentEvent::TurnEnded(PortUsage {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
            }),
            Delta::StepCompleted { .. } => AgentEvent::Step(std::mem::take(&mut self.completed)),
            Delta::ThinkingCompleted { .. }
            | Delta::ToolCallProgress { .. }
            | Delta::StepStarted { .. }
            | Delta::UserMessageAppended(_)
            | Delta::SummaryStarted
            | Delta::SummaryCompleted { .. } => return None,
        })
    }
}

fn activity(call: ToolCallEvent) -> ToolActivity {
    let ToolCallEvent { call_id, name, status, args, result, truncated: _ } = call;
    ToolActivity {
        id: call_id,
        kind: name,
        args: args.unwrap_or_else(RawJson::empty_object),
        result,
        status: match status {
            ToolCallStatus::Running => ToolStatus::Running,
            ToolCallStatus::Completed => ToolStatus::Completed,
            ToolCallStatus::Error => ToolStatus::Failed,
        },
    }
}

/// How a run ended.
pub(super) fn end(state: RunState) -> AgentEnd {
    match state.status {
        RunStatus::Finished => AgentEnd::Finished(state.result),
        RunStatus::Cancelled => AgentEnd::Cancelled,
        status => {
            let message = state.error.map(|error| error.message);
            AgentEnd::Failed(AgentFailure::new(
                message.unwrap_or_else(|| format!("the run ended as {status:?}")),
            ))
        }
    }
}
