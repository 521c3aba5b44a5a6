//! Owns what waits for a server: messages in their order and the wishes of the hub, bounded, behind one lock that is
//! never held across a wait. Knows no connection.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use toolway_transport::{Outbound, Payload};
use toolway_wire::Kind;

/// Requests that may wait; of other messages as many again.
const MESSAGES: usize = 256;
/// Bytes in memory that may wait, the last message not counted.
const BYTES: u64 = 4 << 20;

/// There is no room; the message comes back.
#[derive(Debug)]
pub struct Full(pub Outbound);

/// What the hub wants of an upstream's task.
#[derive(Debug, Default)]
pub(super) struct Queue {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    messages: VecDeque<Outbound>,
    bytes: u64,
    /// Somebody was told that there is no room.
    refused: bool,
    woken: bool,
    list_again: bool,
}

/// What is to be done besides sending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) woken: bool,
    pub(super) list_again: bool,
}

impl Queue {
    pub(super) fn push(&self, message: Outbound) -> Result<(), Full> {
        let waits = message.members.as_slice().iter().any(|envelope| envelope.kind() == Kind::Request);
        let factor = if waits { 1 } else { 2 };
        let mut inner = self.lock();
        if inner.messages.len() >= MESSAGES * factor || inner.bytes >= BYTES * factor as u64 {
            inner.refused = true;
            return Err(Full(message));
        }
        // Whoever empties the queue hears of the first message, and finds the others; a note may go where requests wait.
        let news = inner.messages.is_empty() || !waits;
        inner.bytes += memory(&message);
        inner.messages.push_back(message);
        drop(inner);
        if news {
            self.changed.notify_one();
        }
        Ok(())
    }

    pub(super) fn wake(&self) {
        self.lock().woken = true;
        self.changed.notify_one();
    }

    pub(super) fn list_again(&self) {
        self.lock().list_again = true;
        self.changed.notify_one();
    }

    /// The next message for a connection that has room as told.
    pub(super) fn pop(&self, ready: bool, ready_for_note: bool) -> Option<Outbound> {
        let mut inner = self.lock();
        let at = if ready {
            0
        } else if ready_for_note {
            // A note does not wait behind requests.
            inner.messages.iter().position(|message| !is_request(message))?
        } else {
            return None;
        };
        let message = inner.messages.remove(at)?;
        inner.bytes -= memory(&message);
        Some(message)
    }

    /// Everything that waits.
    pub(super) fn drain(&self) -> VecDeque<Outbound> {
        let mut inner = self.lock();
        inner.bytes = 0;
        std::mem::take(&mut inner.messages)
    }

    /// Whether somebody is to be told that there is room now. True once.
    pub(super) fn has_room_again(&self) -> bool {
        let mut inner = self.lock();
        let room = inner.messages.len() < MESSAGES / 2 && inner.bytes < BYTES / 2;
        room && std::mem::take(&mut inner.refused)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().messages.is_empty()
    }

    pub(super) fn take_wishes(&self) -> Wishes {
        let mut inner = self.lock();
        Wishes { woken: std::mem::take(&mut inner.woken), list_again: std::mem::take(&mut inner.list_again) }
    }

    /// Waits until something was added. May return without reason.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_request(message: &Outbound) -> bool {
    message.members.as_slice().iter().any(|envelope| envelope.kind() == Kind::Request)
}

fn memory(message: &Outbound) -> u64 {
    match &message.payload {
        Payload::Bytes(bytes) => bytes.len() as u64,
        Payload::File { .. } => 0,
    }
}
