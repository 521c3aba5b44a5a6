//! Owns lists of permission rules and their merging.

use toolway_config::Problem;

use super::token::Token;

/// A rule and where it stands.
#[derive(Debug, Clone)]
pub struct Rule {
    /// As written: `Shell(git status)`.
    pub text: String,
    /// Where: `options`, or a file and line.
    pub place: String,
    pub(super) token: Token,
}

/// What is allowed and what is denied. A denial of any source stands above every permission.
#[derive(Debug, Clone, Default)]
pub struct PermissionRules {
    /// Allowed.
    pub allow: Vec<Rule>,
    /// Denied.
    pub deny: Vec<Rule>,
    /// What could not be understood and may have been a denial: nothing is allowed without asking while there is one.
    pub doubts: Vec<Problem>,
}
