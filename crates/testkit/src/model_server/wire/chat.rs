//! Chat completions.

use serde_json::{Value, json};

use super::{Sent, Told, arguments, data};

pub(super) fn sent(told: &Told<'_>) -> Sent {
    let chunk = |delta: &Value, finish: Option<&str>| {
        data(&json!({
            "id": told.id("chatcmpl"), "object": "chat.completion.chunk", "created": 0, "model": told.model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        }))
    };
    let reply = told.reply;
    let mut events = vec![chunk(&json!({ "role": "assistant", "content": "" }), None)];
    events.extend(reply.thinking.iter().map(|piece| chunk(&json!({ "reasoning_content": piece }), None)));
    events.extend(reply.text.iter().map(|piece| chunk(&json!({ "content": piece }), None)));
    events.extend(reply.refusal.iter().map(|text| chunk(&json!({ "refusal": text }), None)));
    let mut calls = Vec::new();
    for (place, call) in told.calls() {
        let id = told.call_id(place, call);
        let begin = json!({ "index": place, "id": id, "type": "function", "function": { "name": call.name, "arguments": "" } });
        events.push(chunk(&json!({ "tool_calls": [begin] }), None));
        for piece in &call.arguments {
            let more = json!({ "index": place, "function": { "arguments": piece } });
            events.push(chunk(&json!({ "tool_calls": [more] }), None));
        }
        calls.push(json!({ "id": id, "type": "function", "function": { "name": call.name, "arguments": arguments(call) } }));
    }
    let tail = events.len();
    let finish = match reply.stop.as_deref() {
        Some("length") => "length",
        Some("filter") => "content_filter",
        _ if !calls.is_empty() => "tool_calls",
        _ => "stop",
    };
    let cached = told.count("cacheRead", 0);
    let (read, written) = (told.count("input", 10) + cached, told.count("output", 5));
    let usage = json!({
        "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        "prompt_tokens_details": { "cached_tokens": cached },
        "completion_tokens_details": { "reasoning_tokens": told.count("reasoning", 0) },
    });
    events.push(chunk(&json!({}), Some(finish)));
    events.push(data(&json!({ "id": told.id("chatcmpl"), "object": "chat.completion.chunk", "choices": [], "usage": usage })));
    events.push("data: [DONE]\n\n".to_owned());
    let mut message = json!({ "role": "assistant", "content": told.text(), "refusal": reply.refusal });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let whole = json!({
        "id": told.id("chatcmpl"), "object": "chat.completion", "created": 0, "model": told.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "usage": usage,
    });
    Sent { events, tail, whole }
}
