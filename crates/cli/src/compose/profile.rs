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
    ("vscode", Profile { max_response_chars: 8000, preview_chars: 3200 }),
    ("generic", Profile { max_response_chars: 25_000, preview_chars: 8000 }),
];

/// The limit and the preview's length of the profile that holds when none is named.
pub(crate) fn default_profile() -> (u64, u64) {
    PROFILES
        .first()
        .map_or((10_000, 4000), |(_, profile)| (profile.max_response_chars, profile.preview_chars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_the_documents_are_those_of_the_profiles() {
        let text = include_str!("../../../../docs/clients.md");
        let told: Vec<(&str, String)> = text
            .lines()
            .filter(|line| line.starts_with("| ["))
            .map(|line| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                (cells[2].split('`').nth(1).unwrap(), cells[3].to_owned())
            })
            .collect();
        let grouped = |number| crate::render::grouped(number);
        let own: Vec<(&str, String)> = PROFILES
            .iter()
            .map(|(name, own)| {
                (*name, format!("{}, {}", grouped(own.max_response_chars), grouped(own.preview_chars)))
            })
            .collect();
        assert_eq!(told, own);
    }
}
