//! Owns the form in which a conversation is kept: JSON with a version. A message is written once and its bytes are used
//! again.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolway_bridge::RawJson;

use super::{Conversation, Mark, Origin};
use crate::engine::Checkpoint;
use crate::error::AgentError;
use crate::native::model::{AnswerPart, Message, ToolAnswer};

/// The version that is written. Older ones are read.
const VERSION: u32 = 1;

/// Who has written it, before anything else is believed.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

/// What an agent behind a protocol has in its place: it keeps the rest itself.
#[derive(Deserialize)]
struct Elsewhere {
    #[serde(rename = "session")]
    _session: String,
    agent: String,
}

#[derive(Deserialize)]
struct Kept {
    #[serde(default)]
    ratio: Option<f64>,
    messages: Vec<KeptMessage>,
    #[serde(default)]
    results: Vec<ToolAnswer>,
    #[serde(default)]
    todos: Option<RawJson>,
}

#[derive(Deserialize)]
struct KeptMessage {
    origin: Origin,
    message: Message,
}

#[derive(Serialize)]
struct WrittenMessage<'a> {
    origin: Origin,
    message: &'a Message,
}

impl Conversation {
    /// It, to be kept.
    pub(crate) fn checkpoint(&mut self) -> Result<Checkpoint, AgentError> {
        for (message, mark) in self.messages.iter().zip(&mut self.marks) {
            if mark.json.is_none() {
                let written = WrittenMessage { origin: mark.origin, message };
                mark.json = Some(serde_json::to_vec(&written).map_err(|error| unwritable(&error))?.into());
            }
        }
        let texts = || self.marks.iter().filter_map(|mark| mark.json.as_ref());
        let size: usize = texts().map(|text| text.len() + 1).sum();
        let mut out = Vec::with_capacity(size + 128);
        out.extend_from_slice(
            format!(r#"{{"version":{VERSION},"ratio":{},"messages":["#, self.ratio).as_bytes(),
        );
        for (place, text) in texts().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(text);
        }
        out.extend_from_slice(br#"],"results":"#);
        serde_json::to_writer(&mut out, &self.pending).map_err(|error| unwritable(&error))?;
        if let Some(todos) = &self.todos {
            out.extend_from_slice(br#","todos":"#);
            out.extend_from_slice(todos.bytes());
        }
        out.push(b'}');
        Ok(Checkpoint(out.into()))
    }

    /// A conversation that was kept.
    pub(crate) fn restore(kept: &Checkpoint) -> Result<Self, AgentError> {
        if let Ok(Elsewhere { agent, .. }) = serde_json::from_slice(&kept.0) {
            let message = format!(
                "is missing: what was said before is kept by {agent}, behind the Agent Client Protocol; name it again \
                 to go on, or begin a new agent"
            );
            return Err(AgentError::fault("acp", message));
        }
        let head: Head = serde_json::from_slice(&kept.0).map_err(|error| unreadable(&error))?;
        if head.version > VERSION {
            let message = format!(
                "the conversation was written by a newer version (form {}, this one reads up to {VERSION}): update \
                 this program to go on with it",
                head.version
            );
            return Err(AgentError::Store { message });
        }
        let kept: Kept = serde_json::from_slice(&kept.0).map_err(|error| unreadable(&error))?;
        let mut conversation = Self { pending: kept.results, todos: kept.todos, ..Self::default() };
        if let Some(ratio) = kept.ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            conversation.ratio = ratio;
        }
        for KeptMessage { origin, message } in kept.messages {
            if let Message::Assistant(parts) = &message {
                conversation.ids.extend(parts.iter().filter_map(|part| match part {
                    AnswerPart::Call(call) => Some(call.id.clone()),
                    _ => None,
                }));
            }
            let json = None::<Bytes>;
            conversation.marks.push(Mark { origin, json, weight: None });
            conversation.messages.push(message);
        }
        Ok(conversation)
    }
}

fn unwritable(error: &serde_json::Error) -> AgentError {
    AgentError::Runtime { message: format!("the conversation cannot be written: {error}") }
}

fn unreadable(error: &serde_json::Error) -> AgentError {
    let message = format!(
        "the kept conversation cannot be read ({error}): its file was changed or is damaged; begin a new agent, or put \
         back a copy of the store"
    );
    AgentError::Store { message }
}
