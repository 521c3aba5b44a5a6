//! Owns what the administrator allows: servers by name, command or URL. It binds every source, inline ones too. Pure.

use std::path::PathBuf;

/// What the administrator allows. The default allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The file it stands in.
    pub file: Option<PathBuf>,
    /// `None`: all. First the allowed ones...
    pub allow: Option<Vec<Rule>>,
    /// ...then without these.
    pub deny: Vec<Rule>,
    /// Why nothing at all may start: the file could not be understood, or says so.
    pub closed: Option<String>,
}

/// One rule: all that it names must fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rule {
    /// A glob for the name.
    pub name: Option<String>,
    /// A glob for the command line: program and arguments, one space between them.
    pub command: Option<String>,
    /// A glob for the URL; host and path are matched apart.
    pub url: Option<String>,
    /// The line it stands in.
    pub line: u32,
}
