//! A request on its way: whether it was sent, is held back, or was cancelled. It must not send anything.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use tokio::sync::Notify;

/// It goes its way.
const FREE: u8 = 0;
/// Nothing of it is at the server: it waits for a signature.
const HELD: u8 = 1;
/// It was given up while it was held.
const GIVEN_UP: u8 = 2;

/// A request on its way.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Its era ends a request by closing its stream.
    pub(crate) modern: bool,
    /// It is one request and nothing else: whoever cancels it cancels all of it.
    alone: bool,
    sent: AtomicBool,
    held: AtomicU8,
    cancelled: AtomicBool,
    changed: Notify,
}

impl Flight {
    pub(crate) fn new(modern: bool, alone: bool) -> Self {
        Self { modern, alone, ..Self::default() }
    }

    /// It was handed to the socket.
    pub(crate) fn mark_sent(&self) {
        if !self.sent.swap(true, Ordering::AcqRel) {
            self.changed.notify_waiters();
        }
    }

    /// It waits for a signature.
    pub(crate) fn hold(&self) {
        if self.alone {
            self.held.store(HELD, Ordering::Release);
        }
    }

    /// It goes on. False: it was given up meanwhile, and must not be sent.
    pub(crate) fn release(&self) -> bool {
        self.held.compare_exchange(HELD, FREE, Ordering::AcqRel, Ordering::Acquire) != Err(GIVEN_UP)
    }

    /// Cancels it if it is held, so that the server need not hear of it.
    pub(crate) fn give_up(&self) -> bool {
        let held = self.held.compare_exchange(HELD, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if held {
            self.cancel();
        }
        held
    }

    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(crate) async fn sent(&self) {
        self.until(&self.sent).await;
    }

    pub(crate) async fn cancelled(&self) {
        self.until(&self.cancelled).await;
    }

    async fn until(&self, flag: &AtomicBool) {
        loop {
            let changed = self.changed.notified();
            if flag.load(Ordering::Acquire) {
                return;
            }
            changed.await;
        }
    }
}
