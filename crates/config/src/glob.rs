//! Owns simple patterns: `*` is any text, `?` any character. Pure.

/// Whether the whole text fits the pattern.
pub(crate) fn fits(pattern: &str, text: &str, any_case: bool) -> bool {
    let folded = |text: &str| -> Vec<char> {
        if any_case { text.to_lowercase().chars().collect() } else { text.chars().collect() }
    };
    let (pattern, text) = (folded(pattern), folded(text));
    let (mut p, mut t) = (0, 0);
    // Where the last `*` stands, and up to where it has taken the text.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(letter) if *letter == '?' || text.get(t) == Some(letter) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(p).all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text) in
            [("*", ""), ("a*c", "abbc"), ("a?c", "abc"), ("*b*", "abc"), ("**", "x"), ("a*b*c", "aXbYbZc")]
        {
            assert!(fits(pattern, text, false), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("?", ""), ("a*c", "abd"), ("A", "a")] {
            assert!(!fits(pattern, text, false), "{pattern} {text}");
        }
        assert!(fits("A*", "abc", true));
    }
}
