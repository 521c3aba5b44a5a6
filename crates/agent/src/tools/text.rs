//! Owns what a file's bytes are as text: its encoding, its mark, its line ends, or that it is none.

/// The mark at the beginning of some UTF-8 files.
pub(crate) const MARK: &str = "\u{feff}";

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// Text in UTF-8, without its mark.
    Text {
        /// The text.
        text: String,
        /// It began with a mark.
        mark: bool,
    },
    /// Text in another encoding, for reading only; or UTF-8 with bytes that are none.
    Foreign {
        /// The text.
        text: String,
        /// Which encoding.
        encoding: &'static str,
    },
    /// A picture that models can see: its type.
    Image(&'static str),
    /// No text: what it is.
    Binary(&'static str),
}

/// Looks at the bytes, and not at the name.
pub(crate) fn content(bytes: Vec<u8>) -> Content {
    if let Some(mime_type) = image(&bytes) {
        return Content::Image(mime_type);
    }
    if bytes.starts_with(b"%PDF-") {
        return Content::Binary("a PDF document");
    }
    if let Some(text) = utf16(&bytes) {
        return Content::Foreign { text, encoding: "UTF-16" };
    }
    if bytes.iter().take(8192).any(|byte| *byte == 0) {
        return Content::Binary("no text");
    }
    match String::from_utf8(bytes) {
        Ok(text) => match text.strip_prefix(MARK) {
            Some(rest) => Content::Text { text: rest.to_owned(), mark: true },
            None => Content::Text { text, mark: false },
        },
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            Content::Foreign { text, encoding: "not UTF-8" }
        }
    }
}

fn image(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn utf16(bytes: &[u8]) -> Option<String> {
    let (rest, little) = match bytes {
        [0xff, 0xfe, rest @ ..] => (rest, true),
        [0xfe, 0xff, rest @ ..] => (rest, false),
        _ => return None,
    };
    let read = |pair: &[u8; 2]| if little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) };
    let units: Vec<u16> = rest.as_chunks::<2>().0.iter().map(read).collect();
    Some(String::from_utf16_lossy(&units))
}

/// Every line ends with CR and LF, and there is one.
pub(crate) fn is_crlf(text: &str) -> bool {
    let ends = text.bytes().filter(|byte| *byte == b'\n').count();
    ends > 0 && text.matches("\r\n").count() == ends
}

/// Every line ends with CR and LF from now on.
pub(crate) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// A number of things: `1 line`, `2 lines`.
pub(super) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_known_for_what_they_are() {
        let text = |text: &str, mark| Content::Text { text: text.to_owned(), mark };
        let table: [(&[u8], Content); 8] = [
            (b"", text("", false)),
            ("\u{feff}a\r\n".as_bytes(), text("a\r\n", true)),
            (b"a\0b", Content::Binary("no text")),
            (b"%PDF-1.7 x", Content::Binary("a PDF document")),
            (b"\xff\xfea\0\n\0", Content::Foreign { text: "a\n".to_owned(), encoding: "UTF-16" }),
            (b"\xfe\xff\0a", Content::Foreign { text: "a".to_owned(), encoding: "UTF-16" }),
            (b"caf\xe9", Content::Foreign { text: "caf\u{fffd}".to_owned(), encoding: "not UTF-8" }),
            (b"\x89PNG\r\n\x1a\n...", Content::Image("image/png")),
        ];
        for (bytes, expected) in table {
            assert_eq!(content(bytes.to_vec()), expected, "{bytes:?}");
        }
        assert_eq!(content(b"RIFF1234WEBPVP8 ".to_vec()), Content::Image("image/webp"));
    }

    #[test]
    fn line_ends_are_told_apart() {
        assert!(is_crlf("a\r\nb\r\n") && is_crlf("a\r\nb"));
        assert!(!is_crlf("a\r\nb\n") && !is_crlf("a\nb") && !is_crlf("a"));
        assert_eq!(to_crlf("a\nb\r\nc"), "a\r\nb\r\nc");
    }
}
