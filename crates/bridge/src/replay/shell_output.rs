//! Owns the output of running commands: what of it is shown at once, and what stands in for a result without output.

use std::sync::LazyLock;

use regex::Regex;

use super::activity::OutputStream;
use super::limits::{self, OUTPUT, TRANSCRIPT};
use crate::scrub::Scrubber;

/// Pieces that are shown of one command while it runs.
const PIECES: usize = 3;
/// Bytes that are kept of one command: the limit of what is shown, and room for a secret at its edge.
const KEPT: usize = TRANSCRIPT.chars * 4 + (16 << 10);

/// What is looked at on both sides of the place where two pieces meet.
const EDGE: usize = 4096;

/// The beginning of what may be a secret when more has come: a host with user information, or a key of a known shape.
static OPEN_END: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const SHAPES: &str = r"(?:[A-Za-z][A-Za-z0-9+.-]*://[^\s/@]*|(?:\b(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|xox[a-z]-|xapp-|sk-|[rs]k_|A[KS]IA|AIza|ya29\.|eyJ))[A-Za-z0-9_.-]*)$";
    Regex::new(SHAPES).ok()
});

/// A piece up to where a secret may begin that the next piece ends.
fn without_open_end(text: &str) -> &str {
    let window = text.get(text.ceil_char_boundary(text.len().saturating_sub(EDGE))..).unwrap_or_default();
    let open = OPEN_END.as_ref().and_then(|shapes| shapes.find(window)).map_or(0, |open| open.len());
    text.get(..text.len() - open).unwrap_or_default()
}

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
        let line = limits::label(scrubber, without_open_end(text), OUTPUT);
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
