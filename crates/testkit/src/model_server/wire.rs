//! How a reply is written in each protocol: as events, and in one piece.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

use serde_json::{Value, json};

use super::script::{Call, ModelReply};

/// A protocol of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Chat,
    Responses,
    Messages,
    Gemini,
    Ollama,
}

/// A reply as it is sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// The events, each as it stands in the stream.
    pub(super) events: Vec<String>,
    /// How many of them come before those that mark the end.
    pub(super) tail: usize,
    /// The answer in one piece.
    pub(super) whole: Value,
}

impl Protocol {
    pub(super) fn of(path: &str) -> Option<Self> {
        let ends = [
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            ("/messages", Self::Messages),
            (":streamGenerateContent", Self::Gemini),
            (":generateContent", Self::Gemini),
            ("/api/chat", Self::Ollama),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, protocol)| protocol)
    }

    pub(super) fn streams(self, path: &str, body: &Value) -> bool {
        match self {
            Self::Gemini => path.ends_with(":streamGenerateContent"),
            Self::Ollama => body.get("stream") != Some(&Value::Bool(false)),
            _ => body.get("stream") == Some(&Value::Bool(true)),
        }
    }

    /// The model that is asked.
    pub(super) fn model(self, path: &str, body: &Value) -> String {
        let in_path = path.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(name, _)| name);
        let named = body.get("model").and_then(Value::as_str);
        named.or(in_path.filter(|_| self == Self::Gemini)).unwrap_or("scripted").to_owned()
    }

    /// A refusal with a status.
    pub(super) fn error(self, reply: &ModelReply) -> Value {
        let message = if reply.error.is_empty() { "the script says so" } else { &reply.error };
        let kind = reply.code.as_deref().unwrap_or(match reply.status {
            429 => "rate_limit_error",
            401 => "authentication_error",
            400 => "invalid_request_error",
            529 => "overloaded_error",
            _ => "server_error",
        });
        match self {
            Self::Messages => json!({ "type": "error", "error": { "type": kind, "message": message } }),
            Self::Gemini => json!({ "error": { "code": reply.status, "message": message, "status": kind } }),
            Self::Ollama => json!({ "error": message }),
            Self::Chat | Self::Responses => {
                json!({ "error": { "message": message, "type": kind, "code": reply.code } })
            }
        }
    }
}

/// Writes a reply.
pub(super) fn answer(protocol: Protocol, reply: &ModelReply, number: u64, model: &str) -> Sent {
    let told = Told { reply, number, model };
    let mut sent = match protocol {
        Protocol::Chat => chat::sent(&told),
        Protocol::Responses => responses::sent(&told),
        Protocol::Messages => messages::sent(&told),
        Protocol::Gemini => gemini::sent(&told),
        Protocol::Ollama => ollama::sent(&told),
    };
    if let Some(message) = &reply.failed {
        sent.events.truncate(sent.tail / 2 + 1);
        let error = json!({ "type": "server_error", "message": message });
        sent.events.push(match protocol {
            Protocol::Chat | Protocol::Gemini => data(&json!({ "error": error })),
            Protocol::Responses => named("error", &json!({ "code": "server_error", "message": message })),
            Protocol::Messages => {
                named("error", &json!({ "error": { "type": "overloaded_error", "message": message } }))
            }
            Protocol::Ollama => format!("{}\n", json!({ "error": message })),
        });
        sent.tail = sent.events.len();
    }
    sent
}

/// A reply and what stands around it.
struct Told<'a> {
    reply: &'a ModelReply,
    number: u64,
    model: &'a str,
}

impl Told<'_> {
    fn text(&self) -> String {
        self.reply.text.concat()
    }

    fn id(&self, word: &str) -> String {
        format!("{word}_{}", self.number)
    }

    fn call_id(&self, place: usize, call: &Call) -> String {
        call.id.clone().unwrap_or_else(|| format!("call_{}_{place}", self.number))
    }

    fn count(&self, name: &str, otherwise: u64) -> u64 {
        self.reply.usage.get(name).copied().unwrap_or(otherwise)
    }

    /// The calls with their places.
    fn calls(&self) -> impl Iterator<Item = (usize, &Call)> {
        self.reply.calls.iter().enumerate()
    }
}

fn arguments(call: &Call) -> String {
    call.arguments.concat()
}

/// Arguments where the protocol wants JSON: what is none is told as a text.
fn arguments_value(call: &Call) -> Value {
    let text = arguments(call);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// An event of a stream of server-sent events.
fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// The same with a name, which is its type too.
fn named(name: &str, value: &Value) -> String {
    let mut value = value.clone();
    value["type"] = name.into();
    format!("event: {name}\ndata: {value}\n\n")
}
