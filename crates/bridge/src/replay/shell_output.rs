//! Owns the output of running commands: what of it is shown at once, and what stands in for a result without output.

use super::activity::OutputStream;
use super::limits::{self, OUTPUT, TRANSCRIPT};
use crate::scrub::Scrubber;

/// Pieces that are shown of one command while it runs.
const PIECES: usize = 3;
/// Bytes that are kept of one command: the limit of what is shown, and room for a secret at its edge.
const KEPT: usize = TRANSCRIPT.chars * 4 + (16 << 10);

/// The output of one command so far.
#[derive(Debug, Default)]
pub(super) struct ShellOutput {
    shown: usize,
    kept: String,
    dropped: usize,
}

impl ShellOutput {
    /// One more piece. What is to be shown of it, if anything.
    pub(super) fn add(&mut self, scrubber: &Scrubber, stream: OutputStream, text: &str) -> Option<String> {
        let room = text.floor_char_boundary(KEPT.saturating_sub(self.kept.len()));
        self.kept.push_str(text.get(..room).unwrap_or_default());
        self.dropped += text.get(room..).unwrap_or_default().chars().count();
        if self.shown >= PIECES {
            return None;
        }
        let line = limits::label(scrubber, text, OUTPUT);
        if line.is_empty() {
            return None;
        }
        self.shown += 1;
        Some(format!("{}: {line}", stream.name()))
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
