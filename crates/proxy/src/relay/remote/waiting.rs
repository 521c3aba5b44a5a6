//! Owns the client's messages that the transport has no room for yet. Knows no transport.

use std::collections::VecDeque;

use toolway_transport::{Outbound, Payload};
use toolway_wire::Kind;

/// So many messages are held before the client is not read any more.
const MESSAGES: usize = 1024;
/// So many bytes of them, whether in memory or in files.
const BYTES: u64 = 4 << 20;

/// Messages in the order in which they came. Those that wait for no answer may overtake the others.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    messages: VecDeque<Outbound>,
    bytes: u64,
    /// How many wait for no answer.
    notes: usize,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// More may be read.
    pub(super) fn has_room(&self) -> bool {
        self.messages.len() < MESSAGES && self.bytes < BYTES
    }

    /// Adds a message. A cancellation of a request that still waits here takes it away, and both are done with.
    pub(super) fn add(&mut self, message: Outbound) {
        if let Some(at) = self.cancelled_by(&message) {
            self.take(at);
            return;
        }
        self.bytes += size(&message);
        self.notes += usize::from(is_note(&message));
        self.messages.push_back(message);
    }

    /// The next message that may be sent: `any`, or one that waits for no answer.
    pub(super) fn next(&mut self, any: bool, note: bool) -> Option<Outbound> {
        if any {
            return self.take(0);
        }
        if !note || self.notes == 0 {
            return None;
        }
        let at = self.messages.iter().position(is_note)?;
        self.take(at)
    }

    fn take(&mut self, at: usize) -> Option<Outbound> {
        let message = self.messages.remove(at)?;
        self.bytes -= size(&message);
        self.notes -= usize::from(is_note(&message));
        Some(message)
    }

    fn cancelled_by(&self, message: &Outbound) -> Option<usize> {
        let [cancellation] = message.members.as_slice() else { return None };
        if cancellation.method() != Some("notifications/cancelled") {
            return None;
        }
        let id = cancellation.request_id()?;
        self.messages.iter().position(|waiting| {
            matches!(waiting.members.as_slice(), [one] if one.kind() == Kind::Request && one.id() == Some(id))
        })
    }
}

fn is_note(message: &Outbound) -> bool {
    message.members.as_slice().iter().all(|member| member.kind() != Kind::Request)
}

fn size(message: &Outbound) -> u64 {
    match &message.payload {
        Payload::Bytes(bytes) => bytes.len() as u64,
        Payload::File { len, .. } => *len,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use toolway_transport::Members;
    use toolway_wire::{Scanner, Verdict};

    use super::*;

    fn message(text: &str) -> Outbound {
        let mut scanner = Scanner::new();
        scanner.feed(text.as_bytes());
        let Verdict::Message(envelope) = scanner.finish() else { panic!("{text}") };
        Outbound {
            payload: Payload::Bytes(Bytes::from(text.to_owned())),
            members: Members::One(envelope.clone()),
        }
    }

    fn request(id: u32) -> Outbound {
        message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#))
    }

    fn cancelled(id: &str) -> Outbound {
        message(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ))
    }

    fn id_of(message: Option<Outbound>) -> Option<String> {
        message?.members.as_slice().first()?.id().map(ToString::to_string)
    }

    #[test]
    fn notes_overtake_requests_that_have_no_room() {
        let mut waiting = Waiting::default();
        waiting.add(request(1));
        waiting.add(cancelled("99"));
        waiting.add(message(r#"{"jsonrpc":"2.0","id":"s","result":{}}"#));
        assert!(waiting.next(false, false).is_none());
        assert!(waiting.next(false, true).is_some_and(|m| m.members.as_slice()[0].id().is_none()));
        assert_eq!(id_of(waiting.next(false, true)).as_deref(), Some("\"s\""));
        assert!(waiting.next(false, true).is_none());
        assert_eq!(id_of(waiting.next(true, true)).as_deref(), Some("1"));
        assert!(waiting.is_empty() && waiting.bytes == 0 && waiting.notes == 0);
    }

    #[test]
    fn a_cancellation_takes_away_what_was_not_sent() {
        let mut waiting = Waiting::default();
        waiting.add(request(1));
        waiting.add(request(2));
        waiting.add(cancelled("1"));
        assert_eq!(id_of(waiting.next(true, true)).as_deref(), Some("2"));
        assert!(waiting.is_empty());
        waiting.add(cancelled("\"2\""));
        assert!(!waiting.is_empty(), "another type of id is another request");
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut waiting = Waiting::default();
        for id in 0..1_023 {
            waiting.add(request(id));
        }
        assert!(waiting.has_room());
        waiting.add(request(1_023));
        assert!(!waiting.has_room());
        let mut waiting = Waiting::default();
        waiting.add(message(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(4 << 20))));
        assert!(!waiting.has_room());
    }
}
