//! Owns one page of a saved result: as much as fits, and how to go on. Knows budgets in characters, not messages.

use crate::GuardError;
use crate::preview::grouped;
use crate::saved::{Found, SavedEntry, Span, Store};

use super::outputs::Outputs;

/// Kept for the words around the page.
const WORDS: usize = 200;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Want {
    Lines(Span),
    Bytes(Span),
    Search {
        pattern: String,
        context: usize,
        from: u64,
    },
    /// The filter has run: every page is cut from its outputs.
    Query {
        filter: String,
        outputs: Outputs,
    },
}

impl Want {
    pub(super) fn lines(text: &str) -> Result<Self, GuardError> {
        Span::of_lines(text).map(Self::Lines)
    }

    pub(super) fn bytes(text: &str) -> Result<Self, GuardError> {
        text.parse().map(Self::Bytes)
    }
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) text: String,
}

/// Text that stops growing when it is full.
#[derive(Debug)]
struct Filling {
    text: String,
    room: usize,
}

impl Filling {
    /// Adds the whole text or nothing.
    fn add(&mut self, text: &str) -> bool {
        let chars = text.chars().count();
        if chars > self.room {
            return false;
        }
        self.room -= chars;
        self.text.push_str(text);
        true
    }

    /// Adds what fits.
    fn fill(&mut self, text: &str) {
        let piece: String = text.chars().take(self.room).collect();
        self.add(&piece);
    }
}

/// The page with about `budget` characters.
pub(super) fn page(
    store: &Store,
    entry: &SavedEntry,
    want: &Want,
    budget: usize,
) -> Result<Page, GuardError> {
    let filling = Filling { text: String::new(), room: budget.saturating_sub(WORDS) };
    let text = match want {
        Want::Lines(span) => lines(store, entry, *span, filling)?,
        Want::Bytes(span) => bytes(store, entry, *span, &filling)?,
        Want::Search { pattern, context, from } => search(store, entry, pattern, (*context, *from), filling)?,
        Want::Query { filter, outputs } => query(filter, outputs, filling),
    };
    Ok(Page { text })
}

fn lines(store: &Store, entry: &SavedEntry, span: Span, mut filling: Filling) -> Result<String, GuardError> {
    let total = store.readable_lines(entry);
    let (mut next, mut long) = (None, None);
    let mut last = 0;
    store
        .each_line(entry, &mut |piece| {
            last = piece.number;
            if span.last.is_some_and(|last| piece.number > last) {
                return Ok(false);
            }
            if piece.number < span.first {
                return Ok(true);
            }
            let text = String::from_utf8_lossy(piece.bytes);
            let fits = filling.add(&if piece.ends { format!("{text}\n") } else { text.to_string() });
            if !fits && (filling.text.is_empty() || piece.column > 0) {
                // One line alone is more than a page.
                filling.fill(&text);
                long = Some(piece.number);
                next = Some(piece.number + 1);
            } else if !fits {
                next = Some(piece.number);
            }
            Ok(fits)
        })
        .map_err(|error| GuardError::io("read", &store.readable(entry), error))?;
    let mut text = filling.text;
    if text.is_empty() && last < span.first {
        return Ok(format!("There are only {} lines.", grouped(last)));
    }
    if let Some(long) = long {
        text.push_str(
            &format_args!("\n[line {long} is longer than a page: read it with bytes or search]").to_string(),
        );
    }
    if let Some(next) = next {
        let end =
            span.last.or(total).filter(|end| *end >= next).map(|end| end.to_string()).unwrap_or_default();
        let all = total.map(|total| format!(" of {} lines", grouped(total))).unwrap_or_default();
        text.push_str(&format_args!("[page full{all}: go on with \"lines\":\"{next}-{end}\"]").to_string());
    }
    Ok(text)
}

fn bytes(store: &Store, entry: &SavedEntry, span: Span, filling: &Filling) -> Result<String, GuardError> {
    let (read, all) = store.bytes(entry, span, filling.room as u64)?;
    if read.is_empty() {
        return Ok(format!("There are only {} bytes.", grouped(all)));
    }
    // A character that is cut at the end belongs to the next page.
    let cut = match std::str::from_utf8(&read) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => read.len(),
    };
    let mut text = String::from_utf8_lossy(read.get(..cut).unwrap_or_default()).into_owned();
    let next = span.first + cut as u64;
    let end = span.last.map_or(all, |last| last + 1).min(all);
    if next < end {
        text.push_str(
            &format_args!(
                "\n[page full, {} bytes in all: go on with \"bytes\":\"{next}-{}\"]",
                grouped(all),
                end - 1
            )
            .to_string(),
        );
    }
    Ok(text)
}

fn search(
    store: &Store,
    entry: &SavedEntry,
    pattern: &str,
    (context, from): (usize, u64),
    mut filling: Filling,
) -> Result<String, GuardError> {
    let mut next = None;
    let mut finds = 0u64;
    store.search(entry, pattern, context, from, &mut |found| {
        let (line, number) = match &found {
            Found::Gap => ("--\n".to_owned(), None),
            Found::Line { number, text, matched } => {
                finds += u64::from(*matched);
                (format!("{number}{}{text}\n", if *matched { ':' } else { '-' }), Some(*number))
            }
        };
        let fits = filling.add(&line);
        if !fits {
            next = Some(number.unwrap_or(from));
        }
        fits
    })?;
    let mut text = filling.text;
    match next {
        Some(next) => text.push_str(&format_args!("[page full: go on with \"from\":{next}]").to_string()),
        None if finds == 0 => text.push_str("Nothing found."),
        None => {}
    }
    Ok(text)
}

fn query(filter: &str, outputs: &Outputs, mut filling: Filling) -> String {
    let (mut shown, mut full) = (0, false);
    for output in &outputs.lines {
        let whole = !outputs.cut || shown + 1 < outputs.lines.len();
        full = !whole || !filling.add(&format!("{output}\n"));
        if full {
            if shown == 0 {
                filling.fill(output);
            }
            break;
        }
        shown += 1;
    }
    let mut text = filling.text;
    if full && shown == 0 {
        text.push_str("\n[the first output is longer than a page: narrow the filter, for example with .[0:10], keys or length]");
    } else if full {
        text.push_str(&format_args!(
            "[page full after {shown} outputs: narrow the filter, or go on with first skipping them: [{filter}][{shown}:][]]"
        ).to_string());
    } else if text.is_empty() {
        text.push_str("The filter gave nothing.");
    }
    text
}
