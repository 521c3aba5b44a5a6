//! Owns what a server's task has no room for yet: bounded, and in its order. Knows no hub.

use std::collections::VecDeque;

use toolway_transport::Outbound;

use crate::gateway::upstream::{Full, Upstream};

/// Messages, and bytes of them, that may wait for one server besides what its own queue holds.
const OVERFLOW: usize = 16_384;
const OVERFLOW_BYTES: u64 = 64 << 20;
/// A server's task, and what it has no room for yet.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) upstream: Upstream,
    overflow: VecDeque<Outbound>,
    /// Bytes of the overflow.
    bytes: u64,
}

impl Running {
    pub(super) fn new(upstream: Upstream) -> Self {
        Self { upstream, overflow: VecDeque::new(), bytes: 0 }
    }

    /// Messages keep their order, also when there is no room; an error: there is none here either.
    pub(super) fn send(&mut self, message: Outbound) -> Result<(), Outbound> {
        let message = if self.overflow.is_empty() {
            match self.upstream.try_send(message) {
                Ok(()) => return Ok(()),
                Err(Full(message)) => message,
            }
        } else {
            message
        };
        let bytes = message.payload.len();
        if self.overflow.len() >= OVERFLOW || self.bytes + bytes > OVERFLOW_BYTES {
            return Err(message);
        }
        self.bytes += bytes;
        self.overflow.push_back(message);
        Ok(())
    }

    /// There is room again.
    pub(super) fn retry(&mut self) {
        while let Some(message) = self.overflow.pop_front() {
            let bytes = message.payload.len();
            if let Err(Full(message)) = self.upstream.try_send(message) {
                self.overflow.push_front(message);
                return;
            }
            self.bytes -= bytes;
        }
    }
}
