//! Scenarios of the end: stdin closes, the front is terminated or killed, and nothing may be left.

use std::time::Duration;

use rustix::process::Signal;

use super::Scene;
use crate::front::Link;
use crate::proc;

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

impl Scene<'_> {
    pub(super) fn stdin_closes(&mut self) {
        let ids = if self.name == "stdin_close_inflight" { self.in_flight(3, 900) } else { vec![] };
        if let Link::Stdio(link) = &mut self.run.link {
            link.close_stdin();
        }
        if !ids.is_empty() {
            self.collect(&ids, seconds(12));
        }
        self.front_state("front_state", seconds(12));
        self.upstream_state(seconds(4));
    }

    pub(super) fn terminated(&mut self) {
        let ids = if self.name == "sigterm_inflight" { self.in_flight(3, 900) } else { vec![] };
        proc::signal(self.run.pid, Signal::TERM);
        if !ids.is_empty() {
            self.collect(&ids, seconds(6));
        }
        self.front_state("front_state", seconds(8));
        self.upstream_state(seconds(4));
    }

    pub(super) fn killed(&mut self) {
        proc::signal(self.run.pid, Signal::KILL);
        self.front_state("front_state", seconds(3));
        self.upstream_state(seconds(4));
    }
}
