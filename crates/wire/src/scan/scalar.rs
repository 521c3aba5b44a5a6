//! Owns scalars at places that matter, as far as they are wanted: whole ones, and those that come in pieces.

use super::envelope::IdField;
use crate::id::Id;
use crate::text::TextDecoder;

/// A scalar at a place that matters, as far as it is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar<'a> {
    pub(super) string: bool,
    /// As it is spelled, without quotes.
    pub(super) raw: &'a [u8],
    /// The string's text, where an escape makes it differ.
    pub(super) decoded: Option<&'a [u8]>,
    pub(super) overflow: bool,
}

impl<'a> Scalar<'a> {
    pub(super) fn text(self) -> &'a [u8] {
        self.decoded.unwrap_or(self.raw)
    }

    pub(super) fn id(self) -> IdField {
        if self.overflow {
            return IdField::TooLong;
        }
        match self.raw.first() {
            _ if self.string => {
                let quoted = [b"\"", self.raw, b"\""].concat();
                IdField::Value(Id::string(&quoted, self.decoded.map(<[u8]>::to_vec)))
            }
            Some(b'n') => IdField::Value(Id::null()),
            Some(b'-' | b'0'..=b'9') => IdField::Value(Id::number(self.raw)),
            _ => IdField::WrongType,
        }
    }
}

/// The scalar that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Catch {
    /// How many bytes of it are kept; 0 where none are wanted.
    pub(super) cap: usize,
    pub(super) raw: Vec<u8>,
    pub(super) decoded: Vec<u8>,
    decoder: TextDecoder,
    pub(super) string: bool,
    pub(super) escaped: bool,
    pub(super) overflow: bool,
}

impl Catch {
    #[inline]
    pub(super) fn begin(&mut self, cap: usize, string: bool) {
        self.cap = cap;
        if cap > 0 {
            self.raw.clear();
            self.decoded.clear();
            self.decoder = TextDecoder::default();
            self.string = string;
            self.escaped = false;
            self.overflow = false;
        }
    }

    #[inline]
    pub(super) fn run(&mut self, bytes: &[u8]) {
        let room = self.cap.saturating_sub(self.raw.len());
        self.overflow |= bytes.len() > room;
        let piece = bytes.get(..bytes.len().min(room)).unwrap_or_default();
        self.raw.extend_from_slice(piece);
        if self.escaped {
            self.decoder.run(piece, &mut self.decoded);
        }
    }

    pub(super) fn escape(&mut self, unit: u16, raw: &[u8]) {
        if !self.escaped {
            self.escaped = true;
            self.decoded.extend_from_slice(&self.raw);
        }
        let room = self.cap.saturating_sub(self.raw.len());
        self.overflow |= raw.len() > room;
        if raw.len() <= room {
            self.raw.extend_from_slice(raw);
            self.decoder.escape(unit, &mut self.decoded);
        }
    }

    pub(super) fn end(&mut self) {
        if self.escaped {
            self.decoder.end(&mut self.decoded);
        }
    }
}

/// As much of the bytes as is kept, and whether that is not all.
#[inline]
pub(super) fn cut(bytes: &[u8], cap: usize) -> (&[u8], bool) {
    bytes.get(..cap).map_or((bytes, false), |piece| (piece, piece.len() < bytes.len()))
}
