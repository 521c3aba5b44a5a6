//! Owns the `file:` URI of a path (RFC 8089), for POSIX and Windows on every platform. Does no I/O.

use std::fmt::Write as _;

/// How a path is written, whatever the machine that this runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStyle {
    /// `/home/a b`
    Posix,
    /// `C:\x`, `\\host\share\x`
    Windows,
}

impl PathStyle {
    /// The style of the machine that this runs on.
    pub const HERE: Self = if cfg!(windows) { Self::Windows } else { Self::Posix };
}

/// The `file:` URI of an absolute path: `/home/a b` -> `file:///home/a%20b`, `C:\x` -> `file:///C:/x`,
/// `\\host\share\x` -> `file://host/share/x`. Verbatim Windows paths (`\\?\C:\x`, `\\?\UNC\host\x`) are
/// written as the plain path that they stand for. Bytes outside the unreserved set of RFC 3986 are escaped.
pub fn file_uri(path: &[u8], style: PathStyle) -> String {
    match style {
        PathStyle::Posix => {
            format!("file://{}{}", if path.starts_with(b"/") { "" } else { "/" }, encode(path))
        }
        PathStyle::Windows => windows(path),
    }
}

fn windows(path: &[u8]) -> String {
    let forward: Vec<u8> = path.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect();
    let plain: Vec<u8> = if let Some(rest) = forward.strip_prefix(b"//?/UNC/") {
        [b"//", rest].concat()
    } else if let Some(rest) = forward.strip_prefix(b"//?/").or_else(|| forward.strip_prefix(b"//./")) {
        rest.to_vec()
    } else {
        forward
    };
    if let Some(host_and_path) = plain.strip_prefix(b"//") {
        return format!("file://{}", encode(host_and_path));
    }
    let (drive, rest) = plain.split_at(plain.len().min(2));
    match drive {
        [letter, b':'] if letter.is_ascii_alphabetic() => {
            format!("file:///{}:{}", char::from(*letter), encode(rest))
        }
        _ => format!("file:///{}", encode(plain.strip_prefix(b"/").unwrap_or(&plain))),
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 8);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            out.push(char::from(*byte));
        } else if write!(out, "%{byte:02X}").is_err() {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_posix_drive_and_share_paths() {
        use PathStyle::{Posix, Windows};
        for (path, style, uri) in [
            ("/home/a b", Posix, "file:///home/a%20b"),
            ("/", Posix, "file:///"),
            ("/tmp/50%#?.json", Posix, "file:///tmp/50%25%23%3F.json"),
            ("/tmp/ä:b\\c", Posix, "file:///tmp/%C3%A4%3Ab%5Cc"),
            ("C:\\x", Windows, "file:///C:/x"),
            ("c:\\Program Files\\ä.txt", Windows, "file:///c:/Program%20Files/%C3%A4.txt"),
            ("D:/mixed\\x", Windows, "file:///D:/mixed/x"),
            ("\\\\host\\share", Windows, "file://host/share"),
            ("\\\\host\\share\\a b.json", Windows, "file://host/share/a%20b.json"),
            ("\\\\?\\C:\\long\\x", Windows, "file:///C:/long/x"),
            ("\\\\?\\UNC\\host\\share\\x", Windows, "file://host/share/x"),
        ] {
            assert_eq!(file_uri(path.as_bytes(), style), uri, "{path}");
        }
        assert_eq!(file_uri(b"/bad\xFF", Posix), "file:///bad%FF");
    }
}
