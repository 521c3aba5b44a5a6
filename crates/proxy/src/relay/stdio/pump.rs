//! Owns the two pumps: chunks are read, cut into lines, judged, and what has gathered is written at once.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use toolway_wire::{LineSplitter, Piece};

use super::ends::{ClientEnd, ServerEnd};
use super::{Event, report};
use crate::relay::core::Relay;
use crate::relay::downlink::Downlink;
use crate::relay::parts::{Line, flush};
use crate::relay::uplink::{Up as Upward, Uplink};

const CHUNK: usize = 64 << 10;

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
            let bytes = buffer.get(..length).unwrap_or_default();
            let mark = self.relay.pending().mark();
            lines.split(bytes, |piece| match piece {
                Piece::Data(bytes) => link.feed(bytes),
                Piece::End => self.message(&mut link, &mut chunk),
            });
            self.deliver(&mut chunk, mark);
        }
        if lines.is_within_line() {
            // A last message without a line end counts when it is complete.
            let mark = self.relay.pending().mark();
            self.message(&mut link, &mut chunk);
            self.deliver(&mut chunk, mark);
        }
        report(&self.events, Event::ClientClosed);
    }

    fn message(&self, link: &mut Uplink, chunk: &mut Chunk) {
        match link.finish() {
            Upward::Nothing => {}
            Upward::Answer(lines) => chunk.answers.extend_from_slice(&lines),
            Upward::Forward { body, changed, .. } => match Line::changed(body, changed) {
                Ok(line) => {
                    let mut server = self.server.lock();
                    let written = match server.as_mut() {
                        Some(stdin) => line.write(&mut chunk.batch, false, stdin),
                        None => Err(io::ErrorKind::BrokenPipe.into()),
                    };
                    chunk.failed = chunk.failed.take().or(written.err());
                }
                Err(reason) => chunk.failed = Some(io::Error::other(reason)),
            },
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
            let reason = match (self.relay.gone(), error.kind()) {
                (Some(reason), _) => reason,
                (None, io::ErrorKind::BrokenPipe) => "the server does not read its input any more".to_owned(),
                (None, _) => format!("the request could not be written to the server: {error}"),
            };
            chunk.answers.extend_from_slice(&self.relay.fail_since(mark, &reason));
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
            let mut result = Ok(());
            lines.split(bytes, |piece| match piece {
                Piece::Data(bytes) => link.feed(bytes),
                Piece::End => {
                    if result.is_ok() {
                        result = self.message(&mut link, &mut batch);
                    }
                }
            });
            if result.and_then(|()| self.deliver(&mut batch)).is_err() {
                report(&self.events, Event::ClientGone);
                return;
            }
        }
        if lines.is_within_line()
            && self.message(&mut link, &mut batch).and_then(|()| self.deliver(&mut batch)).is_err()
        {
            report(&self.events, Event::ClientGone);
        }
        report(&self.events, Event::OutputClosed);
    }

    #[inline]
    fn message(&self, link: &mut Downlink, batch: &mut Vec<u8>) -> io::Result<()> {
        match link.finish() {
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
