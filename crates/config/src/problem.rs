//! Owns what can be wrong with a configuration, and where. Knows no format and no file system.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// From 0, in bytes of the file as it is on disk.
    pub offset: usize,
}

/// How bad a [`Problem`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something works, and perhaps not as meant.
    Warning,
    /// A server, or a whole file, cannot be used.
    Error,
}

/// One thing that is wrong, told so that a person finds it: where, in which server and field, and what to do.
/// Never holds a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The file; empty for what was not read from one.
    pub file: PathBuf,
    /// The place in it.
    pub at: Option<Position>,
    /// The server's name as configured.
    pub server: Option<String>,
    /// The field inside the server's entry, dotted: `headers.X-Key`, `args.2`.
    pub field: Option<String>,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// Something that makes a server or a file unusable.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            file: PathBuf::new(),
            at: None,
            server: None,
            field: None,
            message: message.into(),
            hint: None,
        }
    }

    /// Something that works, and perhaps not as meant.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// In this file.
    #[must_use]
    pub fn file(mut self, file: impl AsRef<Path>) -> Self {
        file.as_ref().clone_into(&mut self.file);
        self
    }

    /// At this place.
    #[must_use]
    pub fn at(mut self, at: impl Into<Option<Position>>) -> Self {
        self.at = at.into();
        self
    }

    /// In the entry of this server.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// In this field.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether something is unusable because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The place alone: `FILE:LINE:COLUMN`, as much of it as is known.
    pub fn place(&self) -> String {
        let file = self.file.display();
        match self.at {
            Some(at) if self.file.as_os_str().is_empty() => format!("line {}, column {}", at.line, at.column),
            Some(at) => format!("{file}:{}:{}", at.line, at.column),
            None => file.to_string(),
        }
    }

    /// All but place and hint: `server "x": field: message`.
    pub fn text(&self) -> String {
        let server = self.server.as_ref().map(|server| format!("server {server:?}: ")).unwrap_or_default();
        let field = self.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
        format!("{server}{field}{}", self.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.text())?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where_who_what_and_what_to_do() {
        let at = Position { line: 5, column: 13, offset: 80 };
        let problem = Problem::error("neither command nor url")
            .file("/h/.cursor/mcp.json")
            .at(at)
            .server("typo")
            .field("comand")
            .hint("did you mean command?");
        assert_eq!(
            problem.to_string(),
            "/h/.cursor/mcp.json:5:13: server \"typo\": comand: neither command nor url (did you mean command?)"
        );
        assert_eq!(Problem::warning("x").to_string(), "x");
        assert_eq!(Problem::warning("x").at(at).to_string(), "line 5, column 13: x");
    }
}
