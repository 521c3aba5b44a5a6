//! Owns the cutting of what an editor sends into lines, bounded. It knows no messages.

use bytes::{Buf as _, Bytes, BytesMut};

/// The most bytes of a line.
pub(super) const MOST: usize = 32 << 20;

/// A line that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end, and not empty.
    Whole(Bytes),
    /// It had more bytes than a line may have, and is gone.
    TooLong,
}

/// Bytes that are no whole line yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    waiting: BytesMut,
    /// So many of them hold no end of a line.
    searched: usize,
    /// What comes belongs to a line that is too long.
    skips: bool,
}

impl Lines {
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.waiting.extend_from_slice(piece);
    }

    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let unseen = self.waiting.get(self.searched..).unwrap_or_default();
            let Some(end) = unseen.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.waiting.len();
                if self.searched > MOST {
                    self.waiting.clear();
                    self.searched = 0;
                    return (!std::mem::replace(&mut self.skips, true)).then_some(Line::TooLong);
                }
                return None;
            };
            let mut line = self.waiting.split_to(self.searched + end + 1).freeze();
            self.searched = 0;
            if std::mem::take(&mut self.skips) {
                continue;
            }
            if line.len() > MOST {
                return Some(Line::TooLong);
            }
            line.advance(line.len() - line.trim_ascii_start().len());
            line.truncate(line.trim_ascii_end().len());
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Vec<Line> {
        std::iter::from_fn(|| lines.next()).collect()
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"{\"a\":1}\r\n\n  {}\n[";
        for size in 1..=text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.chunks(size) {
                lines.push(piece);
                found.extend(all(&mut lines));
            }
            let expected = [&b"{\"a\":1}"[..], b"{}"].map(|line| Line::Whole(Bytes::from_static(line)));
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_line_without_end_is_told_once_and_the_next_one_is_read() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; MOST / 2 + 1];
        lines.push(&piece);
        assert_eq!(all(&mut lines), []);
        lines.push(&piece);
        assert_eq!(all(&mut lines), [Line::TooLong]);
        for _ in 0..4 {
            lines.push(&piece);
            assert_eq!(all(&mut lines), []);
            assert!(lines.waiting.len() <= MOST);
        }
        lines.push(b"tail\n{}\n");
        assert_eq!(all(&mut lines), [Line::Whole(Bytes::from_static(b"{}"))]);
    }
}
