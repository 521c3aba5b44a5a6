//! Owns the legacy sessions of the front by their ids, which nobody can guess. Their number is bounded: the one that was
//! idle longest makes room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::task::AbortHandle;
use tokio::time::{Duration, Instant};
use tokio_util::task::TaskTracker;

use super::session::HttpSession;

/// A pump that ends with this value.
#[derive(Debug)]
pub(super) struct Pump(Option<AbortHandle>);

impl Pump {
    /// It ends by itself.
    pub(super) fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some(pump) = &self.0 {
            pump.abort();
        }
    }
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Arc<HttpSession>>>,
    pumps: TaskTracker,
    most: usize,
    idle: Duration,
}

impl Sessions {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { open: Mutex::default(), pumps: TaskTracker::new(), most, idle }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<HttpSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is room for one more, which an idle one may have had to make.
    pub(super) fn make_room(&self) -> bool {
        let mut open = self.open();
        open.retain(|_, session| !session.closed.is_cancelled());
        if open.len() < self.most {
            return true;
        }
        let idle = open.iter().filter_map(|(id, session)| Some((session.idle_since()?, id.clone())));
        let Some((_, longest)) = idle.min() else { return false };
        if let Some(session) = open.remove(&longest) {
            session.closed.cancel();
        }
        true
    }

    /// Adds a session and starts its pump. `None`: the system has no randomness.
    pub(super) fn add(&self, session: HttpSession) -> Option<(String, Arc<HttpSession>)> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).ok()?;
        let id = URL_SAFE_NO_PAD.encode(bytes);
        let session = Arc::new(session);
        self.open().insert(id.clone(), Arc::clone(&session));
        let pumped = Arc::clone(&session);
        self.pumps.spawn(async move { pumped.pump().await });
        Some((id, session))
    }

    /// Runs the pump of one request: it ends with the guard, or is released to end by itself.
    pub(super) fn pump(&self, pump: impl Future<Output = ()> + Send + 'static) -> Pump {
        Pump(Some(self.pumps.spawn(pump).abort_handle()))
    }

    /// The session of that id; it counts as used.
    pub(super) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.open().get(id).filter(|session| !session.closed.is_cancelled()).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session; false: there is none.
    pub(super) fn remove(&self, id: &str) -> bool {
        let session = self.open().remove(id);
        session.inspect(|session| session.closed.cancel()).is_some()
    }

    /// Ends the sessions that nobody has used for long.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.open().retain(|_, session| {
            let idle =
                session.idle_since().is_some_and(|since| now.saturating_duration_since(since) >= self.idle);
            if idle {
                session.closed.cancel();
            }
            !session.closed.is_cancelled()
        });
    }

    /// Ends all of them.
    pub(super) fn close_all(&self) {
        self.open().drain().for_each(|(_, session)| session.closed.cancel());
    }
}
