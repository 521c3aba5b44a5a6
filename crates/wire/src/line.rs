//! Owns the line codec: chunks in, pieces of lines out. Knows nothing of JSON.

/// A piece of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes of the line at hand. A byte order mark at its start and a carriage return before its end are framing
    /// and left out.
    Data(&'a [u8]),
    /// The line has ended.
    End,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Splits a stream into lines without holding any of it.
#[derive(Debug, Default, Clone)]
pub struct LineSplitter {
    /// The line has bytes other than a byte order mark.
    begun: bool,
    /// How much of a byte order mark the line has begun with.
    bom: u8,
    /// A carriage return that may turn out to be framing.
    carriage_return: bool,
}

impl LineSplitter {
    /// A splitter at the start of a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Splits the next chunk and hands the pieces to `take` in their order.
    #[inline]
    pub fn split<'a>(&mut self, mut chunk: &'a [u8], mut take: impl FnMut(Piece<'a>)) {
        while let Some(&first) = chunk.first() {
            if !self.begun && (self.bom > 0 || first == BOM[0]) {
                chunk = self.skip_mark(chunk, &mut take);
                if chunk.is_empty() {
                    return;
                }
            }
            self.begun = true;
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.release_return(&mut take);
                let line = chunk.strip_suffix(b"\r");
                self.carriage_return = line.is_some();
                let line = line.unwrap_or(chunk);
                if !line.is_empty() {
                    take(Piece::Data(line));
                }
                return;
            };
            let (line, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            if !line.is_empty() {
                self.release_return(&mut take);
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if !line.is_empty() {
                take(Piece::Data(line));
            }
            take(Piece::End);
            *self = Self::default();
        }
    }

    /// Bytes have come that no line end followed.
    pub fn is_within_line(&self) -> bool {
        self.begun || self.bom > 0
    }

    fn skip_mark<'a>(&mut self, chunk: &'a [u8], take: &mut impl FnMut(Piece<'a>)) -> &'a [u8] {
        let mut rest = chunk;
        while let (Some(expected), Some((byte, after))) = (BOM.get(usize::from(self.bom)), rest.split_first())
        {
            if byte != expected {
                take(Piece::Data(BOM.get(..usize::from(self.bom)).unwrap_or_default()));
                self.bom = 0;
                break;
            }
            self.bom += 1;
            rest = after;
        }
        if usize::from(self.bom) == BOM.len() {
            self.bom = 0;
            self.begun = true;
        } else if !rest.is_empty() {
            self.begun = true;
        }
        rest
    }

    fn release_return<'a>(&mut self, take: &mut impl FnMut(Piece<'a>)) {
        if std::mem::take(&mut self.carriage_return) {
            take(Piece::Data(b"\r"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut splitter = LineSplitter::new();
        let (mut done, mut open) = (Vec::new(), Vec::new());
        for piece in pieces {
            splitter.split(piece, |piece| match piece {
                Piece::Data(bytes) => open.extend_from_slice(bytes),
                Piece::End => done.push(std::mem::take(&mut open)),
            });
        }
        (done, open)
    }

    #[test]
    fn marks_and_returns_are_framing_only_at_the_borders() {
        let (done, open) = lines(&[b"\xEF\xBB\xBFa\r\nb\rc\n\n\r\n\xEF\xBBx\n\xEF\xBB\xBF\n\r\r\nlast\r"]);
        let expected: Vec<&[u8]> = vec![b"a", b"b\rc", b"", b"", b"\xEF\xBBx", b"", b"\r"];
        assert_eq!(done, expected);
        assert_eq!(open, b"last");
    }

    proptest::proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            atoms in proptest::collection::vec(proptest::sample::select(vec![&b"a"[..], b"\r", b"\n", b"\r\n", b"\xEF\xBB\xBF", b"\xEF", b"\xBB", b"{}"]), 0..24),
            cuts in proptest::collection::vec(0usize..40, 0..6),
        ) {
            let bytes = atoms.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                pieces.push(&bytes[from..cut]);
                from = cut;
            }
            proptest::prop_assert_eq!(lines(&[&bytes]), lines(&pieces));
        }
    }
}
