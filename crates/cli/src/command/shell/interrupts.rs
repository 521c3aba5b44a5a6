//! Owns the signals that end a command, and the questions to a person that a signal interrupts. Knows no server.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::questions::Line;
use crate::compose::UsageError;

/// The stack of our small threads.
const STACK: usize = 128 << 10;

/// Signals, and questions that a signal interrupts. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts {
    signal: watch::Receiver<Option<i32>>,
    listener: Arc<Mutex<Option<SyncSender<Line>>>>,
}

impl Interrupts {
    /// Watches from now on. The second signal ends the program at once, as it would have without us.
    pub(crate) fn watch() -> Result<Self, UsageError> {
        let (sender, signal) = watch::channel(None);
        let listener: Arc<Mutex<Option<SyncSender<Line>>>> = Arc::default();
        let signals = super::super::signals()?;
        let asking = Arc::clone(&listener);
        let work = move || {
            for number in signals {
                if sender.borrow().is_some() {
                    end_now(number);
                }
                if let Some(asking) = asking.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
                    asking.try_send(Line::Signal).ok();
                }
                if sender.send(Some(number)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .stack_size(STACK)
            .spawn(work)
            .map_err(|error| UsageError::new("signals", error.to_string()))?;
        Ok(Self { signal, listener })
    }

    /// The first signal.
    pub(crate) async fn next(&self) -> i32 {
        let mut signal = self.signal.clone();
        let number = signal.wait_for(Option::is_some).await.ok().and_then(|number| *number);
        match number {
            Some(number) => number,
            // Nobody watches: none will come.
            None => std::future::pending().await,
        }
    }

    /// Runs `read` on a thread of its own; what it sends, or a signal, comes out of the receiver.
    pub(super) fn listen(
        &self,
        read: impl FnOnce(&SyncSender<Line>) + Send + 'static,
    ) -> Option<Receiver<Line>> {
        if self.signal.borrow().is_some() {
            return None;
        }
        let (sender, lines) = sync_channel(2);
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender.clone());
        let work = move || read(&sender);
        std::thread::Builder::new().name("answers".to_owned()).stack_size(STACK).spawn(work).ok()?;
        Some(lines)
    }
}

#[cfg(unix)]
fn end_now(signal: i32) {
    signal_hook::low_level::emulate_default_handler(signal).ok();
}

#[cfg(windows)]
fn end_now(_signal: i32) {}
