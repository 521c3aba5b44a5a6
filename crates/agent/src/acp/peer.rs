//! Owns the line to an agent's process: messages out, messages in, and what is wrong with them. It must not know what
//! they ask for. Why not the protocol crate's own connection: its queues are unbounded, and a value goes through a tree.

use bytes::BytesMut;
use serde::Serialize;
use toolway_bridge::RawJson;
use toolway_transport::{ChildTransport, Closed, Inbound, Members, Outbound, Payload, Transport as _};
use toolway_wire::Envelope;

use super::frame::{self, Frame, RpcError};

/// The most bytes of a message.
pub(super) const MESSAGE_BYTES: usize = 32 << 20;
/// So many lines in a row that are no messages are let pass: programs greet on stdout.
const ODD_LINES: usize = 200;
/// So much of an odd line is shown, in bytes.
const ODD_SHOWN: usize = 200;

/// What comes from the process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// A message.
    Frame(Frame),
    /// Something may be sent again.
    Room,
    /// Nothing more will come, or nothing more is listened to: why.
    Ended(String),
}

/// An agent's process as one who can be asked.
#[derive(Debug)]
pub(super) struct Peer {
    transport: ChildTransport,
    line: BytesMut,
    asked: u64,
    odd: usize,
    sample: Option<String>,
}

impl Peer {
    pub(super) fn new(transport: ChildTransport) -> Self {
        Self { transport, line: BytesMut::new(), asked: 0, odd: 0, sample: None }
    }

    /// Asks. The answer comes under this number.
    pub(super) fn request(&mut self, method: &str, params: &impl Serialize) -> u64 {
        self.asked += 1;
        self.send(frame::call(Some(self.asked), method, params));
        self.asked
    }

    /// Tells.
    pub(super) fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.send(frame::call(None, method, params));
    }

    /// Answers.
    pub(super) fn reply(&mut self, id: &RawJson, outcome: Result<serde_json::Value, RpcError>) {
        self.send(frame::reply(id, outcome));
    }

    /// What is sent is read. When not, answers have to wait, or memory would grow.
    pub(super) fn has_room(&self) -> bool {
        self.transport.ready_for_note()
    }

    fn send(&mut self, line: bytes::Bytes) {
        let message = Outbound { payload: Payload::Bytes(line), members: Members::One(Envelope::default()) };
        // A transport that is closed says so when it is listened to.
        self.transport.send(message).ok();
    }

    /// What comes next. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Happening {
        loop {
            match self.transport.receive().await {
                Some(Inbound::Data { bytes, .. }) => {
                    if self.line.len() + bytes.len() > MESSAGE_BYTES {
                        let most = MESSAGE_BYTES >> 20;
                        return Happening::Ended(format!("it sent a message of more than {most} MiB"));
                    }
                    self.line.extend_from_slice(&bytes);
                }
                Some(Inbound::End { .. }) => {
                    let line = self.line.split();
                    if let Some(happening) = self.read(line.trim_ascii()) {
                        return happening;
                    }
                }
                Some(Inbound::Abort { .. }) => self.line.clear(),
                Some(Inbound::Failed { .. }) => {}
                Some(Inbound::Ready) => return Happening::Room,
                Some(Inbound::Closed { reason: Closed::Lost(reason) }) => {
                    return Happening::Ended(self.with_sample(reason.replace("the server", "its process")));
                }
                Some(Inbound::Closed { reason: Closed::Normal }) | None => {
                    return Happening::Ended(self.with_sample("its process has ended".to_owned()));
                }
            }
        }
    }

    fn read(&mut self, line: &[u8]) -> Option<Happening> {
        if line.is_empty() {
            return None;
        }
        match Frame::read(line) {
            Frame::Odd => {
                self.odd += 1;
                let text = String::from_utf8_lossy(line.get(..ODD_SHOWN).unwrap_or(line)).into_owned();
                // What it says may be anything, a key as well: it is shown with a failure alone, without secrets.
                tracing::debug!(target: "toolway::acp", bytes = line.len(), "a line that is no message");
                self.sample.get_or_insert(text);
                (self.odd > ODD_LINES).then(|| {
                    let reason = "it writes to its standard output what is no message of the protocol";
                    Happening::Ended(self.with_sample(reason.to_owned()))
                })
            }
            frame => {
                self.odd = 0;
                Some(Happening::Frame(frame))
            }
        }
    }

    /// The reason, and the first line that was no message.
    pub(super) fn with_sample(&self, reason: String) -> String {
        match &self.sample {
            Some(sample) => format!("{reason}; a line on its standard output was no message: {sample:?}"),
            None => reason,
        }
    }

    /// What it last wrote to stderr.
    pub(super) fn stderr(&self) -> String {
        self.transport.stderr().text()
    }

    /// Why its program could not be started at all, where that is so.
    pub(super) fn start_failure(&self) -> Option<String> {
        self.transport.start_failure().map(|error| error.to_string())
    }

    /// Ends the process and all that it started, within bounds.
    pub(super) async fn close(&mut self) {
        self.transport.close().await;
    }
}
