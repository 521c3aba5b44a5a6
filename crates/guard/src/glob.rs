//! Owns the small glob of tool rules: `*` any characters, `?` one, all else itself. Knows nothing of paths.

use crate::GuardError;

/// A pattern that a whole tool name must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    pattern: Vec<char>,
}

impl Glob {
    /// Parses a pattern: `*` stands for any characters (none too), `?` for one, everything else for itself.
    pub fn new(pattern: &str) -> Result<Self, GuardError> {
        if pattern.is_empty() {
            return Err(GuardError::Glob(pattern.to_owned()));
        }
        Ok(Self { pattern: pattern.chars().collect() })
    }

    /// Whether the whole name fits; upper and lower case differ. Takes time linear in name times pattern.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut in_pattern) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while let Some(&ch) = name.get(at) {
            match self.pattern.get(in_pattern) {
                Some('*') => {
                    star = Some((in_pattern, at));
                    in_pattern += 1;
                }
                Some(&wanted) if wanted == '?' || wanted == ch => {
                    at += 1;
                    in_pattern += 1;
                }
                _ => match star {
                    Some((star_at, from)) => {
                        star = Some((star_at, from + 1));
                        at = from + 1;
                        in_pattern = star_at + 1;
                    }
                    None => return false,
                },
            }
        }
        self.pattern.get(in_pattern..).unwrap_or_default().iter().all(|ch| *ch == '*')
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pattern.iter().try_for_each(|ch| write!(f, "{ch}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*", "anything", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("get_*", "get_rows", true),
            ("get_*", "forget_rows", false),
            ("*_log", "build_log", true),
            ("*_log", "build_logs", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("werk?eug", "werkzeug", true),
            ("日*語", "日本語", true),
            ("**", "x", true),
            ("A", "a", false),
        ] {
            assert_eq!(Glob::new(pattern).unwrap().matches(name), fits, "{pattern} against {name}");
        }
        assert!(Glob::new("").is_err());
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let glob = Glob::new(&("*a".repeat(40) + "b")).unwrap();
        assert!(!glob.matches(&"a".repeat(2000)));
    }
}
