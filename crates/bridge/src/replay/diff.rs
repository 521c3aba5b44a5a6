//! Owns differences: where an agent's result has one, how one is made of two texts, what is counted in it.

use serde_json::{Map, Value};

use super::lenient;

/// A difference as lines that begin with `+`, `-` or something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diff {
    pub(super) text: String,
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// The difference that a result or the arguments hold; of several the first in a fixed order.
pub(super) fn reported(result: &Map<String, Value>, args: &Map<String, Value>) -> Option<Diff> {
    const SOURCES: [&str; 4] = ["diffString", "diff", "unifiedDiff", "patch"];
    let text = SOURCES
        .iter()
        .find_map(|source| lenient::text(result, &[source]))
        .or_else(|| SOURCES.iter().find_map(|source| lenient::text(args, &[source])))?;
    Some(counted(text.to_owned()))
}

/// The difference between two texts: what they have in common at both ends is left out.
pub(super) fn of_texts(old: &str, new: &str) -> Diff {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    let part = |lines: &[&str], sign: &str| {
        let lines = lines.get(before..lines.len() - after).unwrap_or_default();
        lines.iter().flat_map(|line| [sign, line, "\n"]).collect::<String>()
    };
    counted(part(&old, "-") + &part(&new, "+"))
}

fn counted(text: String) -> Diff {
    let count = |sign: &str, head: &str| {
        text.lines().filter(|line| line.starts_with(sign) && !line.starts_with(head)).count()
    };
    let (added, removed) = (count("+", "+++ "), count("-", "--- "));
    Diff { text, added, removed }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_have_an_order() {
        let all = json!({"patch": "p", "unifiedDiff": "u", "diff": "d", "diffString": "s"});
        let mut map = all.as_object().unwrap().clone();
        for (expected, source) in [("s", "diffString"), ("d", "diff"), ("u", "unifiedDiff"), ("p", "patch")] {
            assert_eq!(reported(&map, &Map::new()).unwrap().text, expected);
            map.remove(source);
        }
        assert!(reported(&map, &Map::new()).is_none());
    }

    #[test]
    fn two_texts_differ_in_the_middle() {
        let diff = of_texts("a\nb\nc", "a\nx\ny\nc");
        assert_eq!(diff, Diff { text: "-b\n+x\n+y\n".to_owned(), added: 2, removed: 1 });
        assert_eq!(of_texts("a\na", "a").removed, 1);
        assert_eq!(counted("--- a\n+++ b\n-x\n+y\n".to_owned()).added, 1);
    }
}
