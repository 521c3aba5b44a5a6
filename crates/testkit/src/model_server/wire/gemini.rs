//! Gemini: whole parts, the reason of the end in the last event.

use serde_json::{Value, json};

use super::{Sent, Told, arguments_value, data};

pub(super) fn sent(told: &Told<'_>) -> Sent {
    let reply = told.reply;
    let thoughts = reply.thinking.iter().map(|piece| json!({ "text": piece, "thought": true }));
    let texts = reply.text.iter().map(|piece| json!({ "text": piece }));
    let calls = told.calls().map(|(place, call)| {
        let mut part = json!({ "functionCall": { "name": call.name, "args": arguments_value(call) } });
        if place == 0 && !reply.thinking.is_empty() {
            part["thoughtSignature"] = format!("sealed-{}", told.number).into();
        }
        part
    });
    let parts: Vec<Value> = thoughts.chain(texts).chain(calls).collect();
    let frame = |parts: &[Value]| json!({ "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }] });
    let mut events: Vec<String> = parts.iter().map(|part| data(&frame(std::slice::from_ref(part)))).collect();
    let tail = events.len();
    let finish = match reply.stop.as_deref() {
        Some("length") => "MAX_TOKENS",
        Some(_) => "SAFETY",
        None if reply.refusal.is_some() => "SAFETY",
        None => "STOP",
    };
    let (cached, read, written) =
        (told.count("cacheRead", 0), told.count("input", 10), told.count("output", 5));
    let usage = json!({
        "promptTokenCount": read + cached, "candidatesTokenCount": written, "cachedContentTokenCount": cached,
        "totalTokenCount": read + cached + written,
    });
    let mut last = frame(&[json!({ "text": "" })]);
    last["candidates"][0]["finishReason"] = finish.into();
    last["usageMetadata"] = usage.clone();
    events.push(data(&last));
    let mut whole = frame(&parts);
    whole["candidates"][0]["finishReason"] = finish.into();
    whole["usageMetadata"] = usage;
    Sent { events, tail, whole }
}
