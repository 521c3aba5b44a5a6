//! Owns what is shown as text in a thinking block, where no card is possible.

use super::card::{Card, CardBlock};
use super::limits::{self, LABEL};
use crate::scrub::Scrubber;

/// What a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceKind {
    /// A completed tool, with what it gave.
    Completed,
    /// A completed tool in one line: the model was not offered its wrapper.
    Inactive,
    /// A tool that takes its time.
    Pending,
    /// Output of a running command.
    Output,
    /// A tool that never completed.
    Incomplete,
}

/// Text for a thinking block; it ends with a line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// What it is.
    pub kind: TraceKind,
    /// Within the limits, without secrets.
    pub text: String,
}

impl Trace {
    pub(super) fn line(kind: TraceKind, text: String) -> Self {
        Self { kind, text: text + "\n" }
    }

    /// `title: summary`.
    pub(super) fn inactive(scrubber: &Scrubber, card: &Card) -> Self {
        Self::line(TraceKind::Inactive, headline(scrubber, card))
    }

    /// The headline, and what the card holds, which was made to fit below one.
    pub(super) fn completed(scrubber: &Scrubber, card: &Card) -> Self {
        let images = card.content.iter().filter(|block| matches!(block, CardBlock::Image { .. })).count();
        let mut text = headline(scrubber, card);
        let body = card.text();
        if !body.is_empty() && body != card.summary {
            text = text + "\n" + &body;
        }
        if images > 0 {
            text = text + "\n[" + &limits::plural(images, "image") + "]";
        }
        Self::line(TraceKind::Completed, text)
    }
}

fn headline(scrubber: &Scrubber, card: &Card) -> String {
    let failed = if card.is_error { " failed" } else { "" };
    let text = match card.summary.as_str() {
        "" => format!("{}{failed}", card.title),
        summary => format!("{}{failed}: {summary}", card.title),
    };
    limits::label(scrubber, &text, LABEL)
}
