//! The session of a legacy HTTP+SSE server: opens the stream, learns the endpoint, posts, and ends with the stream. It
//! must not know who sends the messages.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use toolway_wire::sse::SsePiece;
use toolway_wire::{Envelope, Id, Kind, Scanner, Verdict};

use super::Queued;
use super::shared::Shared;
use crate::http::body::Message;
use crate::http::client::lost;
use crate::http::conn::Answer;
use crate::http::failure::upstream;
use crate::http::flight::Flight;
use crate::http::messages::Messages;
use crate::http::shared::Slot;
use crate::http::stream::EventStream;
use crate::http::target::Target;
use crate::limits::{INITIALIZED_WAIT, MAX_HANDSHAKE};
use crate::transport::{Failure, Inbound, Members, StreamId};

/// Longest `endpoint`, in bytes.
const MAX_ENDPOINT: usize = 8 * 1024;
/// Nobody waits: a day, then the stream is opened anew when it is needed.
const FOREVER: Duration = Duration::from_hours(24);

/// The session's task and what it owns.
#[derive(Debug)]
pub(super) struct Session {
    shared: Arc<Shared>,
    messages: Messages,
    /// Requests in flight, for the room that they take and for what must not overtake them.
    flights: Vec<(Vec<Id>, Arc<Flight>, Option<Slot>)>,
    initialize: Option<(Message, Id)>,
    initialized: Option<Message>,
}

/// A session that is open.
struct Open {
    answer: Answer,
    stream: EventStream,
    /// Where the stream came from.
    at: Arc<Target>,
    endpoint: Arc<Target>,
    posts: JoinSet<(Vec<Id>, Result<(), Failure>)>,
}

/// A message, taken apart.
struct Piece {
    message: Message,
    ids: Vec<Id>,
    initialize: bool,
    initialized: bool,
    cancels: Option<Id>,
    /// One request and nothing else.
    alone: bool,
    slot: Option<Slot>,
}

impl Piece {
    fn new(queued: Queued) -> Self {
        let members = queued.message.members.as_slice();
        let requests = members.iter().filter(|envelope| envelope.kind() == Kind::Request);
        let ids: Vec<Id> = requests.filter_map(|envelope| envelope.id().cloned()).collect();
        let single = if let Members::One(envelope) = &queued.message.members { Some(envelope) } else { None };
        let method = single.and_then(Envelope::method).unwrap_or_default();
        Self {
            alone: single.is_some() && ids.len() == 1,
            initialize: method == "initialize" && !ids.is_empty(),
            initialized: method == "notifications/initialized",
            cancels: single
                .filter(|_| method == "notifications/cancelled")
                .and_then(|envelope| envelope.request_id().cloned()),
            message: Message::new(queued.message.payload),
            slot: (!ids.is_empty()).then_some(queued.slot),
            ids,
        }
    }
}

/// What happened next.
enum Event {
    Message(Option<Queued>),
    Bytes(Bytes),
    Posted(Vec<Id>, Result<(), Failure>),
    Ended(Failure),
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let messages = Messages::new(shared.events.clone(), StreamId(0), Vec::new(), 0);
        Self { shared, messages, flights: Vec::new(), initialize: None, initialized: None }
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Queued>) {
        while let Some(queued) = queue.recv().await {
            let piece = Piece::new(queued);
            match self.open(&piece).await {
                Ok(open) => self.serve(open, piece, &mut queue).await,
                Err(failure) => {
                    self.messages.pending.extend(piece.ids);
                    self.messages.fail(failure).await;
                }
            }
        }
    }

    /// Opens the stream, and repeats the handshake when `first` is not one itself.
    async fn open(&self, first: &Piece) -> Result<Open, Failure> {
        let shared = &self.shared;
        let (mut answer, at) = shared.open().await?;
        let mut stream = EventStream::default();
        let (text, rest) = timeout(shared.client.timeout, self.endpoint(&mut answer, &mut stream, &at))
            .await
            .map_err(|_elapsed| upstream(format!("{at} sent no endpoint event in time")))??;
        let endpoint =
            at.join(&text).map_err(|error| upstream(format!("the endpoint of {at} is no URL: {error}")))?;
        if !endpoint.same_origin(&at) {
            return Err(upstream(format!(
                "the endpoint of {at} is at another origin, {}: refused, nothing was sent there",
                endpoint.origin
            )));
        }
        let mut open = Open { answer, stream, at, endpoint: Arc::new(endpoint), posts: JoinSet::new() };
        let mut rest = rest;
        if let Some((initialize, id)) = self.initialize.as_ref().filter(|_| !first.initialize) {
            rest = self.shake_hands(&mut open, rest, initialize, id).await?;
        }
        if !rest.is_empty() {
            let mut messages = Messages::new(shared.events.clone(), StreamId(0), Vec::new(), 0);
            open.stream.chunk(&rest, &mut messages, &mut |_, _| {}).await;
        }
        Ok(open)
    }

    /// Reads up to the `endpoint` event: its data, and the bytes after it.
    async fn endpoint(
        &self,
        answer: &mut Answer,
        stream: &mut EventStream,
        at: &Target,
    ) -> Result<(String, Bytes), Failure> {
        let mut data = Vec::new();
        loop {
            let bytes = self.bytes(answer, at).await?;
            let mut rest = &bytes[..];
            while let Some(piece) = stream.decoder.next(&mut rest) {
                match piece {
                    SsePiece::Data(part) => data.extend_from_slice(part),
                    SsePiece::DataBreak => data.push(b'\n'),
                    SsePiece::End { .. } if stream.decoder.event_type() == b"endpoint" => {
                        let text = String::from_utf8_lossy(data.trim_ascii()).into_owned();
                        return Ok((text, bytes.slice_ref(rest)));
                    }
                    SsePiece::End { .. } => data.clear(),
                }
                if data.len() > MAX_ENDPOINT {
                    return Err(upstream(format!("{at} sent something else in place of its endpoint")));
                }
            }
        }
    }

    async fn bytes(&self, answer: &mut Answer, at: &Target) -> Result<Bytes, Failure> {
        match answer.body.next().await {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(error)) => Err(self.shared.texts.stream_lost(&lost(&error), at)),
            None => Err(self.shared.texts.stream_lost("the server closed it", at)),
        }
    }

    /// Makes the new session as usable as the lost one; the answer is kept from the client, who has one.
    async fn shake_hands(
        &self,
        open: &mut Open,
        mut bytes: Bytes,
        initialize: &Message,
        id: &Id,
    ) -> Result<Bytes, Failure> {
        let shared = &self.shared;
        shared.post(&open.endpoint, initialize, &Flight::default()).await?;
        let answered = async {
            let mut message = Vec::new();
            loop {
                let mut rest = &bytes[..];
                while let Some(piece) = open.stream.decoder.next(&mut rest) {
                    match piece {
                        SsePiece::Data(part) => message.extend_from_slice(part),
                        SsePiece::DataBreak => message.push(b'\n'),
                        SsePiece::End { .. } if answers(&message, id) => return Ok(bytes.slice_ref(rest)),
                        SsePiece::End { .. } => message.clear(),
                    }
                    if message.len() > MAX_HANDSHAKE {
                        return Err(upstream(format!("{} sent too much before it was initialized", open.at)));
                    }
                }
                bytes = self.bytes(&mut open.answer, &open.at).await?;
            }
        };
        let rest = timeout(shared.client.timeout, answered)
            .await
            .map_err(|_elapsed| upstream(format!("{} did not answer initialize in time", open.at)))??;
        if let Some(message) = &self.initialized {
            shared.post(&open.endpoint, message, &Flight::default()).await?;
        }
        Ok(rest)
    }

    /// Carries messages until the stream ends, or nobody sends any more.
    async fn serve(&mut self, mut open: Open, first: Piece, queue: &mut mpsc::Receiver<Queued>) {
        let mut heard = Instant::now();
        let mut failure = self.take(&mut open, first).await.err();
        while failure.is_none() {
            // Counted from the last bytes, or from when somebody began to wait.
            let silence =
                if self.messages.pending.is_empty() { FOREVER } else { self.shared.texts.sse_read_timeout };
            let event = tokio::select! {
                queued = queue.recv() => Event::Message(queued),
                Some(posted) = open.posts.join_next() => match posted {
                    Ok((ids, result)) => Event::Posted(ids, result),
                    Err(_) => Event::Ended(upstream("a message could not be sent")),
                },
                bytes = timeout_at(heard + silence, self.bytes(&mut open.answer, &open.at)) => match bytes {
                    Ok(Ok(bytes)) => Event::Bytes(bytes),
                    Ok(Err(failure)) => Event::Ended(failure),
                    Err(_elapsed) => Event::Ended(self.shared.texts.stream_silence(&open.at)),
                },
            };
            failure = match event {
                Event::Message(Some(queued)) => {
                    if self.messages.pending.is_empty() {
                        heard = Instant::now();
                    }
                    self.take(&mut open, Piece::new(queued)).await.err()
                }
                Event::Message(None) => return,
                Event::Bytes(bytes) => {
                    heard = Instant::now();
                    open.stream.chunk(&bytes, &mut self.messages, &mut |_, _| {}).await;
                    self.settle();
                    None
                }
                Event::Posted(_, Ok(())) => None,
                Event::Posted(ids, Err(failure)) => {
                    self.refuse(&ids, failure).await;
                    None
                }
                Event::Ended(failure) => Some(failure),
            };
        }
        if let Some(failure) = failure {
            self.messages.fail(failure).await;
        }
        self.messages.abort().await;
        self.flights.clear();
    }

    /// Sends one message. The handshake is acknowledged before anything else goes. An error ends the session.
    async fn take(&mut self, open: &mut Open, mut piece: Piece) -> Result<(), Failure> {
        if piece.initialize {
            let keep = piece.message.len() <= MAX_HANDSHAKE as u64;
            self.initialize =
                piece.ids.first().filter(|_| keep).map(|id| (piece.message.clone(), id.clone()));
            self.initialized = None;
        }
        if piece.initialized && piece.message.len() <= MAX_HANDSHAKE as u64 {
            self.initialized = Some(piece.message.clone());
        }
        let flight = Arc::new(Flight::new(false, piece.alone));
        let behind = piece.cancels.as_ref().and_then(|id| {
            self.flights.iter().find(|(ids, ..)| ids.contains(id)).map(|(_, flight, _)| Arc::clone(flight))
        });
        if let (Some(id), Some(held)) = (&piece.cancels, &behind)
            && held.give_up()
        {
            self.messages.pending.retain(|pending| pending != id);
            self.settle();
            return Ok(());
        }
        self.messages.pending.extend(piece.ids.iter().cloned());
        if !piece.ids.is_empty() {
            self.flights.push((piece.ids.clone(), Arc::clone(&flight), piece.slot.take()));
        }
        let (shared, endpoint) = (Arc::clone(&self.shared), Arc::clone(&open.endpoint));
        if piece.initialize || piece.initialized {
            let sent = shared.post(&endpoint, &piece.message, &flight).await;
            return match sent {
                Err(failure) if piece.ids.is_empty() => {
                    tracing::warn!(reason = %failure.message, "a message that needs no answer was not accepted");
                    Ok(())
                }
                sent => sent,
            };
        }
        open.posts.spawn(async move {
            if let Some(behind) = behind
                && timeout(INITIALIZED_WAIT, behind.sent()).await.is_err()
            {
                tracing::debug!("a cancellation goes out before its request");
            }
            let sent = tokio::select! {
                biased;
                // Given up while it was held: the server has not heard of it, and nobody waits.
                () = flight.cancelled() => Ok(()),
                sent = shared.post(&endpoint, &piece.message, &flight) => sent,
            };
            (piece.ids, sent)
        });
        Ok(())
    }

    /// A message was not accepted: those of its requests that are still open fail.
    async fn refuse(&mut self, ids: &[Id], failure: Failure) {
        let open = &mut self.messages.pending;
        let failed: Vec<Id> = ids.iter().filter(|id| open.contains(id)).cloned().collect();
        open.retain(|id| !failed.contains(id));
        self.settle();
        if ids.is_empty() {
            tracing::warn!(reason = %failure.message, "a message that needs no answer was not accepted");
        } else if !failed.is_empty()
            && self.shared.events.send(Inbound::Failed { ids: failed, failure }).await.is_err()
        {
            tracing::trace!("the reader is gone");
        }
    }

    /// Frees the room of requests that are over.
    fn settle(&mut self) {
        let pending = &self.messages.pending;
        if pending.len() < self.flights.len() || self.flights.iter().any(|(ids, ..)| ids.len() > 1) {
            self.flights.retain(|(ids, ..)| ids.iter().any(|id| pending.contains(id)));
        }
    }
}

/// The message is the answer to `id`.
fn answers(message: &[u8], id: &Id) -> bool {
    let mut scanner = Scanner::new();
    scanner.feed(message);
    match scanner.finish() {
        Verdict::Message(envelope) => envelope.kind() == Kind::Response && envelope.id() == Some(id),
        _ => false,
    }
}
