//! Owns base64 on its way to a file: decoded piece by piece, its real type found in the first bytes. Knows
//! nothing of JSON paths.

use std::io::Write;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::directory::{Directory, Temporary};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
/// Characters decoded at once; a multiple of four.
const CHUNK: usize = 64 << 10;
/// Bytes that the type is found in.
const MAGIC: usize = 512;

/// A decoded block.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) temporary: Option<Temporary>,
    pub(super) bytes: u64,
    pub(super) magic: Vec<u8>,
}

/// Decodes one base64 string.
#[derive(Debug)]
pub(super) struct Decoder {
    temporary: Option<Temporary>,
    pending: Vec<u8>,
    plain: Vec<u8>,
    magic: Vec<u8>,
    bytes: u64,
    ended: bool,
    valid: bool,
}

impl Decoder {
    /// Without a directory the bytes are only counted.
    pub(super) fn new(directory: Option<&Directory>) -> Self {
        let temporary = directory.and_then(|directory| directory.temporary().ok());
        Self {
            temporary,
            pending: Vec::new(),
            plain: Vec::new(),
            magic: Vec::new(),
            bytes: 0,
            ended: false,
            valid: true,
        }
    }

    pub(super) fn run(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.valid {
            let room = CHUNK - self.pending.len().min(CHUNK - 1);
            let (piece, rest) = bytes.split_at(room.min(bytes.len()));
            bytes = rest;
            if memchr::memchr3(b'-', b'_', b'=', piece).is_none() && !self.ended {
                self.pending.extend_from_slice(piece);
            } else {
                for byte in piece {
                    self.byte(*byte);
                }
            }
            if self.pending.len() >= CHUNK {
                self.decode(false);
            }
        }
    }

    /// An escape: `\/` is a character of base64, line breaks are none.
    pub(super) fn escape(&mut self, unit: u16) {
        match u8::try_from(unit) {
            Ok(b'\n' | b'\r' | b'\t') => {}
            Ok(byte) => self.byte(byte),
            Err(_) => self.valid = false,
        }
    }

    fn byte(&mut self, byte: u8) {
        match byte {
            b'=' => self.ended = true,
            _ if self.ended => self.valid = false,
            b'-' => self.pending.push(b'+'),
            b'_' => self.pending.push(b'/'),
            _ => self.pending.push(byte),
        }
    }

    fn decode(&mut self, last: bool) {
        let whole = if last { self.pending.len() } else { self.pending.len() / 4 * 4 };
        self.plain.clear();
        let input = self.pending.get(..whole).unwrap_or_default();
        self.valid &= LENIENT.decode_vec(input, &mut self.plain).is_ok();
        self.pending.drain(..whole);
        if !self.valid {
            return;
        }
        self.bytes += self.plain.len() as u64;
        if self.magic.len() < MAGIC {
            let missing = (MAGIC - self.magic.len()).min(self.plain.len());
            self.magic.extend_from_slice(self.plain.get(..missing).unwrap_or_default());
        }
        if let Some(temporary) = &mut self.temporary
            && temporary.file.write_all(&self.plain).is_err()
        {
            self.temporary = None;
        }
    }

    /// `None` when it was not base64.
    pub(super) fn finish(mut self) -> Option<Decoded> {
        self.decode(true);
        self.valid.then_some(Decoded { temporary: self.temporary, bytes: self.bytes, magic: self.magic })
    }
}

/// The extension of a file: from its first bytes, else from what the upstream calls it, else `bin`.
pub(super) fn extension(magic: &[u8], mime: Option<&str>) -> &'static str {
    if let Some(kind) = infer::get(magic) {
        return kind.extension();
    }
    if magic.trim_ascii_start().starts_with(b"<svg") {
        return "svg";
    }
    let mime = mime.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    match mime {
        "image/svg+xml" => "svg",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/csv" => "csv",
        "text/markdown" => "md",
        "application/json" => "json",
        "application/xml" | "text/xml" => "xml",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/bmp" => "bmp",
        "image/tiff" => "tiff",
        "image/avif" => "avif",
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "audio/aac" => "aac",
        "audio/mp4" => "m4a",
        "audio/webm" | "video/webm" => "webm",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_decodes_in_any_pieces_and_spellings() {
        let bytes: Vec<u8> = (0..200_000u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path().to_path_buf());
        for (text, piece) in [
            (base64::engine::general_purpose::STANDARD.encode(&bytes), 1000),
            (base64::engine::general_purpose::STANDARD_NO_PAD.encode(&bytes), 70_001),
            (base64::engine::general_purpose::URL_SAFE.encode(&bytes), 7),
        ] {
            let mut decoder = Decoder::new(Some(&directory));
            for piece in text.as_bytes().chunks(piece) {
                decoder.run(piece);
                decoder.escape(10);
            }
            let decoded = decoder.finish().unwrap();
            assert_eq!(decoded.bytes, 200_000);
            assert_eq!(std::fs::read(decoded.temporary.as_ref().unwrap().path()).unwrap(), bytes);
        }
        for bad in ["no base64!", "AAAA=AAAA", "A"] {
            let mut decoder = Decoder::new(None);
            decoder.run(bad.as_bytes());
            assert!(decoder.finish().is_none(), "{bad}");
        }
    }

    #[test]
    fn the_real_type_decides_the_extension() {
        assert_eq!(extension(b"\x89PNG\r\n\x1a\n....", Some("image/jpeg")), "png");
        assert_eq!(extension(b"hello", Some("text/plain; charset=utf-8")), "txt");
        assert_eq!(extension(b"hello", Some("../../x")), "bin");
        assert_eq!(extension(b"", None), "bin");
    }
}
