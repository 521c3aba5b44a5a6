//! Owns what is shown as text in a thinking block, where no card is possible.

use super::card::{Card, CardBlock};
use super::kind::ToolKind;
use super::limits::{self, LABEL, READ_TRACE, TRANSCRIPT};
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

    /// The headline, and what the card holds.
    pub(super) fn completed(scrubber: &Scrubber, kind: ToolKind, card: &Card) -> Self {
        let limit = if kind == ToolKind::Read { READ_TRACE } else { TRANSCRIPT };
        let images = card.content.iter().filter(|block| matches!(block, CardBlock::Image { .. })).count();
        let mut text = card.text();
        if images > 0 {
            text.push_str(&format!("\n[{}]", limits::plural(images, "image")));
        }
        let headline = headline(scrubber, card);
        let body = limits::block(
            scrubber,
            &text,
            limits::Limit { lines: limit.lines - 1, chars: limit.chars - LABEL - 2 },
        );
        let both =
            if body.is_empty() || body == card.summary { headline } else { format!("{headline}\n{body}") };
        Self::line(TraceKind::Completed, both)
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
