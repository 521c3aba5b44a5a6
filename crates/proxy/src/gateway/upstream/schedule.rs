//! Owns when a list that has changed is asked for again: soon after a change, and rarely when changes do not end. Pure:
//! the time is given.

use std::time::Duration;

use tokio::time::Instant;

/// Changes that come together are one.
const GATHER: Duration = Duration::from_millis(50);
/// Between two listings; doubled while changes do not end.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest time between two listings.
const LONGEST: Duration = Duration::from_secs(30);

/// The changes of one list.
#[derive(Debug)]
pub(super) struct Schedule {
    /// After a change.
    due: Option<Instant>,
    /// Without one.
    expiry: Option<Instant>,
    last: Option<Instant>,
    pause: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { due: None, expiry: None, last: None, pause: PAUSE }
    }
}

impl Schedule {
    /// The server says that the list has changed.
    pub(super) fn changed(&mut self, now: Instant) {
        if self.due.is_some() {
            return;
        }
        let mut due = now + GATHER;
        if let Some(last) = self.last {
            if now >= last + self.pause * 4 {
                self.pause = PAUSE;
            } else {
                due = due.max(last + self.pause);
                self.pause = (self.pause * 2).min(LONGEST);
            }
        }
        self.due = Some(due);
    }

    /// It may have changed at `at` without a word.
    pub(super) fn expires(&mut self, at: Instant) {
        self.expiry = Some(at);
    }

    /// When it is to be asked for again.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.due, self.expiry].into_iter().flatten().min()
    }

    /// It is asked for now.
    pub(super) fn begun(&mut self, now: Instant) {
        self.due = None;
        self.expiry = None;
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_change_is_followed_at_once_and_a_flood_rarely() {
        let start = Instant::now();
        let mut schedule = Schedule::default();
        schedule.begun(start);
        let first = start + Duration::from_mins(1);
        schedule.changed(first);
        schedule.changed(first + Duration::from_millis(10));
        assert_eq!(schedule.due(), Some(first + GATHER));
        // A change each millisecond for ten minutes.
        let (mut now, mut listings) = (first, 0);
        while now < first + Duration::from_mins(10) {
            if schedule.due().is_some_and(|due| due <= now) {
                schedule.begun(now);
                listings += 1;
            }
            schedule.changed(now);
            now += Duration::from_millis(1);
        }
        assert!((20..40).contains(&listings), "{listings}");
        schedule.begun(now);
        let later = now + LONGEST * 5;
        schedule.changed(later);
        assert_eq!(schedule.due(), Some(later + GATHER), "forgotten after a pause");
    }

    #[test]
    fn an_expiry_does_not_push_a_change_away() {
        let now = Instant::now();
        let mut schedule = Schedule::default();
        schedule.expires(now + LONGEST);
        assert_eq!(schedule.due(), Some(now + LONGEST));
        schedule.begun(now);
        schedule.expires(now + LONGEST * 9);
        schedule.changed(now + LONGEST);
        assert_eq!(schedule.due(), Some(now + LONGEST + GATHER));
        schedule.begun(now + LONGEST * 2);
        assert_eq!(schedule.due(), None);
    }
}
