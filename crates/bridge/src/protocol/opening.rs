//! Owns the opening and closing of runs, and what else is asked of a run as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use toolway_wire::Id;

use super::answers::{Ended, ExposedShown, FactsShown, HiddenShown, RunOpened, ServerDefinition};
use super::connection::{Answer, Connection, Done, LiveRun, MOST_RUNS, Outcome, Reply, Spoken};
use super::dispatch::done;
use super::fault::Fault;
use super::inbox::Sink;
use super::requests::{CallDelivery, EndOfRun, OfRun, OpenRun};
use super::session::{Session, Surface, deadlines_shown};
use crate::deadline::Deadlines;
use crate::error::BridgeError;
use crate::live::{LiveQueue, Pace};
use crate::registry::{Bridge, BridgeConfig};
use crate::run::{Facts, Run};
use crate::snapshot::{HiddenReason, Snapshot};

/// A run that was to be opened.
#[derive(Debug)]
pub(super) struct Opening {
    session: String,
    calls: CallDelivery,
    attach: bool,
    warnings: Vec<String>,
    deadlines: Deadlines,
    snapshot: Arc<Snapshot>,
    opened: Result<Option<Run>, BridgeError>,
}

impl Session {
    /// The bridge for runs with these deadlines. Bridges of other ones stay while they have runs.
    pub(super) fn bridge(
        &mut self,
        deadlines: Deadlines,
        spoken: &Spoken,
        config: &super::HostProtocolConfig,
    ) -> Bridge {
        if let Some(bridge) = self.bridges.iter().find(|bridge| bridge.config().deadlines == deadlines) {
            return bridge.clone();
        }
        let bridge = Bridge::new(BridgeConfig {
            deadlines,
            guard: config.guard.clone(),
            diagnostics: spoken.diagnostics.clone(),
            ..BridgeConfig::new(spoken.profile)
        });
        self.bridges.push(bridge.clone());
        bridge
    }
}

impl Connection {
    pub(super) fn open_run(&mut self, params: OpenRun, id: Option<Id>) -> Result<Reply, Fault> {
        let OpenRun { session: name, calls, attach } = params;
        if self.runs.len() + self.opening >= MOST_RUNS {
            return Err(Fault::limit("runs", MOST_RUNS));
        }
        let spoken = self.spoken()?.clone();
        let used: Vec<Deadlines> = self.runs.values().map(|live| live.run.deadlines()).collect();
        let config = self.config.clone();
        let session = self.session_mut(&name)?;
        let Surface { warnings, deadlines, snapshot, .. } = session.surface(&spoken);
        let snapshot = Arc::new(snapshot);
        session.bridges.retain(|bridge| {
            let own = bridge.config().deadlines;
            own == deadlines || used.contains(&own) || !bridge.runs().is_empty()
        });
        let bridge = session.bridge(deadlines, &spoken, &config);
        self.opening += 1;
        self.work.spawn(async move {
            let opened = bridge.open(Arc::clone(&snapshot)).await;
            let opening = Opening { session: name, calls, attach, warnings, deadlines, snapshot, opened };
            Done { id, outcome: Outcome::Opened(Box::new(opening)) }
        });
        Ok(Reply::Later)
    }

    /// The listener is there, or not.
    pub(super) fn opened(&mut self, opening: Opening) -> Result<Box<dyn Answer>, Fault> {
        let Opening { session: name, calls, attach, warnings, deadlines, snapshot, opened } = opening;
        self.opening -= 1;
        let run = opened.map_err(|error| Fault::refused(error.to_string()))?;
        let Some(session) = self.sessions.get(&name) else {
            // Closed meanwhile, and with it the run.
            return Err(Fault::unknown("session", &name));
        };
        let mut shown = RunOpened {
            run: None,
            server: None,
            reason: None,
            signature: snapshot.signature().to_owned(),
            exposed: exposed(&snapshot),
            hidden: hidden(&snapshot),
            deadlines: deadlines_shown(&deadlines),
            warnings,
        };
        let Some(run) = run else {
            let reason = if snapshot.is_enabled() { "no_exposed_tools" } else { "disabled" };
            shown.reason = Some(reason.to_owned());
            return Ok(Box::new(shown));
        };
        if run.is_disposed() {
            return Err(Fault::unknown("session", &name));
        }
        let skill_tool = self.spoken()?.profile.skill_tool;
        for tool in snapshot.exposed() {
            let tool = &tool.tool.name;
            if !session.has_tool(tool) && tool != skill_tool {
                run.withdraw(tool);
            }
        }
        let server = run.server();
        shown.run = Some(run.id().to_owned());
        shown.server = Some(ServerDefinition {
            key: server.key.to_owned(),
            kind: "http",
            url: server.url.expose().to_owned(),
        });
        let pace = match calls {
            CallDelivery::Each => Pace::AsTheyCome,
            CallDelivery::Batch => Pace::Batches,
        };
        let binding = attach.then(|| run.bind(Box::new(Sink::new(&self.inbox, run.id()))));
        let id = run.id().to_owned();
        let live = LiveRun { session: name, run, queue: LiveQueue::new(pace), binding, told: HashSet::new() };
        self.runs.insert(id, live);
        Ok(Box::new(shown))
    }

    pub(super) fn attach_run(&mut self, params: &OfRun) -> Result<Reply, Fault> {
        let inbox = Arc::clone(&self.inbox);
        let live = self.run_mut(&params.run)?;
        if live.binding.is_none() {
            live.binding = Some(live.run.bind(Box::new(Sink::new(&inbox, &params.run))));
        }
        done()
    }

    pub(super) fn detach_run(&mut self, params: &EndOfRun) -> Result<Reply, Fault> {
        let live = self.run_mut(&params.run)?;
        let rejected_calls = live.run.pending();
        if let Some(reason) = &params.reason {
            live.run.cancel_all(reason);
        }
        live.run.detach();
        live.binding = None;
        Reply::now(Ended { rejected_calls })
    }

    pub(super) fn cancel_run(&mut self, params: &EndOfRun) -> Result<Reply, Fault> {
        let live = self.run(&params.run)?;
        let rejected_calls = live.run.pending();
        live.run.cancel_all(params.reason.as_deref().unwrap_or("the host cancelled the run"));
        Reply::now(Ended { rejected_calls })
    }

    pub(super) fn close_run(&mut self, params: &EndOfRun, id: Option<Id>) -> Result<Reply, Fault> {
        let live = self.run(&params.run)?;
        let (run, rejected_calls) = (live.run.clone(), live.run.pending());
        let reason = params.reason.clone().unwrap_or_else(|| "the host closed the run".to_owned());
        self.work.spawn(async move {
            run.dispose(&reason).await;
            Done { id, outcome: Outcome::Closed { runs: vec![run.id().to_owned()], rejected_calls } }
        });
        Ok(Reply::Later)
    }

    pub(super) fn run_usage(&mut self, params: &OfRun) -> Result<Reply, Fault> {
        self.run_mut(&params.run)?.queue.usage();
        done()
    }

    pub(super) fn run_facts(&mut self, params: &OfRun) -> Result<Reply, Fault> {
        let facts = self.run(&params.run)?.run.facts();
        Reply::now(facts_shown(&facts))
    }
}

pub(super) fn facts_shown(facts: &Facts) -> FactsShown {
    let Facts { exposed, connected, listed, called } = *facts;
    FactsShown { exposed, connected, listed, called }
}

pub(super) fn exposed(snapshot: &Snapshot) -> Vec<ExposedShown> {
    let shown = |tool: &crate::snapshot::ExposedTool| ExposedShown {
        name: tool.mcp_name.clone(),
        tool: tool.tool.name.clone(),
    };
    snapshot.exposed().iter().map(shown).collect()
}

pub(super) fn hidden(snapshot: &Snapshot) -> Vec<HiddenShown> {
    let shown = |tool: &crate::snapshot::HiddenTool| HiddenShown {
        tool: tool.name.clone(),
        reason: reason(tool.reason),
        text: tool.reason.to_string(),
    };
    snapshot.hidden().iter().map(shown).collect()
}

fn reason(reason: HiddenReason) -> &'static str {
    match reason {
        HiddenReason::Disabled => "disabled",
        HiddenReason::Inactive => "inactive",
        HiddenReason::Unregistered => "unregistered",
        HiddenReason::Excluded => "excluded",
        HiddenReason::OwnDisplayTool => "own_display_tool",
        HiddenReason::Builtin => "builtin",
        HiddenReason::Replaced => "replaced",
    }
}
