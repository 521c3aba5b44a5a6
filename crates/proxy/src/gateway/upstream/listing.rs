//! Owns what a server offers: which lists are asked for, their pages, and when they are asked for again. Spells and sends
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolway_guard::Body;
use toolway_wire::find::{Step, find};

use super::schedule::Schedule;
use crate::gateway::connection::Negotiated;
use crate::gateway::lists::{ListKind, MAX_LIST_BYTES, NextPage, Paging, RawLists};
use crate::gateway::message::{Content, Message};

/// A list that a server lets expire at once is not asked for all the time.
const SHORTEST_TTL: Duration = Duration::from_secs(30);
const LONGEST_TTL: Duration = Duration::from_hours(24);

/// The lists of one connection.
#[derive(Debug)]
pub(crate) struct Listing {
    /// What is known, once all of it was listed.
    current: RawLists,
    told: Option<Arc<RawLists>>,
    slots: Vec<Slot>,
}

/// One list.
#[derive(Debug)]
struct Slot {
    kind: ListKind,
    /// The server says that it has such a list.
    offered: bool,
    schedule: Schedule,
    running: Option<Paging>,
    ttl: Option<Duration>,
    private: bool,
    note: Option<String>,
    listed: bool,
}

/// What came of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Ask for the page of this cursor: raw JSON.
    Ask(Bytes),
    /// The list is complete.
    Done,
}

impl Listing {
    pub(crate) fn new(negotiated: &Negotiated, now: Instant) -> Self {
        let kinds = ListKind::ALL.into_iter();
        // Tools are asked for also where the server has forgotten to say that it has some.
        let kinds = kinds.filter(|kind| *kind == ListKind::Tools || negotiated.lists(*kind));
        let slots = kinds.map(|kind| {
            let mut schedule = Schedule::default();
            schedule.expires(now);
            Slot {
                kind,
                offered: negotiated.lists(kind),
                schedule,
                running: None,
                ttl: None,
                private: false,
                note: None,
                listed: false,
            }
        });
        Self { current: RawLists::default(), told: None, slots: slots.collect() }
    }

    /// The server says that a list has changed: the method of its notification. False: it says something else.
    pub(crate) fn heard(&mut self, method: &str, now: Instant) -> bool {
        let kinds: &[ListKind] = match method {
            "notifications/tools/list_changed" => &[ListKind::Tools],
            "notifications/prompts/list_changed" => &[ListKind::Prompts],
            "notifications/resources/list_changed" => &[ListKind::Resources, ListKind::Templates],
            _ => return false,
        };
        self.slots
            .iter_mut()
            .filter(|slot| kinds.contains(&slot.kind))
            .for_each(|slot| slot.schedule.changed(now));
        true
    }

    /// All lists may have changed.
    pub(crate) fn all_changed(&mut self, now: Instant) {
        self.slots.iter_mut().for_each(|slot| slot.schedule.changed(now));
    }

    /// When the next list is to be asked for.
    pub(crate) fn due(&self) -> Option<Instant> {
        let idle = self.slots.iter().filter(|slot| slot.running.is_none());
        idle.filter_map(|slot| slot.schedule.due()).min()
    }

    /// The lists that are to be asked for now, from their first page on.
    pub(crate) fn begin(&mut self, now: Instant) -> Vec<ListKind> {
        let mut kinds = Vec::new();
        for slot in &mut self.slots {
            if slot.running.is_none() && slot.schedule.due().is_some_and(|due| due <= now) {
                slot.schedule.begun(now);
                slot.running = Some(Paging::new(slot.kind));
                slot.ttl = None;
                kinds.push(slot.kind);
            }
        }
        kinds
    }

    /// A page has come.
    pub(crate) fn page(&mut self, kind: ListKind, message: &Message, now: Instant) -> Listed {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.kind == kind) else { return Listed::Done };
        let Some(paging) = &mut slot.running else { return Listed::Done };
        let next = match bytes_of(&message.content) {
            Ok(page) => {
                let ttl = number(&page, "ttlMs").map(Duration::from_millis);
                slot.ttl = [slot.ttl, ttl].into_iter().flatten().min();
                slot.private |= is_private(&page);
                paging.page(&page)
            }
            Err(reason) => NextPage::Stopped(format!("a page of {} {reason}", kind.method())),
        };
        match next {
            NextPage::Ask(cursor) => return Listed::Ask(cursor),
            NextPage::Done => self.complete(kind, None, now),
            NextPage::Stopped(note) => self.complete(kind, Some(note), now),
        }
        Listed::Done
    }

    /// The list, or its next page, cannot be had. What came so far stays; an old list is better than none. The reason
    /// comes back where it means that the server has no tools that can be used.
    pub(crate) fn failed(
        &mut self,
        kind: ListKind,
        reason: &str,
        unknown: bool,
        now: Instant,
    ) -> Option<String> {
        let slot = self.slots.iter_mut().find(|slot| slot.kind == kind)?;
        let items = slot.running.take()?.into_items();
        let note = format!("{}: {reason}", kind.method());
        if slot.listed && items.is_empty() {
            slot.note = Some(format!("{note}; the list from before is kept"));
            return None;
        }
        // A server without such a list says so.
        let quiet = unknown && (!slot.offered || kind == ListKind::Templates);
        let fatal = kind == ListKind::Tools && slot.offered && !slot.listed && items.is_empty();
        self.put(kind, items, (!quiet).then(|| note.clone()), now);
        fatal.then_some(note)
    }

    fn complete(&mut self, kind: ListKind, note: Option<String>, now: Instant) {
        let running =
            self.slots.iter_mut().find(|slot| slot.kind == kind).and_then(|slot| slot.running.take());
        self.put(kind, running.map(Paging::into_items).unwrap_or_default(), note, now);
    }

    fn put(&mut self, kind: ListKind, items: Vec<Bytes>, note: Option<String>, now: Instant) {
        self.current.set(kind, items);
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.kind == kind) else { return };
        slot.running = None;
        slot.note = note;
        slot.listed = true;
        if let Some(ttl) = slot.ttl.filter(|ttl| !ttl.is_zero()) {
            slot.schedule.expires(now + ttl.clamp(SHORTEST_TTL, LONGEST_TTL));
        }
    }

    /// What is to be told now: nothing while nothing has changed, or while the tools are not known.
    pub(crate) fn news(&mut self) -> Option<Arc<RawLists>> {
        let tools = self.slots.iter().find(|slot| slot.kind == ListKind::Tools);
        if !tools.is_some_and(|slot| slot.listed)
            || self.slots.iter().any(|slot| slot.running.is_some() && slot.listed)
        {
            return None;
        }
        self.current.notes = self.slots.iter().filter_map(|slot| slot.note.clone()).collect();
        self.current.ttl = self.slots.iter().filter_map(|slot| slot.ttl).min();
        self.current.private = self.slots.iter().any(|slot| slot.private);
        self.current.pending = self.slots.iter().any(|slot| !slot.listed);
        if self.told.as_deref() == Some(&self.current) {
            return None;
        }
        let news = Arc::new(self.current.clone());
        self.told = Some(Arc::clone(&news));
        Some(news)
    }

    /// All that is known.
    pub(crate) fn into_lists(mut self) -> RawLists {
        self.told = None;
        self.news().map(Arc::unwrap_or_clone).unwrap_or_default()
    }
}

/// The page in memory of its own: what it came in may be much larger.
fn bytes_of(content: &Content) -> Result<Bytes, String> {
    match content {
        Content::Bytes(bytes) => Ok(Bytes::copy_from_slice(bytes)),
        Content::Held(body) => match &**body {
            Body::File(file) if file.len() <= MAX_LIST_BYTES as u64 => {
                let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(0)];
                let mut at = 0;
                while at < bytes.len() {
                    match file.read_at(bytes.get_mut(at..).unwrap_or_default(), at as u64) {
                        Ok(count @ 1..) => at += count,
                        _ => return Err("could not be read back".to_owned()),
                    }
                }
                Ok(bytes.into())
            }
            Body::Lost { reason, .. } => Err(format!("could not be held: {reason}")),
            body => Err(format!("has {} bytes: too many", body.len())),
        },
    }
}

fn number(page: &Bytes, name: &str) -> Option<u64> {
    let at = find(page, &[Step::Key("result"), Step::Key(name)])?;
    std::str::from_utf8(page.get(at)?).ok()?.parse().ok()
}

fn is_private(page: &Bytes) -> bool {
    let at = find(page, &[Step::Key("result"), Step::Key("cacheScope")]);
    at.and_then(|at| page.get(at)) == Some(b"\"private\"")
}
