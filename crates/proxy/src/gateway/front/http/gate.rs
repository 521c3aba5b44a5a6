//! Owns the question whether a call of a tool may go to its server, asked of who embeds the gateway. It decides nothing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use toolway_wire::find::{Step, find};
use toolway_wire::{Kind, Scanner, Verdict};

use super::heard::{self, CallListener, Listening};
use crate::gateway::front::admit::Admitted;
use crate::gateway::message::{Content, Message};
use crate::gateway::translate;

/// What a [`CallGate`] says: what of the call goes on, or the text that the caller gets as an error result.
pub type Judgement<'a> = Pin<Box<dyn Future<Output = Result<Passed, String>> + Send + 'a>>;

/// What of a call goes on.
#[derive(Debug, Default)]
pub struct Passed {
    /// Other arguments in place of the caller's.
    pub arguments: Option<Bytes>,
    /// Who hears what the call gives, before the caller does.
    pub listener: Option<Box<dyn CallListener>>,
}

/// Is asked before a tool is called over a front. Implemented by who embeds the gateway.
pub trait CallGate: fmt::Debug + Send + Sync {
    /// A tool by the name that clients call, and its arguments, raw.
    fn before(&self, tool: String, arguments: Bytes) -> Judgement<'_>;
}

/// What of a request goes on and who listens to its answer, or answers to what does not.
pub(super) async fn ask(
    gate: &Arc<dyn CallGate>,
    admitted: Admitted,
) -> Result<(Admitted, Option<Listening>), Vec<u8>> {
    Ok(match admitted {
        Admitted::One(message) => {
            let (message, listening) = judge(gate, message).await?;
            (Admitted::One(message), listening)
        }
        Admitted::Batch(messages, mut answers) => {
            let mut passed = Vec::new();
            for message in messages {
                match judge(gate, message).await {
                    Ok((message, None)) => passed.push(message),
                    // The answers to a batch are one message, which nobody listens to.
                    Ok((message, Some(_))) => {
                        answers.push(refusal(&message, "calls are heard here: send each by itself"));
                    }
                    Err(answer) => answers.push(answer),
                }
            }
            (Admitted::Batch(passed, answers), None)
        }
        other => (other, None),
    })
}

async fn judge(gate: &Arc<dyn CallGate>, message: Message) -> Result<(Message, Option<Listening>), Vec<u8>> {
    let envelope = &message.envelope;
    if envelope.kind() != Kind::Request || envelope.method() != Some("tools/call") {
        return Ok((message, None));
    }
    let Content::Bytes(bytes) = &message.content else {
        return Err(refusal(&message, "the call is too large to be judged"));
    };
    let path = [Step::Key("params"), Step::Key("arguments")];
    let arguments = find(bytes, &path).map(|at| bytes.slice(at));
    let arguments = arguments.unwrap_or_else(|| Bytes::from_static(b"{}"));
    let name = envelope.name().unwrap_or_default().to_owned();
    let Passed { arguments, listener } =
        gate.before(name, arguments).await.map_err(|text| refusal(&message, &text))?;
    let listening = listener.zip(envelope.id().cloned()).map(|(listener, id)| Listening {
        id,
        listener,
        is_modern: is_modern(&message),
    });
    let message = match arguments {
        None => message,
        Some(arguments) => changed(bytes, &arguments)
            .ok_or_else(|| refusal(&message, "the arguments that were put in place are no JSON"))?,
    };
    Ok((message, listening))
}

fn is_modern(message: &Message) -> bool {
    message.envelope.protocol_version().is_some()
}

/// The call with other arguments.
fn changed(bytes: &Bytes, arguments: &[u8]) -> Option<Message> {
    let at = find(bytes, &[Step::Key("params")])?;
    let params = translate::set_members(bytes.get(at.clone())?, &[("arguments", arguments)]);
    let made = [bytes.get(..at.start)?, &params, bytes.get(at.end..)?].concat();
    let bytes = Bytes::from(made);
    let envelope = match Scanner::new().whole(&bytes) {
        Verdict::Message(envelope) => envelope.clone(),
        _ => return None,
    };
    Some(Message { content: Content::Bytes(bytes), envelope })
}

/// The answer to a call that does not go on.
fn refusal(message: &Message, text: &str) -> Vec<u8> {
    match message.envelope.id() {
        Some(id) => heard::answer(id, &heard::failure(text), is_modern(message)),
        None => Vec::new(),
    }
}
