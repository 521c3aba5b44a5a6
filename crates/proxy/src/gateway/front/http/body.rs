//! Owns the bodies of the front's answers. Knows no messages.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::events::{Events, read_piece};
use super::stream::Data;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Bytes>),
    File(Arc<File>, u64, u64),
    Events(Box<Events>),
}

impl Body {
    pub(super) fn empty() -> Self {
        Self::Whole(None)
    }

    pub(super) fn of(data: Data) -> Self {
        match data {
            Data::Bytes(bytes) => Self::Whole(Some(bytes)),
            Data::File(file, len) => Self::File(file, 0, len),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::File(_, at, len) if *at >= *len => Poll::Ready(None),
            Self::File(file, at, len) => {
                let piece = read_piece(file, *at, *len);
                if let Ok(piece) = &piece {
                    *at += piece.len() as u64;
                }
                Poll::Ready(Some(piece.map(|piece| Frame::data(piece.into()))))
            }
            Self::Events(events) => events.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::File(_, at, len) => at >= len,
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::File(_, at, len) => SizeHint::with_exact(len - at),
            Self::Events(_) => SizeHint::default(),
        }
    }
}
