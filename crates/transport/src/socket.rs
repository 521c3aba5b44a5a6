//! A local socket as a message transport: one line is one message, both ways. Owns the stream's buffers; it must not know
//! who is at the other end, nor what the messages are.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::child_transport::{Lines, Outbox};
use crate::limits::CLOSE_TIME;
use crate::transport::{Closed, Inbound, Life, Outbound, Transport, TransportError};

/// When so much waits for the other end, requests have to wait.
const HIGH: usize = 256 * 1024;

/// A server at the other end of a socket.
#[derive(Debug)]
pub struct SocketTransport {
    stream: UnixStream,
    lines: Lines,
    outbox: Outbox,
    /// [`Transport::ready`] said no.
    asked: AtomicBool,
    life: Life,
}

impl SocketTransport {
    /// A transport over a connected stream from which nothing was read that belongs to it.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            lines: Lines::default(),
            outbox: Outbox::default(),
            asked: AtomicBool::new(false),
            life: Life::Open,
        }
    }

    fn room_again(&self) -> bool {
        self.outbox.len() < HIGH / 2 && self.asked.swap(false, Ordering::Relaxed)
    }

    fn write_now(&mut self) {
        while !self.outbox.is_empty() {
            match self.stream.try_write(self.outbox.front()) {
                Ok(written) => self.outbox.advance(written),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                // That it is gone is told by the next read.
                Err(_) => self.outbox.clear(),
            }
        }
    }

    fn read_now(&mut self) -> bool {
        match self.stream.try_read(self.lines.buffer()) {
            Ok(0) => self.lines.end(),
            Ok(count) => self.lines.filled(count),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return false,
            Err(_) => self.lines.end(),
        }
        true
    }
}

impl Transport for SocketTransport {
    fn ready(&self) -> bool {
        let ready = self.life == Life::Open && self.outbox.len() < HIGH;
        if !ready {
            self.asked.store(true, Ordering::Relaxed);
        }
        ready
    }

    fn ready_for_note(&self) -> bool {
        self.life == Life::Open && (self.outbox.len() < 2 * HIGH || self.ready())
    }

    fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        if self.life != Life::Open {
            return Err(TransportError::Closed);
        }
        self.outbox.push(message.payload);
        Ok(())
    }

    async fn receive(&mut self) -> Option<Inbound> {
        loop {
            self.write_now();
            if let Some(event) = self.try_receive() {
                return Some(event);
            }
            match self.life {
                Life::Open => {}
                Life::Closed | Life::Told => return self.life.end(),
            }
            if self.lines.at_end() {
                self.life = Life::Told;
                return Some(Inbound::Closed {
                    reason: Closed::Lost("the connection was closed".to_owned()),
                });
            }
            // An error shows itself at the next read or write.
            if self.outbox.is_empty() {
                self.stream.readable().await.ok();
            } else {
                let both = tokio::io::Interest::READABLE | tokio::io::Interest::WRITABLE;
                self.stream.ready(both).await.ok();
            }
        }
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        if self.life != Life::Open {
            return None;
        }
        if let Some(event) = self.lines.next() {
            return Some(event);
        }
        if self.room_again() {
            return Some(Inbound::Ready);
        }
        if self.lines.at_end() || !self.read_now() {
            return None;
        }
        self.lines.next()
    }

    async fn close(&mut self) {
        if self.life == Life::Open {
            self.write_now();
            self.life = Life::Closed;
        }
        self.outbox.clear();
        timeout(CLOSE_TIME, self.stream.shutdown()).await.ok();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use toolway_wire::Envelope;

    use super::*;
    use crate::transport::{Members, Payload};

    fn message(text: &str) -> Outbound {
        let payload = Payload::Bytes(Bytes::copy_from_slice(text.as_bytes()));
        Outbound { payload, members: Members::One(Envelope::default()) }
    }

    async fn line(end: &mut SocketTransport) -> Option<String> {
        let mut whole = Vec::new();
        loop {
            match end.receive().await? {
                Inbound::Data { bytes, .. } => whole.extend_from_slice(&bytes),
                Inbound::End { .. } => return String::from_utf8(whole).ok(),
                Inbound::Ready => {}
                _ => return None,
            }
        }
    }

    #[tokio::test]
    async fn lines_pass_both_ways_until_one_end_closes() {
        let (left, right) = UnixStream::pair().unwrap();
        let (mut left, mut right) = (SocketTransport::new(left), SocketTransport::new(right));
        let large = "x".repeat(3 << 20);
        left.send(message(&large)).unwrap();
        left.send(message("two")).unwrap();
        assert!(!left.ready());
        let mut sent = None;
        let (back, got) = tokio::join!(
            async {
                sent = left.receive().await;
                line(&mut left).await
            },
            async {
                let got = (line(&mut right).await, line(&mut right).await);
                right.send(message("back")).unwrap();
                right.write_now();
                got
            }
        );
        assert!(matches!(sent, Some(Inbound::Ready)), "{sent:?}");
        assert!(got.0.as_deref() == Some(large.as_str()) && got.1.as_deref() == Some("two"));
        assert_eq!(back.as_deref(), Some("back"));
        left.close().await;
        assert!(matches!(right.receive().await, Some(Inbound::Closed { reason: Closed::Lost(_) })));
        assert!(right.receive().await.is_none());
        assert!(right.send(message("late")).is_err());
        assert!(matches!(left.receive().await, Some(Inbound::Closed { reason: Closed::Normal })));
    }
}
