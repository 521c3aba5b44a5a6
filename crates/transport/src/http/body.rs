//! The body of a request: one message from memory or from a file, which can be sent again. It must not know
//! what the message says.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::limits::READ_BUFFER;
use crate::transport::Payload;

/// A message that can be sent more than once, one attempt after the other.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    Bytes(Bytes),
    File { file: Arc<File>, len: u64 },
}

impl Message {
    pub(crate) fn new(payload: Payload) -> Self {
        match payload {
            Payload::Bytes(bytes) => Self::Bytes(bytes),
            Payload::File { file, len } => Self::File { file: Arc::new(file), len },
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// The message in memory, when it is not larger than `limit`.
    pub(crate) fn bytes(&self, limit: u64) -> Option<Bytes> {
        match self {
            Self::Bytes(bytes) => (bytes.len() as u64 <= limit).then(|| bytes.clone()),
            Self::File { file, len } if *len <= limit => {
                let mut reader: &File = file;
                let mut bytes = Vec::new();
                reader.seek(SeekFrom::Start(0)).ok()?;
                reader.take(*len).read_to_end(&mut bytes).ok()?;
                Some(bytes.into())
            }
            Self::File { .. } => None,
        }
    }

    /// A body that starts at the beginning.
    pub(crate) fn body(&self) -> RequestBody {
        match self {
            Self::Bytes(bytes) => RequestBody::Bytes(bytes.clone()),
            Self::File { file, len } => {
                RequestBody::File { file: Arc::clone(file), left: *len, begun: false }
            }
        }
    }
}

/// A body for hyper.
#[derive(Debug)]
pub(crate) enum RequestBody {
    Bytes(Bytes),
    File { file: Arc<File>, left: u64, begun: bool },
}

impl RequestBody {
    pub(crate) fn empty() -> Self {
        Self::Bytes(Bytes::new())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Bytes(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::File { left: 0, .. } => Poll::Ready(None),
            // A spooled message lies on a local disk: reading it does not wait for anybody.
            Self::File { file, left, begun } => Poll::Ready(Some(read_piece(file, left, begun))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::File { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { left, .. } => *left,
        })
    }
}

fn read_piece(mut file: &File, left: &mut u64, begun: &mut bool) -> io::Result<Frame<Bytes>> {
    if !*begun {
        file.seek(SeekFrom::Start(0))?;
        *begun = true;
    }
    let room = usize::try_from(*left).unwrap_or(usize::MAX).min(READ_BUFFER);
    let mut piece = vec![0; room];
    let read = file.read(&mut piece)?;
    if read == 0 {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the spooled message is shorter than announced",
        ));
    }
    piece.truncate(read);
    *left -= read as u64;
    Ok(Frame::data(piece.into()))
}
