//! Messages on their way from one HTTP answer to the reader: passed on piece by piece, and looked at only to know
//! which requests they answer. It must not know how the bytes came.

use bytes::Bytes;
use tokio::sync::mpsc;
use toolway_wire::{Envelope, Feeding, Id, Kind, Scanner, Verdict};

use crate::transport::{Failure, Inbound, StreamId};

/// What a finished message was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// White space only.
    Nothing,
    /// Not JSON-RPC; the reason is a fragment. Nothing of it was passed on.
    Garbage(String),
    /// JSON that stops in its middle, or never was any.
    NotJson(String),
    /// A message that answers nobody who waits here.
    Other {
        /// An error response without the id of a request.
        nameless_error: bool,
    },
    /// It answers at least one who waits here.
    Answer {
        /// It is a result, not an error.
        success: bool,
        /// `result.protocolVersion`.
        version: Option<String>,
    },
}

/// Passes messages of one answer on.
#[derive(Debug)]
pub(crate) struct Messages {
    events: mpsc::Sender<Inbound>,
    stream: StreamId,
    scanner: Scanner,
    /// Requests that still wait for their answer.
    pub(crate) pending: Vec<Id>,
    /// Bytes of the unfinished message were passed on.
    open: bool,
    /// The rest of the unfinished message is not wanted.
    void: bool,
    /// A copy of the beginning of the current message.
    head: Vec<u8>,
    head_limit: usize,
    length: u64,
}

impl Messages {
    /// Keeps a copy of the first `head_limit` bytes of each message.
    pub(crate) fn new(
        events: mpsc::Sender<Inbound>,
        stream: StreamId,
        pending: Vec<Id>,
        head_limit: usize,
    ) -> Self {
        Self {
            events,
            stream,
            scanner: Scanner::new(),
            pending,
            open: false,
            void: false,
            head: Vec::new(),
            head_limit,
            length: 0,
        }
    }

    /// The beginning of the message that came last.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The message that came last, if it was small.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (self.head.len() as u64 == self.length).then_some(&self.head)
    }

    /// Bytes of the message that came last.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of the current message. False: they prove not to be JSON-RPC.
    pub(crate) async fn data(&mut self, bytes: Bytes) -> bool {
        if self.void || bytes.is_empty() {
            return !self.void;
        }
        if self.scanner.offset() == 0 {
            self.head.clear();
            self.length = 0;
        }
        self.length += bytes.len() as u64;
        let room = self.head_limit.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..room).unwrap_or_default());
        if self.scanner.feed(&bytes) == Feeding::NotRpc {
            self.drop_open().await;
            self.void = true;
            return false;
        }
        self.open = true;
        self.emit(Inbound::Data { stream: self.stream, bytes }).await;
        true
    }

    /// The current message has ended: what it was. It is not passed on yet, see [`Messages::commit`].
    pub(crate) fn finish(&mut self) -> Seen {
        let pending = &mut self.pending;
        let mut success = false;
        let mut version = None;
        let mut take = |envelope: &Envelope| {
            let answers = matches!(envelope.kind(), Kind::Response | Kind::ErrorResponse | Kind::Fault);
            let at = envelope.id().filter(|_| answers).and_then(|id| pending.iter().position(|p| p == id));
            if let Some(at) = at {
                pending.swap_remove(at);
                success |= envelope.kind() == Kind::Response;
                version = envelope.protocol_version().map(str::to_owned);
            }
            at.is_some()
        };
        let seen = match self.scanner.finish() {
            Verdict::Blank => Seen::Nothing,
            Verdict::NotJson(error) => Seen::NotJson(error.to_string()),
            Verdict::NotRpc(reason) => Seen::Garbage(reason.to_owned()),
            Verdict::Message(envelope) => {
                if take(envelope) {
                    Seen::Answer { success, version }
                } else {
                    let nameless =
                        envelope.kind() == Kind::ErrorResponse && envelope.id().is_none_or(Id::is_null);
                    Seen::Other { nameless_error: nameless }
                }
            }
            Verdict::Batch { members, .. } => {
                let answers = members.iter().filter(|envelope| take(envelope)).count();
                if answers > 0 {
                    Seen::Answer { success, version }
                } else {
                    Seen::Other { nameless_error: false }
                }
            }
        };
        self.scanner.reset();
        self.void = false;
        seen
    }

    /// Passes the end of the message on.
    pub(crate) async fn commit(&mut self) {
        if std::mem::take(&mut self.open) {
            self.emit(Inbound::End { stream: self.stream }).await;
        }
    }

    /// The unfinished message will not be finished, or is not wanted.
    pub(crate) async fn abort(&mut self) {
        self.drop_open().await;
        self.scanner.reset();
        self.void = false;
    }

    /// The rest of the current message is not wanted.
    pub(crate) fn skip(&mut self) {
        self.void = true;
    }

    /// Whoever still waits gets this error.
    pub(crate) async fn fail(&mut self, failure: Failure) {
        self.abort().await;
        if !self.pending.is_empty() {
            let ids = std::mem::take(&mut self.pending);
            self.emit(Inbound::Failed { ids, failure }).await;
        }
    }

    async fn drop_open(&mut self) {
        if std::mem::take(&mut self.open) {
            self.emit(Inbound::Abort { stream: self.stream }).await;
        }
    }

    async fn emit(&self, event: Inbound) {
        // The reader is gone only when the whole transport is: nobody waits for the event then.
        if self.events.send(event).await.is_err() {
            tracing::trace!("the reader is gone");
        }
    }
}
