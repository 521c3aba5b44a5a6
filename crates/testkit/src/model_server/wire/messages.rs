//! Anthropic's messages.

use serde_json::{Value, json};

use super::{Sent, Told, arguments_value, named};

pub(super) fn sent(told: &Told<'_>) -> Sent {
    let reply = told.reply;
    let stop = match reply.stop.as_deref() {
        Some("length") => "max_tokens",
        Some(_) => "refusal",
        None if reply.refusal.is_some() => "refusal",
        None if !reply.calls.is_empty() => "tool_use",
        None => "end_turn",
    };
    let whole = json!({
        "id": told.id("msg"), "type": "message", "role": "assistant", "model": told.model, "content": content(told),
        "stop_reason": stop, "stop_sequence": null, "usage": usage(told),
    });
    let mut start = whole.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut writer = Writer { events: vec![named("message_start", &json!({ "message": start }))], place: 0 };
    writer.events.push(named("ping", &json!({})));
    if !reply.thinking.is_empty() {
        writer.begin(&json!({ "type": "thinking", "thinking": "", "signature": "" }));
        for piece in &reply.thinking {
            writer.piece(&json!({ "type": "thinking_delta", "thinking": piece }));
        }
        writer.piece(&json!({ "type": "signature_delta", "signature": seal(told) }));
        writer.end();
    }
    let texts: Vec<&String> = reply.text.iter().chain(&reply.refusal).collect();
    if !texts.is_empty() {
        writer.begin(&json!({ "type": "text", "text": "" }));
        for piece in texts {
            writer.piece(&json!({ "type": "text_delta", "text": piece }));
        }
        writer.end();
    }
    for (place, call) in told.calls() {
        writer.begin(
            &json!({ "type": "tool_use", "id": told.call_id(place, call), "name": call.name, "input": {} }),
        );
        for piece in &call.arguments {
            writer.piece(&json!({ "type": "input_json_delta", "partial_json": piece }));
        }
        writer.end();
    }
    let mut events = writer.events;
    let tail = events.len();
    let end = json!({
        "delta": { "stop_reason": stop, "stop_sequence": null },
        "usage": { "output_tokens": told.count("output", 5) },
    });
    events.push(named("message_delta", &end));
    events.push(named("message_stop", &json!({})));
    Sent { events, tail, whole }
}

struct Writer {
    events: Vec<String>,
    place: u64,
}

impl Writer {
    fn begin(&mut self, block: &Value) {
        self.events
            .push(named("content_block_start", &json!({ "index": self.place, "content_block": block })));
    }

    fn piece(&mut self, delta: &Value) {
        self.events.push(named("content_block_delta", &json!({ "index": self.place, "delta": delta })));
    }

    fn end(&mut self) {
        self.events.push(named("content_block_stop", &json!({ "index": self.place })));
        self.place += 1;
    }
}

fn seal(told: &Told<'_>) -> String {
    format!("sealed-{}", told.number)
}

fn content(told: &Told<'_>) -> Vec<Value> {
    let reply = told.reply;
    let mut content = Vec::new();
    if !reply.thinking.is_empty() {
        content.push(
            json!({ "type": "thinking", "thinking": reply.thinking.concat(), "signature": seal(told) }),
        );
    }
    let text = told.text() + reply.refusal.as_deref().unwrap_or_default();
    if !text.is_empty() {
        content.push(json!({ "type": "text", "text": text }));
    }
    for (place, call) in told.calls() {
        let input = arguments_value(call);
        content.push(
            json!({ "type": "tool_use", "id": told.call_id(place, call), "name": call.name, "input": input }),
        );
    }
    content
}

fn usage(told: &Told<'_>) -> Value {
    json!({
        "input_tokens": told.count("input", 10), "output_tokens": told.count("output", 5),
        "cache_read_input_tokens": told.count("cacheRead", 0),
        "cache_creation_input_tokens": told.count("cacheWrite", 0),
    })
}
