//! What the tasks of one Streamable HTTP transport share: the client, the session, who is in flight. Each piece
//! guards itself; nothing is locked across a wait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use tokio::sync::mpsc;
use toolway_wire::Id;

use super::client::{ACCEPT_ANSWER, ACCEPT_STREAM, Client};
use super::config::{HttpConfig, plain_headers};
use super::failure::Texts;
use super::flight::Flight;
use super::renew::Renewal;
use super::session::Session;
use super::target::Target;
use super::tools::Tools;
use crate::transport::{Inbound, StreamId, TransportError};

/// Shared by the tasks of a transport.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) target: Arc<Target>,
    pub(crate) client: Client,
    pub(crate) texts: Texts,
    /// What may go to any origin with a POST.
    pub(crate) public: HeaderMap,
    /// The same for a stream.
    pub(crate) public_stream: HeaderMap,
    /// What goes to the configured origin with a request for a stream, the session excepted.
    pub(crate) own_stream: HeaderMap,
    pub(crate) session: Session,
    pub(crate) renewal: tokio::sync::Mutex<Renewal>,
    pub(crate) tools: Tools,
    pub(crate) asking_tools: tokio::sync::Mutex<()>,
    pub(crate) events: mpsc::Sender<Inbound>,
    pub(crate) slots: Arc<Slots>,
    next_stream: AtomicU64,
    flights: Mutex<HashMap<Id, Arc<Flight>>>,
}

impl Shared {
    pub(crate) fn new(config: &HttpConfig, events: mpsc::Sender<Inbound>) -> Result<Self, TransportError> {
        let target = Arc::new(config.target()?);
        Ok(Self {
            client: Client::new(config, &target),
            texts: Texts::new(config),
            public: plain_headers(ACCEPT_ANSWER),
            public_stream: plain_headers(ACCEPT_STREAM),
            own_stream: config.own_headers(ACCEPT_STREAM)?,
            session: Session::new(config.own_headers(ACCEPT_ANSWER)?, Arc::clone(&target)),
            target,
            renewal: tokio::sync::Mutex::default(),
            tools: Tools::default(),
            asking_tools: tokio::sync::Mutex::default(),
            slots: Slots::new(config.max_in_flight, events.clone()),
            events,
            next_stream: AtomicU64::new(0),
            flights: Mutex::default(),
        })
    }

    pub(crate) fn stream(&self) -> StreamId {
        StreamId(self.next_stream.fetch_add(1, Ordering::Relaxed))
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<Id, Arc<Flight>>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_off(&self, ids: &[Id], flight: &Arc<Flight>) {
        let mut flights = self.flights();
        for id in ids {
            flights.insert(id.clone(), Arc::clone(flight));
        }
    }

    pub(crate) fn flight(&self, id: &Id) -> Option<Arc<Flight>> {
        self.flights().get(id).cloned()
    }

    /// The requests are over. A newer one under the same id stays.
    pub(crate) fn land(&self, ids: &[Id], flight: &Arc<Flight>) {
        let mut flights = self.flights();
        for id in ids {
            if flights.get(id).is_some_and(|other| Arc::ptr_eq(other, flight)) {
                flights.remove(id);
            }
        }
    }
}

/// How many messages are in flight.
#[derive(Debug)]
pub(crate) struct Slots {
    limit: usize,
    taken: AtomicUsize,
    /// Somebody was told to wait.
    asked: AtomicBool,
    events: mpsc::Sender<Inbound>,
}

impl Slots {
    pub(crate) fn new(limit: usize, events: mpsc::Sender<Inbound>) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicUsize::new(0), asked: AtomicBool::new(false), events })
    }

    pub(crate) fn free(&self) -> bool {
        let free = self.taken.load(Ordering::Acquire) < self.limit;
        if !free {
            self.asked.store(true, Ordering::Release);
        }
        free
    }

    /// As many again as there are slots are kept for messages that wait for no answer.
    pub(crate) fn free_for_note(&self) -> bool {
        self.taken.load(Ordering::Acquire) < self.limit.saturating_mul(2) || self.free()
    }

    pub(crate) fn take(self: &Arc<Self>) -> Slot {
        self.taken.fetch_add(1, Ordering::AcqRel);
        Slot(Arc::clone(self))
    }
}

/// One message in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        if self.0.asked.swap(false, Ordering::AcqRel) && self.0.events.try_send(Inbound::Ready).is_err() {
            // The queue is full: its reader asks again when it has read something.
            tracing::trace!("no room to say that there is room");
        }
    }
}
