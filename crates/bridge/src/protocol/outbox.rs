//! Owns what waits to be written to the host, in order. Calls stay values until there is room for them, so that one
//! which ended meanwhile is never told.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::call::HostCall;

/// Above this the host's own requests wait.
const FULL: usize = 8 << 20;
/// What may be left out is left out above this.
const SPARING: usize = 1 << 20;

/// Something to be written.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// A line that is ready.
    Line(Bytes),
    /// Calls that start together.
    Calls { run: String, calls: Vec<HostCall> },
}

/// What waits to be written.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Outgoing>,
    bytes: usize,
    left_out: u64,
}

impl Outbox {
    pub(super) fn push(&mut self, line: Bytes) {
        self.bytes = self.bytes.saturating_add(line.len());
        self.queue.push_back(Outgoing::Line(line));
    }

    pub(super) fn calls(&mut self, run: String, calls: Vec<HostCall>) {
        self.queue.push_back(Outgoing::Calls { run, calls });
    }

    /// How many lines were left out before this one, if there is room for one that may be left out.
    pub(super) fn room(&mut self) -> Option<u64> {
        if self.bytes > SPARING {
            self.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut self.left_out))
    }

    pub(super) fn pop(&mut self) -> Option<Outgoing> {
        let next = self.queue.pop_front()?;
        if let Outgoing::Line(line) = &next {
            self.bytes = self.bytes.saturating_sub(line.len());
        }
        Some(next)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The host does not read.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > FULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_is_counted() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.room(), Some(0));
        outbox.push(Bytes::from(vec![b'x'; SPARING + 1]));
        assert_eq!((outbox.room(), outbox.room()), (None, None));
        assert!(!outbox.is_full());
        assert!(outbox.pop().is_some());
        assert_eq!((outbox.room(), outbox.room()), (Some(2), Some(0)));
        outbox.push(Bytes::from(vec![b'x'; FULL + 1]));
        assert!(outbox.is_full());
    }
}
