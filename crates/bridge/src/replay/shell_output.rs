//! Owns the output of running commands: what of it is shown at once, and what stands in for a result without output.

use super::activity::OutputStream;
use super::limits::{self, OUTPUT, TRANSCRIPT};
use crate::scrub::Scrubber;

/// Pieces that are shown of one command while it runs.
const PIECES: usize = 3;
/// Bytes that are kept of one command: the limit of what is shown, and room for a secret at its edge.
const KEPT: usize = TRANSCRIPT.chars * 4 + (16 << 10);

/// What is looked at on both sides of the place where two pieces meet.
const EDGE: usize = 4096;

/// The output of one command so far.
#[derive(Debug, Default)]
pub(super) struct ShellOutput {
    shown: usize,
    kept: String,
    dropped: usize,
}

impl ShellOutput {
    /// One more piece, of which at most so many bytes are kept. What is to be shown of it, if anything.
    pub(super) fn add(
        &mut self,
        scrubber: &Scrubber,
        stream: OutputStream,
        text: &str,
        room: usize,
    ) -> Option<String> {
        let is_torn = self.shown < PIECES && self.tears_a_secret(scrubber, text);
        let room = text.floor_char_boundary(KEPT.saturating_sub(self.kept.len()).min(room));
        self.kept.push_str(text.get(..room).unwrap_or_default());
        self.dropped += text.get(room..).unwrap_or_default().chars().count();
        if self.shown >= PIECES {
            return None;
        }
        let line = limits::label(scrubber, text, OUTPUT);
        if line.is_empty() || is_torn {
            return None;
        }
        self.shown += 1;
        Some(format!("{}: {line}", stream.name()))
    }

    /// A secret begins in what came before and ends in this piece: neither half would be known by itself.
    fn tears_a_secret(&self, scrubber: &Scrubber, text: &str) -> bool {
        let before = self
            .kept
            .get(self.kept.ceil_char_boundary(self.kept.len().saturating_sub(EDGE))..)
            .unwrap_or_default();
        let after = text.get(..text.floor_char_boundary(EDGE)).unwrap_or_default();
        let both = format!("{before}{after}");
        scrubber.scrub(&both) != format!("{}{}", scrubber.scrub(before), scrubber.scrub(after))
    }

    /// Bytes that are kept.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// All of it, for a result that has no output.
    pub(super) fn whole(&self) -> Option<String> {
        if self.kept.trim().is_empty() {
            return None;
        }
        let note = (self.dropped > 0)
            .then(|| format!("\n[{} not kept]", limits::plural(self.dropped, "more character")));
        Some(format!("{}{}", self.kept, note.unwrap_or_default()))
    }
}
