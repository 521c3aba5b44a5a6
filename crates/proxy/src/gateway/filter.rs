//! Owns which of a server's tools are shown, and under which name and description. Pure.

use super::config::ToolFilter;

/// Why a tool is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hidden {
    /// There is a list of allowed tools, and it fits none of it.
    NotAllowed,
    /// It fits this pattern of the denied ones.
    Denied(String),
}

impl std::fmt::Display for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAllowed => f.write_str("is not among the allowed tools"),
            Self::Denied(pattern) => write!(f, "is denied by {pattern:?}"),
        }
    }
}

impl ToolFilter {
    /// Why a tool is hidden, by the server's own name; `None`: it is shown. A denial wins.
    pub fn hides(&self, own: &str) -> Option<Hidden> {
        if let Some(glob) = self.deny.iter().find(|glob| glob.matches(own)) {
            return Some(Hidden::Denied(glob.to_string()));
        }
        let allowed = self.allow.as_ref().is_none_or(|allow| allow.iter().any(|glob| glob.matches(own)));
        (!allowed).then_some(Hidden::NotAllowed)
    }

    /// The name that a tool has before the server's name is put to it.
    pub fn shown<'a>(&'a self, own: &'a str) -> &'a str {
        self.rename.get(own).map_or(own, String::as_str)
    }

    /// The description that takes the server's place.
    pub fn description(&self, own: &str) -> Option<&str> {
        self.describe.get(own).map(String::as_str)
    }

    /// Names in renames and descriptions, and patterns without a star, that fit none of the server's tools: most
    /// often a slip of the pen.
    pub fn unused(&self, own: &[&str]) -> Vec<String> {
        let named = self.rename.keys().chain(self.describe.keys()).cloned();
        let globs = self.allow.iter().flatten().chain(&self.deny);
        let patterns = globs.filter(|glob| !own.iter().any(|own| glob.matches(own))).map(ToString::to_string);
        let mut unused: Vec<String> = named
            .filter(|name| !own.contains(&name.as_str()))
            .chain(patterns.filter(|pattern| !pattern.contains('*')))
            .collect();
        unused.sort();
        unused.dedup();
        unused
    }
}

#[cfg(test)]
mod tests {
    use toolway_guard::Glob;

    use super::*;

    fn globs(patterns: &[&str]) -> Vec<Glob> {
        patterns.iter().map(|pattern| Glob::new(pattern).unwrap()).collect()
    }

    #[test]
    fn a_tool_is_allowed_first_and_then_denied() {
        let filter = ToolFilter {
            allow: Some(globs(&["read_*", "list"])),
            deny: globs(&["*_secret"]),
            ..ToolFilter::default()
        };
        for (own, hidden) in [
            ("read_file", None),
            ("list", None),
            ("write_file", Some(Hidden::NotAllowed)),
            ("read_secret", Some(Hidden::Denied("*_secret".to_owned()))),
        ] {
            assert_eq!(filter.hides(own), hidden, "{own}");
        }
        assert_eq!(ToolFilter::default().hides("any"), None);
        let none = ToolFilter { allow: Some(Vec::new()), ..ToolFilter::default() };
        assert_eq!(none.hides("any"), Some(Hidden::NotAllowed));
    }

    #[test]
    fn names_that_fit_nothing_are_told() {
        let filter = ToolFilter {
            allow: Some(globs(&["read", "gone", "x*"])),
            rename: [("read".to_owned(), "get".to_owned()), ("raed".to_owned(), "get".to_owned())].into(),
            describe: [("read".to_owned(), "Reads".to_owned())].into(),
            ..ToolFilter::default()
        };
        assert_eq!(filter.shown("read"), "get");
        assert_eq!(filter.shown("list"), "list");
        assert_eq!(filter.description("read"), Some("Reads"));
        assert_eq!(filter.unused(&["read", "list"]), ["gone", "raed"]);
    }
}
