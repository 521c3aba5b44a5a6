//! Owns the outputs of a query, taken once and cut to any page later, and the process of its own that a relay's
//! query runs in: a filter may need any time and any memory. Does not know how that process bounds itself.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use memchr::memchr;

use crate::GuardError;
use crate::config::QueryProcess;
use crate::saved::{SavedEntry, Store};

/// The hidden subcommand that [`answer_query`] is for; its arguments are SECONDS -- DIR SESSION ID FILTER.
pub const QUERY_COMMAND: &str = "__query";
/// What is taken of a query's outputs, in bytes, however large a page may be.
const MOST: usize = 64 << 20;

// How lines of that process begin. A process that stops without the last two was stopped by its bounds.
const OUTPUT: u8 = b'=';
const ERROR: u8 = b'!';
const DONE: u8 = b'.';

/// The first outputs of a filter, each compact JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outputs {
    pub(super) lines: Vec<String>,
    /// There were more: the last one is the beginning of an output, maybe nothing of it.
    pub(super) cut: bool,
}

impl Outputs {
    /// Outputs that fill a page of this many characters, and something more where there is more.
    pub(super) fn take(
        store: &Store,
        entry: &SavedEntry,
        filter: &str,
        page: usize,
        process: Option<&QueryProcess>,
    ) -> Result<Self, GuardError> {
        // A character has up to four bytes, the one for the line break with what the process adds to each line.
        let most = page.saturating_mul(4).saturating_add(64).min(MOST);
        match process {
            Some(process) => apart(process, store.directory.path(), entry, filter, most),
            None => Self::here(store, entry, filter, most),
        }
    }

    fn here(store: &Store, entry: &SavedEntry, filter: &str, most: usize) -> Result<Self, GuardError> {
        let (mut outputs, mut left) = (Self::default(), most);
        store.query(entry, filter, &mut |output| {
            outputs.cut = output.len() >= left;
            let piece = output.as_bytes().get(..left).unwrap_or(output.as_bytes());
            outputs.lines.push(String::from_utf8_lossy(piece).into_owned());
            left = left.saturating_sub(output.len() + 1);
            !outputs.cut
        })?;
        Ok(outputs)
    }

    /// Reads what the process wrote; `None`: it was stopped.
    fn parse(mut written: &[u8], full: bool) -> Option<Result<Self, GuardError>> {
        let mut outputs = Self::default();
        loop {
            match written.split_first() {
                Some((&OUTPUT, rest)) => {
                    let end = memchr(b'\n', rest);
                    let (line, next) = rest.split_at(end.unwrap_or(rest.len()));
                    outputs.lines.push(String::from_utf8_lossy(line).into_owned());
                    outputs.cut = end.is_none();
                    written = next.get(1..).unwrap_or_default();
                }
                Some((&ERROR, words)) => {
                    return Some(Err(GuardError::QueryProcess(String::from_utf8_lossy(words).into_owned())));
                }
                Some((&DONE, _)) => return Some(Ok(outputs)),
                _ if !full => return None,
                _ => {
                    if !outputs.cut {
                        outputs.lines.push(String::new());
                        outputs.cut = true;
                    }
                    return Some(Ok(outputs));
                }
            }
        }
    }
}

/// Runs the filter in a process of its own; at most `most` bytes are read, and it is ended when its time is over.
fn apart(
    process: &QueryProcess,
    dir: &Path,
    entry: &SavedEntry,
    filter: &str,
    most: usize,
) -> Result<Outputs, GuardError> {
    let failed = |error: io::Error| GuardError::Query(format!("cannot start it: {error}"));
    let seconds = process.time.as_secs() + u64::from(process.time.subsec_nanos() > 0);
    let mut child = Command::new(&process.program)
        .args([QUERY_COMMAND, &seconds.to_string(), "--"])
        .arg(dir)
        .args([&entry.session, &entry.id, filter])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (sender, receiver) = mpsc::sync_channel(1);
    let reader = child.stdout.take().map(|stdout| {
        thread::Builder::new().name("query".to_owned()).spawn(move || {
            let mut written = Vec::new();
            let read = stdout.take(most as u64).read_to_end(&mut written);
            sender.send(read.map(|_| written)).ok();
        })
    });
    let written = receiver.recv_timeout(process.time);
    // Whether it is done, full or late, nothing more is wanted; its end ends the thread too.
    child.kill().ok();
    child.wait().ok();
    if let Some(Err(error)) = reader {
        return Err(failed(error));
    }
    let stopped = || GuardError::QueryBounds(process.time);
    let written = written.map_err(|_| stopped())?.map_err(failed)?;
    Outputs::parse(&written, written.len() >= most).ok_or_else(stopped)?
}

/// Runs a filter over the session's saved result of this id in a process started for it, and writes what the
/// process that started it reads. Its caller has bounded the time and the memory of this process before.
pub fn answer_query(
    store: &Store,
    session: &str,
    id: &str,
    filter: &str,
    out: &mut (dyn Write + Send),
) -> io::Result<()> {
    let mut written = Ok(());
    let mut line = |output: &str| {
        written = [&[OUTPUT], output.as_bytes(), b"\n"].iter().try_for_each(|piece| out.write_all(piece));
        written.is_ok()
    };
    let done = store.find(id, Some(session)).and_then(|entry| store.query(&entry, filter, &mut line));
    written?;
    match done {
        Ok(()) => out.write_all(&[DONE])?,
        Err(error) => {
            out.write_all(&[ERROR])?;
            out.write_all(error.to_string().as_bytes())?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(written: &str, full: bool) -> Option<Result<(Vec<String>, bool), String>> {
        let outputs = Outputs::parse(written.as_bytes(), full)?;
        Some(outputs.map(|outputs| (outputs.lines, outputs.cut)).map_err(|error| error.to_string()))
    }

    #[test]
    fn what_the_process_wrote_is_whole_cut_wrong_or_stopped() {
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parsed("=1\n=\"=\"\n.", false), Some(Ok((lines(&["1", "\"=\""]), false))));
        assert_eq!(parsed(".", false), Some(Ok((vec![], false))));
        assert_eq!(parsed("=1\n=23", true), Some(Ok((lines(&["1", "23"]), true))));
        assert_eq!(parsed("=1\n", true), Some(Ok((lines(&["1", ""]), true))));
        assert_eq!(parsed("=1\n!no\n.", false), Some(Err("no\n.".to_owned())));
        for stopped in ["", "=1\n", "=1\n=2", "usage"] {
            assert_eq!(parsed(stopped, false), None, "{stopped}");
        }
    }
}
