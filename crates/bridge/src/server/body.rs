//! Owns the bodies of the server's answers. Knows no messages.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use super::events::Events;

/// How much of a body that is refused is thrown away, so that its sender gets to read why.
const DISCARDED: u64 = 1 << 30;
/// How long that may take.
const DISCARDING: Duration = Duration::from_secs(10);

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Bytes),
    /// Pieces that are one after the other.
    Pieces(VecDeque<Bytes>),
    Events(Box<Events>),
    Discarding(Box<Discarding>),
}

/// An answer that is there at once, while the rest of the request is thrown away: a connection that is closed before its
/// peer has sent all loses the answer on the way.
#[derive(Debug)]
pub(super) struct Discarding {
    answer: Option<Bytes>,
    rest: Incoming,
    left: u64,
    until: Pin<Box<Sleep>>,
}

impl Body {
    pub(super) fn discarding(answer: Bytes, rest: Incoming) -> Self {
        let until = Box::pin(sleep(DISCARDING));
        Self::Discarding(Box::new(Discarding { answer: Some(answer), rest, left: DISCARDED, until }))
    }
}

impl Discarding {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(answer) = self.answer.take() {
            return Poll::Ready(Some(Ok(Frame::data(answer))));
        }
        while self.left > 0 && self.until.as_mut().poll(cx).is_pending() {
            match std::task::ready!(http_body::Body::poll_frame(Pin::new(&mut self.rest), cx)) {
                Some(Ok(frame)) => {
                    let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                    self.left = self.left.saturating_sub(length);
                }
                Some(Err(_)) | None => break,
            }
        }
        Poll::Ready(None)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Self::Events(events) => events.poll(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
            Self::Discarding(discarding) => discarding.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Pieces(pieces) => pieces.is_empty(),
            Self::Events(_) | Self::Discarding(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Self::Events(_) | Self::Discarding(_) => SizeHint::default(),
        }
    }
}
