//! Owns one session over two byte streams, one message a line: stdin and stdout, or a socket. Nothing else is written
//! there. What the client still waits for when it closes is awaited for a bounded time.

mod owed;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout};
use toolway_guard::{Guard, Intake};
use toolway_transport::{AsyncInput, AsyncOutput, Payload};
use toolway_wire::{LineSplitter, Piece, UPSTREAM_ERROR, error_response};

use super::admit::{Admitted, admit};
use crate::gateway::hub::SessionOptions;
use crate::gateway::message::{ClientMessage, Message};
use crate::gateway::run::{ClientSession, GatewayHandle};
use crate::gateway::until;
use crate::record::{Direction, Recorder};
use crate::relay::{Ending, Line, Outbox, Outside, Part, signal_text, utf8};
use owed::Owed;

const CHUNK: usize = 64 << 10;
/// How long the client is given to read what is written at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What such a session needs to know.
#[derive(Debug)]
pub struct StdioFront {
    /// Holds messages that are too large for memory.
    pub guard: Arc<Guard>,
    /// The session's name in the index of saved results.
    pub saved_as: String,
    /// How long answers in flight are awaited after the client has closed.
    pub drain: Duration,
    /// Where the session is recorded.
    pub record: Option<Recorder>,
}

/// What the session waits for.
enum Event {
    Input(std::io::Result<usize>),
    Written(std::io::Result<usize>),
    /// The hub has sent something; false: it has ended.
    Messages(bool),
    /// The hub takes messages again.
    Room,
    Outside(Outside),
    Drained,
}

/// Serves one client until it closes, a signal comes, or the gateway ends.
pub async fn serve_stdio(
    gateway: &GatewayHandle,
    front: &StdioFront,
    mut input: AsyncInput,
    mut output: AsyncOutput,
    mut outside: Receiver<Outside>,
) -> Ending {
    let options = SessionOptions { saved_as: front.saved_as.clone(), passing: false };
    let Some(client) = gateway.open(options).await else { return Ending::UpstreamEnded };
    let mut session = Session::new(front, client);
    let mut buffer = vec![0; CHUNK];
    let mut arrived = Vec::new();
    let ending = loop {
        let room = !session.outbox.is_full();
        let reads = session.client_open && session.stuck.is_empty() && room;
        let waits = !session.stuck.is_empty();
        let drain_until = session.drain_until;
        let event = tokio::select! {
            biased;
            Some(event) = outside.recv() => Event::Outside(event),
            written = output.write(session.outbox.front()), if !session.outbox.is_empty() => Event::Written(written),
            more = session.client.outlet.receive(&mut arrived), if room => Event::Messages(more),
            () = session.client.ready(), if waits => Event::Room,
            read = input.read(&mut buffer), if reads => Event::Input(read),
            () = until(drain_until), if drain_until.is_some() => Event::Drained,
        };
        let ended = match event {
            Event::Input(Ok(length)) => session.chunk(buffer.get(..length).unwrap_or_default()),
            Event::Input(Err(_)) => session.client_closed(),
            Event::Written(Ok(length)) => session.written(length),
            Event::Written(Err(_)) => Some(Ending::ClientClosed),
            Event::Messages(true) => {
                arrived.drain(..).for_each(|message| session.outbound(message));
                session.ended_if_drained()
            }
            Event::Messages(false) => {
                session.fail_all("the gateway has ended");
                Some(Ending::UpstreamEnded)
            }
            Event::Room => session.push_stuck(),
            Event::Outside(Outside::HungUp) => {
                session.drain_until = session.drain_until.or_else(|| Some(Instant::now() + front.drain));
                None
            }
            Event::Outside(Outside::Signal(signal)) => {
                session.fail_all(&format!("the gateway was ended by {}", signal_text(signal)));
                Some(Ending::Signal(signal))
            }
            Event::Drained => {
                let waited = front.drain.as_secs_f64();
                session
                    .fail_all(&format!("the client closed and no answer came within {waited} s (--drain)"));
                Some(Ending::ClientClosed)
            }
        };
        if let Some(ending) = ended {
            break ending;
        }
    };
    session.last_words(&mut output).await;
    ending
}

/// What the hub has had no room for.
enum Stuck {
    One(Message),
    Batch(Vec<Message>),
}

struct Session<'a> {
    front: &'a StdioFront,
    client: ClientSession,
    lines: LineSplitter,
    intake: Intake,
    /// The intake has a part of the line at hand.
    fed: bool,
    stuck: std::collections::VecDeque<Stuck>,
    owed: Owed,
    outbox: Outbox,
    client_open: bool,
    drain_until: Option<Instant>,
}

impl<'a> Session<'a> {
    fn new(front: &'a StdioFront, client: ClientSession) -> Self {
        Self {
            front,
            client,
            lines: LineSplitter::new(),
            intake: front.guard.intake(),
            fed: false,
            stuck: std::collections::VecDeque::new(),
            owed: Owed::default(),
            outbox: Outbox::default(),
            client_open: true,
            drain_until: None,
        }
    }

    /// Bytes of the client; none: it has closed.
    fn chunk(&mut self, bytes: &[u8]) -> Option<Ending> {
        if bytes.is_empty() {
            if self.lines.is_within_line() {
                let admitted = admit(self.intake.finish());
                self.admitted(admitted);
            }
            return self.client_closed();
        }
        let mut lines = std::mem::take(&mut self.lines);
        // A line that is whole in this chunk needs no copy before it is known what it is.
        let mut whole: Option<&[u8]> = None;
        lines.split(bytes, |piece| match piece {
            Piece::Data(bytes) if !self.fed && whole.is_none() => whole = Some(bytes),
            Piece::Data(bytes) => {
                for piece in whole.take().into_iter().chain([bytes]) {
                    self.intake.feed(piece);
                }
                self.fed = true;
            }
            Piece::End => {
                let line = whole.take();
                self.record(line);
                let taken = match line {
                    Some(line) => self.intake.whole(line),
                    None => self.intake.finish(),
                };
                self.fed = false;
                let admitted = admit(taken);
                self.admitted(admitted);
            }
        });
        self.lines = lines;
        if let Some(rest) = whole {
            self.intake.feed(rest);
            self.fed = true;
        }
        self.ended_if_drained()
    }

    fn record(&self, line: Option<&[u8]>) {
        if let Some(record) = &self.front.record
            && line.is_none_or(|line| !line.trim_ascii().is_empty())
        {
            record.message(Direction::FromClient, line, line.map_or(0, |line| line.len() as u64));
        }
    }

    fn admitted(&mut self, admitted: Admitted) {
        match admitted {
            Admitted::Nothing => {}
            Admitted::Refused(answers) => self.refuse(answers),
            Admitted::One(message) => {
                self.owed.note(std::slice::from_ref(&message));
                if !self.stuck.is_empty() {
                    self.stuck.push_back(Stuck::One(message));
                } else if let Err(message) = self.client.try_send(message) {
                    self.stuck.push_back(Stuck::One(message));
                    return;
                }
            }
            Admitted::Batch(messages, answers) => {
                self.refuse(answers);
                self.owed.note(&messages);
                self.stuck.push_back(Stuck::Batch(messages));
            }
        }
        self.push();
    }

    fn refuse(&mut self, answers: Vec<Vec<u8>>) {
        for answer in answers {
            self.outbox.line(Line::One(Part::Bytes(answer)));
        }
    }

    /// Hands the hub what it has room for.
    fn push(&mut self) {
        while let Some(next) = self.stuck.pop_front() {
            let back = match next {
                Stuck::One(message) => self.client.try_send(message).err().map(Stuck::One),
                Stuck::Batch(messages) => self.client.try_send_batch(messages).err().map(Stuck::Batch),
            };
            if let Some(back) = back {
                self.stuck.push_front(back);
                return;
            }
        }
    }

    fn push_stuck(&mut self) -> Option<Ending> {
        self.push();
        self.ended_if_drained()
    }

    fn outbound(&mut self, message: ClientMessage) {
        if message.is_answer
            && let Some(about) = &message.about
        {
            self.owed.answered(about);
        }
        match message.payload {
            Payload::Bytes(bytes) => {
                if let Some(record) = &self.front.record {
                    record.message(Direction::FromServer, Some(&bytes), bytes.len() as u64);
                }
                self.outbox.line(Line::One(utf8(&bytes)));
            }
            Payload::File { file, len } => {
                if let Some(record) = &self.front.record {
                    record.message(Direction::FromServer, None, len);
                }
                self.outbox.line(Line::One(Part::File { file: Arc::new(file), start: 0, len }));
            }
        }
    }

    fn client_closed(&mut self) -> Option<Ending> {
        self.client_open = false;
        self.drain_until = Some(Instant::now() + self.front.drain);
        self.ended_if_drained()
    }

    /// The client has closed, and all that was owed to it is written.
    fn ended_if_drained(&self) -> Option<Ending> {
        let done =
            !self.client_open && self.stuck.is_empty() && self.outbox.is_empty() && self.owed.is_empty();
        done.then_some(Ending::ClientClosed)
    }

    fn written(&mut self, length: usize) -> Option<Ending> {
        if let Err(error) = self.outbox.advance(length) {
            tracing::warn!(%error, "a spooled message could not be read back: the client's stream is broken");
            return Some(Ending::ClientClosed);
        }
        self.ended_if_drained()
    }

    fn fail_all(&mut self, reason: &str) {
        for id in self.owed.take() {
            let answer = error_response(id.raw(), UPSTREAM_ERROR, reason, None);
            self.outbox.line(Line::One(Part::Bytes(answer)));
        }
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
