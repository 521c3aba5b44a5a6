//! Owns the events that wait for the one consumer of a run's stream. It never makes the run wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::engine::BoxFuture;
use crate::error::AgentError;
use crate::event::Event;
use crate::run::Source;

/// How many events may wait.
pub(super) const CAPACITY: usize = 8192;

/// The waiting events of a run.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    taken: bool,
    overflown: bool,
    closed: bool,
}

impl Buffer {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, event: Event) {
        let mut waiting = self.waiting();
        if waiting.overflown || waiting.closed {
            return;
        }
        if waiting.events.len() >= CAPACITY {
            waiting.overflown = true;
            if !waiting.taken {
                // Nobody reads: nothing is held for them.
                waiting.events = VecDeque::new();
            }
        } else {
            waiting.events.push_back(event);
        }
        drop(waiting);
        self.came.notify_one();
    }

    /// Nothing follows.
    pub(super) fn close(&self) {
        self.waiting().closed = true;
        self.came.notify_one();
    }

    /// The consumer, for whom asks first.
    pub(super) fn take(self: &Arc<Self>) -> Option<Consumer> {
        let mut waiting = self.waiting();
        if std::mem::replace(&mut waiting.taken, true) {
            return None;
        }
        Some(Consumer { buffer: Arc::clone(self), told: false })
    }
}

/// Reads the waiting events.
#[derive(Debug)]
pub(super) struct Consumer {
    buffer: Arc<Buffer>,
    /// That events are missing.
    told: bool,
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let mut waiting = self.buffer.waiting();
        waiting.closed = true;
        waiting.events = VecDeque::new();
    }
}

impl Source<Result<Event, AgentError>> for Consumer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Event, AgentError>>> {
        Box::pin(async {
            loop {
                {
                    let mut waiting = self.buffer.waiting();
                    if let Some(event) = waiting.events.pop_front() {
                        return Some(Ok(event));
                    }
                    if waiting.overflown {
                        return (!std::mem::replace(&mut self.told, true))
                            .then_some(Err(AgentError::StreamBufferOverflow { capacity: CAPACITY }));
                    }
                    if waiting.closed {
                        return None;
                    }
                }
                self.buffer.came.notified().await;
            }
        })
    }
}
