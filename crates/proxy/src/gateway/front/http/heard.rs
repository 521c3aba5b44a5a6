//! Owns the way of a call's answer by who wants to hear what it gave, between the server and the caller.

use std::fmt;
use std::io::{Read as _, Seek as _};
use std::pin::Pin;

use bytes::Bytes;
use toolway_transport::Payload;
use toolway_wire::find::{Step, find, string};
use toolway_wire::{Id, push_string};

use crate::gateway::translate;

/// The largest answer that is taken from a file to be heard.
const LARGEST: u64 = 256 << 20;

/// What was heard, once it has been.
pub type Heard = Pin<Box<dyn Future<Output = Bytes> + Send>>;

/// Hears what a call gave, a whole `CallToolResult`, and says what the caller gets.
pub trait CallListener: fmt::Debug + Send {
    /// The call is over. One that was given up is not heard of.
    fn after(self: Box<Self>, result: Bytes) -> Heard;
}

/// Who listens to the answer of one request.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) id: Id,
    pub(super) listener: Box<dyn CallListener>,
    /// The caller speaks the modern revision.
    pub(super) is_modern: bool,
}

impl Listening {
    /// The answer as the caller gets it.
    pub(super) async fn heard(self, payload: Payload) -> Payload {
        let bytes = match payload {
            Payload::Bytes(bytes) => bytes,
            Payload::File { file, len } => match in_memory(file, len).await {
                Ok(bytes) => bytes,
                Err(reason) => answer(&self.id, &failure(&reason), self.is_modern).into(),
            },
        };
        let result = find(&bytes, &[Step::Key("result")]);
        // An error of the protocol is heard as a call that failed.
        let given = match &result {
            Some(at) => bytes.slice(at.clone()),
            None => failure(&message(&bytes)).into(),
        };
        let other = self.listener.after(given.clone()).await;
        if other == given {
            return Payload::Bytes(bytes);
        }
        Payload::Bytes(answer(&self.id, &other, self.is_modern).into())
    }
}

async fn in_memory(mut file: std::fs::File, len: u64) -> Result<Bytes, String> {
    if len > LARGEST {
        return Err(format!("the result of {len} bytes is too large to be heard"));
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(len).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    });
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        _ => Err("the result cannot be read back from its file".to_owned()),
    }
}

fn message(answer: &[u8]) -> String {
    let text = find(answer, &[Step::Key("error"), Step::Key("message")]).and_then(|at| string(answer, at));
    text.unwrap_or_else(|| "the server's answer cannot be read".to_owned())
}

/// A result that says why there is none.
pub(super) fn failure(text: &str) -> Vec<u8> {
    let mut result = b"{\"content\":[{\"type\":\"text\",\"text\":".to_vec();
    push_string(text, &mut result);
    result.extend_from_slice(b"}],\"isError\":true}");
    result
}

/// An answer with this result.
pub(super) fn answer(id: &Id, result: &[u8], is_modern: bool) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    out.extend_from_slice(id.raw());
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    if is_modern {
        return translate::result_to_modern(&out, "tools/call");
    }
    out
}
