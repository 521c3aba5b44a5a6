//! Owns making changes in a text: where each old text stands, and what is said when it does not or stands too often. Pure.

use crate::tools::text::{is_crlf, to_crlf};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) old: String,
    pub(super) new: String,
    /// Wherever the old text stands.
    pub(super) all: bool,
}

/// The text with all changes, each made on what the ones before left, and the lines where they were made. The error is the
/// end of a sentence, and then none counts.
pub(super) fn apply(text: &str, changes: &[Change]) -> Result<(String, Vec<usize>), String> {
    let crlf = is_crlf(text);
    let mut text = text.to_owned();
    let mut lines = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let which = if changes.len() > 1 {
            format!("change {} of {}: ", index + 1, changes.len())
        } else {
            String::new()
        };
        text = one(&text, change, crlf, &mut lines).map_err(|reason| format!("{which}{reason}"))?;
    }
    Ok((text, lines))
}

fn one(text: &str, change: &Change, crlf: bool, lines: &mut Vec<usize>) -> Result<String, String> {
    if change.old.is_empty() {
        return Err("oldText is empty; to make a file or to fill an empty one use write.".to_owned());
    }
    if change.old == change.new {
        return Err("oldText and newText are the same.".to_owned());
    }
    // Models write LF whatever the file has.
    let (old, new) =
        if crlf || (!text.contains(&change.old) && change.old.contains('\n') && text.contains("\r\n")) {
            (to_crlf(&change.old), to_crlf(&change.new))
        } else {
            (change.old.clone(), change.new.clone())
        };
    let places: Vec<usize> = text.match_indices(&old).map(|(at, _)| at).collect();
    match places.as_slice() {
        [] => Err(missing(text, &change.old)),
        [_, _, ..] if !change.all => {
            let at: Vec<String> = places.iter().take(10).map(|at| line_of(text, *at).to_string()).collect();
            Err(format!(
                "oldText stands in it {} times (lines {}); give more of the text around the one that is meant, or set \
                 replaceAll.",
                places.len(),
                at.join(", ")
            ))
        }
        places => {
            lines.extend(places.iter().map(|at| line_of(text, *at)));
            Ok(text.replace(&old, &new))
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or_default().matches('\n').count() + 1
}

/// Why it is not there, as far as that can be guessed.
fn missing(text: &str, old: &str) -> String {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.lines().map(plain).filter(|line| !line.is_empty()).collect();
    let lines: Vec<(usize, String)> =
        (1..).zip(text.lines().map(plain)).filter(|(_, line)| !line.is_empty()).collect();
    let near = (!wanted.is_empty())
        .then(|| lines.windows(wanted.len()).find(|window| window.iter().map(|(_, line)| line).eq(&wanted)))
        .flatten();
    if let Some((line, _)) = near.and_then(<[_]>::first) {
        return format!(
            "oldText is not in it; something that differs in white space only stands at line {line}."
        );
    }
    let numbered = old.lines().next().is_some_and(|line| {
        line.trim_start().split_once('\t').is_some_and(|(number, _)| number.parse::<u64>().is_ok())
    });
    if numbered {
        return "oldText is not in it: leave out the line numbers that read shows.".to_owned();
    }
    let first = wanted.first().and_then(|first| lines.iter().find(|(_, line)| line == first));
    match first {
        Some((line, _)) => {
            format!(
                "oldText is not in it; its first line stands at line {line}, and what follows is different."
            )
        }
        None => "oldText is not in it; read it again.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(old: &str, new: &str, all: bool) -> Change {
        Change { old: old.to_owned(), new: new.to_owned(), all }
    }

    fn check(text: &str, changes: &[Change], expected: Result<(&str, &[usize]), &str>) {
        let made = apply(text, changes);
        let expected = expected.map(|(text, lines)| (text.to_owned(), lines.to_vec())).map_err(str::to_owned);
        assert_eq!(made, expected);
    }

    #[test]
    fn changes_are_made_in_order_with_their_lines() {
        check("a\nb\nc", &[change("b", "x\ny", false), change("c", "z", false)], Ok(("a\nx\ny\nz", &[2, 4])));
        check("a a\na", &[change("a", "b", true)], Ok(("b b\nb", &[1, 1, 2])));
        check("ab", &[change("ab", "bc", false), change("b", "", false)], Ok(("c", &[1, 1])));
    }

    #[test]
    fn line_ends_of_the_file_stay() {
        check("a\r\nb\r\n", &[change("a\nb", "x\ny", false)], Ok(("x\r\ny\r\n", &[1])));
        check("a\r\nb\r\n", &[change("b", "x\ny", false)], Ok(("a\r\nx\r\ny\r\n", &[2])));
        check("a\r\nb\r\n", &[change("a\r\nb", "c", false)], Ok(("c\r\n", &[1])));
        // Mixed: what is found decides.
        check("a\nb\r\nc\r\n", &[change("a\nb", "x", false)], Ok(("x\r\nc\r\n", &[1])));
        check("a\nb\r\nc\r\n", &[change("b\nc", "x\ny", false)], Ok(("a\nx\r\ny\r\n", &[2])));
    }

    #[test]
    fn what_is_not_there_or_there_too_often_is_said() {
        let table = [
            ("a\na", "a", "b", "oldText stands in it 2 times (lines 1, 2); give more"),
            ("a", "", "b", "oldText is empty"),
            ("a", "a", "a", "the same"),
            ("x\n  foo:\n    bar\n", "foo:\n  bar", "b", "white space only stands at line 2"),
            ("x\nfoo\nbar\n", "foo\nbaz", "b", "its first line stands at line 2"),
            ("x\nfoo\n", "     2\tfoo", "b", "leave out the line numbers"),
        ];
        for (text, old, new, reason) in table {
            let error = apply(text, &[change(old, new, false)]).unwrap_err();

            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn one_bad_change_spoils_all_and_is_named() {
        let error = apply("a b", &[change("a", "x", false), change("nope", "y", false)]).unwrap_err();
        assert!(error.starts_with("change 2 of 2: oldText is not in it"), "{error}");
    }
}
