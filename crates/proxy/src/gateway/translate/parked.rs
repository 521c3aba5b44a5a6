//! Owns what waits for a modern client's second call: calls of a legacy server that are still running while the client
//! is asked. Each is found again by its `requestState`, once. Bounded in number and in time.

use std::collections::{HashMap, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::time::{Duration, Instant};

/// Values that wait, by a text that nobody can guess.
#[derive(Debug)]
pub struct Parked<T> {
    waiting: HashMap<String, T>,
    /// In the order in which they end.
    ends: VecDeque<(Instant, String)>,
    capacity: usize,
    time: Duration,
}

impl<T> Parked<T> {
    /// Room for so many, each for so long.
    pub fn new(capacity: usize, time: Duration) -> Self {
        Self { waiting: HashMap::new(), ends: VecDeque::new(), capacity, time }
    }

    /// Keeps `value` and gives the text that finds it. `Err`: there is no room, or the system has no randomness.
    pub fn park(&mut self, value: T, now: Instant) -> Result<String, T> {
        let mut bytes = [0; 24];
        if self.waiting.len() >= self.capacity || getrandom::fill(&mut bytes).is_err() {
            return Err(value);
        }
        let state = URL_SAFE_NO_PAD.encode(bytes);
        self.waiting.insert(state.clone(), value);
        self.ends.push_back((now + self.time, state.clone()));
        Ok(state)
    }

    /// Looks at what waits under this text.
    pub fn get(&self, state: &str) -> Option<&T> {
        self.waiting.get(state)
    }

    /// Takes out what waits under this text: a second time there is nothing.
    pub fn take(&mut self, state: &str) -> Option<T> {
        let value = self.waiting.remove(state)?;
        self.ends.retain(|(_, other)| other != state);
        Some(value)
    }

    /// Takes out everything for which this holds: a session that ended, a server that is gone.
    pub fn take_if(&mut self, mut which: impl FnMut(&T) -> bool) -> Vec<T> {
        let states: Vec<String> =
            self.waiting.iter().filter(|(_, value)| which(value)).map(|(state, _)| state.clone()).collect();
        states.iter().filter_map(|state| self.take(state)).collect()
    }

    /// Takes out one whose time is over.
    pub fn expired(&mut self, now: Instant) -> Option<T> {
        let (end, _) = self.ends.front()?;
        if *end > now {
            return None;
        }
        let (_, state) = self.ends.pop_front()?;
        self.waiting.remove(&state)
    }

    /// When the next one's time is over.
    pub fn next_end(&self) -> Option<Instant> {
        self.ends.front().map(|(end, _)| *end)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
