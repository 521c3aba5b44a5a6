//! Owns the decision how a completed tool is shown: as a card, as a trace, or as one line.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::profile::Profile;
use crate::settings::TaskPresentation;

/// What a turn's replay goes by, captured when its stream starts: later changes of the registry do not count.
#[derive(Debug, Clone)]
pub struct ReplayContext {
    /// The names.
    pub profile: Profile,
    /// The session that records belong to.
    pub owner: String,
    /// Cards are on.
    pub display: bool,
    /// The host prints and ends: no cards.
    pub print_mode: bool,
    /// Names under which the adapter has registered a wrapper.
    pub wrappers: BTreeSet<String>,
    /// The tools in the turn's context, by host name.
    pub context_tools: BTreeSet<String>,
    /// The turn has a live run, which can hold a card.
    pub live_run: bool,
    /// The session's working directory: paths are shown relative to it.
    pub cwd: PathBuf,
    /// How tasks are titled.
    pub task_presentation: TaskPresentation,
    /// The wall clock at the start of the stream, in milliseconds: part of the ids.
    pub started_ms: u64,
    /// The number of the turn in this process: part of the ids.
    pub turn: u64,
}

/// How something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// As a recorded tool call.
    Card,
    /// As text in a thinking block.
    Trace,
    /// As one line: the host knows the wrapper, but the turn's model was not offered it.
    Line,
}

impl ReplayContext {
    /// How a card for that tool is shown.
    pub fn route(&self, tool: &str) -> Route {
        if !self.display || self.print_mode || !self.wrappers.contains(tool) {
            return Route::Trace;
        }
        match (self.context_tools.contains(tool), self.live_run) {
            (true, true) => Route::Card,
            (true, false) => Route::Trace,
            (false, _) => Route::Line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Route::{Card, Line, Trace};
    use super::*;

    fn context() -> ReplayContext {
        ReplayContext {
            profile: Profile::PI,
            owner: "s".to_owned(),
            display: true,
            print_mode: false,
            wrappers: ["grep", "bash"].map(str::to_owned).into(),
            context_tools: ["bash", "find"].map(str::to_owned).into(),
            live_run: true,
            cwd: "/w".into(),
            task_presentation: TaskPresentation::default(),
            started_ms: 0,
            turn: 0,
        }
    }

    #[test]
    fn the_route_follows_the_captured_context() {
        let with = |change: fn(&mut ReplayContext)| {
            let mut context = context();
            change(&mut context);
            ["bash", "grep", "find"].map(|tool| context.route(tool))
        };
        assert_eq!(with(|_| ()), [Card, Line, Trace]);
        assert_eq!(with(|it| it.display = false), [Trace, Trace, Trace]);
        assert_eq!(with(|it| it.print_mode = true), [Trace, Trace, Trace]);
        assert_eq!(with(|it| it.live_run = false), [Trace, Line, Trace]);
    }
}
