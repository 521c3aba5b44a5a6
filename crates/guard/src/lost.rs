//! Owns what can still be said of the end of a message whose middle is lost. Pure.

use toolway_wire::lex::{Lexer, Run, Sink};
use toolway_wire::text::TextDecoder;

/// The text that the last string of the message ends with, if the piece `tail` begins within that string. A piece
/// that begins elsewhere gives nothing.
pub(crate) fn text_of_tail(tail: &[u8]) -> Vec<u8> {
    struct Text(Vec<u8>, TextDecoder, bool);
    impl Sink for Text {
        fn run(&mut self, run: Run<'_>) {
            if !self.2 {
                self.1.run(run.bytes, &mut self.0);
            }
        }
        fn escape(&mut self, unit: u16, _raw: &[u8]) {
            if !self.2 {
                self.1.escape(unit, &mut self.0);
            }
        }
        fn string_end(&mut self, _end: u64) {
            self.2 = true;
        }
    }
    // The piece may begin within an escape: at most five bytes of it are left.
    for skip in 0..6 {
        let Some(piece) = tail.get(skip..) else { break };
        let mut text = Text(Vec::new(), TextDecoder::default(), false);
        let mut lexer = Lexer::new();
        // Read as the one string of an array of strings, so that what follows it is read too.
        let begun = lexer.feed(b"\"", &mut text).is_ok();
        let closed = lexer.feed(piece, &mut text);
        let after =
            closed.err().and_then(|error| piece.get(usize::try_from(error.offset).ok()?.checked_sub(1)?));
        if begun && text.2 && matches!(after, Some(b',' | b'}' | b']')) {
            return text.0;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_cut_string_is_text() {
        let text = |tail: &str| String::from_utf8(text_of_tail(tail.as_bytes())).unwrap();
        assert_eq!(
            text(
                r#"and so\non "it" \u00e9nds"}],"isError":false}}"#.replace("\"it\"", "\\\"it\\\"").as_str()
            ),
            "and so\non \"it\" énds"
        );
        assert_eq!(text(r#"0e9nds" }],"x":1}}"#), "0e9nds");
        assert_eq!(text(r#"1},{"a":2}]}}"#), "");
        assert_eq!(text(""), "");
    }
}
