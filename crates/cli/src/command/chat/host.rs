//! Owns what a chat is to the bridge: its registry of tools, the calls that may be stopped, what is to be noted and said.
//! It waits for nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use toolway_bridge::{CallId, HostPort, HostTools, NoticeLevel, RawJson};

/// What waits to be written and said.
const WAITING: usize = 1000;

/// A chat's end of the bridge.
#[derive(Debug, Default)]
pub(super) struct Host(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tools: HostTools,
    calls: HashMap<CallId, Running>,
    entries: Vec<(String, RawJson)>,
    notices: Vec<(NoticeLevel, String)>,
}

/// A call that runs.
#[derive(Debug)]
struct Running {
    cancel: CancellationToken,
    /// Why the bridge gave it up.
    given_up: Option<String>,
}

impl Host {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another registry.
    pub(super) fn register(&self, tools: HostTools) {
        self.lock().tools = tools;
    }

    /// A call begins that may be stopped by this.
    pub(super) fn begins(&self, id: &CallId, cancel: &CancellationToken) {
        let running = Running { cancel: cancel.clone(), given_up: None };
        self.lock().calls.insert(id.clone(), running);
    }

    /// It ended. Why the bridge gave it up before that, if it did.
    pub(super) fn ended(&self, id: &CallId) -> Option<String> {
        self.lock().calls.remove(id)?.given_up
    }

    /// What is to be noted since it was asked last.
    pub(super) fn entries(&self) -> Vec<(String, RawJson)> {
        std::mem::take(&mut self.lock().entries)
    }

    /// What is to be said since it was asked last.
    pub(super) fn notices(&self) -> Vec<(NoticeLevel, String)> {
        std::mem::take(&mut self.lock().notices)
    }
}

impl HostPort for Host {
    fn tools(&self) -> HostTools {
        self.lock().tools.clone()
    }

    fn set_active(&self, names: &[String], active: bool) {
        let mut inner = self.lock();
        inner.tools.active.retain(|name| !names.contains(name));
        if active {
            inner.tools.active.extend_from_slice(names);
        }
    }

    fn abort_call(&self, id: &CallId, reason: &str) {
        if let Some(running) = self.lock().calls.get_mut(id) {
            running.given_up = Some(reason.to_owned());
            running.cancel.cancel();
        }
    }

    fn append_entry(&self, kind: &str, data: RawJson) {
        let mut inner = self.lock();
        if inner.entries.len() < WAITING {
            inner.entries.push((kind.to_owned(), data));
        }
    }

    fn notify(&self, level: NoticeLevel, text: &str) {
        let mut inner = self.lock();
        if inner.notices.len() < WAITING {
            inner.notices.push((level, text.to_owned()));
        }
    }
}
