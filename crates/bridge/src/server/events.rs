//! Owns the body of an event stream: notifications and answers as server-sent events, comments while nothing happens.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep};
use toolway_transport::http_server::Watched;

use super::flight::{Flights, Item};
use super::message::Pieces;

/// Messages up to this are copied into one piece with what stands around them.
const SMALL: usize = 16 << 10;
const BEFORE: &[u8] = b"event: message\ndata: ";
const AFTER: &[u8] = b"\n\n";

/// A client that sends no more is sent so many comments, one after the other so soon: if it is gone, they do not arrive.
const PROBES: u8 = 3;
const PROBE: Duration = Duration::from_millis(20);

/// Waits for a client to send no more.
pub(super) struct Leaving(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Leaving {
    pub(super) fn new(stream: &Watched) -> Self {
        let stream = stream.clone();
        Self(Box::pin(async move { stream.ended().await }))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Leaving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Leaving")
    }
}

/// The events of one POST.
#[derive(Debug)]
pub(super) struct Events {
    flights: Flights,
    ready: VecDeque<Bytes>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    leaving: Option<Leaving>,
    /// Comments that are still to be sent to find out whether the client is there.
    probes: u8,
}

impl Events {
    /// `first` is sent before what the flights give. A comment comes first of all: clients wait for the head of an answer
    /// as long as for its first byte.
    pub(super) fn new(first: Vec<Pieces>, flights: Flights, keep_alive: Duration) -> Self {
        let silence = Box::pin(sleep(keep_alive));
        let mut events =
            Self { flights, ready: VecDeque::new(), keep_alive, silence, leaving: None, probes: 0 };
        if first.is_empty() {
            events.ready.push_back(Bytes::from_static(b": waiting\n\n"));
        }
        for message in first {
            events.push(&message);
        }
        events
    }

    /// Finds out at once when the client leaves that connection.
    pub(super) fn until_left(mut self, stream: Option<&Watched>) -> Self {
        self.leaving = stream.map(Leaving::new);
        self
    }

    fn push(&mut self, message: &[Bytes]) {
        let length: usize = message.iter().map(Bytes::len).sum();
        if length <= SMALL {
            let mut event = Vec::with_capacity(BEFORE.len() + length + AFTER.len());
            event.extend_from_slice(BEFORE);
            for piece in message {
                event.extend_from_slice(&flat(piece));
            }
            event.extend_from_slice(AFTER);
            self.ready.push_back(event.into());
            return;
        }
        self.ready.push_back(Bytes::from_static(BEFORE));
        self.ready.extend(message.iter().map(flat));
        self.ready.push_back(Bytes::from_static(AFTER));
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                let pause = if self.probes > 0 { PROBE } else { self.keep_alive };
                self.probes = self.probes.saturating_sub(1);
                self.silence.as_mut().reset(Instant::now() + pause);
                return Poll::Ready(Some(piece));
            }
            match self.flights.poll(cx) {
                Poll::Ready(Some(Item::Note(note))) => self.push(&[note]),
                Poll::Ready(Some(Item::Answer(answer))) => self.push(&answer),
                Poll::Ready(Some(Item::Nothing)) => {}
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    if self.leaving.as_mut().is_some_and(|leaving| leaving.poll(cx).is_ready()) {
                        self.leaving = None;
                        self.probes = PROBES;
                        self.silence.as_mut().reset(Instant::now());
                    }
                    ready!(self.silence.as_mut().poll(cx));
                    self.ready.push_back(Bytes::from_static(b": keep-alive\n\n"));
                }
            }
        }
    }
}

/// An event's data is one line: line breaks, which are white space between tokens, become spaces.
fn flat(piece: &Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', piece).is_none() {
        return piece.clone();
    }
    piece.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}
