//! Owns the state that both directions share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use toolway_guard::{Guard, ReadBack};
use toolway_secret::Redactor;
use toolway_wire::{Id, UPSTREAM_ERROR, error_response};

use crate::pending::Pending;
use crate::record::Recorder;

/// What a relay needs to know. Plain values.
#[derive(Debug)]
pub struct RelayConfig {
    /// The size policy and its store.
    pub guard: Guard,
    /// What the upstream is called in the index of saved results.
    pub server: String,
    /// This session's name in that index.
    pub session: String,
    /// How long answers in flight are awaited after the client has closed.
    pub drain: Duration,
    /// Where the session is recorded.
    pub record: Option<Recorder>,
    /// Takes secrets out of error texts; `None`: the known shapes alone.
    pub redactor: Option<Arc<Redactor>>,
}

/// What was not passed on, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines of the upstream that were no messages; blank ones are not counted.
    pub ignored_lines: u64,
    /// Answers to no open request: second ones, or ones that nobody asked for.
    pub stray_answers: u64,
    /// Answers that broke the protocol and became errors.
    pub faults: u64,
    /// Messages that were saved and replaced by a preview.
    pub replaced: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) ignored_lines: AtomicU64,
    pub(super) stray_answers: AtomicU64,
    pub(super) faults: AtomicU64,
    pub(super) replaced: AtomicU64,
}

/// One session between one client and one upstream.
#[derive(Debug)]
pub struct Relay {
    pub(super) config: RelayConfig,
    pub(super) counters: Counters,
    pending: Mutex<Pending>,
    /// Why there will be no more answers.
    gone: Mutex<Option<String>>,
    is_gone: AtomicBool,
    /// A request has come.
    pub(super) asked: AtomicBool,
    /// The client has closed, and only answers are awaited.
    pub(super) draining: AtomicBool,
    /// Every message small enough needs no look at its rules.
    pub(super) plain_limit: u64,
    /// Some requests are answered here, or changed on their way.
    pub(super) answers: bool,
    purging: Arc<AtomicBool>,
}

impl Relay {
    /// A session that has not begun.
    pub fn new(config: RelayConfig) -> Self {
        let guard = config.guard.config();
        let plain_limit = if guard.tool_rules.is_empty() { guard.max_response_chars } else { 0 };
        let answers = guard.read_back != ReadBack::Off || !guard.pass_saved.is_empty();
        Self {
            config,
            counters: Counters::default(),
            pending: Mutex::default(),
            gone: Mutex::default(),
            is_gone: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            plain_limit,
            answers,
            purging: Arc::default(),
        }
    }

    /// What was not passed on so far.
    pub fn counts(&self) -> Counts {
        Counts {
            ignored_lines: self.counters.ignored_lines.load(Ordering::Relaxed),
            stray_answers: self.counters.stray_answers.load(Ordering::Relaxed),
            faults: self.counters.faults.load(Ordering::Relaxed),
            replaced: self.counters.replaced.load(Ordering::Relaxed),
        }
    }

    /// Removes saved results that are due, on a thread of its own, unless one is at it.
    pub fn purge(&self) {
        if self.purging.swap(true, Ordering::AcqRel) {
            return;
        }
        let (store, purging) = (self.config.guard.store().clone(), Arc::clone(&self.purging));
        let work = move || {
            if let Err(error) = store.tidy(SystemTime::now()) {
                tracing::debug!(%error, "saved results could not be purged");
            }
            purging.store(false, Ordering::Release);
        };
        if std::thread::Builder::new().name("purge".to_owned()).spawn(work).is_err() {
            self.purging.store(false, Ordering::Release);
        }
    }

    /// A message was saved and replaced: older ones may be due.
    pub(super) fn replaced(&self) {
        self.counters.replaced.fetch_add(1, Ordering::Relaxed);
        self.purge();
    }

    /// A text without secrets.
    pub(super) fn redact(&self, text: &str) -> String {
        self.config.redactor.as_deref().unwrap_or_else(|| Redactor::known()).redact(text).into_owned()
    }

    #[inline]
    pub(super) fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why there will be no more answers, if so.
    pub(super) fn gone(&self) -> Option<String> {
        if !self.is_gone.load(Ordering::Acquire) {
            return None;
        }
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on requests are answered with this reason.
    pub(super) fn set_gone(&self, reason: &str) {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| reason.to_owned());
        self.is_gone.store(true, Ordering::Release);
    }

    /// The error lines for all requests after `mark` that wait; they are answered with this.
    pub(super) fn fail_since(&self, mark: u64, reason: &str) -> Vec<u8> {
        let ids = self.pending().take_since(mark);
        let mut lines = Vec::new();
        for id in ids {
            lines.extend_from_slice(&failure(&id, reason));
            lines.push(b'\n');
        }
        lines
    }
}

/// The answer to a request that the upstream will not answer.
pub(super) fn failure(id: &Id, reason: &str) -> Vec<u8> {
    error_response(id.raw(), UPSTREAM_ERROR, reason, None)
}
