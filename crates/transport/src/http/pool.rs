//! Idle connections. The most recent one is used first, so that the others can grow old and go. It must not
//! open any.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::conn::Conn;
use super::target::Origin;
use crate::limits::{POOL_IDLE, POOL_MAX};

/// The idle connections of one transport.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Conn>>,
    filled: Notify,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection to `origin` that the server has not closed as far as can be seen.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Conn> {
        let now = Instant::now();
        let mut idle = self.lock();
        while let Some(at) = idle.iter().rposition(|conn| *conn.origin == *origin) {
            let mut conn = idle.remove(at);
            if conn.expires > now && conn.is_usable() {
                return Some(conn);
            }
        }
        None
    }

    pub(crate) fn put(&self, conn: Conn) {
        let mut idle = self.lock();
        if idle.len() < POOL_MAX {
            idle.push(conn);
        }
        if idle.len() == 1 {
            self.filled.notify_one();
        }
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Closes connections that have idled too long, or that the server has closed. Never ends.
    pub(crate) async fn tidy(&self) {
        loop {
            if self.lock().is_empty() {
                self.filled.notified().await;
            }
            tokio::time::sleep(POOL_IDLE / 2).await;
            let now = Instant::now();
            self.lock().retain_mut(|conn| conn.expires > now && conn.is_usable());
        }
    }
}
