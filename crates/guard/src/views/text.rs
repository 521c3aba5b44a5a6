//! Owns the text of a message on its way to the `.txt` view: decoded, counted, and its beginning and end kept.
//! Knows nothing of JSON paths.

use std::io::Write;

use toolway_wire::lex::Run;
use toolway_wire::text::TextDecoder;

use crate::directory::{Directory, Temporary, plain_reason};

const BUFFER: usize = 128 << 10;

/// Where text goes besides the preview.
#[derive(Debug)]
pub(super) enum TextOut {
    File(Temporary),
    /// Kept in memory, because it cannot be saved and is known to be small.
    Memory(Vec<u8>),
    /// Nowhere: it failed, and why.
    Nowhere(Option<String>),
}

/// Beginning and end of a text that may be too long to hold.
#[derive(Debug, Default, Clone)]
pub(crate) struct Ends {
    /// The first bytes; always whole characters.
    pub(crate) head: Vec<u8>,
    /// The last bytes, those of the head left out; may begin within a character.
    pub(crate) tail: Vec<u8>,
    /// Bytes of the whole.
    pub(crate) bytes: u64,
    /// Line breaks in the whole.
    pub(crate) breaks: u64,
    /// The last line has no line break.
    pub(crate) broken_off: bool,
}

impl Ends {
    /// Lines, the last counted also without a line break.
    pub(crate) fn lines(&self) -> u64 {
        self.breaks + u64::from(self.broken_off)
    }

    fn push(&mut self, text: &[u8], keep: usize) {
        self.bytes += text.len() as u64;
        self.breaks += memchr::memchr_iter(b'\n', text).count() as u64;
        if let Some(last) = text.last() {
            self.broken_off = *last != b'\n';
        }
        let mut rest = text;
        if self.head.len() < keep && self.tail.is_empty() {
            let cut = floor_boundary(text, keep - self.head.len());
            let (head, after) = text.split_at(cut);
            self.head.extend_from_slice(head);
            rest = after;
        }
        if rest.len() >= keep {
            self.tail.clear();
            rest = rest.get(rest.len() - keep..).unwrap_or_default();
        }
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * keep {
            self.tail.drain(..self.tail.len() - keep);
        }
    }
}

/// The last character border at or before `at`.
fn floor_boundary(text: &[u8], at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    let back =
        (0..4).take_while(|back| text.get(at.saturating_sub(*back)).is_some_and(|byte| byte & 0xC0 == 0x80));
    at.saturating_sub(back.count())
}

/// Takes decoded text of one block after the other.
#[derive(Debug)]
pub(super) struct TextPipe {
    out: TextOut,
    buffer: Vec<u8>,
    decoder: TextDecoder,
    /// The buffer may hold bytes that are not ASCII.
    wide: bool,
    ends: Ends,
    keep: usize,
}

impl TextPipe {
    /// `keep`: bytes of each end that are kept.
    pub(super) fn new(out: TextOut, keep: usize) -> Self {
        let decoder = TextDecoder::default();
        Self { out, buffer: Vec::new(), decoder, wide: false, ends: Ends::default(), keep }
    }

    /// The text gets a file, unless it goes elsewhere already.
    pub(super) fn begin_file(&mut self, directory: &Directory) {
        if matches!(self.out, TextOut::Nowhere(None)) {
            self.out = match directory.temporary() {
                Ok(temporary) => TextOut::File(temporary),
                Err(error) => TextOut::Nowhere(Some(error.to_string())),
            };
        }
    }

    /// Bytes of text so far.
    pub(super) fn position(&mut self) -> u64 {
        self.settle();
        self.ends.bytes
    }

    pub(super) fn breaks(&mut self) -> u64 {
        self.settle();
        self.ends.breaks
    }

    #[inline]
    pub(super) fn run(&mut self, run: Run<'_>) {
        if run.ascii && run.bytes.len() >= BUFFER / 2 {
            self.end();
            self.emit(run.bytes);
            return;
        }
        self.wide |= !run.ascii;
        self.decoder.run(run.bytes, &mut self.buffer);
        if self.buffer.len() >= BUFFER {
            self.flush(false);
        }
    }

    #[inline]
    pub(super) fn escape(&mut self, unit: u16) {
        self.wide |= unit >= 0x80;
        self.decoder.escape(unit, &mut self.buffer);
        if self.buffer.len() >= BUFFER {
            self.flush(false);
        }
    }

    /// The string has ended.
    pub(super) fn end(&mut self) {
        self.wide = true;
        self.decoder.end(&mut self.buffer);
        self.settle();
    }

    /// Text that is ours.
    pub(super) fn plain(&mut self, text: &str) {
        self.settle();
        self.emit(text.as_bytes());
    }

    fn settle(&mut self) {
        self.flush(true);
    }

    /// Hands on the buffer; a character that may still be completed stays in it.
    fn flush(&mut self, last: bool) {
        if self.buffer.is_empty() {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut kept = 0;
        if self.wide {
            if let Err(error) = std::str::from_utf8(&buffer) {
                kept =
                    if error.error_len().is_none() && !last { buffer.len() - error.valid_up_to() } else { 0 };
                let whole = buffer.len() - kept;
                let (text, rest) = buffer.split_at(whole);
                // Bytes that are no UTF-8 become U+FFFD; what may be a cut character at the end waits.
                let cut = if last { 0 } else { cut_character(text) };
                let (text, cut_off) = text.split_at(text.len() - cut);
                self.emit(String::from_utf8_lossy(text).as_bytes());
                let waiting = [cut_off, rest].concat();
                kept = waiting.len();
                buffer.clear();
                buffer.extend_from_slice(&waiting);
            } else {
                self.emit(&buffer);
                buffer.clear();
            }
        } else {
            self.emit(&buffer);
            buffer.clear();
        }
        self.wide = kept > 0;
        self.buffer = buffer;
    }

    fn emit(&mut self, text: &[u8]) {
        self.ends.push(text, self.keep);
        match &mut self.out {
            TextOut::File(file) => {
                if let Err(error) = file.file.write_all(text) {
                    self.out = TextOut::Nowhere(Some(plain_reason(&error)));
                }
            }
            TextOut::Memory(bytes) => bytes.extend_from_slice(text),
            TextOut::Nowhere(_) => {}
        }
    }

    pub(super) fn finish(mut self) -> (TextOut, Ends) {
        self.settle();
        if self.ends.tail.len() > self.keep {
            self.ends.tail.drain(..self.ends.tail.len() - self.keep);
        }
        (self.out, self.ends)
    }
}

/// Bytes at the end that may be the beginning of a character.
fn cut_character(text: &[u8]) -> usize {
    (1..=3.min(text.len()))
        .find(|back| {
            let end = text.get(text.len() - back..).unwrap_or_default();
            std::str::from_utf8(end)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(pieces: &[&[u8]], keep: usize) -> (Vec<u8>, Ends) {
        let mut pipe = TextPipe::new(TextOut::Memory(Vec::new()), keep);
        for piece in pieces {
            pipe.run(Run { bytes: piece, ascii: piece.is_ascii(), control: false });
        }
        pipe.end();
        match pipe.finish() {
            (TextOut::Memory(bytes), ends) => (bytes, ends),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_become_replacement_characters() {
        let (text, ends) =
            pipe(&[b"a\xFFb", "é".as_bytes().split_at(1).0, "é".as_bytes().split_at(1).1, b"\n"], 100);
        assert_eq!(String::from_utf8(text).unwrap(), "a\u{FFFD}bé\n");
        assert_eq!((ends.lines(), ends.head.len()), (1, 8));
    }

    proptest::proptest! {
        #[test]
        fn any_cut_gives_the_same_text_and_ends(text in proptest::collection::vec(proptest::sample::select(vec!["a", "é", "漢", "😀", "\n", "zz"]), 0..60), cuts in proptest::collection::vec(0usize..200, 0..5), keep in 8usize..40) {
            let text = text.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let (mut pieces, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            let (out, ends) = pipe(&pieces, keep);
            proptest::prop_assert_eq!(&out, bytes);
            proptest::prop_assert!(bytes.starts_with(&ends.head) && bytes.ends_with(&ends.tail));
            proptest::prop_assert!(std::str::from_utf8(&ends.head).is_ok());
            proptest::prop_assert!(ends.head.len() + ends.tail.len() == bytes.len() || ends.tail.len() == keep);
            proptest::prop_assert_eq!(ends.lines(), text.lines().count() as u64);
        }
    }
}
