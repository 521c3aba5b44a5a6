//! Two transports back to back in memory: what one sends, the other receives, piece by piece. For tests and for
//! embedding. It must not look into messages.

use std::io::Read as _;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::transport::{Closed, Inbound, Outbound, Payload, StreamId, Transport, TransportError};

/// Messages that wait for the other end.
const QUEUE: usize = 64;
/// Largest piece, in bytes.
const PIECE: usize = 64 * 1024;

/// One of two ends, see [`pair`].
#[derive(Debug)]
pub struct MemoryEnd {
    to_peer: Option<mpsc::Sender<Payload>>,
    from_peer: mpsc::Receiver<Payload>,
    /// What is left of the message that is being handed out.
    current: Option<Payload>,
    streams: u64,
    ended: bool,
}

/// Two ends: each receives what the other sends.
pub fn pair() -> (MemoryEnd, MemoryEnd) {
    let (to_right, from_left) = mpsc::channel(QUEUE);
    let (to_left, from_right) = mpsc::channel(QUEUE);
    (MemoryEnd::new(to_right, from_right), MemoryEnd::new(to_left, from_left))
}

impl MemoryEnd {
    fn new(to_peer: mpsc::Sender<Payload>, from_peer: mpsc::Receiver<Payload>) -> Self {
        Self { to_peer: Some(to_peer), from_peer, current: None, streams: 0, ended: false }
    }

    /// Waits until a message may be sent; false: the other end is gone.
    pub async fn room(&self) -> bool {
        match &self.to_peer {
            Some(peer) => peer.reserve().await.is_ok(),
            None => false,
        }
    }

    /// The next event of the message at hand.
    fn next_piece(&mut self) -> Option<Inbound> {
        let stream = StreamId(self.streams);
        let piece = match self.current.as_mut()? {
            Payload::Bytes(bytes) if bytes.is_empty() => None,
            Payload::Bytes(bytes) => {
                let size = bytes.len().min(PIECE);
                Some(Ok(bytes.split_to(size)))
            }
            Payload::File { len: 0, .. } => None,
            Payload::File { file, len } => {
                let mut piece = vec![0; usize::try_from(*len).unwrap_or(PIECE).min(PIECE)];
                Some(file.read(&mut piece).map(|read| {
                    piece.truncate(read);
                    *len -= read as u64;
                    Bytes::from(piece)
                }))
            }
        };
        match piece {
            Some(Ok(bytes)) if !bytes.is_empty() => Some(Inbound::Data { stream, bytes }),
            None => {
                self.current = None;
                Some(Inbound::End { stream })
            }
            Some(_) => {
                self.current = None;
                Some(Inbound::Abort { stream })
            }
        }
    }

    fn begin(&mut self, payload: Payload) {
        self.streams += 1;
        self.current = Some(payload);
    }
}

impl Transport for MemoryEnd {
    fn ready(&self) -> bool {
        self.to_peer.as_ref().is_some_and(|peer| peer.capacity() > 0)
    }

    fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        let peer = self.to_peer.as_ref().ok_or(TransportError::Closed)?;
        let mut payload = message.payload;
        if let Payload::File { file, .. } = &mut payload {
            std::io::Seek::rewind(file).map_err(|_| TransportError::Closed)?;
        }
        peer.try_send(payload).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => TransportError::Busy,
            mpsc::error::TrySendError::Closed(_) => TransportError::Closed,
        })
    }

    async fn receive(&mut self) -> Option<Inbound> {
        loop {
            if let Some(event) = self.try_receive() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let Some(payload) = self.from_peer.recv().await else {
                self.ended = true;
                return Some(Inbound::Closed { reason: Closed::Normal });
            };
            self.begin(payload);
        }
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        if self.current.is_none() {
            let payload = self.from_peer.try_recv().ok()?;
            self.begin(payload);
        }
        self.next_piece()
    }

    async fn close(&mut self) {
        self.to_peer = None;
        self.from_peer.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Members;
    use std::io::Write as _;
    use toolway_wire::Envelope;

    fn outbound(payload: Payload) -> Outbound {
        Outbound { payload, members: Members::One(Envelope::default()) }
    }

    async fn message(end: &mut MemoryEnd) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            match end.receive().await? {
                Inbound::Data { bytes, .. } => whole.extend_from_slice(&bytes),
                Inbound::End { .. } => return Some(whole),
                _ => return None,
            }
        }
    }

    #[tokio::test]
    async fn each_end_receives_what_the_other_sends() {
        let (mut left, mut right) = pair();
        let mut file = tempfile::tempfile().unwrap();
        let large = vec![b'x'; 3 * PIECE + 1];
        file.write_all(&large).unwrap();
        left.send(outbound(Payload::File { file, len: large.len() as u64 })).unwrap();
        left.send(outbound(Payload::Bytes("two".into()))).unwrap();
        right.send(outbound(Payload::Bytes("back".into()))).unwrap();
        assert_eq!(message(&mut right).await.unwrap(), large);
        assert_eq!(message(&mut right).await.unwrap(), b"two");
        assert_eq!(message(&mut left).await.unwrap(), b"back");
        left.close().await;
        assert!(matches!(right.receive().await, Some(Inbound::Closed { reason: Closed::Normal })));
        assert!(right.receive().await.is_none());
        assert!(right.send(outbound(Payload::Bytes("late".into()))).is_err());
    }

    #[tokio::test]
    async fn a_full_queue_is_not_ready() {
        let (mut left, mut right) = pair();
        let mut sent = 0;
        while left.ready() {
            left.send(outbound(Payload::Bytes("x".into()))).unwrap();
            sent += 1;
        }
        assert_eq!(sent, QUEUE);
        assert!(matches!(left.send(outbound(Payload::Bytes("x".into()))), Err(TransportError::Busy)));
        assert!(message(&mut right).await.is_some());
        assert!(left.ready());
    }
}
