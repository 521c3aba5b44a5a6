//! Owns what one stream of events holds: messages that were not taken yet, and the last ones that were, for a client
//! that comes back. Bounded: what is no answer is dropped when nobody takes it. Knows no HTTP.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::timeout;
use toolway_transport::Payload;
use toolway_wire::Id;

/// Events that are kept for a client that comes back.
const KEPT_EVENTS: usize = 256;
/// Bytes of them, and of what was not taken yet before messages are dropped.
const KEPT_BYTES: u64 = 2 << 20;

/// News that wait for a client that takes nothing, and the most bytes of one.
const NEWS: usize = 16;
const NEWS_BYTES: usize = 2048;

/// The bytes of a message. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) enum Data {
    /// In memory, in one line and UTF-8.
    Bytes(Bytes),
    /// In a file, whole.
    File(Arc<File>, u64),
}

impl Data {
    pub(super) fn of(payload: Payload) -> Self {
        match payload {
            Payload::Bytes(bytes) => Self::Bytes(in_one_line(bytes)),
            Payload::File { file, len } => Self::File(Arc::new(file), len),
        }
    }

    /// What it costs in memory.
    fn held(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(..) => 0,
        }
    }
}

/// Events are lines, and event streams are UTF-8.
fn in_one_line(bytes: Bytes) -> Bytes {
    let broken = memchr::memchr2(b'\n', b'\r', &bytes).is_some() || std::str::from_utf8(&bytes).is_err();
    if !broken {
        return bytes;
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned().into_bytes();
    crate::relay::flatten_in_place(&mut text);
    text.into()
}

#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) sequence: u64,
    pub(super) data: Data,
    is_answer: bool,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    held: u64,
    /// News that came while nobody took anything, each once.
    news: Vec<Bytes>,
    /// The sequence number of the last event; the first one has 1.
    last: u64,
    /// Up to this one they were taken.
    taken: u64,
    /// Requests whose answers are still to come.
    awaited: HashSet<Id>,
    ended: bool,
    /// Which reader has it; 0: none.
    reader: u64,
    readers: u64,
    waker: Option<Waker>,
}

/// One stream: the answer to one POST, or one GET.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its number in its session.
    pub(super) number: u64,
    /// It takes only answers: the client reads no event streams.
    pub(super) answers_only: bool,
    state: Mutex<State>,
    changed: Notify,
    left: Notify,
}

/// How the answer to a POST begins.
#[derive(Debug)]
pub(super) enum First {
    /// It is the only message: plain JSON.
    Answer(Data),
    /// Something precedes it, or it takes long.
    Events,
    /// There is none.
    Nothing,
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Next {
    Event(Event),
    /// Nothing yet: the waker is kept.
    Wait,
    End,
}

impl Stream {
    /// `awaited`: the requests that it answers; none: it never ends by itself.
    pub(super) fn new(number: u64, awaited: impl IntoIterator<Item = Id>, answers_only: bool) -> Self {
        let state = State { awaited: awaited.into_iter().collect(), ..State::default() };
        Self { number, answers_only, state: Mutex::new(state), changed: Notify::new(), left: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message; `answers`: the request that it is the answer to. With the last answer the stream ends.
    pub(super) fn push(&self, data: Data, answers: Option<&Id>) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        let untaken = state.last - state.taken;
        let many = untaken >= KEPT_EVENTS as u64 || (untaken > 0 && state.held >= KEPT_BYTES);
        if answers.is_none() && many {
            if state.keep_news(&data) {
                return;
            }
            tracing::debug!(
                stream = self.number,
                "a message was dropped: the client does not take its events"
            );
            return;
        }
        state.add(data, answers.is_some());
        if let Some(id) = answers {
            state.awaited.remove(id);
            state.ended = state.awaited.is_empty();
        }
        self.wake(state);
    }

    /// Nothing more will come.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.wake(state);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.changed.notify_one();
    }

    /// Waits for the beginning of the answer, at most so long where events may be sent.
    pub(super) async fn first(&self, patience: Duration) -> First {
        loop {
            if let Some(first) = self.begins() {
                return first;
            }
            let changed = self.changed.notified();
            if self.answers_only {
                changed.await;
            } else if timeout(patience, changed).await.is_err() {
                return First::Events;
            }
        }
    }

    fn begins(&self) -> Option<First> {
        let mut state = self.lock();
        match state.events.front() {
            Some(event) if event.is_answer && state.ended && state.events.len() == 1 => {
                let data = event.data.clone();
                state.taken = state.last;
                Some(First::Answer(data))
            }
            Some(_) if !self.answers_only => Some(First::Events),
            Some(_) if state.ended => Some(First::Events),
            None if state.ended => Some(First::Nothing),
            _ => None,
        }
    }

    /// Takes the stream over: the number of the reader, which others lose it to.
    pub(super) fn attach(&self) -> u64 {
        let mut state = self.lock();
        state.readers += 1;
        state.reader = state.readers;
        let reader = state.reader;
        self.wake(state);
        reader
    }

    /// A reader goes.
    pub(super) fn detach(&self, reader: u64) {
        let mut state = self.lock();
        if state.reader == reader {
            state.reader = 0;
            state.waker = None;
            drop(state);
            self.left.notify_one();
        }
    }

    /// Waits until its reader has gone. Dropping the future loses nothing.
    pub(super) async fn left(&self) {
        self.left.notified().await;
    }

    /// Somebody reads it.
    pub(super) fn is_attached(&self) -> bool {
        self.lock().reader != 0
    }

    /// All was said.
    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// All was said, and taken.
    pub(super) fn is_spent(&self) -> bool {
        let state = self.lock();
        state.ended && state.taken == state.last
    }

    /// The next event after that one, for this reader.
    pub(super) fn after(&self, sequence: u64, reader: u64, waker: &Waker) -> Next {
        let mut state = self.lock();
        if state.reader != reader {
            return Next::End;
        }
        if let Some(event) = state.events.iter().find(|event| event.sequence > sequence).cloned() {
            state.taken = state.taken.max(event.sequence);
            state.forget();
            return Next::Event(event);
        }
        if state.ended {
            return Next::End;
        }
        if let Some(news) = state.news.pop() {
            let event = state.add(Data::Bytes(news), false);
            state.taken = event.sequence;
            return Next::Event(event);
        }
        state.waker = Some(waker.clone());
        Next::Wait
    }
}

impl State {
    fn add(&mut self, data: Data, is_answer: bool) -> Event {
        self.last += 1;
        self.held += data.held();
        let event = Event { sequence: self.last, data, is_answer };
        self.events.push_back(event.clone());
        self.forget();
        event
    }

    /// That a list has changed says no more when it is told twice, and is not to be missed; true: it is told later.
    fn keep_news(&mut self, data: &Data) -> bool {
        let Data::Bytes(bytes) = data else { return false };
        if bytes.len() > NEWS_BYTES || memchr::memmem::find(bytes, b"/list_changed\"").is_none() {
            return false;
        }
        if self.news.contains(bytes) {
            return true;
        }
        let room = self.news.len() < NEWS;
        if room {
            self.news.push(bytes.clone());
        }
        room
    }

    /// Forgets taken events that are too many to be kept.
    fn forget(&mut self) {
        while self.events.len() > KEPT_EVENTS || self.held > KEPT_BYTES {
            match self.events.front() {
                Some(event) if event.sequence <= self.taken => {
                    self.held -= event.data.held();
                    self.events.pop_front();
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
