//! Owns the scanner: what a message is (kind, id, method, size), found as its bytes arrive, without a tree and
//! without the message in memory. Knows nothing of where bytes come from or what is done with the verdict.

mod envelope;
mod facts;
mod node;
mod quick;
mod scalar;
mod sink;

pub use envelope::{Envelope, IdField, Kind, Size};

use crate::lex::{Lexer, SyntaxError};
use sink::Watcher;

/// How many messages one batch may hold.
pub const MAX_BATCH: usize = 10_000;

/// What is known while bytes still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feeding {
    /// It may still become a message.
    More,
    /// It is not JSON, or cannot be JSON-RPC whatever follows: nothing of it needs to be kept.
    NotRpc,
}

/// What the bytes were.
#[derive(Debug)]
pub enum Verdict<'a> {
    /// Nothing but white space.
    Blank,
    /// Not JSON.
    NotJson(SyntaxError),
    /// JSON, but not JSON-RPC 2.0; the reason is a lower-case fragment.
    NotRpc(&'static str),
    /// One message.
    Message(&'a Envelope),
    /// A batch; members that are no messages at all are counted in `strangers`.
    Batch {
        /// The messages in their order.
        members: &'a [Envelope],
        /// Members that are not JSON-RPC.
        strangers: usize,
    },
}

/// Scans one message at a time.
#[derive(Debug, Default)]
pub struct Scanner {
    lexer: Lexer,
    watcher: Watcher,
    begun: bool,
    error: Option<SyntaxError>,
}

impl Scanner {
    /// A scanner at the start of a message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins anew, keeping memory.
    #[inline]
    pub fn reset(&mut self) {
        self.lexer.reset();
        self.watcher.reset();
        self.begun = false;
        self.error = None;
    }

    /// Takes the next bytes of the message.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) -> Feeding {
        if self.error.is_some() {
            return Feeding::NotRpc;
        }
        if !self.begun {
            self.begun = bytes.iter().any(|byte| !byte.is_ascii_whitespace());
        }
        if let Err(error) = self.lexer.feed(bytes, &mut self.watcher) {
            self.error = Some(error);
            return Feeding::NotRpc;
        }
        if self.watcher.stranger().is_some() { Feeding::NotRpc } else { Feeding::More }
    }

    /// Scans a whole message that is at hand. The verdict is that of [`Scanner::feed`] and [`Scanner::finish`].
    #[inline]
    pub fn whole(&mut self, bytes: &[u8]) -> Verdict<'_> {
        self.reset();
        if quick::look(bytes, self.watcher.empty()).is_some()
            && self.watcher.current().kind() != Kind::Stranger
        {
            return Verdict::Message(self.watcher.current());
        }
        self.reset();
        self.feed(bytes);
        self.finish()
    }

    /// Bytes taken so far.
    pub fn offset(&self) -> u64 {
        self.lexer.offset()
    }

    /// The message has ended. The verdict does not depend on how its bytes were cut.
    #[inline]
    pub fn finish(&mut self) -> Verdict<'_> {
        if !self.begun {
            return Verdict::Blank;
        }
        if self.error.is_none() {
            self.error = self.lexer.finish(&mut self.watcher).err();
        }
        if let Some(error) = self.error {
            return Verdict::NotJson(error);
        }
        self.watcher.verdict(self.lexer.is_lax())
    }
}

#[cfg(test)]
mod tests;
