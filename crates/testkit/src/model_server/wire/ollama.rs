//! Ollama: a line of JSON for each piece.

use serde_json::{Value, json};

use super::{Sent, Told, arguments_value};

pub(super) fn sent(told: &Told<'_>) -> Sent {
    let reply = told.reply;
    let line = |message: &Value, done: bool| {
        let mut message = message.clone();
        message["role"] = "assistant".into();
        json!({ "model": told.model, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done })
    };
    let calls: Vec<Value> = told
        .calls()
        .map(|(_, call)| json!({ "function": { "name": call.name, "arguments": arguments_value(call) } }))
        .collect();
    let mut lines: Vec<Value> = reply
        .thinking
        .iter()
        .map(|piece| line(&json!({ "content": "", "thinking": piece }), false))
        .collect();
    lines.extend(reply.text.iter().map(|piece| line(&json!({ "content": piece }), false)));
    if !calls.is_empty() {
        lines.push(line(&json!({ "content": "", "tool_calls": calls }), false));
    }
    let tail = lines.len();
    let finish = |mut line: Value| {
        line["done_reason"] = if reply.stop.is_some() { "length".into() } else { "stop".into() };
        line["prompt_eval_count"] = told.count("input", 10).into();
        line["eval_count"] = told.count("output", 5).into();
        line
    };
    lines.push(finish(line(&json!({ "content": "" }), true)));
    let mut message = json!({ "content": told.text() });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let whole = finish(line(&message, true));
    Sent { events: lines.iter().map(|line| format!("{line}\n")).collect(), tail, whole }
}
