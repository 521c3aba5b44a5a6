//! Owns the rewritten message: what it says in the place of one that is too large, and that it is never over the
//! limit itself. Does no I/O but reading small parts of the message.

mod items;
mod notice;
mod render;

use toolway_wire::{Envelope, Scanner, Size, Verdict};

pub(crate) use items::{Item, contents, items, uri_of};

use crate::config::ReadBack;
use crate::policy::{CallInfo, Shape};
use crate::preview::{Outline, Shown, head_and_tail};
use crate::views::Ends;

/// A preview does not get smaller than this before other things give way, in characters.
const LEAST_PREVIEW: usize = 200;

/// Where the message was saved, as the client sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whereabouts {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) uri: String,
    pub(crate) text_path: Option<String>,
    pub(crate) pretty: Option<(String, u64)>,
    pub(crate) sha256: String,
    pub(crate) files: Vec<ShownFile>,
    pub(crate) redacted: bool,
    /// Something beside the message could not be saved.
    pub(crate) reason: Option<String>,
}

/// A file beside the message, as the client sees it.
#[derive(Debug, Clone)]
pub(crate) struct ShownFile {
    pub(crate) path: String,
    pub(crate) kind: &'static str,
    pub(crate) bytes: u64,
    pub(crate) mime: Option<String>,
}

/// What a preview can be made from.
#[derive(Debug, Default)]
pub(crate) struct Material {
    pub(crate) ends: Ends,
    /// Of the text or, without text, of what else there is.
    pub(crate) outline: Option<Outline>,
    /// Of `structuredContent`, beside a text.
    pub(crate) beside: Option<Outline>,
}

impl Material {
    fn show(&self, budget: usize) -> Shown {
        let text = head_and_tail(&self.ends, budget);
        let mut shown = match &self.outline {
            Some(outline) if text.cut || self.ends.bytes == 0 => outline.show(budget),
            _ => text,
        };
        if let Some(beside) = &self.beside
            && budget.saturating_sub(shown.chars) >= LEAST_PREVIEW
        {
            let more = beside.show(budget - shown.chars);
            shown.text.push_str("\n\n----- structuredContent -----\n");
            shown.text.push_str(&more.text);
            shown.chars += more.chars;
            shown.cut |= more.cut;
        }
        shown
    }
}

/// Everything that a rewritten message is made from.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) envelope: &'a Envelope,
    pub(crate) call: Option<&'a CallInfo>,
    pub(crate) shape: Shape,
    pub(crate) limit: u64,
    pub(crate) media_limit: u64,
    pub(crate) preview_chars: usize,
    pub(crate) read_back: ReadBack,
    pub(crate) saved_command: &'a str,
    /// Where it is, or why it is nowhere.
    pub(crate) saved: Result<Whereabouts, String>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) material: Material,
    /// The other blocks of the upstream, in their order.
    pub(crate) items: Vec<Item>,
    /// URI of the first content, for `resources/read`.
    pub(crate) first_uri: Option<String>,
    /// Raw JSON of parts that are kept.
    pub(crate) parts: Parts,
    pub(crate) had_structured_content: bool,
}

/// Parts of the upstream's message that go on byte for byte.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// An object.
    pub(crate) meta: Option<Vec<u8>>,
    /// `name:value` of members of the result.
    pub(crate) members: Vec<Vec<u8>>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) code: Option<Vec<u8>>,
    /// `error.data` when it is small.
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) level: Option<Vec<u8>>,
    pub(crate) logger: Option<Vec<u8>>,
}

/// What goes into a rewritten message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// Characters of the preview.
    preview: usize,
    /// How many of the items.
    items: usize,
    /// The upstream's `_meta`, or the data of its error.
    upstream: bool,
    detail: Detail,
}

/// How much is told about the saved message. The later ones are for limits that are small beside their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Full,
    Short,
    Least,
    /// No path in the text.
    NoPathInText,
    /// No path at all; the id finds it.
    NoPath,
}

const DETAILS: [Detail; 5] =
    [Detail::Full, Detail::Short, Detail::Least, Detail::NoPathInText, Detail::NoPath];

/// The rewritten message, without a line ending.
pub(crate) fn reshape(facts: &Facts<'_>) -> Vec<u8> {
    let mut best = Vec::new();
    let start = DETAILS.iter().position(|detail| {
        let bare = Plan { preview: 0, items: 0, upstream: false, detail: *detail };
        best = render::render(facts, bare);
        measure(&best).counted(facts.media_limit) <= facts.limit * 6 / 10
    });
    let first = start.unwrap_or(DETAILS.len() - 1);
    for detail in DETAILS.get(first..).unwrap_or_default() {
        if let Some(message) = fit(facts, *detail) {
            return message;
        }
    }
    // An id and a path that fill the limit alone: what is left is as small as it can be.
    best
}

/// What gives way, in this order: the preview, the other blocks, the upstream's `_meta`.
fn fit(facts: &Facts<'_>, detail: Detail) -> Option<Vec<u8>> {
    let all = Plan { preview: facts.preview_chars, items: facts.items.len(), upstream: true, detail };
    let least = LEAST_PREVIEW.min(all.preview);
    let fitting =
        |plan: Plan| Some(render::render(facts, plan)).filter(|message| fits(facts, message, false));
    // Bytes under the limit too, if that does not cost half of the preview.
    largest(all.preview / 2, all.preview, |preview| {
        Some(render::render(facts, Plan { preview, ..all })).filter(|message| fits(facts, message, true))
    })
    .or_else(|| largest(least, all.preview, |preview| fitting(Plan { preview, ..all })))
    .or_else(|| largest(0, all.items, |items| fitting(Plan { items, preview: least, ..all })))
    .or_else(|| largest(least, all.preview, |preview| fitting(Plan { preview, upstream: false, ..all })))
    .or_else(|| {
        largest(0, all.items, |items| fitting(Plan { items, preview: least, upstream: false, ..all }))
    })
    .or_else(|| largest(0, least, |preview| fitting(Plan { preview, items: 0, upstream: false, detail })))
}

/// As much of the reason for not saving as there is room for.
fn short_reason(reason: &str, detail: Detail) -> String {
    let most = match detail {
        Detail::Full => 600,
        Detail::Short | Detail::Least => 120,
        Detail::NoPathInText | Detail::NoPath => 40,
    };
    let plain: String = reason.chars().filter(|ch| !ch.is_control()).collect();
    if plain.chars().count() <= most { plain } else { crate::preview::last_chars(&plain, most).to_owned() }
}

/// What `make` gives for the largest number in the range for which it gives anything, found by halving.
fn largest<T>(low: usize, high: usize, mut make: impl FnMut(usize) -> Option<T>) -> Option<T> {
    if let Some(found) = make(high) {
        return Some(found);
    }
    let mut best = make(low)?;
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match make(middle) {
            Some(found) => {
                best = found;
                low = middle;
            }
            None => high = middle,
        }
    }
    Some(best)
}

fn fits(facts: &Facts<'_>, message: &[u8], in_bytes: bool) -> bool {
    let size = measure(message);
    let media = size.chars - size.counted(facts.media_limit);
    size.counted(facts.media_limit) <= facts.limit
        && (!in_bytes || message.len() as u64 - media <= facts.limit)
}

/// The size as the policy measures it.
fn measure(message: &[u8]) -> Size {
    let mut scanner = Scanner::new();
    scanner.feed(message);
    match scanner.finish() {
        Verdict::Message(envelope) => envelope.size(),
        // Cannot be: what is rendered is a message. Counted as too large to be safe.
        _ => Size { chars: u64::MAX, media_chars: 0, media_bytes: 0 },
    }
}

#[cfg(test)]
mod tests;
