//! Requests of the transport's own: a new session in place of one that the server forgot, and the list of tools. Their
//! answers never reach the client. It must not touch any message of the client but its handshake.

use std::sync::Arc;

use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use toolway_wire::find::{Step, find, string};
use toolway_wire::sse::{SseDecoder, SsePiece};
use toolway_wire::{Id, Kind, Scanner, Verdict, era};

use super::body::Message;
use super::client::{Call, Signing, lost, read_bounded};
use super::conn::Answer;
use super::failure::{media_type, upstream};
use super::session::{Handshake, PROTOCOL_VERSION, SESSION_ID, Snapshot};
use super::shared::Shared;
use super::target::Target;
use crate::limits::{
    ERROR_BODY_TIME, MAX_ERROR_BODY, MAX_HANDSHAKE, MAX_PARAM_BODY, MAX_TOOLS_LIST, MAX_TOOLS_PAGES,
};
use crate::transport::Failure;

/// How often a new session was tried, and how the last try failed.
#[derive(Debug, Default)]
pub(crate) struct Renewal {
    tries: u64,
    failed: Option<(u64, Failure)>,
}

impl Shared {
    /// Begins a session in place of the one of generation `stale`. Whoever finds it gone at the same time shares
    /// one try.
    pub(crate) async fn renew(&self, stale: u64) -> Result<(), Failure> {
        let tries = self.renewal.lock().await.tries;
        let mut renewal = self.renewal.lock().await;
        if self.session.snapshot().generation != stale {
            return Ok(());
        }
        if renewal.tries != tries
            && let Some((generation, failure)) = &renewal.failed
            && *generation == stale
        {
            return Err(failure.clone());
        }
        tracing::info!(target = %self.target, "the server forgot the session: beginning a new one");
        let renewed = self.shake_hands().await.map_err(|failure| Failure {
            message: format!(
                "the server forgot the session, and no new one could be begun: {}",
                failure.message
            ),
            ..failure
        });
        renewal.tries += 1;
        renewal.failed = renewed.as_ref().err().map(|failure| (stale, failure.clone()));
        renewed
    }

    async fn shake_hands(&self) -> Result<(), Failure> {
        let Some(Handshake { initialize, id, initialized }) = self.session.handshake() else {
            return Err(upstream("the client's initialize was not kept"));
        };
        let (answer, at) = self.post(&initialize, &self.session.outside(), &HeaderMap::new()).await?;
        let session = answer.headers.get(SESSION_ID).cloned();
        let bytes = self.collect(answer, &at, &id, MAX_HANDSHAKE).await?;
        let Some(version) = find(&bytes, &[Step::Key("result"), Step::Key("protocolVersion")]) else {
            return Err(upstream(format!("{at} answered initialize with an error")));
        };
        self.session.install(session, &at.origin, string(&bytes, version).as_deref());
        if let Some(message) = initialized {
            let (mut answer, at) = self.post(&message, &self.session.snapshot(), &HeaderMap::new()).await?;
            let (body, _) = read_bounded(&mut answer, MAX_ERROR_BODY, ERROR_BODY_TIME).await;
            if !answer.status.is_success() {
                return Err(self.texts.refusal(&answer, &body, &at));
            }
            self.session.initialized();
        }
        Ok(())
    }

    async fn post(
        &self,
        message: &Message,
        snapshot: &Snapshot,
        extra: &HeaderMap,
    ) -> Result<(Answer, Arc<Target>), Failure> {
        let mut headers = HeaderMap::clone(&snapshot.headers);
        headers.extend(extra.clone());
        let call = Call {
            method: Method::POST,
            message: Some(message),
            repeatable: true,
            headers: &headers,
            public: &self.public,
            bound: &|origin, headers| {
                snapshot.bind(origin, headers);
                headers.extend(extra.clone());
            },
            signing: Signing::Full,
            flight: None,
        };
        self.client.send(&self.target, call).await.map_err(|error| self.texts.call(&error, &self.target))
    }

    /// The whole answer to `id`, which must not be larger than `limit`.
    async fn collect(
        &self,
        mut answer: Answer,
        at: &Target,
        id: &Id,
        limit: usize,
    ) -> Result<Vec<u8>, Failure> {
        let status = answer.status;
        if !status.is_success() {
            let (body, _) = read_bounded(&mut answer, MAX_ERROR_BODY, ERROR_BODY_TIME).await;
            return Err(self.texts.refusal(&answer, &body, at));
        }
        let stream =
            media_type(&answer.headers).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"));
        let (mut decoder, mut message) = (SseDecoder::new(), Vec::new());
        while let Some(piece) =
            timeout(self.client.timeout, answer.body.next()).await.map_err(|_| self.texts.body_silence(at))?
        {
            let bytes = piece.map_err(|error| self.texts.cut(message.len() as u64, &lost(&error), at))?;
            if !stream {
                message.extend_from_slice(&bytes);
            }
            let mut rest = if stream { &bytes[..] } else { &[] };
            while let Some(piece) = decoder.next(&mut rest) {
                match piece {
                    SsePiece::Data(part) => message.extend_from_slice(part),
                    SsePiece::DataBreak => message.push(b'\n'),
                    SsePiece::End { .. } if answers(&message, id) => return Ok(message),
                    SsePiece::End { .. } => message.clear(),
                }
            }
            if message.len() > limit {
                return Err(upstream(format!("{at} answered with more than {limit} bytes")));
            }
        }
        if !stream && answers(&message, id) {
            return Ok(message);
        }
        Err(self.texts.not_mcp(status, &answer.headers, &message, at))
    }

    /// Asks for the tools' annotations with the `_meta` of `call`, once for all who need them. True: a list came.
    pub(crate) async fn ask_tools(&self, call: &Message, again: bool) -> bool {
        let _asking = self.asking_tools.lock().await;
        if self.tools.known() && !again {
            return true;
        }
        let listed = self.list_tools(call).await;
        if let Err(failure) = &listed {
            tracing::warn!(reason = %failure.message, "the tools' annotations are not known");
        }
        self.tools.set_known();
        listed.is_ok()
    }

    async fn list_tools(&self, call: &Message) -> Result<(), Failure> {
        let call =
            call.bytes(MAX_PARAM_BODY).ok_or_else(|| upstream("the call is too large to look into"))?;
        let meta = find(&call, &[Step::Key("params"), Step::Key("_meta")]).and_then(|at| call.get(at));
        let meta: Map<String, Value> =
            meta.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default();
        let meta: Map<String, Value> =
            meta.into_iter().filter(|(name, _)| name.starts_with("io.modelcontextprotocol/")).collect();
        let version = meta.get(era::meta::PROTOCOL_VERSION).and_then(Value::as_str).unwrap_or_default();
        let mut headers = HeaderMap::new();
        headers.extend(
            [(PROTOCOL_VERSION, version.parse()), (super::METHOD, "tools/list".parse())]
                .into_iter()
                .filter_map(|(name, value)| Some((Some(name), value.ok()?))),
        );
        let mut cursor = None;
        for page in 0..MAX_TOOLS_PAGES {
            let text = format!("\"toolway-tools-list-{page}\"");
            let id = Id::from_json(text.as_bytes()).ok_or_else(|| upstream("no id"))?;
            let mut params = json!({ "_meta": meta });
            if let Some(cursor) = cursor.take() {
                params["cursor"] = Value::String(cursor);
            }
            let message =
                format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"tools/list","params":{params}}}"#);
            let message = Message::Bytes(message.into());
            let (answer, at) = self.post(&message, &self.session.outside(), &headers).await?;
            let list = self.collect(answer, &at, &id, MAX_TOOLS_LIST).await?;
            self.tools.learn(&list);
            cursor =
                find(&list, &[Step::Key("result"), Step::Key("nextCursor")]).and_then(|at| string(&list, at));
            if cursor.is_none() {
                return Ok(());
            }
        }
        tracing::warn!(pages = MAX_TOOLS_PAGES, "the list of tools has more pages than are read");
        Ok(())
    }
}

/// The message is the answer to `id`.
fn answers(message: &[u8], id: &Id) -> bool {
    let mut scanner = Scanner::new();
    scanner.feed(message);
    match scanner.finish() {
        Verdict::Message(envelope) => {
            matches!(envelope.kind(), Kind::Response | Kind::ErrorResponse) && envelope.id() == Some(id)
        }
        _ => false,
    }
}
