//! Owns when a server that was lost is started again, and when no more. Pure: knows no clock.

use std::time::Duration;

/// Before the second start; doubled each time.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_mins(1);
/// After so many starts that did not last it is left alone until somebody needs it.
const STARTS: u32 = 10;
/// A connection that lived so long counts as a success.
const STABLE: Duration = Duration::from_secs(30);

/// Counts starts that did not last.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Start it again after this pause.
    After(Duration),
    /// Leave it alone: so many starts did not last.
    GiveUp(u32),
}

impl Backoff {
    /// It failed, after having been connected for so long.
    pub(super) fn failed(&mut self, lived: Duration) -> Next {
        if lived >= STABLE {
            self.failures = 0;
        }
        self.failures += 1;
        if self.failures >= STARTS {
            return Next::GiveUp(self.failures);
        }
        Next::After((FIRST * 2_u32.pow(self.failures - 1)).min(LONGEST))
    }

    /// The same for what is never left alone.
    pub(super) fn pause(&mut self, lived: Duration) -> Duration {
        match self.failed(lived) {
            Next::After(pause) => pause,
            Next::GiveUp(_) => LONGEST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_cap_and_end() {
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        while let Next::After(pause) = backoff.failed(Duration::ZERO) {
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.failed(Duration::ZERO), Next::GiveUp(11), "also when somebody tried again");
    }

    #[test]
    fn what_is_never_left_alone_is_tried_at_the_longest_pause() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..12).map(|_| backoff.pause(Duration::ZERO).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
        assert_eq!(backoff.pause(STABLE), FIRST);
    }

    #[test]
    fn a_connection_that_lasted_begins_anew() {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.failed(Duration::from_secs(1));
        }
        assert_eq!(backoff.failed(STABLE), Next::After(FIRST));
    }
}
