//! Owns the question whether a call of a tool may go to its server, asked of who embeds the gateway. It decides nothing.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use toolway_wire::find::{Step, find};
use toolway_wire::{Kind, Scanner, Verdict, push_string};

use crate::gateway::front::admit::Admitted;
use crate::gateway::message::{Content, Message};
use crate::gateway::translate;

/// What a [`CallGate`] says: the call goes on, with other arguments where there are some, or it does not.
pub type Judgement<'a> = Pin<Box<dyn Future<Output = Result<Option<Bytes>, Held>> + Send + 'a>>;

/// What becomes of a call that does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// The caller gets this text as an error result.
    Refused(String),
    /// Who was asked has made the call: the caller gets this result, a whole `CallToolResult`.
    Made(Bytes),
}

/// Is asked before a tool is called over a front. Implemented by who embeds the gateway.
pub trait CallGate: fmt::Debug + Send + Sync {
    /// A tool by the name that clients call, and its arguments, raw.
    fn before(&self, tool: String, arguments: Bytes) -> Judgement<'_>;
}

/// What of a request goes on, and answers to what does not.
pub(super) async fn ask(gate: &Arc<dyn CallGate>, admitted: Admitted) -> Result<Admitted, Vec<u8>> {
    Ok(match admitted {
        Admitted::One(message) => Admitted::One(judge(gate, message).await?),
        Admitted::Batch(messages, mut answers) => {
            let mut passed = Vec::new();
            for message in messages {
                match judge(gate, message).await {
                    Ok(message) => passed.push(message),
                    Err(answer) => answers.push(answer),
                }
            }
            Admitted::Batch(passed, answers)
        }
        other => other,
    })
}

async fn judge(gate: &Arc<dyn CallGate>, message: Message) -> Result<Message, Vec<u8>> {
    let envelope = &message.envelope;
    if envelope.kind() != Kind::Request || envelope.method() != Some("tools/call") {
        return Ok(message);
    }
    let Content::Bytes(bytes) = &message.content else {
        return Err(refusal(&message, "the call is too large to be judged"));
    };
    let path = [Step::Key("params"), Step::Key("arguments")];
    let arguments = find(bytes, &path).map(|at| bytes.slice(at));
    let arguments = arguments.unwrap_or_else(|| Bytes::from_static(b"{}"));
    let name = envelope.name().unwrap_or_default().to_owned();
    match gate.before(name, arguments).await {
        Ok(None) => Ok(message),
        Ok(Some(arguments)) => changed(bytes, &arguments)
            .ok_or_else(|| refusal(&message, "the arguments that were put in place are no JSON")),
        Err(Held::Refused(text)) => Err(refusal(&message, &text)),
        Err(Held::Made(result)) => Err(answer(&message, &result)),
    }
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
    let mut result = b"{\"content\":[{\"type\":\"text\",\"text\":".to_vec();
    push_string(text, &mut result);
    result.extend_from_slice(b"}],\"isError\":true}");
    answer(message, &result)
}

fn answer(message: &Message, result: &[u8]) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    out.extend_from_slice(message.envelope.id().map_or(&b"null"[..], |id| id.raw()));
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    if message.envelope.protocol_version().is_some() {
        return translate::result_to_modern(&out, "tools/call");
    }
    out
}
