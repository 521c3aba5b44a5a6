//! Owns patterns with `*` and `?`, of texts and of paths, and whether they fit. Pure. Matched as they stand, in one pass
//! over the text: a program of the regex crate for each of an agent's rules takes longer to make than all else that an
//! agent needs to begin.

/// A pattern of the rules, which fits a text as a whole or not at all.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    parts: Box<[Part]>,
    any_case: bool,
}

/// What may stand at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// This character.
    One(char),
    /// Any character.
    Any,
    /// Any character of a name.
    AnyInName,
    /// Any text.
    Text,
    /// Any text within a name.
    TextInName,
    /// Any folders with the `/` behind each, or none.
    Folders,
    /// A `/` and any text, or nothing; [`Part::Text`] follows.
    Below,
}

impl Pattern {
    /// `*` is any text, `?` any character; a backslash takes what follows as it is.
    pub(super) fn of_text(pattern: &str) -> Self {
        let mut parts = Vec::with_capacity(pattern.len());
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            parts.push(match character {
                '*' => Part::Text,
                '?' => Part::Any,
                '\\' => Part::One(characters.next().unwrap_or('\\')),
                other => Part::One(other),
            });
        }
        Self { parts: parts.into(), any_case: false }
    }

    /// `*` and `?` stay within a name, `**` does not.
    pub(super) fn of_path(pattern: &str, any_case: bool) -> Self {
        let mut parts = Vec::with_capacity(pattern.len());
        let mut rest = pattern;
        let mut at_start = true;
        while let Some(character) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("**/").filter(|_| at_start) {
                parts.push(Part::Folders);
                rest = after;
                continue;
            }
            if rest == "/**" {
                // The folder itself as well.
                parts.extend([Part::Below, Part::Text]);
                break;
            }
            if let Some(after) = rest.strip_prefix("**") {
                parts.push(Part::Text);
                (rest, at_start) = (after, false);
                continue;
            }
            parts.push(match character {
                '*' => Part::TextInName,
                '?' => Part::AnyInName,
                other => Part::One(other),
            });
            at_start = character == '/';
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
        Self { parts: parts.into(), any_case }
    }

    /// Whether it is `*`, which says nothing about the text.
    pub(super) fn fits_all(&self) -> bool {
        matches!(*self.parts, [Part::Text])
    }

    /// Whether the pattern fits the text, in a time of the product of their lengths at most.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let mut now = Places::new(self.parts.len());
        let mut next = now.clone();
        self.enter(&mut now, 0);
        for character in text.chars() {
            next.clear();
            for place in now.all() {
                self.step(&mut next, place, character);
            }
            if next.is_empty() {
                return false;
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.has(self.parts.len())
    }

    /// Goes to a place, and on over all that may be nothing.
    fn enter(&self, places: &mut Places, mut place: usize) {
        loop {
            places.add(place);
            place += match self.parts.get(place) {
                Some(Part::Text | Part::TextInName | Part::Folders) => 1,
                Some(Part::Below) => 2,
                _ => return,
            };
        }
    }

    /// Where a character leads from a place.
    fn step(&self, places: &mut Places, place: usize, character: char) {
        match self.parts.get(place) {
            Some(Part::One(wanted)) if self.same(*wanted, character) => self.enter(places, place + 1),
            Some(Part::Any) => self.enter(places, place + 1),
            Some(Part::AnyInName) if character != '/' => self.enter(places, place + 1),
            Some(Part::Text) => self.enter(places, place),
            Some(Part::TextInName) if character != '/' => self.enter(places, place),
            Some(Part::Folders) => {
                // Within a folder's name nothing else may begin.
                places.add(place);
                if character == '/' {
                    self.enter(places, place + 1);
                }
            }
            Some(Part::Below) if character == '/' => self.enter(places, place + 1),
            _ => {}
        }
    }

    fn same(&self, one: char, other: char) -> bool {
        one == other
            || self.any_case
                && (one.to_lowercase().eq(other.to_lowercase())
                    || one.to_uppercase().eq(other.to_uppercase()))
    }
}

/// The places of a pattern that a text has come to, each once.
#[derive(Debug, Clone)]
struct Places {
    there: Vec<bool>,
    list: Vec<usize>,
}

impl Places {
    fn new(length: usize) -> Self {
        Self { there: vec![false; length + 1], list: Vec::with_capacity(length.min(16)) }
    }

    fn add(&mut self, place: usize) {
        if let Some(there) = self.there.get_mut(place).filter(|there| !**there) {
            *there = true;
            self.list.push(place);
        }
    }

    fn has(&self, place: usize) -> bool {
        self.there.get(place).is_some_and(|there| *there)
    }

    fn all(&self) -> impl Iterator<Item = usize> + '_ {
        self.list.iter().copied()
    }

    fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn clear(&mut self) {
        for place in self.list.drain(..) {
            if let Some(there) = self.there.get_mut(place) {
                *there = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fit_patterns_by_names() {
        for (pattern, path, fits) in [
            ("src/**/*.ts", "src/a.ts", true),
            ("src/**/*.ts", "src/b/c/a.ts", true),
            ("src/**/*.ts", "xsrc/a.ts", false),
            ("**/.env*", ".env", true),
            ("**/.env*", "a/b/.env.local", true),
            ("**/.env*", "a/b.env", false),
            ("**/.env*", "a/x/b.env", false),
            ("**/a", "xa", false),
            ("**/a", "x/xa", false),
            ("**/**/a", "a", true),
            ("**/**/a", "x/y/z/a", true),
            (".env*", "a/.env", false),
            ("src/**", "src", true),
            ("src/**", "src/a/b", true),
            ("src/**", "src/", true),
            ("src/**", "srcs", false),
            ("a?c", "abc", true),
            ("a?c", "a\u{e9}c", true),
            ("a?c", "a/c", false),
            ("a?c", "ac", false),
            ("*", "a/b", false),
            ("*", "", true),
            ("**", "a/b", true),
            ("**x/", "a/bx/", true),
            ("a**/c", "ab/x/c", true),
            ("a**/c", "ac", false),
            ("a.c", "abc", false),
            ("", "", true),
            ("", "a", false),
            ("/", "/", true),
        ] {
            assert_eq!(Pattern::of_path(pattern, false).is_match(path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn case_counts_where_the_files_make_a_difference() {
        for (pattern, path) in
            [("SRC/*", "src/A"), ("\u{c9}t\u{e9}", "\u{e9}T\u{c9}"), ("K", "\u{212a}"), ("s", "\u{17f}")]
        {
            assert!(Pattern::of_path(pattern, true).is_match(path), "{pattern} {path}");
            assert!(!Pattern::of_path(pattern, false).is_match(path), "{pattern} {path}");
        }
    }

    #[test]
    fn texts_fit_with_their_line_ends_and_slashes() {
        for (pattern, text, fits) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "a/\n\u{1f600}c", true),
            ("a*c", "acd", false),
            ("*a*a*", "baab", true),
            ("*a*a*", "bab", false),
            ("a?", "a\n", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a\\", "a\\", true),
            ("", "x", false),
        ] {
            assert_eq!(Pattern::of_text(pattern).is_match(text), fits, "{pattern} {text:?}");
        }
    }

    #[test]
    fn a_pattern_that_could_go_many_ways_ends_soon() {
        let pattern = Pattern::of_text(&format!("{}b", "*a".repeat(1000)));
        assert!(!pattern.is_match(&"a".repeat(4000)));
        let pattern = Pattern::of_path(&format!("{}x", "**/".repeat(200)), false);
        assert!(!pattern.is_match(&"a/".repeat(2000)));
    }
}
