//! Owns what can go wrong when signing in. No text holds a secret: neither tokens nor codes, nor what a server sent in a
//! field where one is expected.

use std::path::{Path, PathBuf};

/// A failure to sign in, to stay signed in, or to sign out. It is cheap to clone: all that wait for one attempt get it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// A person has to sign in; nothing that a program does helps.
    #[error("{reason}")]
    NeedsLogin {
        /// Why, as a fragment.
        reason: String,
        /// Scopes that are asked for beyond those that were granted.
        scopes: Vec<String>,
    },
    /// The authorization server, or the person before it, said no (RFC 6749, 4.1.2.1 and 5.2).
    #[error("{endpoint} refused: {code}{}", described(.description.as_ref()))]
    Refused {
        /// The endpoint that said so.
        endpoint: String,
        /// Its error code, as `invalid_client`.
        code: String,
        /// What it says about that.
        description: Option<String>,
    },
    /// A server could not be asked, or gave an answer that is none. Trying again later may help.
    #[error("{url}: {reason}")]
    Unreachable {
        /// The address, without its query.
        url: String,
        /// Why, as a fragment.
        reason: String,
    },
    /// Metadata that is wrong, or not to be trusted (RFC 8414, 3.3; RFC 9728, 3.3).
    #[error("the metadata at {url} cannot be used: {reason}")]
    Metadata {
        /// Where it was.
        url: String,
        /// Why, as a fragment.
        reason: String,
    },
    /// There is no way to become a client of the authorization server.
    #[error("no client for {issuer}: {reason}")]
    Client {
        /// The authorization server.
        issuer: String,
        /// Why, as a fragment that says what to do.
        reason: String,
    },
    /// The answer of the authorization server does not belong to what was asked (RFC 9207; RFC 6749, 10.12).
    #[error("the answer of the authorization server was not accepted: {reason}")]
    Answer {
        /// Why, as a fragment.
        reason: String,
    },
    /// The redirect of the login cannot be received.
    #[error("the redirect cannot be received: {reason}")]
    Redirect {
        /// Why, as a fragment that says what to do.
        reason: String,
    },
    /// The store of tokens cannot be read or written.
    #[error("{}: {reason}", .path.display())]
    Store {
        /// The file or directory.
        path: PathBuf,
        /// Why, as a fragment.
        reason: String,
    },
    /// A newer version of this program wrote it.
    #[error("{} was written by a newer version ({version}): update this program", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version that it names.
        version: u64,
    },
    /// It was waited long enough for another process, or for a person.
    #[error("{reason}")]
    Late {
        /// For what, and how long.
        reason: String,
    },
    /// A setting makes no sense.
    #[error("{field}: {reason}")]
    Setting {
        /// The setting.
        field: String,
        /// Why, as a fragment.
        reason: String,
    },
}

fn described(description: Option<&String>) -> String {
    description.map(|text| format!(" ({text})")).unwrap_or_default()
}

impl AuthError {
    /// A person has to sign in.
    pub fn needs_login(reason: impl Into<String>) -> Self {
        Self::NeedsLogin { reason: reason.into(), scopes: Vec::new() }
    }

    /// Signing in anew would help.
    pub fn wants_login(&self) -> bool {
        matches!(self, Self::NeedsLogin { .. })
    }

    pub(crate) fn store(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Store { path: path.to_path_buf(), reason: reason.to_string() }
    }

    pub(crate) fn setting(field: &str, reason: impl Into<String>) -> Self {
        Self::Setting { field: field.to_owned(), reason: reason.into() }
    }

    pub(crate) fn answer(reason: impl Into<String>) -> Self {
        Self::Answer { reason: reason.into() }
    }
}

/// What a server says of an error: one short line, without characters that would disturb a terminal, and without the
/// secrets that it may repeat.
pub(crate) fn told(text: &str) -> String {
    const MOST: usize = 200;
    let text = &*toolway_secret::Redactor::known().redact(text);
    let mut out = String::new();
    for (count, c) in text.split_whitespace().flat_map(|word| word.chars().chain([' '])).enumerate() {
        if count == MOST {
            out.push('\u{2026}');
            break;
        }
        out.push(if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c });
    }
    out.trim_end().to_owned()
}

/// Characters that turn the direction of a text, or cannot be seen: with them a text could be made to look like another.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
