//! `toolway saved show`.

use std::fs::File;
use std::io::{self, Write};

use toolway_guard::{GuardError, SavedEntry, Span, Store};

use super::{Failure, Shelf};
use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::render::{self, Output};

/// Bytes of a range are written in pieces of this size.
const PIECE: u64 = 1 << 20;

pub(super) fn show(shelf: &Shelf, args: &ShowArgs) -> Result<Exit, Failure> {
    let entry = shelf.find(&args.id)?;
    let mut out = Output::new();
    if args.raw {
        let path = shelf.store.path(&entry.file);
        let failed = |source| GuardError::Io { action: "read", path: path.clone(), source };
        let mut file = File::open(&path).map_err(failed)?;
        io::copy(&mut file, &mut out)?;
    } else if let Some(range) = &args.bytes {
        bytes(&shelf.store, &entry, range.parse()?, &mut out)?;
    } else {
        lines(&shelf.store, &entry, args.lines.as_deref().unwrap_or("1-"), &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Lines of the readable view.
pub(in crate::command) fn lines(
    store: &Store,
    entry: &SavedEntry,
    range: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let span: Span = range.parse()?;
    if span.first == 0 {
        return Err(GuardError::Range(range.to_owned()).into());
    }
    let written = store.lines(entry, span, out)?;
    if written == 0 && span.first > 1 {
        let mut all = io::sink();
        let count = store.lines(entry, Span { first: 1, last: None }, &mut all)?;
        return Err(Failure::Beyond(format!(
            "the result {} has {} lines: there is no line {}",
            entry.id,
            render::grouped(count),
            render::grouped(span.first)
        )));
    }
    Ok(())
}

/// Bytes of the exact text.
fn bytes(store: &Store, entry: &SavedEntry, span: Span, out: &mut dyn Write) -> Result<(), Failure> {
    let mut first = span.first;
    loop {
        let (piece, all) = store.bytes(entry, Span { first, last: span.last }, PIECE)?;
        if piece.is_empty() {
            return if first == span.first && first > 0 {
                Err(Failure::Beyond(format!(
                    "the text of {} has {} bytes: there is no byte {}",
                    entry.id,
                    render::grouped(all),
                    render::grouped(first)
                )))
            } else {
                Ok(())
            };
        }
        out.write_all(&piece)?;
        first += piece.len() as u64;
    }
}
