//! Owns what rules say about one action.

/// What rules say about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may happen.
    Allow,
    /// It may not.
    Deny {
        /// The rule, as written.
        rule: String,
        /// Where it stands.
        place: String,
    },
    /// Nothing says so: somebody is asked.
    Ask {
        /// Why, for people.
        reason: String,
        /// Rules that would allow it. Empty: none can.
        rules: Vec<String>,
    },
}
