//! Owns the watch over an answer that does not end, or that says the same again and again.

/// Bytes of one answer: text, thinking and arguments together.
const MOST: usize = 8 * 1024 * 1024;
/// How much of the same, without a break, is too much.
const REPEATED: usize = 16 * 1024;
/// The longest piece that counts as the same when it comes again.
const PERIOD: usize = 1024;
/// How much must have been written between two looks.
const LOOK_EVERY: usize = 4 * 1024;

/// What was written of an answer.
#[derive(Debug, Default)]
pub(super) struct Watch {
    written: usize,
    tail: Vec<u8>,
    since_look: usize,
    arguments: usize,
}

impl Watch {
    /// Another answer begins.
    pub(super) fn begin(&mut self) {
        *self = Self::default();
    }

    /// Bytes so far.
    pub(super) fn written(&self) -> usize {
        self.written.saturating_add(self.arguments)
    }

    /// The arguments of calls have grown to so many bytes.
    pub(super) fn arguments(&mut self, bytes: usize) -> Option<String> {
        self.arguments = self.arguments.max(bytes);
        self.too_much()
    }

    /// More was written. Says why it should not go on.
    pub(super) fn push(&mut self, text: &str) -> Option<String> {
        self.written = self.written.saturating_add(text.len());
        self.tail.extend_from_slice(text.as_bytes());
        self.since_look += text.len();
        if self.tail.len() > 2 * REPEATED {
            let cut = self.tail.len() - REPEATED;
            self.tail.drain(..cut);
        }
        if self.since_look >= LOOK_EVERY {
            self.since_look = 0;
            if self.repeats() {
                return Some(format!(
                    "the model wrote the same {REPEATED} bytes long in one answer: it was stopped; ask again, or ask \
                     another model"
                ));
            }
        }
        self.too_much()
    }

    fn too_much(&self) -> Option<String> {
        (self.written() > MOST).then(|| {
            format!("the model wrote more than {MOST} bytes in one answer without an end: it was stopped")
        })
    }

    /// Whether the end is one piece, again and again. White space and rules of one character are drawings, not a loop,
    /// unless they fill it all as well: then they are no answer either.
    fn repeats(&self) -> bool {
        let Some(from) = self.tail.len().checked_sub(REPEATED) else { return false };
        let tail = self.tail.get(from..).unwrap_or_default();
        let Some(period) = shortest_period(tail) else { return false };
        period <= PERIOD
    }
}

/// The shortest piece whose repetition is the text: by the borders of its reverse, in one pass.
fn shortest_period(text: &[u8]) -> Option<usize> {
    let mut border = vec![0usize; text.len()];
    let mut length = 0usize;
    for place in 1..text.len() {
        while length > 0 && text.get(place) != text.get(length) {
            length = border.get(length - 1).copied()?;
        }
        if text.get(place) == text.get(length) {
            length += 1;
        }
        *border.get_mut(place)? = length;
    }
    text.len().checked_sub(*border.last()?)
}
