//! Owns the way from the hub to one client: a queue that the hub never waits for and that a front empties at once.
//!
//! It is bounded from the other side: a front that finds it full reads no more from its client until there is room
//! ([`Outlet::room`]); answers are never more than the requests in flight, and messages that answer nothing are
//! dropped while it is full.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use toolway_transport::Payload;

use super::message::ClientMessage;

/// Messages that may wait before the queue is full.
const FULL_MESSAGES: usize = 1024;
/// Bytes that may wait before the queue is full.
const FULL_BYTES: u64 = 4 << 20;
/// News that may wait besides.
const NEWS: usize = 256;

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<ClientMessage>,
    bytes: u64,
    /// News that came while it was full, each once: they go out behind what waits.
    news: Vec<ClientMessage>,
    /// Messages that were dropped because it was full.
    dropped: u64,
    /// The hub sends nothing more.
    ended: bool,
    /// The front is gone.
    closed: bool,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.messages.len() >= FULL_MESSAGES || self.bytes >= FULL_BYTES
    }
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    /// Something has come, or the end.
    filled: Notify,
    /// There is room again.
    emptied: Notify,
    /// Tells the hub that some front is gone.
    closings: Arc<Notify>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, queue: &mut Queue, message: ClientMessage) {
        queue.bytes += message.payload.len();
        queue.messages.push_back(message);
        if queue.messages.len() == 1 {
            self.filled.notify_one();
        }
    }
}

/// The hub's end.
#[derive(Debug)]
pub struct Sink(Arc<Shared>);

/// The front's end. Dropping it ends the session.
#[derive(Debug)]
pub struct Outlet(Arc<Shared>);

/// Both ends. `closings` is notified when the front's end is dropped.
pub fn outlet(closings: Arc<Notify>) -> (Sink, Outlet) {
    let shared =
        Arc::new(Shared { queue: Mutex::default(), filled: Notify::new(), emptied: Notify::new(), closings });
    (Sink(Arc::clone(&shared)), Outlet(shared))
}

impl Sink {
    /// Hands over a message. One that answers nothing is dropped while the queue is full.
    pub fn send(&self, message: ClientMessage) {
        let mut queue = self.0.queue();
        if queue.closed {
            return;
        }
        if !message.is_answer && queue.is_full() {
            queue.dropped += 1;
            return;
        }
        self.0.put(&mut queue, message);
    }

    /// Hands over news that say no more when they are told twice: while the queue is full they wait, once.
    pub fn tell(&self, message: ClientMessage) {
        let mut queue = self.0.queue();
        if queue.closed {
            return;
        }
        if !queue.is_full() {
            self.0.put(&mut queue, message);
            return;
        }
        let Payload::Bytes(bytes) = &message.payload else { return };
        let same = |other: &ClientMessage| {
            other.about == message.about
                && matches!(&other.payload, Payload::Bytes(others) if others == bytes)
        };
        if queue.news.len() < NEWS && !queue.news.iter().any(same) {
            queue.news.push(message);
        }
    }

    /// Hands over a message that somebody waits for the answer of: it is not dropped.
    pub fn ask(&self, message: ClientMessage) {
        let mut queue = self.0.queue();
        if !queue.closed {
            self.0.put(&mut queue, message);
        }
    }

    /// The front is gone.
    pub fn is_closed(&self) -> bool {
        self.0.queue().closed
    }

    /// The client does not read what is there already.
    pub fn is_full(&self) -> bool {
        self.0.queue().is_full()
    }

    /// Messages that were dropped so far because the client does not read.
    pub fn dropped(&self) -> u64 {
        self.0.queue().dropped
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.0.queue().ended = true;
        self.0.filled.notify_one();
        self.0.emptied.notify_one();
    }
}

impl Outlet {
    /// Waits for messages and moves all that are there to `into`; false: nothing more will come. Dropping the future
    /// loses nothing.
    pub async fn receive(&self, into: &mut Vec<ClientMessage>) -> bool {
        loop {
            if self.try_receive(into) {
                return true;
            }
            if self.0.queue().ended {
                return false;
            }
            self.0.filled.notified().await;
        }
    }

    /// As [`Outlet::receive`], without waiting; false: there was nothing.
    pub fn try_receive(&self, into: &mut Vec<ClientMessage>) -> bool {
        let mut queue = self.0.queue();
        if queue.messages.is_empty() {
            return false;
        }
        let full = queue.is_full();
        into.extend(queue.messages.drain(..));
        into.append(&mut queue.news);
        queue.bytes = 0;
        if full {
            queue.messages.shrink_to(FULL_MESSAGES);
            self.0.emptied.notify_one();
        }
        true
    }

    /// The client is to be read: less waits for it than may.
    pub fn has_room(&self) -> bool {
        !self.0.queue().is_full()
    }

    /// Waits until the client may be read again. Dropping the future loses nothing.
    pub async fn room(&self) {
        loop {
            if self.may_be_read() {
                return;
            }
            self.0.emptied.notified().await;
        }
    }

    fn may_be_read(&self) -> bool {
        let queue = self.0.queue();
        queue.ended || !queue.is_full()
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.closed = true;
        queue.messages.clear();
        queue.news.clear();
        drop(queue);
        self.0.closings.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolway_wire::Id;

    fn message(text: &'static str, is_answer: bool) -> ClientMessage {
        ClientMessage { about: Some(Id::from_number(1)), is_answer, payload: Payload::Bytes(text.into()) }
    }

    fn texts(messages: &[ClientMessage]) -> Vec<String> {
        messages.iter().map(|message| format!("{:?}", message.payload)).collect()
    }

    #[tokio::test]
    async fn all_that_waits_is_taken_at_once_and_in_order() {
        let (sink, outlet) = outlet(Arc::default());
        let mut taken = Vec::new();
        assert!(!outlet.try_receive(&mut taken));
        for text in ["a", "b", "c"] {
            sink.send(message(text, false));
        }
        assert!(outlet.receive(&mut taken).await);
        assert_eq!(texts(&taken), texts(&["a", "b", "c"].map(|text| message(text, false))));
        drop(sink);
        assert!(!outlet.receive(&mut taken).await);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_dropped_when_the_client_does_not_read() {
        let (sink, outlet) = outlet(Arc::default());
        for _ in 0..FULL_MESSAGES + 5 {
            sink.send(message("note", false));
        }
        assert_eq!((sink.dropped(), outlet.has_room()), (5, false));
        sink.send(message("answer", true));
        sink.ask(message("question", false));
        let mut taken = Vec::new();
        let (room, took) = tokio::join!(outlet.room(), async { outlet.receive(&mut taken).await });
        assert_eq!((room, took, taken.len(), outlet.has_room()), ((), true, FULL_MESSAGES + 2, true));
    }

    #[test]
    fn news_wait_for_a_client_that_does_not_read_and_come_once() {
        let (sink, outlet) = outlet(Arc::default());
        sink.tell(message("changed", false));
        for _ in 0..FULL_MESSAGES {
            sink.send(message("note", false));
        }
        for text in ["changed", "other", "changed"] {
            sink.tell(message(text, false));
        }
        let mut taken = Vec::new();
        assert!(outlet.try_receive(&mut taken));
        assert_eq!(taken.len(), FULL_MESSAGES + 2);
        let last = taken.split_off(FULL_MESSAGES);
        assert_eq!(texts(&last), texts(&["changed", "other"].map(|text| message(text, false))));
        taken.clear();
        assert!(!outlet.try_receive(&mut taken));
    }

    #[tokio::test]
    async fn the_hub_hears_of_a_front_that_is_gone() {
        let closings = Arc::new(Notify::new());
        let (sink, outlet) = outlet(Arc::clone(&closings));
        assert!(!sink.is_closed());
        drop(outlet);
        closings.notified().await;
        assert!(sink.is_closed());
        sink.send(message("late", true));
    }
}
