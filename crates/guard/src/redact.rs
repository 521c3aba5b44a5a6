//! Owns a message with its secrets replaced: the strings of a JSON text, redacted as they stream by.

use std::io::{self, Write};

use toolway_secret::{RedactingWriter, Redactor};
use toolway_wire::lex::{Container, Lexer, Run, Sink};
use toolway_wire::text::TextDecoder;

use crate::source::Source;

/// A longer string is redacted as a stream.
const WHOLE: usize = 64 << 10;

/// Writes the message to `out`, compact, with the secrets in its strings and names replaced. A long string that is
/// nothing but base64 is left as it is.
pub(crate) fn redacted(source: Source<'_>, redactor: &Redactor, out: &mut dyn Write) -> io::Result<()> {
    let mut sink = Redacting {
        redactor,
        out: io::BufWriter::with_capacity(128 << 10, out),
        text: Vec::new(),
        long: None,
        decoder: TextDecoder::default(),
        in_key: false,
        failed: Ok(()),
    };
    let mut lexer = Lexer::new();
    source.each(|chunk| {
        lexer.feed(chunk, &mut sink).map_err(io::Error::other)?;
        std::mem::replace(&mut sink.failed, Ok(())).map(|()| true)
    })?;
    sink.out.flush()
}

#[derive(Debug)]
enum Long<'r> {
    /// Base64, so far: passed on as it is.
    Plain,
    Redacted(RedactingWriter<'r, Vec<u8>>),
}

struct Redacting<'r, 'o> {
    redactor: &'r Redactor,
    out: io::BufWriter<&'o mut dyn Write>,
    text: Vec<u8>,
    long: Option<Long<'r>>,
    decoder: TextDecoder,
    in_key: bool,
    failed: io::Result<()>,
}

impl Redacting<'_, '_> {
    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_ok() {
            self.failed = self.out.write_all(bytes);
        }
    }

    fn drain(&mut self) {
        if self.text.len() < WHOLE {
            return;
        }
        let text = std::mem::take(&mut self.text);
        let long = self.long.take().unwrap_or_else(|| {
            let base64 = text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(byte));
            if base64 { Long::Plain } else { Long::Redacted(self.redactor.writer(Vec::new())) }
        });
        self.long = Some(self.pass(long, &text));
        self.text = text;
        self.text.clear();
    }

    fn pass<'r>(&mut self, long: Long<'r>, text: &[u8]) -> Long<'r> {
        match long {
            Long::Plain => {
                self.write(&escaped(text));
                Long::Plain
            }
            Long::Redacted(mut writer) => {
                if let Err(error) = writer.write_all(text) {
                    self.failed = Err(error);
                }
                let ready = std::mem::take(writer.get_mut());
                self.write(&escaped(&ready));
                Long::Redacted(writer)
            }
        }
    }
}

impl Sink for Redacting<'_, '_> {
    fn open(&mut self, container: Container, _at: u64) {
        self.write(if container == Container::Object { b"{" } else { b"[" });
    }

    fn close(&mut self, container: Container, _end: u64) {
        self.write(if container == Container::Object { b"}" } else { b"]" });
    }

    fn comma(&mut self) {
        self.write(b",");
    }

    fn string_begin(&mut self, key: bool, _at: u64) {
        self.in_key = key;
        self.write(b"\"");
    }

    fn run(&mut self, run: Run<'_>) {
        self.decoder.run(run.bytes, &mut self.text);
        self.drain();
    }

    fn escape(&mut self, unit: u16, _raw: &[u8]) {
        self.decoder.escape(unit, &mut self.text);
        self.drain();
    }

    fn string_end(&mut self, _end: u64) {
        self.decoder.end(&mut self.text);
        let mut text = std::mem::take(&mut self.text);
        match self.long.take() {
            None => {
                let lossy = String::from_utf8_lossy(&text);
                let redacted = escaped(self.redactor.redact(&lossy).as_bytes());
                self.write(&redacted);
            }
            Some(long) => {
                if let Long::Redacted(writer) = self.pass(long, &text) {
                    match writer.finish() {
                        Ok(ready) => self.write(&escaped(&ready)),
                        Err(error) => self.failed = Err(error),
                    }
                }
            }
        }
        text.clear();
        self.text = text;
        self.write(if self.in_key { b"\":" } else { b"\"" });
    }

    fn atom(&mut self, bytes: &[u8], _at: u64) {
        self.write(bytes);
    }
}

/// Text as it stands within a JSON string; bytes from 0x80 on as they are.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(message: &str) -> String {
        let mut out = Vec::new();
        redacted(Source::memory(message.as_bytes()), Redactor::known(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn secrets_in_strings_go_and_the_json_stays() {
        let message = r#"{ "id" : 1.0, "te\nxt": "a \"b\" Bearer abcdef123456\nnext", "x":[true,"\u00e9"] }"#;
        assert_eq!(
            redact(message),
            r#"{"id":1.0,"te\nxt":"a \"b\" Bearer [redacted]\nnext","x":[true,"é"]}"#
        );
    }

    #[test]
    fn long_strings_are_redacted_wherever_the_secret_is_and_base64_stays() {
        let secret = format!("ghp_{}", "q".repeat(36));
        let text = format!("{} {secret} {}", "word ".repeat(30_000), "\\\"more\\\" ".repeat(20_000));
        let message = format!(r#"{{"a":"{text}","b":"{}"}}"#, "QUJD".repeat(50_000));
        assert_eq!(redact(&message), message.replace(&secret, "[redacted]"));
    }
}
