//! Owns the JSON form of what happens between events: `{"type": "delta", "delta": {"type": "text-delta", ...}}`. Pure.

use serde_json::{Value, json};
use toolway_agent::{Delta, RunId, ToolCallEvent, ToolCallStatus, Usage};

/// One line.
pub(super) fn line(run: &RunId, delta: &Delta) -> String {
    json!({"type": "delta", "run_id": run, "delta": of(delta)}).to_string()
}

fn of(delta: &Delta) -> Value {
    match delta {
        Delta::Text(text) => json!({"type": "text-delta", "text": text}),
        Delta::Thinking(text) => json!({"type": "thinking-delta", "text": text}),
        Delta::ThinkingCompleted { duration_ms } => {
            json!({"type": "thinking-completed", "duration_ms": duration_ms})
        }
        Delta::PartialToolCall { call_id, name, arguments } => {
            json!({"type": "partial-tool-call", "call_id": call_id, "name": name, "arguments": arguments})
        }
        Delta::ToolCallStarted(call) => called("tool-call-started", call),
        Delta::ToolCallProgress { call_id, message } => {
            json!({"type": "tool-call-delta", "call_id": call_id, "message": message})
        }
        Delta::ShellOutput { call_id, stream, text } => {
            json!({"type": "shell-output-delta", "call_id": call_id, "stream": stream, "text": text})
        }
        Delta::ToolCallCompleted(call) => called("tool-call-completed", call),
        Delta::ToolCallUntold { call_id } => json!({"type": "tool-call-untold", "call_id": call_id}),
        Delta::StepStarted { step } => json!({"type": "step-started", "step": step}),
        Delta::StepCompleted { step } => json!({"type": "step-completed", "step": step}),
        Delta::TurnEnded(usage) => json!({"type": "turn-ended", "usage": tokens(usage)}),
        Delta::UserMessageAppended(text) => json!({"type": "user-message-appended", "text": text}),
        Delta::SummaryStarted => json!({"type": "summary-started"}),
        Delta::SummaryCompleted { before, after } => {
            json!({"type": "summary-completed", "before": before, "after": after})
        }
        _ => json!({"type": "unknown"}),
    }
}

fn called(kind: &str, call: &ToolCallEvent) -> Value {
    let status = match call.status {
        ToolCallStatus::Running => "running",
        ToolCallStatus::Completed => "completed",
        ToolCallStatus::Error => "error",
    };
    let mut value = json!({"type": kind, "call_id": call.call_id, "name": call.name, "status": status});
    for (name, part) in [("args", &call.args), ("result", &call.result)] {
        if let (Some(map), Some(part)) = (value.as_object_mut(), part) {
            map.insert(name.to_owned(), part.tree());
        }
    }
    value
}

/// Tokens, as events have them.
pub(super) fn tokens(usage: &Usage) -> Value {
    let mut value = serde_json::to_value(usage).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.insert("total".to_owned(), usage.total().into());
    }
    value
}

/// Money, in US dollars; small sums with as many digits as tell them apart.
pub(super) fn dollars(cost: f64) -> String {
    if cost >= 1.0 || cost <= 0.0 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}
