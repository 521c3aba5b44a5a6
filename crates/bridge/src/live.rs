//! Owns a live run between agent and host: the ordered queue of events, batches, waits. Pure state, driven by one task.
//!
//! It has no clock, no channel and no runtime: the caller says what time it is, and is told until when to wait.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::call::{CallId, HostCall};

#[cfg(test)]
mod tests;

/// How long a tool event at the head waits for parallel ones.
const GATHER: Duration = Duration::from_millis(75);
/// How long it then waits, at the most, for the agent's usage record.
const USAGE_WAIT: Duration = Duration::from_millis(125);
/// In which steps it looks for that record.
const USAGE_STEP: Duration = Duration::from_millis(25);

/// How calls are handed to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pace {
    /// In batches: one assistant message for calls that arrive together.
    #[default]
    Batches,
    /// Each as it comes: nothing waits.
    AsTheyCome,
}

/// One event on its way to the host. `C` is the card of a replayed tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveItem<C> {
    /// Text of the agent.
    Text(String),
    /// Thinking of the agent.
    Thinking(String),
    /// A tool that the agent ran itself, to be shown.
    Replay(C),
    /// A tool that the host is to run.
    Call(HostCall),
}

/// What the host is to see next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Emit<C> {
    /// Text of the agent.
    Text(String),
    /// Thinking of the agent.
    Thinking(String),
    /// Cards of one assistant message.
    Replays(Vec<C>),
    /// Calls of one assistant message, each still pending.
    Calls(Vec<HostCall>),
}

/// What the queue has at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Poll<C> {
    /// This is next, and is out of the queue.
    Emit(Emit<C>),
    /// A tool event waits until then: ask again at that time, or when something was pushed.
    Wait(Instant),
    /// Nothing.
    Empty,
}

/// The events of one agent run, in order, until the host takes them.
#[derive(Debug)]
pub struct LiveQueue<C> {
    pace: Pace,
    items: VecDeque<LiveItem<C>>,
    /// When the tool event at the head came to be there.
    since: Option<Instant>,
    /// The agent's usage record for what is queued is there.
    usage: bool,
    /// Nothing more will come: nothing is worth a wait.
    ended: bool,
}

impl<C> LiveQueue<C> {
    /// An empty one.
    pub fn new(pace: Pace) -> Self {
        Self { pace, items: VecDeque::new(), since: None, usage: false, ended: false }
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How much memory it takes, roughly, in bytes.
    pub fn weight(&self) -> usize {
        self.items
            .iter()
            .map(|item| match item {
                LiveItem::Text(text) | LiveItem::Thinking(text) => text.len(),
                LiveItem::Call(call) => call.arguments.bytes().len() + 256,
                LiveItem::Replay(_) => 4096,
            })
            .sum()
    }

    /// One more event, at the end. Text that follows text joins it, so the queue grows with tools and not with tokens.
    pub fn push(&mut self, item: LiveItem<C>, now: Instant) {
        match (self.items.back_mut(), item) {
            (Some(LiveItem::Text(last)), LiveItem::Text(text))
            | (Some(LiveItem::Thinking(last)), LiveItem::Thinking(text)) => last.push_str(&text),
            (_, item) => self.items.push_back(item),
        }
        self.mark_head(now);
    }

    /// The agent told its usage: a batch of tools has no more to wait for than its parallel calls.
    pub fn usage(&mut self) {
        self.usage = true;
    }

    /// The agent's run ended: what is queued waits for nothing.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// What is next. `pending` says whether somebody still waits for a call's result; a call that nobody waits for is
    /// dropped, and where none remains there is nothing to show.
    pub fn poll(&mut self, now: Instant, pending: impl Fn(&CallId) -> bool) -> Poll<C> {
        loop {
            while let Some(LiveItem::Call(call)) = self.items.front()
                && !pending(&call.id)
            {
                self.items.pop_front();
            }
            self.mark_head(now);
            match self.items.front() {
                None => return Poll::Empty,
                Some(LiveItem::Text(_) | LiveItem::Thinking(_)) => {}
                Some(LiveItem::Replay(_) | LiveItem::Call(_)) => {
                    if let Some(until) = self.wait(now) {
                        return Poll::Wait(until);
                    }
                }
            }
            let emit = self.take(&pending);
            self.since = None;
            self.mark_head(now);
            match emit {
                Some(Emit::Calls(calls)) if calls.is_empty() => {}
                Some(emit) => return Poll::Emit(emit),
                None => return Poll::Empty,
            }
        }
    }

    /// Drops the calls that nobody waits for, wherever they are.
    pub fn forget_stale(&mut self, pending: impl Fn(&CallId) -> bool) {
        self.items.retain(|item| !matches!(item, LiveItem::Call(call) if !pending(&call.id)));
        if self.items.is_empty() {
            self.since = None;
        }
    }

    fn mark_head(&mut self, now: Instant) {
        match self.items.front() {
            Some(LiveItem::Replay(_) | LiveItem::Call(_)) => {
                self.since.get_or_insert(now);
            }
            _ => self.since = None,
        }
    }

    /// Until when the tool event at the head has to wait, if it has.
    fn wait(&self, now: Instant) -> Option<Instant> {
        if self.ended || self.pace == Pace::AsTheyCome {
            return None;
        }
        let since = self.since?;
        let mut look = since + GATHER;
        let last = look + USAGE_WAIT;
        loop {
            if now < look {
                return Some(look);
            }
            if self.usage || look >= last {
                return None;
            }
            look += USAGE_STEP;
        }
    }

    /// The run of consecutive events of one kind at the head.
    fn take(&mut self, pending: impl Fn(&CallId) -> bool) -> Option<Emit<C>> {
        match self.items.pop_front()? {
            LiveItem::Text(text) => Some(Emit::Text(text)),
            LiveItem::Thinking(text) => Some(Emit::Thinking(text)),
            LiveItem::Replay(card) => {
                let mut cards = vec![card];
                while let Some(LiveItem::Replay(card)) =
                    self.items.pop_front_if(|item| matches!(item, LiveItem::Replay(_)))
                {
                    cards.push(card);
                }
                self.usage = false;
                Some(Emit::Replays(cards))
            }
            LiveItem::Call(call) => {
                let mut calls = vec![call];
                while let Some(LiveItem::Call(call)) =
                    self.items.pop_front_if(|item| matches!(item, LiveItem::Call(_)))
                {
                    calls.push(call);
                }
                calls.retain(|call| pending(&call.id));
                self.usage = false;
                Some(Emit::Calls(calls))
            }
        }
    }
}
