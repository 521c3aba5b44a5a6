//! Owns the body of an event stream: a stream's messages as server-sent events, comments while nothing happens. Nothing
//! is buffered beyond what hyper is about to write.

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep};

use super::stream::{Data, Next, Stream};
use crate::relay::{flatten_in_place, read_at};

/// What is read of a file at once.
const CHUNK: usize = 64 << 10;
/// Messages up to this are copied into one piece with what stands around them.
const SMALL: usize = 16 << 10;

/// Reads one stream.
#[derive(Debug)]
pub(super) struct Events {
    stream: Arc<Stream>,
    reader: u64,
    /// The last event that was taken.
    last: u64,
    /// Events carry ids to come back with.
    ids: bool,
    ready: VecDeque<Bytes>,
    file: Option<(Arc<File>, u64, u64)>,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Events {
    /// Takes the stream over, after event `last`. `ids`: the client may come back. `prime`: the first event is an empty
    /// one with an id, so that it can from the beginning on.
    pub(super) fn new(stream: Arc<Stream>, last: u64, ids: bool, prime: bool, keep_alive: Duration) -> Self {
        let reader = stream.attach();
        let mut ready = VecDeque::new();
        if ids && prime {
            ready.push_back(Bytes::from(format!("id: {}-{last}\ndata: \n\n", stream.number)));
        }
        Self {
            stream,
            reader,
            last,
            ids,
            ready,
            file: None,
            keep_alive,
            silence: Box::pin(sleep(keep_alive)),
        }
    }

    fn begin(&mut self, sequence: u64, data: Data) {
        let mut head = b"event: message\n".to_vec();
        if self.ids {
            head.extend_from_slice(format!("id: {}-{sequence}\n", self.stream.number).as_bytes());
        }
        head.extend_from_slice(b"data: ");
        match data {
            Data::Bytes(bytes) if bytes.len() <= SMALL => {
                head.extend_from_slice(&bytes);
                head.extend_from_slice(b"\n\n");
                self.ready.push_back(head.into());
            }
            Data::Bytes(bytes) => {
                self.ready.extend([head.into(), bytes, Bytes::from_static(b"\n\n")]);
            }
            Data::File(file, len) => {
                self.ready.push_back(head.into());
                self.file = Some((file, 0, len));
            }
        }
    }

    /// The next piece of the file at hand.
    fn piece(&mut self) -> io::Result<Option<Bytes>> {
        let Some((file, at, len)) = &mut self.file else { return Ok(None) };
        if at >= len {
            self.file = None;
            return Ok(Some(Bytes::from_static(b"\n\n")));
        }
        let mut piece = read_piece(file, *at, *len)?;
        flatten_in_place(&mut piece);
        *at += piece.len() as u64;
        Ok(Some(piece.into()))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            let piece = match self.ready.pop_front() {
                Some(piece) => Some(piece),
                None => match self.piece() {
                    Ok(piece) => piece,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
            };
            if let Some(piece) = piece {
                self.silence.as_mut().reset(Instant::now() + self.keep_alive);
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            match self.stream.after(self.last, self.reader, cx.waker()) {
                Next::Event(event) => {
                    self.last = event.sequence;
                    self.begin(event.sequence, event.data);
                }
                Next::End => return Poll::Ready(None),
                Next::Wait => {
                    std::task::ready!(self.silence.as_mut().poll(cx));
                    self.ready.push_back(Bytes::from_static(b": keep-alive\n\n"));
                }
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.stream.detach(self.reader);
    }
}

/// Some bytes of a file that is `len` long.
pub(super) fn read_piece(file: &File, at: u64, len: u64) -> io::Result<Vec<u8>> {
    let want = usize::try_from(len - at).unwrap_or(CHUNK).min(CHUNK);
    let mut piece = vec![0; want];
    let read = read_at(file, &mut piece, at)?;
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    piece.truncate(read);
    Ok(piece)
}
