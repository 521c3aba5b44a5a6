//! Owns what no text for people may show. Knows not where texts go.

use toolway_secret::{Redactor, Secret};

/// How much of stderr is shown in a reason.
const LAST_WORDS: usize = 300;

/// Replaces secrets in texts: the configured ones, and what looks like one.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    /// Known to every redactor as long as they are held here.
    _known: Vec<Secret>,
}

impl Masks {
    pub(super) fn new(secrets: &[Secret]) -> Self {
        Self { _known: secrets.iter().cloned().map(Secret::made_known).collect() }
    }

    pub(super) fn mask(&self, text: &str) -> String {
        let Self { .. } = self;
        Redactor::known().redact(text).into_owned()
    }
}

/// The end of a stderr for the end of a sentence: its last lines, on one line.
pub(super) fn last_words(stderr: &str) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    let mut length = 0;
    for line in stderr.lines().rev().map(str::trim).filter(|line| !line.is_empty()) {
        length += line.chars().count() + 3;
        if length > LAST_WORDS && !words.is_empty() {
            break;
        }
        words.push(line);
    }
    words.reverse();
    let text = words.join(" | ");
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let surplus = text.chars().count().saturating_sub(LAST_WORDS);
    let shown: String = text.chars().skip(surplus).collect();
    let shown = if surplus > 0 { format!("\u{2026}{shown}") } else { shown };
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_values_and_known_shapes_are_masked() {
        let masks = Masks::new(&[Secret::new("hunter2"), Secret::new("hunter2-long"), Secret::new("x")]);
        let text = masks.mask("x hunter2-long hunter2 ghp_abcdefghijklmnopqrstuvwxyz0123456789 end");
        assert_eq!(text, "x [redacted] [redacted] [redacted] end");
    }

    #[test]
    fn the_last_lines_make_one() {
        assert_eq!(last_words("\n \n"), None);
        assert_eq!(last_words("one\n\ntwo\n").as_deref(), Some("one | two"));
        let many: Vec<String> = (0..200).map(|n| format!("line {n}\n")).collect();
        let words = last_words(&many.concat()).unwrap();
        assert!(words.ends_with("| line 198 | line 199") && words.chars().count() <= LAST_WORDS, "{words}");
        let long = last_words(&"y".repeat(9000)).unwrap();
        assert_eq!(long.chars().count(), LAST_WORDS + 1);
    }
}
