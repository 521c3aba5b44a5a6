//! Owns what is said of tools that were started and never completed.

use super::card::{Activity, Card, CardBlock, Details, neutral_args};

/// How the agent's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// Well; with or without a text for the user.
    Succeeded {
        /// There was one.
        text: bool,
    },
    /// With an error.
    Failed,
    /// Somebody gave it up.
    Aborted,
    /// Its events were taken to their end without a result, when the run was let go.
    Drained,
}

/// What becomes of an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notice {
    /// For the diagnostics alone: a call that a policy denied looks exactly like this.
    Debug,
    /// A trace, whatever is possible.
    Trace,
    /// A card where one is possible.
    Card,
}

impl RunEnd {
    pub(super) fn notice(self) -> Notice {
        match self {
            Self::Succeeded { text: true } => Notice::Debug,
            Self::Aborted => Notice::Trace,
            Self::Succeeded { text: false } | Self::Failed | Self::Drained => Notice::Card,
        }
    }

    /// Why a tool did not complete, in a text of a fixed length.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Succeeded { .. } => "the agent reported no completion",
            Self::Failed => "the agent's run failed",
            Self::Aborted => "the run was aborted",
            Self::Drained => "the run was let go",
        }
    }
}

/// A neutral card: neither arguments nor results of the call are in it.
pub(super) fn card(tool: &str, title: String, source: String, end: RunEnd) -> Card {
    let text = format!("{title} did not complete: {}", end.reason());
    let activity = Activity {
        source_tool_name: source,
        title: title.clone(),
        expanded_text: text.clone(),
        ..Activity::default()
    };
    Card {
        tool: tool.to_owned(),
        summary: String::new(),
        args: neutral_args(&title, ""),
        title,
        content: vec![CardBlock::Text { text }],
        details: Some(Details::Activity(activity)),
        is_error: true,
    }
}
