//! Responses.

use serde_json::{Value, json};

use super::{Sent, Told, arguments, named};

pub(super) fn sent(told: &Told<'_>) -> Sent {
    let mut writer = Writer { told, events: Vec::new(), output: Vec::new() };
    let begin = json!({ "response": writer.response("in_progress") });
    writer.push("response.created", begin);
    writer.items();
    let tail = writer.events.len();
    let status = if told.reply.stop.is_some() { "incomplete" } else { "completed" };
    let whole = writer.response(status);
    writer.push(&format!("response.{status}"), json!({ "response": whole }));
    Sent { events: writer.events, tail, whole }
}

struct Writer<'a> {
    told: &'a Told<'a>,
    events: Vec<String>,
    output: Vec<Value>,
}

impl Writer<'_> {
    fn push(&mut self, name: &str, mut value: Value) {
        value["sequence_number"] = self.events.len().into();
        self.events.push(named(name, &value));
    }

    fn piece(&mut self, name: &str, id: &str, piece: &str) {
        let place = self.output.len();
        let value = json!({ "item_id": id, "output_index": place, "content_index": 0, "summary_index": 0, "delta": piece });
        self.push(name, value);
    }

    /// An item as it begins.
    fn begin(&mut self, item: &Value) {
        let place = self.output.len();
        self.push("response.output_item.added", json!({ "output_index": place, "item": item }));
    }

    /// An item as it is in the end.
    fn done(&mut self, item: Value) {
        let place = self.output.len();
        self.push("response.output_item.done", json!({ "output_index": place, "item": item }));
        self.output.push(item);
    }

    fn items(&mut self) {
        let told = self.told;
        let reply = told.reply;
        if !reply.thinking.is_empty() {
            let id = told.id("rs");
            self.begin(&json!({ "type": "reasoning", "id": id, "summary": [] }));
            for piece in &reply.thinking {
                self.piece("response.reasoning_summary_text.delta", &id, piece);
            }
            let summary = json!([{ "type": "summary_text", "text": reply.thinking.concat() }]);
            let seal = format!("sealed-{}", told.number);
            self.done(
                json!({ "type": "reasoning", "id": id, "summary": summary, "encrypted_content": seal }),
            );
        }
        if !reply.text.is_empty() || reply.refusal.is_some() {
            let id = told.id("msg");
            self.begin(&json!({ "type": "message", "id": id, "role": "assistant", "status": "in_progress", "content": [] }));
            for piece in &reply.text {
                self.piece("response.output_text.delta", &id, piece);
            }
            let mut content = Vec::new();
            if !reply.text.is_empty() {
                content.push(json!({ "type": "output_text", "text": told.text(), "annotations": [] }));
            }
            if let Some(refusal) = &reply.refusal {
                self.piece("response.refusal.delta", &id, refusal);
                content.push(json!({ "type": "refusal", "refusal": refusal }));
            }
            self.done(json!({ "type": "message", "id": id, "role": "assistant", "status": "completed", "content": content }));
        }
        for (place, call) in told.calls() {
            let id = format!("fc_{}_{place}", told.number);
            let call_id = told.call_id(place, call);
            let item = |arguments: &str, status: &str| {
                json!({
                    "type": "function_call", "id": id, "call_id": call_id, "name": call.name,
                    "arguments": arguments, "status": status,
                })
            };
            self.begin(&item("", "in_progress"));
            for piece in &call.arguments {
                self.piece("response.function_call_arguments.delta", &id, piece);
            }
            self.done(item(&arguments(call), "completed"));
        }
    }

    fn response(&self, status: &str) -> Value {
        let told = self.told;
        let cached = told.count("cacheRead", 0);
        let (read, written) = (told.count("input", 10) + cached, told.count("output", 5));
        let reason = match told.reply.stop.as_deref() {
            Some("filter") => json!({ "reason": "content_filter" }),
            Some(_) => json!({ "reason": "max_output_tokens" }),
            None => Value::Null,
        };
        json!({
            "id": told.id("resp"), "object": "response", "created_at": 0, "model": told.model, "status": status,
            "output": self.output, "error": null, "incomplete_details": reason, "parallel_tool_calls": true,
            "usage": {
                "input_tokens": read, "input_tokens_details": { "cached_tokens": cached },
                "output_tokens": written,
                "output_tokens_details": { "reasoning_tokens": told.count("reasoning", 0) },
                "total_tokens": read + written,
            },
        })
    }
}
