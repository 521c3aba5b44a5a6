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

#[cfg(test)]
mod tests {
    use toolway_wire::{Scanner, Verdict};

    use super::*;

    /// Says what it heard, or leaves it.
    #[derive(Debug)]
    struct Echo(bool);

    impl CallListener for Echo {
        fn after(self: Box<Self>, result: Bytes) -> Heard {
            let other = failure(&format!("heard {}", String::from_utf8_lossy(&result)));
            let said = if self.0 { other.into() } else { result };
            Box::pin(std::future::ready(said))
        }
    }

    async fn heard(changes: bool, is_modern: bool, answer: &str) -> String {
        let mut scanner = Scanner::new();
        let Verdict::Message(envelope) =
            scanner.whole(br#"{"jsonrpc":"2.0","id":"a","method":"tools/call"}"#)
        else {
            panic!("no message");
        };
        let id = envelope.id().cloned().unwrap();
        let listening = Listening { id, listener: Box::new(Echo(changes)), is_modern };
        let payload = Payload::Bytes(Bytes::copy_from_slice(answer.as_bytes()));
        match listening.heard(payload).await {
            Payload::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Payload::File { .. } => panic!("a file"),
        }
    }

    #[tokio::test]
    async fn an_answer_is_changed_whole_or_not_at_all() {
        let given = r#"{ "jsonrpc":"2.0", "id":"a", "result":{"content":[],"n":1.10} }"#;
        assert_eq!(heard(false, false, given).await, given);
        let changed = heard(true, false, given).await;
        assert!(changed.starts_with(r#"{"jsonrpc":"2.0","id":"a","result":{"content""#), "{changed}");
        assert!(
            changed.contains(r#"heard {\"content\":[],\"n\":1.10}"#) && !changed.contains("resultType"),
            "{changed}"
        );
        assert!(heard(true, true, given).await.contains(r#""resultType":"complete""#));
        let failed = r#"{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no such thing"}}"#;
        assert_eq!(heard(false, false, failed).await, failed);
        let changed = heard(true, false, failed).await;
        assert!(changed.contains("no such thing") && changed.contains(r#""result""#), "{changed}");
    }

    #[tokio::test]
    async fn an_answer_in_a_file_is_heard_too() {
        use std::io::Write as _;
        let text = r#"{"jsonrpc":"2.0","id":"a","result":{"content":[]}}"#;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        assert_eq!(in_memory(file, text.len() as u64).await.unwrap(), text.as_bytes());
    }
}
