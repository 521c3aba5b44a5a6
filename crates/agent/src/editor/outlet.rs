//! Owns the way to the editor: lines out, and questions with their answers. It knows no sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::lock;
use crate::acp::frame::{INTERNAL, RpcError, call};

/// The most questions that wait for answers at a time.
const OPEN: usize = 256;

type Waiting = oneshot::Sender<Result<RawJson, RpcError>>;

#[derive(Debug, Default)]
struct Asked {
    last: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Nobody answers any more.
    gone: bool,
}

/// The way to the editor. Clones are the same way.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    output: mpsc::Sender<Bytes>,
    asked: Arc<Mutex<Asked>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notice<'a, U: Serialize> {
    session_id: &'a str,
    update: &'a U,
}

impl Outlet {
    pub(super) fn new(output: mpsc::Sender<Bytes>) -> Self {
        Self { output, asked: Arc::default() }
    }

    /// Sends a message. Waits while the editor does not read; one that has gone reads nothing.
    pub(super) async fn line(&self, message: Bytes) {
        let mut line = BytesMut::with_capacity(message.len() + 1);
        line.extend_from_slice(&message);
        line.put_u8(b'\n');
        self.output.send(line.freeze()).await.ok();
    }

    pub(super) async fn update(&self, session: &str, update: &impl Serialize) {
        self.line(call(None, "session/update", &Notice { session_id: session, update })).await;
    }

    /// The editor reads nothing any more.
    pub(super) async fn closed(&self) {
        self.output.closed().await;
    }

    pub(super) fn answered(&self, id: u64, outcome: Result<RawJson, RpcError>) {
        let waiting = lock(&self.asked).waiting.remove(&id);
        if let Some(waiting) = waiting {
            waiting.send(outcome).ok();
        }
    }

    /// Nobody answers any more.
    pub(super) fn gone(&self) {
        let mut asked = lock(&self.asked);
        asked.gone = true;
        asked.waiting.clear();
    }

    /// Asks the editor. The error says why there is no answer.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &Value,
        cancel: &CancellationToken,
    ) -> Result<Value, RpcError> {
        let (sender, answer) = oneshot::channel();
        let no = |text: &str| Err(RpcError::new(INTERNAL, text));
        let id = {
            let mut asked = lock(&self.asked);
            if asked.gone {
                return no("the editor has gone");
            }
            if asked.waiting.len() >= OPEN {
                return no("the editor leaves too many questions without an answer");
            }
            asked.last += 1;
            let id = asked.last;
            asked.waiting.insert(id, sender);
            id
        };
        let _forget = Forget { outlet: self, id };
        self.line(call(Some(id), method, params)).await;
        tokio::select! {
            biased;
            () = cancel.cancelled() => no("it was cancelled"),
            outcome = answer => match outcome {
                Ok(outcome) => outcome.map(|answer| answer.tree()),
                Err(_) => no("the editor has gone"),
            },
        }
    }
}

/// A question that nobody waits for any more is forgotten.
struct Forget<'a> {
    outlet: &'a Outlet,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        lock(&self.outlet.asked).waiting.remove(&self.id);
    }
}
