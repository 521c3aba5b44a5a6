//! Owns the calls of one client of a gateway inside this process: the messages, who waits for which answer, and what
//! becomes of an answer. It knows no servers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_proxy::gateway::{ClientMessage, ClientSession, Content, Message};
use toolway_transport::Payload;
use toolway_wire::find::{Step, find};
use toolway_wire::{Scanner, Verdict};

use super::{McpProgress, McpResult};

/// Progress that may wait for a caller; more is dropped.
const PROGRESS: usize = 64;
/// The largest answer that is taken from a file: what the guard hands on whole because it was told to.
const LARGEST: u64 = 256 << 20;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"toolway-agent","version":"@"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// One client of a gateway.
#[derive(Debug)]
pub(super) struct Calls {
    session: ClientSession,
    /// The next id; 0 is the handshake's.
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    answer: oneshot::Sender<Payload>,
    progress: mpsc::Sender<McpProgress>,
}

/// A call that is waited for. Dropping it gives the call up: its server hears of it.
#[derive(Debug)]
struct Open<'a> {
    calls: &'a Calls,
    id: u64,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Noted {
    params: Progressed,
}

#[derive(Deserialize)]
struct Progressed {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
}

impl Calls {
    /// Shakes hands.
    pub(super) async fn over(session: ClientSession) -> Self {
        let calls = Self { session, next: AtomicU64::new(1), waiting: Mutex::default() };
        calls.send(INITIALIZE.replace('@', env!("CARGO_PKG_VERSION"))).await;
        calls.send(INITIALIZED.to_owned()).await;
        calls
    }

    /// Takes what comes from the gateway until it has ended.
    pub(super) async fn receive(&self) {
        let mut messages = Vec::new();
        while self.session.outlet.receive(&mut messages).await {
            for message in messages.drain(..) {
                self.hear(message).await;
            }
        }
        // Nobody will answer any more.
        self.waiting().clear();
    }

    /// Calls a tool by its exposed name and waits for the result.
    pub(super) async fn call(
        &self,
        exposed: &str,
        arguments: &[u8],
        progress: &mut (impl FnMut(McpProgress) + Send),
        cancel: &CancellationToken,
    ) -> McpResult {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let (sender, mut progressed) = mpsc::channel(PROGRESS);
        self.waiting().insert(id, Waiter { answer, progress: sender });
        let open = Open { calls: self, id };
        let name = Value::from(exposed);
        let arguments = String::from_utf8_lossy(arguments);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments},"_meta":{{"progressToken":{id}}}}}}}"#
        );
        if cancel.is_cancelled() || !self.send(text).await {
            self.waiting().remove(&id);
            let ended =
                if cancel.is_cancelled() { "cancelled" } else { "the servers of this run have ended" };
            return failure(ended);
        }
        tokio::pin!(answered);
        let payload = loop {
            tokio::select! {
                biased;
                // First, so that a server that never stops telling of progress can be cancelled.
                () = cancel.cancelled() => {
                    drop(open);
                    return failure("cancelled: nobody waits for the result any more");
                }
                Some(one) = progressed.recv() => progress(one),
                payload = &mut answered => break payload.ok(),
            }
        };
        match payload {
            Some(payload) => result(payload).await,
            None => failure("the servers of this run have ended"),
        }
    }

    async fn hear(&self, message: ClientMessage) {
        let ClientMessage { about, is_answer, payload } = message;
        let id = about.as_ref().and_then(|id| std::str::from_utf8(id.raw()).ok()?.parse::<u64>().ok());
        if is_answer {
            let waiter = id.and_then(|id| self.waiting().remove(&id));
            if let Some(waiter) = waiter
                && waiter.answer.send(payload).is_err()
            {
                tracing::debug!("an answer came to a call that nobody waits for");
            }
            return;
        }
        let Payload::Bytes(bytes) = payload else { return };
        let Ok(asked) = serde_json::from_slice::<Asked<'_>>(&bytes) else { return };
        match (asked.method.as_deref(), asked.id) {
            (Some("notifications/progress"), None) => {
                let sender = id.and_then(|id| Some(self.waiting().get(&id)?.progress.clone()));
                if let (Some(sender), Ok(noted)) = (sender, serde_json::from_slice::<Noted>(&bytes)) {
                    let Progressed { progress, total, message } = noted.params;
                    // What a caller does not take in time says no more than what follows.
                    sender.try_send(McpProgress { progress, total, message }).ok();
                }
            }
            (Some("elicitation/create"), Some(id)) => {
                let text =
                    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#, id.get());
                self.send(text).await;
            }
            (Some(method), Some(id)) => {
                let error = json!({"code": -32601, "message": format!("nobody here can answer {method}")});
                self.send(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get())).await;
            }
            _ => {}
        }
    }

    async fn send(&self, text: String) -> bool {
        match message(text) {
            Some(message) => self.session.send(message).await,
            None => false,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.calls.waiting().remove(&self.id).is_none() {
            return;
        }
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"the run gave it up"}}}}"#,
            self.id
        );
        if message(text).is_none_or(|message| self.calls.session.try_send(message).is_err()) {
            tracing::debug!("a cancelled call could not be told of: its deadline ends it");
        }
    }
}

fn message(text: String) -> Option<Message> {
    let bytes = Bytes::from(text);
    let envelope = match Scanner::new().whole(&bytes) {
        Verdict::Message(envelope) => envelope.clone(),
        _ => return None,
    };
    Some(Message { content: Content::Bytes(bytes), envelope })
}

/// A result that says what went wrong.
pub(super) fn failure(reason: &str) -> McpResult {
    let content = json!({ "content": [{ "type": "text", "text": reason }], "isError": true });
    McpResult { content: RawJson::of(&content), is_error: true }
}

async fn result(payload: Payload) -> McpResult {
    let bytes = match payload {
        Payload::Bytes(bytes) => bytes,
        Payload::File { len, .. } if len > LARGEST => {
            return failure(&format!("the result of {len} bytes is too large to be held"));
        }
        Payload::File { mut file, len } => {
            let read = tokio::task::spawn_blocking(move || {
                use std::io::{Read as _, Seek as _};
                let mut bytes = Vec::new();
                file.rewind()?;
                file.take(len).read_to_end(&mut bytes)?;
                Ok::<_, std::io::Error>(bytes)
            });
            match read.await {
                Ok(Ok(bytes)) => Bytes::from(bytes),
                _ => return failure("the result cannot be read back from its file"),
            }
        }
    };
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(&bytes) else {
        return failure("the server's answer is no JSON that can be read");
    };
    match (answer.result, answer.error) {
        (Some(result), _) => {
            let content = bytes.slice_ref(result.get().as_bytes());
            let flag = find(&content, &[Step::Key("isError")]).and_then(|at| content.get(at));
            let is_error = flag == Some(b"true");
            match RawJson::new(content) {
                Ok(content) => McpResult { content, is_error },
                Err(_) => failure("the server's answer is no JSON that can be read"),
            }
        }
        (None, Some(error)) => failure(&error.message),
        (None, None) => failure("the server's answer has neither a result nor an error"),
    }
}
