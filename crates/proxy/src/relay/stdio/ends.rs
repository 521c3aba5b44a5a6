//! Owns the two writing ends of the relay, which its threads share.

use std::fs::File;
use std::io::Write;
use std::process::ChildStdin;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The client's input. Whole lines are written under its lock.
#[derive(Debug)]
pub(super) struct ClientEnd {
    output: Mutex<File>,
}

impl ClientEnd {
    pub(super) fn new(output: File) -> Self {
        Self { output: Mutex::new(output) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, File> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines at the end of the session: a client that does not read is not waited for longer than `most`.
    pub(super) fn last_words(self: &Arc<Self>, lines: Vec<u8>, most: Duration) {
        if lines.is_empty() {
            return;
        }
        let (done, written) = sync_channel(1);
        let client = Arc::clone(self);
        let work = move || {
            client.lock().write_all(&lines).ok();
            done.send(()).ok();
        };
        if super::spawn("last words", work).is_ok() && written.recv_timeout(most).is_err() {
            tracing::warn!("the client does not read: the last answers could not be written");
        }
    }
}

/// The upstream's input.
#[derive(Debug)]
pub(super) struct ServerEnd {
    stdin: Mutex<Option<ChildStdin>>,
}

impl ServerEnd {
    pub(super) fn new(stdin: ChildStdin) -> Self {
        Self { stdin: Mutex::new(Some(stdin)) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it, unless a write that the upstream does not take holds it: then the upstream is ended anyway.
    pub(super) fn close(&self) {
        if let Ok(mut stdin) = self.stdin.try_lock() {
            stdin.take();
        }
    }
}
