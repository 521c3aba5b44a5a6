//! Owns the `.pretty.json` view: JSON with a line for each member, for readers that take lines. Streams.

use std::io::{self, Write};

use toolway_wire::lex::{Container, Run, Sink};

use crate::directory::Temporary;

/// JSON larger than this gets no such view, in bytes.
pub(crate) const PRETTY_MAX: u64 = 256 << 20;
/// Containers deeper than this stay on one line, so that depth cannot multiply the size.
const DEPTH: usize = 12;
const BUFFER: usize = 128 << 10;

/// Writes JSON as it is read, with line breaks and two spaces a level.
#[derive(Debug)]
pub(crate) struct Pretty {
    temporary: Temporary,
    buffer: Vec<u8>,
    depth: usize,
    fresh: bool,
    key: bool,
    written: u64,
    budget: u64,
    breaks: u64,
    failed: Option<io::Error>,
}

impl Pretty {
    /// `source_len`: bytes of the JSON; the view may have eight times as many.
    pub(crate) fn new(temporary: Temporary, source_len: u64) -> Self {
        Self {
            temporary,
            buffer: Vec::with_capacity(BUFFER + 4096),
            depth: 0,
            fresh: false,
            key: false,
            written: 0,
            budget: source_len.saturating_mul(8).saturating_add(64 << 10),
            breaks: 0,
            failed: None,
        }
    }

    /// The file and its lines; the caller must know that the JSON was valid.
    pub(crate) fn finish(mut self) -> io::Result<(Temporary, u64)> {
        self.push(b"\n");
        self.flush();
        match self.failed {
            None => Ok((self.temporary, self.breaks + 1)),
            Some(error) => Err(error),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.written += self.buffer.len() as u64;
        if self.failed.is_none() {
            self.failed = if self.written > self.budget {
                Some(io::Error::other("too large"))
            } else {
                self.temporary.file.write_all(&self.buffer).err()
            };
        }
        self.buffer.clear();
    }

    fn line(&mut self) {
        if self.depth <= DEPTH {
            self.breaks += 1;
            self.buffer.push(b'\n');
            self.buffer.resize(self.buffer.len() + 2 * self.depth, b' ');
        }
    }

    /// Before a value or a key.
    fn before(&mut self) {
        if std::mem::replace(&mut self.fresh, false) {
            self.line();
        }
    }
}

impl Sink for Pretty {
    fn open(&mut self, container: Container, _at: u64) {
        self.before();
        self.push(if container == Container::Object { b"{" } else { b"[" });
        self.depth += 1;
        self.fresh = true;
    }

    fn close(&mut self, container: Container, _end: u64) {
        let empty = std::mem::replace(&mut self.fresh, false);
        self.depth = self.depth.saturating_sub(1);
        // A container at the deepest level that has lines ends on a line of its own.
        if !empty && self.depth < DEPTH {
            self.line();
        }
        self.push(if container == Container::Object { b"}" } else { b"]" });
    }

    fn comma(&mut self) {
        self.push(if self.depth <= DEPTH { b"," } else { b", " });
        self.line();
    }

    fn string_begin(&mut self, key: bool, _at: u64) {
        self.before();
        self.key = key;
        self.push(b"\"");
    }

    fn run(&mut self, run: Run<'_>) {
        self.push(run.bytes);
    }

    fn escape(&mut self, _unit: u16, raw: &[u8]) {
        self.push(raw);
    }

    fn string_end(&mut self, _end: u64) {
        self.push(if self.key { b"\": " } else { b"\"" });
        self.key = false;
    }

    fn atom(&mut self, bytes: &[u8], _at: u64) {
        self.before();
        self.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use toolway_wire::lex::Lexer;

    fn pretty(json: &str) -> io::Result<(String, u64)> {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path().to_path_buf());
        let mut pretty = Pretty::new(directory.temporary().unwrap(), json.len() as u64);
        let mut lexer = Lexer::new();
        for piece in json.as_bytes().chunks(3) {
            lexer.feed(piece, &mut pretty).unwrap();
        }
        lexer.finish(&mut pretty).unwrap();
        let (temporary, lines) = pretty.finish()?;
        Ok((std::fs::read_to_string(temporary.path()).unwrap(), lines))
    }

    #[test]
    fn members_get_lines_and_values_keep_their_spelling() {
        let (text, lines) =
            pretty(r#"{"a":[1.0,{"b":"x\ny\u00e9"},[]],"c":{},"d":9007199254740993}"#).unwrap();
        expect_test::expect![[r#"
            {
              "a": [
                1.0,
                {
                  "b": "x\ny\u00e9"
                },
                []
              ],
              "c": {},
              "d": 9007199254740993
            }
        "#]]
        .assert_eq(&text);
        assert_eq!(lines, text.lines().count() as u64);
    }

    #[test]
    fn depth_does_not_multiply_the_size() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let (text, _) = pretty(&deep).unwrap();
        assert!(text.len() < 201_000, "{}", text.len());
        let value: String = text.split_whitespace().collect();
        assert_eq!(value, deep);
    }
}
