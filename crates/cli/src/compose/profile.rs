//! Owns the limits of known clients. Each figure's source is in docs/clients.md.

/// What a client takes of one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Profile {
    /// The most characters of a message.
    pub(crate) max_response_chars: u64,
    /// The most characters of a preview.
    pub(crate) preview_chars: u64,
}

/// The names of the profiles and their limits.
pub(crate) const PROFILES: &[(&str, Profile)] = &[
    ("cursor", Profile { max_response_chars: 10_000, preview_chars: 4000 }),
    ("claude-code", Profile { max_response_chars: 40_000, preview_chars: 12_000 }),
    ("codex", Profile { max_response_chars: 10_000, preview_chars: 4000 }),
    ("vscode", Profile { max_response_chars: 20_000, preview_chars: 8000 }),
    ("generic", Profile { max_response_chars: 25_000, preview_chars: 8000 }),
];
