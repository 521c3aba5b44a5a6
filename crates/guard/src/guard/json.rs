//! Owns the pass over JSON that a message carries: its outline for the preview and its pretty view, in one go.

use toolway_wire::lex::{Container, Lexer, Run, Sink};

use crate::directory::{Directory, Temporary};
use crate::preview::Outline;
use crate::source::Source;
use crate::views::{PRETTY_MAX, Pretty};

/// What came of it.
#[derive(Debug)]
pub(super) struct Json {
    pub(super) outline: Outline,
    /// The view and its lines.
    pub(super) pretty: Option<(Temporary, u64)>,
}

/// `None` when it is not JSON. A pretty view is made where a directory is given and the JSON is not too large.
pub(super) fn read(source: Source<'_>, directory: Option<&Directory>) -> Option<Json> {
    let pretty = directory
        .filter(|_| source.len() <= PRETTY_MAX)
        .and_then(|directory| directory.temporary().ok())
        .map(|temporary| Pretty::new(temporary, source.len()));
    let mut both = Both { outline: Outline::default(), pretty };
    let mut lexer = Lexer::new();
    source.each(|chunk| Ok(lexer.feed(chunk, &mut both).is_ok())).ok()?;
    lexer.finish(&mut both).ok()?;
    let pretty = both.pretty.and_then(|pretty| pretty.finish().ok());
    Some(Json { outline: both.outline, pretty })
}

struct Both {
    outline: Outline,
    pretty: Option<Pretty>,
}

macro_rules! to_both {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $name(&mut self, $($arg: $type),*) {
            self.outline.$name($($arg),*);
            if let Some(pretty) = &mut self.pretty {
                pretty.$name($($arg),*);
            }
        }
    )*};
}

impl Sink for Both {
    to_both! {
        open(container: Container, at: u64);
        close(container: Container, end: u64);
        comma();
        string_begin(key: bool, at: u64);
        run(run: Run<'_>);
        escape(unit: u16, raw: &[u8]);
        string_end(end: u64);
        atom(bytes: &[u8], at: u64);
        atom_end(end: u64);
    }
}
