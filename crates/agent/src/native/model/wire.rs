//! Owns how services write their answers: what came so far, and when it is whole. Readers get the frames as they were
//! sent, because arguments stay the model's own text and an end that was not sent is no end. No I/O.

mod chat;
mod library;
mod messages;
mod responses;

use std::collections::VecDeque;

use genai::chat::ChatStreamEvent;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use self::chat::Chat;
use self::library::Library;
use self::messages::Messages;
use self::responses::Responses;
use super::message::ModelCall;
use super::service::Wire;
use super::{ModelAnswer, ModelEvent};

/// What came so far of one answer.
pub(super) trait Reader: Send {
    /// One frame of the stream. A whole answer ends the reading.
    fn frame(&mut self, data: &str, out: &mut Events) -> Result<Option<ModelAnswer>, ReadFault> {
        let (_, _) = (data, out);
        Ok(None)
    }

    /// What the library made of the stream.
    fn event(&mut self, event: ChatStreamEvent, out: &mut Events) -> Result<Option<ModelAnswer>, ReadFault> {
        let (_, _) = (event, out);
        Ok(None)
    }

    /// The stream is over. An answer, if what came is one though its end was not marked.
    fn end(&mut self) -> Option<ModelAnswer> {
        None
    }
}

/// Events that wait to be told.
pub(super) type Events = VecDeque<ModelEvent>;

/// Why a frame ends the reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadFault {
    /// It makes no sense.
    Malformed(String),
    /// The service says that it failed.
    Service {
        message: String,
        /// The same may succeed later.
        passing: bool,
    },
}

pub(super) fn reader(wire: Wire, tag: String) -> Box<dyn Reader> {
    match wire {
        Wire::Chat => Box::new(Chat::default()),
        Wire::Responses => Box::new(Responses::new(tag)),
        Wire::Messages => Box::new(Messages::new(tag)),
        Wire::Library => Box::new(Library::new(tag)),
    }
}

/// A frame as a type.
fn parsed<'a, T: serde::Deserialize<'a>>(data: &'a str) -> Result<T, ReadFault> {
    serde_json::from_str(data)
        .map_err(|error| ReadFault::Malformed(format!("an event is not as it should be: {error}")))
}

/// The error that a frame tells of.
fn service_fault(error: &Value) -> ReadFault {
    let word = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = [word("type"), word("code"), word("status")].join(" ");
    let text = match (error.as_str(), word("message")) {
        (Some(text), _) => text.to_owned(),
        (None, "") => error.to_string(),
        (None, message) => message.to_owned(),
    };
    let passing = ["overloaded", "rate_limit", "server_error", "api_error", "timeout", "unavailable"];
    let passing = passing.iter().any(|word| kind.contains(word));
    ReadFault::Service { message: text, passing }
}

/// Arguments that came as a text, or, from services that do not know better, as JSON.
fn argument_text(raw: &RawValue) -> String {
    match serde_json::from_str::<Option<String>>(raw.get()) {
        Ok(text) => text.unwrap_or_default(),
        Err(_) => raw.get().to_owned(),
    }
}

/// A call that is being written.
#[derive(Debug, Default, Clone)]
struct Draft {
    id: String,
    name: String,
    arguments: String,
    told: usize,
}

impl Draft {
    fn new(id: &str, name: &str) -> Self {
        let id = if id.is_empty() { format!("call_{}", Uuid::new_v4().simple()) } else { id.to_owned() };
        Self { id, name: name.to_owned(), ..Self::default() }
    }

    fn push(&mut self, piece: &str, out: &mut Events) {
        self.arguments.push_str(piece);
        // What came so far is told again and again; less often the longer it is.
        if self.told == 0 || self.arguments.len() >= self.told + self.told / 16 {
            self.told = self.arguments.len() + 1;
            out.push_back(ModelEvent::CallDelta {
                id: self.id.clone(),
                name: self.name.clone(),
                arguments: self.arguments.clone(),
            });
        }
    }

    /// The call, with `{}` where the model wrote no arguments at all.
    fn call(self) -> ModelCall {
        let arguments = if self.arguments.trim().is_empty() { "{}".to_owned() } else { self.arguments };
        ModelCall { id: self.id, name: self.name, arguments, seal: None }
    }

    /// Whether the arguments were written to their end.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<&RawValue>(&self.arguments).is_ok()
    }
}
