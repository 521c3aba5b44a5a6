//! Owns the replay of one agent run: tool events go in, cards and traces come out. Pure state; it has no clock.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::activity::{AgentToolEvent, OutputStream, ToolActivity};
use super::card::{Card, CardBlock};
use super::dedup::{self, Dedup};
use super::incomplete::{self, Notice, RunEnd};
use super::kind::ToolKind;
use super::lenient;
use super::limits::{self, LABEL, Limit, TRACE_BODY, TRANSCRIPT};
use super::matrix::{Made, Matrix};
use super::pending_line::{self, PendingLines};
use super::preview::{PreviewFiles, Sight, Wish};
use super::routing::{ReplayContext, Route};
use super::shell_output::ShellOutput;
use super::trace::{Trace, TraceKind};
use crate::call::CallId;
use crate::profile::Profile;
use crate::scrub::Scrubber;

/// Calls that are open at once; of more, the oldest is forgotten.
const OPEN: usize = 4096;
/// What their arguments may weigh together, in bytes; beyond it the oldest is forgotten as well.
const OPEN_BYTES: usize = 64 << 20;
/// Output of running commands that is kept.
const OUTPUT_BYTES: usize = 8 << 20;
/// Notices of calls that did not complete; of more, the number is said.
const NOTICES: usize = 50;

/// What is to be shown.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most of them are cards, and there are few at a time")]
pub enum ReplayOutput {
    /// A tool call with a recorded result. Whoever emits it keeps it in the records first.
    Card {
        /// The id of the tool call.
        id: CallId,
        /// What it shows.
        card: Card,
    },
    /// A text for a thinking block.
    Trace(Trace),
    /// A line for the diagnostics, which the user does not see.
    Debug(String),
}

/// A call that was started.
#[derive(Debug)]
struct Open {
    activity: ToolActivity,
    order: u64,
    output: ShellOutput,
}

/// The display of what an agent does by itself, for one run of it; a run can span several turns of the host.
#[derive(Debug)]
pub struct Replay {
    context: ReplayContext,
    scrubber: Scrubber,
    files: Arc<dyn PreviewFiles>,
    /// What was seen of files ahead.
    sight: Option<Sight>,
    open: HashMap<String, Open>,
    started: u64,
    hidden: HashSet<String>,
    hidden_order: VecDeque<String>,
    dedup: Dedup,
    pending: PendingLines,
    /// Cards so far: the last part of the next id.
    cards: u64,
}

impl Replay {
    /// Nothing was shown yet.
    pub fn new(context: ReplayContext, scrubber: Scrubber, files: Arc<dyn PreviewFiles>) -> Self {
        Self {
            context,
            scrubber,
            files,
            sight: None,
            open: HashMap::new(),
            started: 0,
            hidden: HashSet::new(),
            hidden_order: VecDeque::new(),
            dedup: Dedup::default(),
            pending: PendingLines::default(),
            cards: 0,
        }
    }

    /// The host's next turn: another context list, another part of the ids.
    pub fn set_context(&mut self, context: ReplayContext) {
        self.context = context;
    }

    /// What texts are scrubbed of, to add a key or an endpoint.
    pub fn scrubber(&mut self) -> &mut Scrubber {
        &mut self.scrubber
    }

    /// The agent's id of a call that is one of the bridge: nothing of it is shown, now or later.
    pub fn hide(&mut self, id: &str) {
        if id.is_empty() {
            return;
        }
        self.open.remove(id);
        self.pending.stop(id);
        if self.hidden.insert(id.to_owned()) {
            self.hidden_order.push_back(id.to_owned());
        }
        if self.hidden_order.len() > OPEN
            && let Some(oldest) = self.hidden_order.pop_front()
        {
            self.hidden.remove(&oldest);
        }
    }

    /// An event of the agent's.
    pub fn on(&mut self, event: &AgentToolEvent, now: Instant) -> Vec<ReplayOutput> {
        match event {
            AgentToolEvent::Started(activity) | AgentToolEvent::Partial(activity) => {
                self.start(activity, now);
                Vec::new()
            }
            AgentToolEvent::Completed(activity) => self.complete(activity).into_iter().collect(),
            AgentToolEvent::Output { id, stream, text } => {
                self.output(id.as_deref(), *stream, text).into_iter().collect()
            }
        }
    }

    /// The file that [`Self::on`] would look at for this event, and wait for the disk meanwhile. Who must not wait has it
    /// looked at before, by [`Sight::of`].
    pub fn wish(&self, event: &AgentToolEvent) -> Option<Wish> {
        let AgentToolEvent::Completed(activity) = event else { return None };
        if self.is_hidden(activity) || self.dedup.knows(&activity.id) {
            return None;
        }
        let started = self.open.get(&activity.id).map(|open| {
            let mut known = open.activity.clone();
            known.update(activity);
            known
        });
        let (path, limit) = Matrix::wanted(started.as_ref().unwrap_or(activity))?;
        Some(Wish { files: Arc::clone(&self.files), cwd: self.context.cwd.clone(), path, limit })
    }

    /// What was seen of files. Until it is taken back nothing else is looked at.
    pub fn see(&mut self, sight: Option<Sight>) {
        self.sight = sight;
    }

    /// When [`Self::poll`] has something to say.
    pub fn next_due(&self) -> Option<Instant> {
        self.pending.next_due()
    }

    /// The lines of tools that are still running.
    pub fn poll(&mut self, now: Instant) -> Vec<ReplayOutput> {
        let due = self.pending.take_due(now);
        due.iter().filter_map(|id| self.pending_line(id)).map(ReplayOutput::Trace).collect()
    }

    /// The run is over: no timer is left, and what never completed is told.
    pub fn finish(&mut self, end: RunEnd) -> Vec<ReplayOutput> {
        self.pending.clear();
        let mut open: Vec<Open> = self.open.drain().map(|(_, open)| open).collect();
        open.sort_by_key(|open| open.order);
        let more = open.len().saturating_sub(NOTICES);
        let mut out = Vec::new();
        for open in open.iter().take(NOTICES) {
            self.dedup.is_new(&open.activity.id);
            out.push(self.incomplete(&open.activity, end));
        }
        if more > 0 {
            let text = format!("{} did not complete: {}", limits::plural(more, "more tool"), end.reason());
            out.push(match end.notice() {
                Notice::Debug => ReplayOutput::Debug(text),
                Notice::Trace | Notice::Card => ReplayOutput::Trace(Trace::line(TraceKind::Incomplete, text)),
            });
        }
        out
    }

    fn is_hidden(&self, activity: &ToolActivity) -> bool {
        self.hidden.contains(&activity.id)
            || Profile::ALL.iter().any(|profile| activity.id.starts_with(profile.run_prefix))
    }

    fn start(&mut self, activity: &ToolActivity, now: Instant) {
        let id = activity.id.as_str();
        if id.is_empty() || self.is_hidden(activity) || self.dedup.knows(id) {
            return;
        }
        if let Some(open) = self.open.get_mut(id) {
            return open.activity.update(activity);
        }
        let mut weight = activity.args.bytes().len();
        weight += self.open.values().map(|open| open.activity.args.bytes().len()).sum::<usize>();
        while self.open.len() >= OPEN || (weight > OPEN_BYTES && !self.open.is_empty()) {
            let oldest = self.open.iter().min_by_key(|(_, open)| open.order).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.pending.stop(&oldest);
                let gone = self.open.remove(&oldest);
                weight -= gone.map_or(0, |open| open.activity.args.bytes().len());
            }
        }
        self.started += 1;
        let open = Open { activity: activity.clone(), order: self.started, output: ShellOutput::default() };
        self.open.insert(id.to_owned(), open);
        if Matrix::kind(activity).is_announced() {
            self.pending.start(id, now);
        }
    }

    fn complete(&mut self, activity: &ToolActivity) -> Option<ReplayOutput> {
        if self.is_hidden(activity) || !self.dedup.is_new(&activity.id) {
            return None;
        }
        let open = self.open.remove(&activity.id);
        self.pending.stop(&activity.id);
        let (activity, output, started) = match open {
            Some(mut open) => {
                open.activity.update(activity);
                (open.activity, open.output.whole(), true)
            }
            // A completion under another id than its start's counts for that start.
            None => match self.clear_twin(activity) {
                Some(twin) => (activity.clone(), twin.output.whole(), true),
                None => (activity.clone(), None, false),
            },
        };
        let made = self.matrix(TRANSCRIPT).card(&activity, output.as_deref());
        if !self.dedup.admit(dedup::fingerprint(&made.card), started) {
            return None;
        }
        Some(match self.context.route(&made.card.tool) {
            Route::Line => ReplayOutput::Trace(Trace::inactive(&self.scrubber, &made.card)),
            Route::Card => match self.next_id() {
                Some(id) => ReplayOutput::Card { id, card: made.card },
                None => ReplayOutput::Trace(self.trace(&activity, output.as_deref())),
            },
            Route::Trace => ReplayOutput::Trace(self.trace(&activity, output.as_deref())),
        })
    }

    /// A trace with less room for the same.
    fn trace(&self, activity: &ToolActivity, output: Option<&str>) -> Trace {
        let Made { mut card, brief } = self.matrix(TRACE_BODY).card(activity, output);
        if let Some(text) = brief {
            card.content = vec![CardBlock::Text { text }];
        }
        Trace::completed(&self.scrubber, &card)
    }

    /// A completion under another id than its start's: if just one start fits, it is over.
    fn clear_twin(&mut self, activity: &ToolActivity) -> Option<Open> {
        let kind = ToolKind::of(&activity.kind);
        let args = comparable(activity);
        let mut twins = self.open.iter().filter(|(_, open)| {
            let same = open.activity.kind == activity.kind
                || (kind != ToolKind::Unknown && kind == ToolKind::of(&open.activity.kind));
            same && comparable(&open.activity) == args
        });
        let id = twins.next().map(|(id, _)| id.clone())?;
        if twins.next().is_some() {
            return None;
        }
        self.pending.stop(&id);
        self.open.remove(&id)
    }

    /// The next id; none that is too long for other providers.
    fn next_id(&mut self) -> Option<CallId> {
        self.cards += 1;
        let ReplayContext { profile, started_ms, turn, .. } = &self.context;
        let id = format!("{}{started_ms}-{turn}-tool-{}", profile.replay_prefix, self.cards);
        (id.len() <= CallId::MAX).then(|| CallId::new(&id))
    }

    fn output(&mut self, id: Option<&str>, stream: OutputStream, text: &str) -> Option<ReplayOutput> {
        let shells: Vec<&String> = self
            .open
            .iter()
            .filter(|(_, open)| ToolKind::of(&open.activity.kind) == ToolKind::Shell)
            .map(|(id, _)| id)
            .collect();
        let only = match shells.as_slice() {
            [only] => Some((*only).clone()),
            _ => None,
        };
        // Without a name it can only be told whose output it is if one command runs.
        let id = match id.filter(|id| self.open.contains_key(*id)) {
            Some(id) => id.to_owned(),
            None => only.clone()?,
        };
        let kept: usize = self.open.values().map(|open| open.output.len()).sum();
        let room = OUTPUT_BYTES.saturating_sub(kept);
        let line = self.open.get_mut(&id)?.output.add(&self.scrubber, stream, text, room)?;
        only.filter(|only| *only == id)?;
        let text = format!("{} shell {line}", self.context.profile.card_title);
        Some(ReplayOutput::Trace(Trace::line(TraceKind::Output, text)))
    }

    fn pending_line(&mut self, id: &str) -> Option<Trace> {
        let activity = &self.open.get(id)?.activity;
        let matrix = self.matrix(TRANSCRIPT);
        let (kind, title) = (Matrix::kind(activity), matrix.title(activity));
        let args = lenient::object(&activity.args);
        let mut summary = matrix.summary(kind, &args, &serde_json::Map::new(), &activity.args);
        if kind != ToolKind::Shell {
            summary = pending_line::without_places(&summary);
        }
        let text = if summary.is_empty() {
            format!("{title} is running")
        } else {
            format!("{title} is running: {summary}")
        };
        let text = limits::label(&self.scrubber, &text, LABEL);
        let call = format!("{}\n{}", activity.kind, comparable(activity));
        // Both are noted, so that neither comes again.
        let (new_call, new_text) = (self.pending.is_new(call), self.pending.is_new(text.clone()));
        (new_call && new_text).then(|| Trace::line(TraceKind::Pending, text))
    }

    fn incomplete(&mut self, activity: &ToolActivity, end: RunEnd) -> ReplayOutput {
        let display_tool = self.context.profile.display_tool;
        let title = self.matrix(TRANSCRIPT).title(activity);
        let source = limits::label(&self.scrubber, &activity.kind, limits::NAME);
        let card = incomplete::card(display_tool, title, source, end);
        let trace = |card: &Card| Trace::line(TraceKind::Incomplete, card.text());
        match (end.notice(), self.context.route(display_tool)) {
            (Notice::Debug, _) => ReplayOutput::Debug(card.text()),
            (Notice::Card, Route::Card) => match self.next_id() {
                Some(id) => ReplayOutput::Card { id, card },
                None => ReplayOutput::Trace(trace(&card)),
            },
            (Notice::Trace | Notice::Card, _) => ReplayOutput::Trace(trace(&card)),
        }
    }

    fn matrix(&self, limit: Limit) -> Matrix<'_> {
        Matrix {
            profile: &self.context.profile,
            scrubber: &self.scrubber,
            cwd: &self.context.cwd,
            files: self.sight.as_ref().map_or(&*self.files, |sight| sight),
            task_presentation: self.context.task_presentation,
            limit,
        }
    }
}

/// The arguments, without the call's own id, which some agents repeat there.
fn comparable(activity: &ToolActivity) -> Value {
    let mut args = lenient::object(&activity.args);
    for name in ["toolCallId", "tool_call_id", "callId"] {
        args.remove(name);
    }
    Value::Object(args)
}
