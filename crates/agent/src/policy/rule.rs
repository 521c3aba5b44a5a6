//! Owns lists of permission rules and their merging.

use toolway_config::Problem;

use super::token::Token;
use crate::error::{AgentError, Fault};

/// A rule and where it stands.
#[derive(Debug, Clone)]
pub struct Rule {
    /// As written: `Shell(git status)`.
    pub text: String,
    /// Where: `options`, or a file and line.
    pub place: String,
    pub(super) token: Token,
}

impl Rule {
    /// Reads a rule.
    pub(super) fn parse(text: &str, place: &str) -> Result<Self, String> {
        let token = Token::parse(text)?;
        Ok(Self { text: text.trim().to_owned(), place: place.to_owned(), token })
    }
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
    /// What else is wrong with files of rules.
    pub warnings: Vec<Problem>,
}

impl PermissionRules {
    /// Reads the rules of a program's options. All that is wrong is said at once.
    pub fn parse(
        allow: impl IntoIterator<Item = impl AsRef<str>>,
        deny: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, AgentError> {
        let mut faults = Vec::new();
        let mut read = |list: &str, index: usize, text: &str| {
            let field = format!("permissions.{list}.{index}");
            let rule = Rule::parse(text, "options");
            rule.map_err(|message| {
                faults.push(Fault { subject: None, field, message: format!("{text:?}: {message}") });
            })
            .ok()
        };
        let allow: Vec<Rule> = allow
            .into_iter()
            .enumerate()
            .filter_map(|(index, text)| read("allow", index, text.as_ref()))
            .collect();
        let deny: Vec<Rule> = deny
            .into_iter()
            .enumerate()
            .filter_map(|(index, text)| read("deny", index, text.as_ref()))
            .collect();
        if faults.is_empty() {
            Ok(Self { allow, deny, ..Self::default() })
        } else {
            Err(AgentError::Configuration(faults))
        }
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let Self { allow, deny, doubts, warnings } = other;
        self.allow.extend(allow);
        self.deny.extend(deny);
        self.doubts.extend(doubts);
        self.warnings.extend(warnings);
        self
    }
}
