//! Owns the shape of one definition as clients see it. Decides nothing.

use bytes::Bytes;

/// A tool, prompt, resource or template as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The server's own name of a tool or prompt, the URI of a resource, the URI template.
    pub own: String,
    /// The same as a JSON string, as the server spelled it: what goes into a request.
    pub own_json: Bytes,
    /// What clients call it by.
    pub exposed: String,
    /// The definition as clients get it, raw JSON on one line.
    pub item: Bytes,
    /// What had to be repaired.
    pub repairs: Vec<String>,
    pub(super) clash: bool,
}
