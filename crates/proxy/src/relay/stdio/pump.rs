//! Owns the two pumps: chunks are read, cut into lines, judged, and what has gathered is written at once.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use toolway_guard::Body;
use toolway_wire::{LineSplitter, Piece};

use super::ends::{ClientEnd, ServerEnd};
use super::{Event, report};
use crate::relay::core::Relay;
use crate::relay::downlink::Downlink;
use crate::relay::parts::{Line, Part, flush};
use crate::relay::uplink::{Up as Upward, Uplink};

const CHUNK: usize = 64 << 10;
/// A message up to this is written together with others.
const SMALL: usize = 16 << 10;
/// When so much has gathered of a chunk it is written, so that the reader works while the rest is looked at.
const EARLY: usize = 2 << 10;

/// Client to upstream.
pub(super) struct Up {
    pub(super) relay: Arc<Relay>,
    pub(super) server: Arc<ServerEnd>,
    pub(super) client: Arc<ClientEnd>,
    pub(super) events: SyncSender<Event>,
}

impl Up {
    pub(super) fn run(self, mut input: File) {
        let mut link = Uplink::new(Arc::clone(&self.relay));
        let mut lines = LineSplitter::new();
        let mut buffer = vec![0; CHUNK];
        let mut chunk = Chunk::default();
        while let Some(length) = read(&mut input, &mut buffer) {
            let mut mark = self.relay.pending().mark();
            let mut rest = buffer.get(..length).unwrap_or_default();
            while !rest.is_empty() {
                let (line, after) = whole_line(rest, &lines);
                rest = after;
                match line {
                    Cut::Whole(line) => match link.whole(line) {
                        Upward::Forward { body: Body::Memory(bytes), changed: None, .. }
                            if bytes.len() < SMALL =>
                        {
                            chunk.batch.extend_from_slice(bytes);
                            chunk.batch.push(b'\n');
                            if chunk.batch.len() >= EARLY {
                                self.deliver(&mut chunk, mark);
                                // What has left is the server's to answer, whatever becomes of the rest.
                                mark = self.relay.pending().mark();
                            }
                        }
                        upward => self.message(upward, &mut chunk),
                    },
                    Cut::Piece(bytes) => lines.split(bytes, |piece| match piece {
                        Piece::Data(bytes) => link.feed(bytes),
                        Piece::End => self.message(link.finish(), &mut chunk),
                    }),
                }
            }
            self.deliver(&mut chunk, mark);
        }
        if lines.is_within_line() {
            // A last message without a line end counts when it is complete.
            let mark = self.relay.pending().mark();
            self.message(link.finish(), &mut chunk);
            self.deliver(&mut chunk, mark);
        }
        report(&self.events, Event::ClientClosed);
    }

    fn message(&self, upward: Upward<'_>, chunk: &mut Chunk) {
        match upward {
            Upward::Nothing => {}
            Upward::Answer(lines) => chunk.answers.extend_from_slice(&lines),
            Upward::Forward { body, changed, answers, .. } => {
                chunk.answers.extend_from_slice(&answers);
                match Line::changed(body, changed) {
                    Ok(line) => {
                        let mut server = self.server.lock();
                        let written = match server.as_mut() {
                            Some(stdin) => line.write(&mut chunk.batch, false, stdin),
                            None => Err(io::ErrorKind::BrokenPipe.into()),
                        };
                        chunk.failed = chunk.failed.take().or(written.err());
                    }
                    Err(reason) => chunk.failed = Some(io::Error::other(reason)),
                }
            }
        }
    }

    /// Writes what has gathered. Requests that the upstream does not take are answered.
    fn deliver(&self, chunk: &mut Chunk, mark: u64) {
        if chunk.failed.is_none() && !chunk.batch.is_empty() {
            let mut server = self.server.lock();
            let written = match server.as_mut() {
                Some(stdin) => flush(&mut chunk.batch, stdin),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            };
            chunk.failed = written.err();
        }
        if let Some(error) = chunk.failed.take() {
            chunk.batch.clear();
            match (self.relay.gone(), error.kind()) {
                (None, io::ErrorKind::BrokenPipe) => report(&self.events, Event::InputBroken(mark)),
                (gone, _) => {
                    let reason = gone.unwrap_or_else(|| {
                        format!("the request could not be written to the server: {error}")
                    });
                    chunk.answers.extend_from_slice(&self.relay.fail_since(mark, &reason));
                }
            }
        }
        if !chunk.answers.is_empty() {
            let written = self.client.lock().write_all(&chunk.answers);
            chunk.answers.clear();
            if written.is_err() {
                report(&self.events, Event::ClientGone);
            } else if self.relay.gone().is_some() {
                report(&self.events, Event::Refused);
            }
        }
    }
}

/// The next part of a chunk.
enum Cut<'a> {
    /// A line that is wholly there, with nothing about it that is framing but its end.
    Whole(&'a [u8]),
    /// Something else, up to the next end of a line.
    Piece(&'a [u8]),
}

/// Cuts the next line off, and gives what follows.
#[inline]
fn whole_line<'a>(rest: &'a [u8], lines: &LineSplitter) -> (Cut<'a>, &'a [u8]) {
    let Some(end) = memchr::memchr(b'\n', rest) else { return (Cut::Piece(rest), &[]) };
    let (line, after) = rest.split_at(end + 1);
    let plain = !lines.is_within_line() && line.first() != Some(&0xEF) && !line.ends_with(b"\r\n");
    match line.split_last() {
        Some((_, line)) if plain => (Cut::Whole(line), after),
        _ => (Cut::Piece(line), after),
    }
}

/// What one chunk of the client's input became.
#[derive(Default)]
struct Chunk {
    batch: Vec<u8>,
    answers: Vec<u8>,
    failed: Option<io::Error>,
}

/// Upstream to client.
pub(super) struct Down {
    pub(super) relay: Arc<Relay>,
    pub(super) client: Arc<ClientEnd>,
    pub(super) events: SyncSender<Event>,
}

impl Down {
    pub(super) fn run(self, mut output: ChildStdout) {
        let mut link = Downlink::new(Arc::clone(&self.relay));
        let mut lines = LineSplitter::new();
        let mut buffer = vec![0; CHUNK];
        let mut batch = Vec::new();
        while let Some(length) = read(&mut output, &mut buffer) {
            let bytes = buffer.get(..length).unwrap_or_default();
            if self.chunk(bytes, &mut link, &mut lines, &mut batch).is_err() {
                report(&self.events, Event::ClientGone);
                return;
            }
        }
        if lines.is_within_line()
            && self.message(link.finish(), &mut batch).and_then(|()| self.deliver(&mut batch)).is_err()
        {
            report(&self.events, Event::ClientGone);
        }
        report(&self.events, Event::OutputClosed);
    }

    /// One chunk of the upstream's output. Lines that pass are written as they stand in it, together.
    fn chunk(
        &self,
        bytes: &[u8],
        link: &mut Downlink,
        lines: &mut LineSplitter,
        batch: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut rest = bytes;
        // What passes and is not yet written: the bytes from here to where `rest` begins.
        let mut passing = 0;
        while !rest.is_empty() {
            let begin = bytes.len() - rest.len();
            let (line, after) = whole_line(rest, lines);
            rest = after;
            let end = bytes.len() - rest.len();
            let passes = |line: &Line<'_>| matches!(line, Line::One(Part::Slice(slice)) if slice.len() + 1 == end - begin);
            match line {
                Cut::Whole(line) => match link.whole(line) {
                    line if passes(&line) => {
                        if batch.is_empty() && end - passing >= EARLY {
                            self.client.lock().write_all(bytes.get(passing..end).unwrap_or_default())?;
                            passing = end;
                        }
                        continue;
                    }
                    line => {
                        batch.extend_from_slice(bytes.get(passing..begin).unwrap_or_default());
                        self.message(line, batch)?;
                    }
                },
                Cut::Piece(piece) => {
                    batch.extend_from_slice(bytes.get(passing..begin).unwrap_or_default());
                    let mut result = Ok(());
                    lines.split(piece, |piece| match piece {
                        Piece::Data(bytes) => link.feed(bytes),
                        Piece::End if result.is_ok() => result = self.message(link.finish(), batch),
                        Piece::End => {}
                    });
                    result?;
                }
            }
            passing = end;
        }
        let passing = bytes.get(passing..).unwrap_or_default();
        if batch.is_empty() && !passing.is_empty() {
            self.client.lock().write_all(passing)?;
        } else {
            batch.extend_from_slice(passing);
        }
        self.deliver(batch)
    }

    #[inline]
    fn message(&self, line: Line<'_>, batch: &mut Vec<u8>) -> io::Result<()> {
        match line {
            Line::Nothing => Ok(()),
            line if line.is_small() => line.write(batch, false, &mut io::sink()),
            line => {
                // The whole line under one lock: the other pump writes there too.
                let mut client = self.client.lock();
                line.write(batch, false, &mut *client)?;
                flush(batch, &mut *client)
            }
        }
    }

    fn deliver(&self, batch: &mut Vec<u8>) -> io::Result<()> {
        if !batch.is_empty() {
            flush(batch, &mut *self.client.lock())?;
        }
        if self.relay.draining.load(Ordering::SeqCst) && self.relay.pending().is_empty() {
            report(&self.events, Event::Idle);
        }
        Ok(())
    }
}

fn read(input: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match input.read(buffer) {
            Ok(0) => return None,
            Ok(length) => return Some(length),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                tracing::debug!(%error, "an input could not be read");
                return None;
            }
        }
    }
}
