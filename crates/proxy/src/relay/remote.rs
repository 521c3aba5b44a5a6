//! Owns the relay in front of a server that is reached by a message transport: one task, one event at a time.

mod outbox;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until, timeout};
use toolway_guard::Body;
use toolway_transport::{
    AsyncInput, AsyncOutput, Closed, Failure, Inbound, Members, Outbound, Payload, StreamId, Transport,
};
use toolway_wire::{Id, Kind, LineSplitter, Piece, Verdict, error_response};

use super::Ending;
use super::core::Relay;
use super::downlink::Downlink;
use super::signal_text;
use super::uplink::{Up, Uplink};
use crate::pending::Owed;
pub(crate) use outbox::Outbox;
use waiting::Waiting;

const CHUNK: usize = 64 << 10;
/// How long the client is given to read what is written at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Intakes that are kept for the next messages.
const SPARE: usize = 8;

/// What comes from outside of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// A signal of this number.
    Signal(i32),
    /// The client closed its side, whatever of its bytes has not been read.
    HungUp,
}

/// What the session waits for.
enum Event {
    Input(std::io::Result<usize>),
    Written(std::io::Result<usize>),
    Inbound(Option<Inbound>),
    Outside(Outside),
    Drained,
}

/// Runs the relay until the client closes, the transport is lost or a signal comes, and closes the transport.
/// To be called within a tokio runtime with time and I/O.
pub async fn run_remote<T: Transport>(
    relay: &Arc<Relay>,
    mut transport: T,
    mut input: AsyncInput,
    mut output: AsyncOutput,
    mut outside: Receiver<Outside>,
) -> Ending {
    let mut session = Session::new(Arc::clone(relay));
    let mut buffer = vec![0; CHUNK];
    let ending = loop {
        session.push(&mut transport);
        let reads = session.client_open && session.waiting.has_room();
        let drain_until = session.drain_until;
        let room = !session.outbox.is_full();
        let event = tokio::select! {
            biased;
            Some(event) = outside.recv() => Event::Outside(event),
            written = output.write(session.outbox.front()), if !session.outbox.is_empty() => Event::Written(written),
            inbound = transport.receive(), if room => Event::Inbound(inbound),
            read = input.read(&mut buffer), if reads && room => Event::Input(read),
            () = sleep_until(drain_until.unwrap_or_else(Instant::now)), if drain_until.is_some() => Event::Drained,
        };
        let ended = match event {
            Event::Input(Ok(length)) => session.chunk(buffer.get(..length).unwrap_or_default()),
            Event::Input(Err(_)) => session.client_closed(),
            Event::Written(Ok(length)) => session.written(length),
            Event::Written(Err(_)) => Some(Ending::ClientClosed),
            Event::Inbound(inbound) => session.inbound_all(inbound, &mut transport),
            Event::Outside(Outside::HungUp) => {
                session.drain_until =
                    session.drain_until.or_else(|| Some(Instant::now() + relay.config.drain));
                None
            }
            Event::Outside(Outside::Signal(signal)) => {
                session.fail_all(&format!("the relay was ended by {}", signal_text(signal)));
                Some(Ending::Signal(signal))
            }
            Event::Drained => {
                let waited = relay.config.drain.as_secs_f64();
                session.fail_all(&format!(
                    "the client closed and the server did not answer within {waited} s (--drain)"
                ));
                Some(Ending::ClientClosed)
            }
        };
        if let Some(ending) = ended {
            break ending;
        }
    };
    session.last_words(&mut output).await;
    transport.close().await;
    match ending {
        Ending::ClientClosed if !session.reached => session.refused.unwrap_or(Ending::ClientClosed),
        ending => ending,
    }
}

struct Session {
    relay: Arc<Relay>,
    uplink: Uplink,
    lines: LineSplitter,
    /// Messages that the transport has no room for yet.
    waiting: Waiting,
    streams: HashMap<StreamId, Downlink>,
    spare: Vec<Downlink>,
    outbox: Outbox,
    client_open: bool,
    drain_until: Option<Instant>,
    /// The server has answered something.
    reached: bool,
    /// A request could not be delivered: how the relay ends if none ever is.
    refused: Option<Ending>,
}

impl Session {
    fn new(relay: Arc<Relay>) -> Self {
        Self {
            uplink: Uplink::new(Arc::clone(&relay)),
            relay,
            lines: LineSplitter::new(),
            waiting: Waiting::default(),
            streams: HashMap::new(),
            spare: Vec::new(),
            outbox: Outbox::default(),
            client_open: true,
            drain_until: None,
            reached: false,
            refused: None,
        }
    }

    /// Hands the transport what it has room for.
    fn push<T: Transport>(&mut self, transport: &mut T) {
        while let Some(message) = self.waiting.next(transport.ready(), transport.ready_for_note()) {
            let ids: Vec<Id> = requests(&message.members);
            if let Err(error) = transport.send(message) {
                let failure =
                    Failure { code: toolway_wire::UPSTREAM_ERROR, message: error.to_string(), data: None };
                self.fail(&ids, &failure);
            }
        }
    }

    /// Bytes of the client; none: it has closed.
    fn chunk(&mut self, bytes: &[u8]) -> Option<Ending> {
        if bytes.is_empty() {
            if self.lines.is_within_line() {
                self.message();
            }
            return self.client_closed();
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.split(bytes, |piece| match piece {
            Piece::Data(bytes) => self.uplink.feed(bytes),
            Piece::End => self.message(),
        });
        self.lines = lines;
        None
    }

    fn message(&mut self) {
        match self.uplink.finish() {
            Up::Nothing => {}
            Up::Answer(lines) => self.outbox.bytes(&lines),
            Up::Forward { body, verdict, changed, answers } => {
                self.outbox.bytes(&answers);
                let members = match verdict {
                    Verdict::Message(message) => Members::One(message.clone()),
                    Verdict::Batch { members, .. } => Members::Batch(members.to_vec()),
                    Verdict::Blank | Verdict::NotJson(_) | Verdict::NotRpc(_) => return,
                };
                match changed.map_or_else(|| payload(body), |bytes| Ok(Payload::Bytes(bytes.into()))) {
                    Ok(payload) => self.waiting.add(Outbound { payload, members }),
                    Err(reason) => {
                        let failure =
                            Failure { code: toolway_wire::UPSTREAM_ERROR, message: reason, data: None };
                        self.fail(&requests(&members), &failure);
                    }
                }
            }
        }
    }

    fn client_closed(&mut self) -> Option<Ending> {
        self.client_open = false;
        self.relay.draining.store(true, Ordering::SeqCst);
        self.drain_until = Some(Instant::now() + self.relay.config.drain);
        self.is_drained().then_some(Ending::ClientClosed)
    }

    /// The client has closed, and all that was owed to it is written.
    fn is_drained(&self) -> bool {
        !self.client_open
            && self.waiting.is_empty()
            && self.outbox.is_empty()
            && self.relay.pending().is_empty()
    }

    fn written(&mut self, length: usize) -> Option<Ending> {
        if let Err(error) = self.outbox.advance(length) {
            tracing::warn!(%error, "a spooled message could not be read back: the client's stream is broken");
            return Some(Ending::ClientClosed);
        }
        self.is_drained().then_some(Ending::ClientClosed)
    }

    /// What has come, and what has come meanwhile: it is written together.
    fn inbound_all<T: Transport>(&mut self, first: Option<Inbound>, transport: &mut T) -> Option<Ending> {
        let mut next = first;
        if next.is_none() {
            return Some(self.lost("the connection to the server has ended"));
        }
        while let Some(inbound) = next {
            if let Some(ending) = self.inbound(inbound) {
                return Some(ending);
            }
            next = if self.outbox.is_full() { None } else { transport.try_receive() };
        }
        self.is_drained().then_some(Ending::ClientClosed)
    }

    fn inbound(&mut self, inbound: Inbound) -> Option<Ending> {
        match inbound {
            Inbound::Data { stream, bytes } => {
                let (relay, spare) = (&self.relay, &mut self.spare);
                let fresh = || spare.pop().unwrap_or_else(|| Downlink::new(Arc::clone(relay)));
                self.streams.entry(stream).or_insert_with(fresh).feed(&bytes);
            }
            Inbound::End { stream } => {
                if let Some(mut link) = self.streams.remove(&stream) {
                    self.reached = true;
                    self.outbox.line(link.finish());
                    self.keep(link);
                }
            }
            Inbound::Abort { stream } => {
                if let Some(mut link) = self.streams.remove(&stream) {
                    link.abort();
                    self.keep(link);
                }
            }
            Inbound::Failed { ids, failure } => self.fail(&ids, &failure),
            Inbound::Ready => {}
            Inbound::Closed { reason: Closed::Normal } => {
                return Some(self.lost("the connection to the server was closed"));
            }
            Inbound::Closed { reason: Closed::Lost(reason) } => return Some(self.lost(&reason)),
        }
        None
    }

    fn keep(&mut self, link: Downlink) {
        if self.spare.len() < SPARE {
            self.spare.push(link);
        }
    }

    /// These requests get no answer from the server.
    fn fail(&mut self, ids: &[Id], failure: &Failure) {
        // Only who signs for us has a hint.
        let needs_login = failure.needs_auth() && failure.hint().is_some();
        self.refused =
            if needs_login { Some(Ending::NotSignedIn) } else { self.refused.or(Some(Ending::NotStarted)) };
        for id in ids {
            let owed = self.relay.pending().answer(id);
            if let Owed::Waiting(_) = owed {
                let data = failure.data.as_deref();
                let line = error_response(id.raw(), failure.code, &failure.message, data);
                self.outbox.bytes(&line);
                self.outbox.bytes(b"\n");
            }
        }
    }

    fn lost(&mut self, reason: &str) -> Ending {
        tracing::warn!(%reason, "the server is gone");
        self.fail_all(reason);
        Ending::UpstreamEnded
    }

    fn fail_all(&mut self, reason: &str) {
        self.relay.set_gone(reason);
        let lines = self.relay.fail_since(0, reason);
        self.outbox.bytes(&lines);
    }

    /// Writes what is left. A client that does not read is not waited for.
    async fn last_words(&mut self, output: &mut AsyncOutput) {
        let until = Instant::now() + LAST_WORDS;
        while !self.outbox.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, output.write(self.outbox.front())).await {
                Ok(Ok(length)) if self.outbox.advance(length).is_ok() => {}
                _ => return,
            }
        }
        timeout(until.saturating_duration_since(Instant::now()), output.flush()).await.ok();
    }
}

fn requests(members: &Members) -> Vec<Id> {
    let requests = members.as_slice().iter().filter(|message| message.kind() == Kind::Request);
    requests.filter_map(|message| message.id().cloned()).collect()
}

fn payload(body: Body<'_>) -> Result<Payload, String> {
    match body {
        Body::Memory(bytes) => Ok(Payload::Bytes(Bytes::copy_from_slice(bytes))),
        Body::File(file) => {
            let len = file.len();
            file.open().map(|file| Payload::File { file, len }).map_err(|error| error.to_string())
        }
        Body::Lost { reason, .. } => Err(format!("the request could not be held: {reason}")),
        Body::TooLarge { len } => Err(format!("the request of {len} bytes is over --max-message-bytes")),
    }
}
