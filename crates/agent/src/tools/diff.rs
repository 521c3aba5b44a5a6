//! Owns the difference of two texts as events carry it, bounded in size and time.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Characters of a difference.
const MOST: usize = 20_000;
/// Bytes of a text that is compared line by line.
const MOST_COMPARED: usize = 2 << 20;
/// How long is looked for a small difference.
const TIME: Duration = Duration::from_millis(200);

/// A unified difference (`None`: too large), lines that came and lines that went.
pub(crate) fn diff(old: &str, new: &str, named: &str) -> (Option<String>, usize, usize) {
    if old.len().max(new.len()) > MOST_COMPARED {
        return (None, new.lines().count(), old.lines().count());
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(TIME).diff_lines(old, new);
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
    let text = diff.unified_diff().context_radius(3).header(named, named).to_string();
    ((text.len() <= MOST).then_some(text), added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_came_and_went_are_shown_and_counted() {
        let (text, added, removed) = diff("a\nb\nc\n", "a\nx\ny\nc\n", "f");
        assert_eq!((added, removed), (2, 1));
        assert_eq!(text.unwrap(), "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+x\n+y\n c\n");
        let (text, added, _) = diff("", &"line\n".repeat(10_000), "f");
        assert_eq!((text, added), (None, 10_000));
    }
}
