//! Owns what a tool answers. It decides nothing about sizes.

use toolway_bridge::RawJson;

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// Pictures for the model.
    pub images: Vec<ToolImage>,
    /// The call failed.
    pub is_error: bool,
    /// What events carry for hosts beside the text: an object of the tool's own shape.
    pub details: Option<RawJson>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolImage {
    /// `image/png`.
    pub mime_type: String,
    /// The bytes in base64.
    pub data: String,
}

impl ToolOutput {
    /// It went well.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// It failed; the text says why, and what to do instead.
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, ..Self::default() }
    }

    /// The call was cancelled.
    pub(crate) fn cancelled() -> Self {
        Self::error("The call was cancelled.")
    }

    /// With details for events.
    #[must_use]
    pub fn with_details(mut self, details: &serde_json::Value) -> Self {
        self.details = Some(RawJson::of(details));
        self
    }
}
