//! Owns the way from a file to text: what is no regular file, too large, or not UTF-8 is refused by name.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::problem::{Position, Problem};

use super::{MAX_BYTES, Places};

/// Reads a file of at most [`MAX_BYTES`]; more than that is never held. The problem names the file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Problem> {
    read_capped(path).map_err(|problem| problem.file(path))
}

fn read_capped(path: &Path) -> Result<Vec<u8>, Problem> {
    // Asked before it is opened: opening a pipe waits for its other end.
    let kind = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "is a directory" } else { "is no regular file" };
        return Err(Problem::error(format!("cannot be read: it {what}")));
    }
    if kind.len() > MAX_BYTES {
        return Err(too_large(kind.len()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    let length = bytes.len() as u64;
    if length > MAX_BYTES { Err(too_large(length)) } else { Ok(bytes) }
}

fn unreadable(error: &io::Error) -> Problem {
    let problem = Problem::error(format!("cannot be read: {error}"));
    match error.kind() {
        io::ErrorKind::PermissionDenied => problem.hint("give yourself the right to read it"),
        _ if is_circle(error) => {
            problem.hint("its links lead in a circle: put a file in the place of one of them")
        }
        _ => problem,
    }
}

/// Whether links lead in a circle: ELOOP.
pub(crate) fn is_circle(error: &io::Error) -> bool {
    error.raw_os_error() == Some(if cfg!(target_os = "macos") { 62 } else { 40 }) && cfg!(unix)
}

fn too_large(length: u64) -> Problem {
    Problem::error(format!(
        "is too large for a configuration file: {length} bytes, where {MAX_BYTES} is the most that is read"
    ))
}

/// The text behind a byte order mark.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, Problem> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    let start = Position { line: 1, column: 1, offset: 0 };
    let wide = match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [0, first, ..] | [first, 0, ..] if *first != 0 => Some("UTF-16"),
        _ => None,
    };
    if let Some(wide) = wide {
        let problem = Problem::error(format!("is written in {wide}")).at(start);
        return Err(problem.hint("save it as UTF-8"));
    }
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(body).map_err(|error| {
        let (good, _) = body.split_at(error.valid_up_to());
        let good = std::str::from_utf8(good).unwrap_or_default();
        let at = Places::new(good, bytes.len() - body.len()).at(good.len());
        Problem::error("is not UTF-8 from here on").at(at).hint("save it as UTF-8")
    })
}
