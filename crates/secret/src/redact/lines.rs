//! Owns redaction of what is written line by line and read at once, as another program's stderr: a line is not held
//! back once it is whole.

use super::Redactor;

/// A line is looked through in pieces when it is longer.
const LONGEST: usize = 16 << 10;
/// What is held back of such a line.
const OVERLAP: usize = 8 << 10;

/// Redacts line by line. A secret of several lines is known by each of its long lines.
#[derive(Debug)]
pub struct RedactingLines {
    redactor: &'static Redactor,
    held: Vec<u8>,
}

impl RedactingLines {
    /// Nothing yet.
    pub fn new(redactor: &'static Redactor) -> Self {
        Self { redactor, held: Vec::new() }
    }

    /// Takes bytes, cut anywhere, and gives what can be shown: whole lines, and of a very long line its beginning.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let whole = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut out = Vec::new();
        let mut shown = 0;
        if whole > 0 {
            shown = self.redactor.replace(&self.held, 0, whole, &mut out);
            if shown < whole {
                // What seems to go on in the next line does not.
                shown =
                    self.redactor.replace(self.held.get(..whole).unwrap_or_default(), shown, whole, &mut out);
            }
        }
        if self.held.len() - shown > LONGEST {
            let safe = self.held.len() - OVERLAP;
            shown = self.redactor.replace(&self.held, shown, safe, &mut out);
        }
        self.held.drain(..shown);
        out
    }

    /// The rest: nothing more comes, or nothing has come for a while.
    pub fn rest(&mut self) -> Vec<u8> {
        let rest = self.unfinished();
        self.held.clear();
        rest
    }

    /// The rest as it would be shown now, without giving it out.
    pub fn unfinished(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.held.len());
        self.redactor.replace(&self.held, 0, self.held.len(), &mut out);
        out
    }

    /// Whether there is a rest.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }
}
