//! Owns what a client sees of a text that is too large for it: beginning and end, or the structure of JSON. Pure.

mod elide;
mod outline;

use unicode_segmentation::UnicodeSegmentation;

pub(crate) use elide::elide;
pub(crate) use outline::Outline;

use crate::views::Ends;

/// Between the two pieces.
pub(crate) const GAP: &str = "\n\n[... cut here: the middle is left out ...]\n\n";

/// What is shown.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) text: String,
    /// Characters of the upstream's text in it; the gap does not count.
    pub(crate) chars: usize,
    /// It is not the whole.
    pub(crate) cut: bool,
}

/// Beginning and end (3:1) of a text, `budget` characters together, cut between grapheme clusters; long runs of
/// base64 are named instead of shown.
pub(crate) fn head_and_tail(ends: &Ends, budget: usize) -> Shown {
    let complete = (ends.head.len() + ends.tail.len()) as u64 == ends.bytes;
    if complete {
        let whole = [ends.head.as_slice(), ends.tail.as_slice()].concat();
        let whole = String::from_utf8_lossy(&whole);
        let elided = elide(&whole, false);
        let chars = elided.chars().count();
        if chars <= budget {
            return Shown { cut: elided.len() < whole.len(), text: elided, chars };
        }
        return pieces(&elided, &elided, budget);
    }
    let head = elide(&String::from_utf8_lossy(&ends.head), true);
    let skip = ends.tail.iter().take(3).take_while(|byte| *byte & 0xC0 == 0x80).count();
    let tail = elide(&String::from_utf8_lossy(ends.tail.get(skip..).unwrap_or_default()), false);
    pieces(&head, &tail, budget)
}

fn pieces(head: &str, tail: &str, budget: usize) -> Shown {
    let for_tail = budget / 4;
    let head = first_chars(head, budget - for_tail);
    let tail = last_chars(tail, for_tail);
    let chars = head.chars().count() + tail.chars().count();
    let text = match (head, tail) {
        ("", "") => String::new(),
        (head, "") => format!("{head}{}", GAP.trim_end()),
        (head, tail) => format!("{head}{GAP}{tail}"),
    };
    Shown { text, chars, cut: true }
}

/// As many whole grapheme clusters from the beginning as have at most `budget` characters.
pub(crate) fn first_chars(text: &str, budget: usize) -> &str {
    let border = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    if border(budget) == text.len() {
        return text;
    }
    let window = text.get(..border(budget + 64)).unwrap_or(text);
    let (mut end, mut used) = (0, 0);
    for (at, cluster) in window.grapheme_indices(true) {
        used += cluster.chars().count();
        if used > budget {
            break;
        }
        end = at + cluster.len();
    }
    // One cluster that is larger than everything is cut like any other text.
    text.get(..if end == 0 { border(budget) } else { end }).unwrap_or_default()
}

/// As many whole grapheme clusters from the end as have at most `budget` characters.
pub(crate) fn last_chars(text: &str, budget: usize) -> &str {
    let border = |chars: usize| match chars.checked_sub(1) {
        None => text.len(),
        Some(chars) => text.char_indices().rev().nth(chars).map_or(0, |(at, _)| at),
    };
    if border(budget) == 0 {
        return text;
    }
    let from = border(budget + 64);
    let window = text.get(from..).unwrap_or(text);
    let (mut start, mut used) = (text.len(), 0);
    for (at, cluster) in window.grapheme_indices(true).rev() {
        used += cluster.chars().count();
        if used > budget {
            break;
        }
        start = from + at;
    }
    text.get(if start == text.len() { border(budget) } else { start }..).unwrap_or_default()
}

/// `1234567` -> `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &str, keep: usize) -> Ends {
        if text.len() <= 2 * keep {
            return Ends { head: text.into(), bytes: text.len() as u64, ..Ends::default() };
        }
        Ends {
            head: text.as_bytes()[..keep].to_vec(),
            tail: text.as_bytes()[text.len() - keep..].to_vec(),
            bytes: text.len() as u64,
            ..Ends::default()
        }
    }

    #[test]
    fn short_text_is_shown_whole() {
        let shown = head_and_tail(&ends("all of it\n", 100), 40);
        assert_eq!(shown, Shown { text: "all of it\n".into(), chars: 10, cut: false });
    }

    #[test]
    fn the_beginning_gets_three_quarters_and_the_end_one() {
        let text = format!("HEAD {} TAIL", "word ".repeat(1000));
        for keep in [500, 4000] {
            let shown = head_and_tail(&ends(&text, keep), 400);
            let (head, tail) = shown.text.split_once(GAP).unwrap();
            assert_eq!((head.chars().count(), tail.chars().count()), (300, 100));
            assert!(head.starts_with("HEAD ") && tail.ends_with(" TAIL") && shown.cut && shown.chars == 400);
        }
    }

    #[test]
    fn cuts_fall_between_grapheme_clusters() {
        let family = "👨‍👩‍👧‍👦"; // seven scalar values
        assert_eq!(first_chars(&family.repeat(3), 10), family);
        assert_eq!(last_chars(&family.repeat(3), 13), family);
        assert_eq!(first_chars("e\u{301}e\u{301}", 3), "e\u{301}");
        assert_eq!(last_chars("ae\u{301}", 1), "\u{301}");
        let zalgo = format!("a{}", "\u{301}".repeat(10_000));
        assert_eq!(first_chars(&zalgo, 100).chars().count(), 100);
        assert_eq!(first_chars("abc", 0), "");
        assert_eq!(last_chars("abc", 0), "");
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
