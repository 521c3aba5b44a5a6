//! Owns the meaning of what the user typed: arguments over `TOOLWAY_*` over older variables over defaults, checked,
//! as plain configurations. The only place that reads the environment.

pub(crate) mod agent;
pub(crate) mod bridge;
mod common;
mod expand;
mod given;
mod oauth;
mod places;
mod profile;
pub(crate) mod serve;
pub(crate) mod servers;
mod value;

pub(crate) use common::{common, log_level, output_dir, saved_command, session_name};
pub(crate) use expand::{Expanded, expand};
pub(crate) use given::{address_seen, arguments, header, pair_seen, seen, variable};
pub(crate) use oauth::{client_secret, oauth};
pub(crate) use places::{cache_dir, runtime_dir, state_dir};
pub(crate) use profile::default_profile;
pub(crate) use value::Environment;

use std::fmt;

/// What is wrong with an argument or a variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UsageError {
    /// The flag or variable.
    what: String,
    reason: String,
    hint: Option<String>,
}

impl UsageError {
    pub(crate) fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { what: what.into(), reason: reason.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

impl std::error::Error for UsageError {}
