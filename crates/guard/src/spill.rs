//! Owns the intake of messages: every byte goes through the scanner and into the spool. Does not decide what
//! becomes of a message.

mod spool;

use std::sync::Arc;

use toolway_wire::{Feeding, Scanner, Verdict};

pub use spool::{Body, SpoolFile};

use crate::directory::Directory;
use spool::Spool;

/// Takes in one message after the other, in pieces of any size.
///
/// Up to `memory` bytes are held, more goes to a file in the store's directory. What proves not to be a
/// JSON-RPC message is dropped at once, and its file with it.
#[derive(Debug)]
pub struct Intake {
    scanner: Scanner,
    spool: Spool,
    max_message_bytes: u64,
    /// The spool holds something, or did.
    fed: bool,
    ended: bool,
    refused: bool,
}

/// A message that has ended.
#[derive(Debug)]
pub struct Taken<'a> {
    /// What the bytes were.
    pub verdict: Verdict<'a>,
    /// Where they are; without meaning when they were no message.
    pub body: Body<'a>,
}

impl Intake {
    pub(crate) fn new(directory: Arc<Directory>, memory: usize, max_message_bytes: u64) -> Self {
        Self {
            scanner: Scanner::new(),
            spool: Spool::new(directory, memory, max_message_bytes),
            max_message_bytes,
            fed: false,
            ended: false,
            refused: false,
        }
    }

    /// Takes the next bytes of the message; after [`Intake::finish`], the first of the next one.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.ended {
            self.reset();
        }
        if self.refused {
            return;
        }
        self.fed = true;
        if matches!(self.scanner.feed(bytes), Feeding::NotRpc) {
            self.refused = true;
            self.spool.discard();
        } else {
            self.spool.feed(bytes);
        }
    }

    /// Takes a whole message that is at hand, without a copy. What came before and was not finished is forgotten.
    #[inline]
    pub fn whole<'a>(&'a mut self, message: &'a [u8]) -> Taken<'a> {
        if self.fed {
            self.reset();
        }
        self.ended = true;
        let len = message.len() as u64;
        let body = if len > self.max_message_bytes { Body::TooLarge { len } } else { Body::Memory(message) };
        Taken { verdict: self.scanner.whole(message), body }
    }

    /// The message has ended: what it was, and where its bytes are.
    pub fn finish(&mut self) -> Taken<'_> {
        if self.ended {
            self.reset();
        }
        self.ended = true;
        Taken { verdict: self.scanner.finish(), body: self.spool.finish() }
    }

    /// Forgets the message so far; its file vanishes.
    pub fn reset(&mut self) {
        self.scanner.reset();
        self.spool.reset();
        self.fed = false;
        self.ended = false;
        self.refused = false;
    }
}
