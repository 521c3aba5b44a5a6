//! Owns the requests in flight, by the integer ids that servers see. An id names a slot and how often the slot was used,
//! so that a late answer to a request that is over finds nothing. Knows no bytes of messages.

use tokio::time::{Duration, Instant};

/// Bits of an id that name the slot; the rest counts its uses. Together they stay below 2^53, which every JSON reader
/// keeps exactly.
const SLOT_BITS: u32 = 20;
const USES: u64 = 1 << 32;
/// Slots that stay when all are free.
const KEPT: usize = 4096;
/// The most requests in flight.
const CAPACITY: usize = 1 << SLOT_BITS;

/// The id of a request in flight, as a server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::gateway) struct FlightId(pub(super) u64);

#[derive(Debug)]
struct Slot<T> {
    uses: u64,
    value: Option<T>,
}

/// Values by id.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
    /// How often any slot that was given back was used, at most: new ones go on from there.
    floor: u64,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), floor: 0 }
    }
}

impl<T> Slab<T> {
    /// Puts a value in; `None`: there is no room.
    pub(super) fn insert(&mut self, value: T) -> Option<FlightId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < CAPACITY => {
                self.slots.push(Slot { uses: self.floor, value: None });
                self.slots.len() - 1
            }
            None => return None,
        };
        let entry = self.slots.get_mut(slot)?;
        // From 1 on: an id is never 0, which some servers take for none.
        entry.uses = (entry.uses + 1) % USES;
        entry.value = Some(value);
        Some(FlightId(entry.uses << SLOT_BITS | slot as u64))
    }

    fn slot(&self, id: FlightId) -> Option<usize> {
        let slot = usize::try_from(id.0 & ((1 << SLOT_BITS) - 1)).ok()?;
        (self.slots.get(slot)?.uses == id.0 >> SLOT_BITS).then_some(slot)
    }

    pub(super) fn get(&self, id: FlightId) -> Option<&T> {
        self.slots.get(self.slot(id)?)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: FlightId) -> Option<&mut T> {
        let slot = self.slot(id)?;
        self.slots.get_mut(slot)?.value.as_mut()
    }

    /// Takes a value out; its id is never used again.
    pub(super) fn remove(&mut self, id: FlightId) -> Option<T> {
        let slot = self.slot(id)?;
        let value = self.slots.get_mut(slot)?.value.take()?;
        self.free.push(slot);
        if self.free.len() == self.slots.len() && self.slots.len() > KEPT {
            self.floor = self.slots.iter().map(|slot| slot.uses).max().unwrap_or(self.floor);
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
        Some(value)
    }

    /// All values with their ids, in the order of their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (FlightId, &T)> {
        self.slots.iter().enumerate().filter_map(|(slot, entry)| {
            Some((FlightId(entry.uses << SLOT_BITS | slot as u64), entry.value.as_ref()?))
        })
    }

    /// The ids of the values for which this holds.
    pub(super) fn ids(&self, mut which: impl FnMut(&T) -> bool) -> Vec<FlightId> {
        self.iter().filter(|(_, value)| which(value)).map(|(id, _)| id).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Until when a request may run: so long without progress, and so long in all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    pub(super) idle: Duration,
    pub(super) max: Duration,
    pub(super) began: Instant,
    pub(super) moved: Instant,
}

impl Deadline {
    pub(super) fn new(idle: Duration, max: Duration, now: Instant) -> Self {
        Self { idle, max, began: now, moved: now }
    }

    /// When it is over, unless progress comes.
    pub(super) fn end(&self) -> Instant {
        (self.moved + self.idle).min(self.began + self.max)
    }

    /// Why it is over; `None`: it is not.
    pub(super) fn over(&self, now: Instant) -> Option<String> {
        if now >= self.began + self.max {
            Some(format!("no answer within {} s in all (callMaxMs)", self.max.as_secs_f64()))
        } else if now >= self.moved + self.idle {
            let seconds = self.idle.as_secs_f64();
            Some(format!("neither answer nor progress for {seconds} s (callIdleTimeoutMs)"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_finds_its_own_value_only() {
        let mut slab = Slab::default();
        let first = slab.insert("a").unwrap();
        let second = slab.insert("b").unwrap();
        assert_eq!(slab.remove(first), Some("a"));
        let third = slab.insert("c").unwrap();
        assert_ne!(first, third);
        assert_eq!((slab.get(first), slab.get(second), slab.get(third)), (None, Some(&"b"), Some(&"c")));
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.len(), 2);
        assert_eq!(slab.ids(|value| *value == "c"), [third]);
        assert_eq!(slab.get(FlightId(u64::MAX)), None);
    }

    #[test]
    fn a_burst_gives_its_memory_back_and_its_ids_stay_used() {
        let mut slab = Slab::default();
        let ids: Vec<FlightId> = (0..=KEPT).map(|n| slab.insert(n).unwrap()).collect();
        for id in &ids {
            slab.remove(*id);
        }
        assert_eq!((slab.len(), slab.slots.capacity()), (0, 0));
        let next = slab.insert(7).unwrap();
        assert!(!ids.contains(&next));
        assert!(ids.iter().all(|id| slab.get(*id).is_none()));
    }

    #[test]
    fn ids_stay_exact_in_every_reader() {
        let mut slab = Slab::default();
        for _ in 0..10_000 {
            let id = slab.insert(()).unwrap();
            assert!(id.0 > 0 && id.0 < 1 << 53);
            slab.remove(id);
        }
        assert_eq!(slab.slots.len(), 1);
    }
}
