//! Owns the subscription to list changes that a modern server has in place of plain notifications: when it is opened,
//! and when again. Sends nothing.
//!
//! Specification 2026-07-28, "Subscriptions".

use std::time::Duration;

use tokio::time::Instant;
use toolway_wire::era::{Era, meta};
use toolway_wire::find::{Step, find};

use crate::gateway::connection::Negotiated;
use crate::gateway::message::Message;

/// Before it is opened again; doubled each time.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_mins(1);

/// One subscription, over and over.
#[derive(Debug)]
pub(super) struct Listen {
    filter: String,
    /// When it is to be opened; `None`: it is open, or not to be had.
    due: Option<Instant>,
    pause: Duration,
}

impl Listen {
    pub(super) fn new(negotiated: &Negotiated) -> Self {
        let wanted = ["tools", "prompts", "resources"].into_iter();
        let wanted = wanted.filter(|kind| negotiated.offers(&[kind, "listChanged"]));
        let wanted: Vec<String> = wanted.map(|kind| format!("\"{kind}ListChanged\":true")).collect();
        let open = negotiated.era == Era::Modern && !wanted.is_empty();
        Self { filter: format!("{{{}}}", wanted.join(",")), due: open.then(Instant::now), pause: FIRST }
    }

    /// Which changes are wanted, as the request has it.
    pub(super) fn filter(&self) -> String {
        self.filter.clone()
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    pub(super) fn begun(&mut self) {
        self.due = None;
    }

    /// It has ended, in good order or not, and is opened again after a pause.
    pub(super) fn ended(&mut self, in_order: bool, now: Instant) {
        self.pause = if in_order { FIRST } else { (self.pause * 2).min(LONGEST) };
        self.due = Some(now + self.pause);
    }

    /// The server does not want it: the lists expire instead.
    pub(super) fn refused(&mut self) {
        self.due = None;
    }

    /// The notification belongs to our subscription: its acknowledgement, as the changes themselves are taken before.
    pub(super) fn is_ours(message: &Message) -> bool {
        if message.envelope.method() != Some("notifications/subscriptions/acknowledged") {
            return false;
        }
        let Some(bytes) = message.content.bytes() else { return false };
        let path = [Step::Key("params"), Step::Key("_meta"), Step::Key(meta::SUBSCRIPTION_ID)];
        let id = find(bytes, &path).and_then(|at| bytes.get(at));
        id.is_some_and(|id| id.starts_with(b"\"toolway-"))
    }
}
