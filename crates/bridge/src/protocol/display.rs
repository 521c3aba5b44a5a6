//! Owns the display of what the agent's own tools did: what the host feeds in, what it is to show, and the recorded results
//! that its wrappers ask for. Nothing here runs a tool.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::time::Instant;
use toolway_wire::Id;

use super::answers::{DisplayItem, DisplayShown, RecordShown, ToolTaken, WrappersShown};
use super::connection::{Answer, Connection, Done, Outcome, Reply};
use super::dispatch::done;
use super::fault::Fault;
use super::requests::{
    BeginDisplay, DisplayMode, DisplayOutcome, DisplayTool, EndDisplay, Moment, SyncWrappers, TakeReplay,
};
use crate::replay::{
    AgentToolEvent, Disk, Records, Replay, ReplayContext, ReplayOutput, Replayed, RunEnd, Sight, TraceKind,
    WrapperMoment, WrapperPlan, WrapperSurroundings, Wrappers,
};
use crate::scrub::Scrubber;
use crate::settings::HostMode;

/// What is shown, and recorded, in all sessions.
#[derive(Debug, Default)]
pub(super) struct Display {
    replays: BTreeMap<String, Shown>,
    records: Option<Records>,
    turns: u64,
}

/// An event of the agent's, and the file that its card shows.
#[derive(Debug)]
pub(super) struct SeenTool {
    session: String,
    event: AgentToolEvent,
    sight: Sight,
}

/// The display of one session's agent run.
#[derive(Debug)]
struct Shown {
    run: Option<String>,
    replay: Replay,
}

impl Display {
    /// A session is over: its records fail from now on.
    pub(super) fn forget(&mut self, session: &str) {
        self.replays.remove(session);
        if let Some(records) = &mut self.records {
            records.forget(session);
        }
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        self.replays.values().filter_map(|shown| shown.replay.next_due()).min()
    }
}

impl Connection {
    pub(super) fn begin_display(&mut self, params: BeginDisplay) -> Result<Reply, Fault> {
        let BeginDisplay { session, run, cwd, mode, wrappers, context_tools, secrets } = params;
        let spoken = self.spoken()?;
        let (settings, _) = self.session(&session)?.settings(spoken.settings_file.as_deref());
        let live = run.as_deref().map(|run| self.run_of(&session, run)).transpose()?;
        let display = &settings.tools.display;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let context = ReplayContext {
            profile: spoken.profile,
            owner: session.clone(),
            display: display.native.shows(Some(host_mode(mode)), false),
            print_mode: mode == DisplayMode::Print,
            wrappers: wrappers.into_iter().collect::<BTreeSet<_>>(),
            context_tools: context_tools.into_iter().collect::<BTreeSet<_>>(),
            live_run: live.is_some(),
            cwd: PathBuf::from(cwd),
            task_presentation: display.task_presentation,
            started_ms: u64::try_from(started.as_millis()).unwrap_or_default(),
            turn: self.display.turns,
        };
        let mut scrubber = Scrubber::new();
        self.runs.values().for_each(|live| scrubber.add(&live.run.server().url));
        for secret in &secrets {
            scrubber.add(secret);
        }
        self.display.turns += 1;
        self.display.records.get_or_insert_with(|| Records::new(&context.profile));
        if let Some(shown) = self.display.replays.get_mut(&session) {
            shown.run = run;
            *shown.replay.scrubber() = scrubber;
            shown.replay.set_context(context);
        } else {
            let replay = Replay::new(context, scrubber, Arc::new(Disk));
            self.display.replays.insert(session, Shown { run, replay });
        }
        done()
    }

    pub(super) fn display_tool(
        &mut self,
        params: DisplayTool,
        id: Option<Id>,
        now: Instant,
    ) -> Result<Reply, Fault> {
        let DisplayTool { session, event } = params;
        self.session(&session)?;
        let Some(event) = AgentToolEvent::read(&event) else {
            return Reply::now(ToolTaken { tool: false, own: false });
        };
        let own = event.activity().is_some_and(|activity| {
            let invocation = activity.invocation();
            let mut runs = self.runs.values().filter(|live| live.session == session);
            runs.any(|live| live.run.is_own_activity(&invocation))
        });
        let shown = self.display.replays.get_mut(&session);
        let shown = shown.ok_or_else(|| Fault::unknown("display", &session))?;
        if own {
            // The host shows it already, as a call of its own.
            shown.replay.hide(event.activity().map_or("", |activity| &activity.id));
            return Reply::now(ToolTaken { tool: true, own: true });
        }
        if let Some(wish) = shown.replay.wish(&event) {
            self.held += 1;
            self.work.spawn(async move {
                let sight = Sight::of(vec![wish]).await;
                Done { id, outcome: Outcome::Seen(Box::new(SeenTool { session, event, sight })) }
            });
            return Ok(Reply::Later);
        }
        let outputs = shown.replay.on(&event, now);
        self.show(&session, outputs);
        Reply::now(ToolTaken { tool: true, own: false })
    }

    /// The file was looked at that the event's card shows.
    pub(super) fn show_seen(&mut self, seen: SeenTool) -> Result<Box<dyn Answer>, Fault> {
        let SeenTool { session, event, sight } = seen;
        let shown = self.display.replays.get_mut(&session);
        let shown = shown.ok_or_else(|| Fault::unknown("display", &session))?;
        shown.replay.see(Some(sight));
        let outputs = shown.replay.on(&event, Instant::now());
        shown.replay.see(None);
        self.show(&session, outputs);
        Ok(Box::new(ToolTaken { tool: true, own: false }))
    }

    pub(super) fn end_display(&mut self, params: &EndDisplay) -> Result<Reply, Fault> {
        self.session(&params.session)?;
        let shown = self.display.replays.get_mut(&params.session);
        let shown = shown.ok_or_else(|| Fault::unknown("display", &params.session))?;
        let outputs = shown.replay.finish(match params.outcome {
            DisplayOutcome::Answered => RunEnd::Succeeded { text: true },
            DisplayOutcome::Silent => RunEnd::Succeeded { text: false },
            DisplayOutcome::Failed => RunEnd::Failed,
            DisplayOutcome::Aborted => RunEnd::Aborted,
            DisplayOutcome::Drained => RunEnd::Drained,
        });
        self.show(&params.session, outputs);
        self.display.replays.remove(&params.session);
        done()
    }

    pub(super) fn display_on_time(&mut self, now: Instant) {
        let due: Vec<(String, Vec<ReplayOutput>)> = self
            .display
            .replays
            .iter_mut()
            .filter(|(_, shown)| shown.replay.next_due().is_some_and(|due| due <= now))
            .map(|(session, shown)| (session.clone(), shown.replay.poll(now)))
            .collect();
        for (session, outputs) in due {
            self.show(&session, outputs);
        }
    }

    pub(super) fn take_replay(&mut self, params: &TakeReplay) -> Result<Reply, Fault> {
        let TakeReplay { session, id, tool } = params;
        let spoken = self.spoken()?;
        let profile = spoken.profile;
        let is_real = self.session(session)?.has_real_tool(tool, spoken);
        let records = self.display.records.get_or_insert_with(|| Records::new(&profile));
        if is_real && !records.is_replay(id) {
            return Reply::now(RecordShown::default());
        }
        // A card is of a turn, or of what the host itself had shown.
        let of_turn = self.turns.session(session).map(|session| session.replayed(tool, id));
        let taken = match of_turn {
            Some(Replayed::Refused(_)) | None => records.take(session, tool, id),
            Some(taken) => taken,
        };
        let (card, is_error) = match taken {
            Replayed::Ordinary => return Reply::now(RecordShown::default()),
            Replayed::Result(card) => (card, false),
            Replayed::Failed { card, .. } => (card, true),
            Replayed::Refused(refusal) => {
                let fault = Fault::new(Fault::UNKNOWN, refusal.to_string());
                return Err(fault.with(json!({ "kind": "record", "name": id })));
            }
        };
        Reply::now(RecordShown {
            recorded: true,
            content: serde_json::to_value(&card.content).unwrap_or_default(),
            details: card.details.as_ref().and_then(|details| serde_json::to_value(details).ok()),
            is_error,
        })
    }

    /// Which wrappers the host is to have at this moment.
    pub(super) fn sync_wrappers(&mut self, params: SyncWrappers) -> Result<Reply, Fault> {
        let SyncWrappers { session: name, moment, agent_model, active, foreign, display } = params;
        let spoken = self.spoken()?.clone();
        let session = self.session_mut(&name)?;
        let (settings, _) = session.settings(spoken.settings_file.as_deref());
        let mode = host_mode(display);
        let foreign: BTreeSet<String> = foreign.into_iter().collect();
        let surroundings = WrapperSurroundings {
            display: settings.tools.display.native.shows(Some(mode), false) && mode != HostMode::Print,
            agent_model,
            tools_disabled: active.is_empty(),
            active: &active,
            foreign: &foreign,
        };
        let moment = match moment {
            Moment::SessionStart => WrapperMoment::SessionStart,
            Moment::BeforeAgentStart => WrapperMoment::BeforeAgentStart,
            Moment::ModelSelect => WrapperMoment::ModelSelect,
            Moment::TurnStart => WrapperMoment::TurnStart,
        };
        let wrappers = session.wrappers.get_or_insert_with(|| Wrappers::new(&spoken.profile));
        let WrapperPlan { register, activate, deactivate, warnings } = wrappers.resync(moment, &surroundings);
        let wrappers = wrappers.registered().iter().cloned().collect();
        Reply::now(WrappersShown { register, activate, deactivate, wrappers, warnings })
    }

    /// Keeps what is a record, and tells the host.
    fn show(&mut self, session: &str, outputs: Vec<ReplayOutput>) {
        let mut items = Vec::with_capacity(outputs.len());
        for output in outputs {
            match output {
                ReplayOutput::Card { id, card } => {
                    items.push(DisplayItem::Card {
                        id: id.to_string(),
                        tool: card.tool.clone(),
                        title: card.title.clone(),
                        summary: card.summary.clone(),
                        arguments: card.args.clone(),
                        is_error: card.is_error,
                    });
                    if let Some(records) = &mut self.display.records {
                        records.keep(session, id, card);
                    }
                }
                ReplayOutput::Trace(trace) => {
                    items.push(DisplayItem::Trace { trace: trace_kind(trace.kind), text: trace.text });
                }
                ReplayOutput::Debug(text) => tracing::debug!("{text}"),
            }
        }
        if items.is_empty() {
            return;
        }
        let run = self.display.replays.get(session).and_then(|shown| shown.run.clone());
        self.notify("display/show", &DisplayShown { session: session.to_owned(), run, items });
    }
}

pub(super) fn host_mode(mode: DisplayMode) -> HostMode {
    match mode {
        DisplayMode::Tui => HostMode::Tui,
        DisplayMode::Json => HostMode::Json,
        DisplayMode::Rpc => HostMode::Rpc,
        DisplayMode::Print => HostMode::Print,
    }
}

fn trace_kind(kind: TraceKind) -> &'static str {
    match kind {
        TraceKind::Completed => "completed",
        TraceKind::Inactive => "inactive",
        TraceKind::Pending => "pending",
        TraceKind::Output => "output",
        TraceKind::Incomplete => "incomplete",
    }
}

impl Default for RecordShown {
    /// The id is none of a replay.
    fn default() -> Self {
        Self { recorded: false, content: Value::Array(Vec::new()), details: None, is_error: false }
    }
}
