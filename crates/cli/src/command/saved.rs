//! `toolway saved`: lists, shows, searches, queries and removes saved results.

mod list;
mod show;

use std::io::{self, ErrorKind, Write};

use toolway_guard::{Found, GuardError, SavedEntry, Store, StoreConfig};

use crate::args::{PurgeArgs, SavedArgs, SavedCommand, SearchArgs};
use crate::compose::{Environment, UsageError, output_dir, saved_command};
use crate::exit::{Exit, complain};
use crate::render::{self, Output};
use crate::units;

pub(super) use show::lines;

/// Runs the subcommand.
pub(super) fn run(args: SavedArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    let given = own.option(args.output_dir, "output-dir", Some("OUTPUT_DIR"))?;
    let shelf = Shelf::new(&own, output_dir(given, &own)?);
    let done = match args.command {
        SavedCommand::List { json } => list::list(&shelf, json),
        SavedCommand::Show(args) => show::show(&shelf, &args),
        SavedCommand::Search(args) => search(&shelf, &args),
        SavedCommand::Query { id, filter } => query(&shelf, &id, &filter),
        SavedCommand::Purge(args) => purge(&shelf, args)?,
    };
    Ok(done.unwrap_or_else(|failure| failure.exit(&shelf)))
}

/// The saved results of a directory, and how a person names them.
#[derive(Debug)]
struct Shelf {
    store: Store,
    directory: std::path::PathBuf,
    /// `toolway saved`, with `--output-dir` where it is needed.
    command: String,
}

impl Shelf {
    fn new(own: &Environment, directory: std::path::PathBuf) -> Self {
        let command = saved_command(&directory, own);
        Self { store: Store::new(StoreConfig::new(directory.clone())), directory, command }
    }

    fn find(&self, id: &str) -> Result<SavedEntry, Failure> {
        self.store.find(id, None).map_err(Failure::Guard)
    }
}

/// Why a subcommand came to no good end.
#[derive(Debug)]
pub(super) enum Failure {
    Guard(GuardError),
    /// Stdout.
    Output(io::Error),
    /// The range lies behind the end.
    Beyond(String),
}

impl From<GuardError> for Failure {
    fn from(error: GuardError) -> Self {
        Self::Guard(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Guard(error) => error.to_string(),
            Failure::Output(error) => error.to_string(),
            Failure::Beyond(reason) => reason,
        }
    }
}

impl Failure {
    /// Says what is wrong and what to do. Whoever reads our output may close it: that is no failure.
    fn exit(self, shelf: &Shelf) -> Exit {
        match self {
            Self::Output(error) | Self::Guard(GuardError::Io { source: error, .. })
                if error.kind() == ErrorKind::BrokenPipe =>
            {
                Exit::Done
            }
            Self::Output(error) => told(&error, None, Exit::Ended),
            Self::Beyond(reason) => told(&reason, None, Exit::Ended),
            Self::Guard(error) => {
                let list = format!("{} list shows all ids", shelf.command);
                match &error {
                    GuardError::NotFound(_) => told(&error, Some(&list), Exit::Ended),
                    GuardError::Ambiguous { .. } => told(&error, Some(&list), Exit::Usage),
                    GuardError::Pattern(_) => {
                        told(&error, Some("quote it, and escape . * + ? ( ) [ ] { } | with \\"), Exit::Usage)
                    }
                    GuardError::Range(_) | GuardError::Query(_) => told(&error, None, Exit::Usage),
                    _ => told(&error, None, Exit::Ended),
                }
            }
        }
    }
}

fn told(error: &dyn std::fmt::Display, hint: Option<&str>, exit: Exit) -> Exit {
    complain(error, hint);
    exit
}

/// Lines with finds as `123:text`, lines around them as `123-text`, gaps as `--`.
fn search(shelf: &Shelf, args: &SearchArgs) -> Result<Exit, Failure> {
    let entry = shelf.find(&args.id)?;
    let mut out = Output::new();
    let (mut found, mut written) = (false, Ok(()));
    shelf.store.search(&entry, &args.regex, args.context, 1, &mut |piece| {
        written = match piece {
            Found::Line { number, text, matched } => {
                found |= matched;
                writeln!(out, "{number}{}{text}", if matched { ':' } else { '-' })
            }
            Found::Gap => writeln!(out, "--"),
        };
        written.is_ok()
    })?;
    written?;
    out.flush()?;
    Ok(if found { Exit::Done } else { Exit::Ended })
}

fn query(shelf: &Shelf, id: &str, filter: &str) -> Result<Exit, Failure> {
    let entry = shelf.find(id)?;
    let written = std::sync::Mutex::new(Ok(()));
    shelf.store.query(&entry, filter, &mut |output| {
        // The filter runs on a thread of its own, so stdout is locked for each line.
        let mut out = Output::new();
        let done = writeln!(out, "{output}").and_then(|()| out.flush());
        let go_on = done.is_ok();
        if let Ok(mut written) = written.lock() {
            *written = done;
        }
        go_on
    })?;
    written.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
    Ok(Exit::Done)
}

fn purge(shelf: &Shelf, args: PurgeArgs) -> Result<Result<Exit, Failure>, UsageError> {
    let older_than = match args.older_than {
        Some(text) => Some(
            units::duration(&text)
                .map_err(|reason| UsageError::new("--older-than", format!("{text:?} {reason}")))?,
        ),
        None => None,
    };
    Ok(removed(shelf, older_than))
}

fn removed(shelf: &Shelf, older_than: Option<std::time::Duration>) -> Result<Exit, Failure> {
    let purged = shelf.store.purge(older_than)?;
    let left = shelf.store.list()?.len();
    let mut out = Output::new();
    writeln!(
        out,
        "removed {} ({}) from {}; {left} left",
        results(purged.count),
        render::size(purged.bytes),
        shelf.directory.display()
    )?;
    out.flush()?;
    Ok(Exit::Done)
}

fn results(count: usize) -> String {
    if count == 1 { "1 saved result".to_owned() } else { format!("{count} saved results") }
}
