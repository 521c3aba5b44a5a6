//! Owns the calls of a step: which can be made, in what order, and what they gave.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use toolway_bridge::RawJson;

use super::{Effect, Offered, Phase, Shown, TurnLoop};
use crate::engine::TurnStop;
use crate::event::{Delta, EventKind, ToolCallEvent, ToolCallStatus, Truncated, Usage};
use crate::native::model::{ModelCall, ToolAnswer, UserPart};

/// How many calls run at once.
const TOGETHER: usize = 8;
/// How many calls of one answer are made.
const MOST_CALLS: usize = 64;
/// How deep arguments may be nested.
const DEPTH: usize = 100;
/// The same calls with the same results: told, and ended.
const SAME_TOLD: u32 = 5;
const SAME_ENDED: u32 = 20;
/// Steps in a row whose calls could all not be made.
const REFUSED_ENDED: u32 = 8;

/// A call that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedCall {
    /// Its id, unique in the conversation.
    pub(crate) id: String,
    /// The name as the model said it.
    pub(crate) name: String,
    /// A JSON object.
    pub(crate) arguments: RawJson,
    shown: Shown,
    shown_arguments: RawJson,
    together: bool,
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct CallDone {
    /// Its id.
    pub(crate) id: String,
    /// What the model gets.
    pub(crate) content: Vec<UserPart>,
    /// It failed.
    pub(crate) is_error: bool,
    /// What events show.
    pub(crate) result: RawJson,
    /// That is a part of it: all of it is saved. Messages leave it out and say so, and who listens gets the part.
    pub(crate) is_part: bool,
    /// Tokens that it used itself.
    pub(crate) usage: Usage,
    /// What they cost, in US dollars.
    pub(crate) cost: Option<f64>,
}

/// The calls of a step.
#[derive(Debug, Default)]
pub(super) struct Calls {
    waiting: VecDeque<PlannedCall>,
    running: Vec<PlannedCall>,
    print: DefaultHasher,
    made: usize,
    /// The run ends with these calls.
    pub(super) stop: Option<TurnStop>,
}

/// What steps had in common with the ones before them.
#[derive(Debug, Default)]
pub(super) struct Sameness {
    print: Option<u64>,
    same: u32,
    refused: u32,
}

impl TurnLoop {
    /// Begins the calls of an answer.
    pub(super) fn begin_calls(&mut self, calls: Vec<ModelCall>) {
        let mut planned = Calls::default();
        for (place, call) in calls.into_iter().enumerate() {
            call.name.hash(&mut planned.print);
            call.arguments.hash(&mut planned.print);
            match self.plan(&call, place) {
                Ok(call) => planned.waiting.push_back(call),
                Err(text) => self.refuse(&call, text),
            }
        }
        planned.made = planned.waiting.len();
        self.phase = Phase::Calling(planned);
        self.next_batch();
    }

    fn plan(&self, call: &ModelCall, place: usize) -> Result<PlannedCall, String> {
        if place >= MOST_CALLS {
            return Err(format!(
                "This call was not made: an answer may have {MOST_CALLS} calls. Make it again in your next answer."
            ));
        }
        let arguments = arguments(&call.name, &call.arguments);
        let absent = || {
            let known = arguments.clone().unwrap_or_else(|_| RawJson::empty_object());
            self.offer.absent.of(&call.name, &known).map(|found| found.offered)
        };
        let known = self.offer.tools.get(&call.name).cloned();
        let offered = known.or_else(absent).ok_or_else(|| self.offer.unknown(&call.name))?;
        // A tool that comes late is not called with less than the model wrote either.
        let arguments = arguments?;
        let (Offered { together, shown }, shown_arguments) =
            match self.offer.resolve.of(&call.name, &arguments) {
                Some(resolved) => (resolved.offered, resolved.arguments),
                None => (offered, arguments.clone()),
            };
        let (id, name) = (call.id.clone(), call.name.clone());
        Ok(PlannedCall { id, name, arguments, shown, shown_arguments, together })
    }

    /// A call that cannot be made begins and ends at once.
    fn refuse(&mut self, call: &ModelCall, text: String) {
        let args = serde_json::from_str::<serde_json::Value>(&call.arguments)
            .unwrap_or_else(|_| serde_json::Value::String(call.arguments.clone()));
        let event = |status, result| ToolCallEvent {
            call_id: call.id.clone(),
            name: call.name.clone(),
            status,
            args: Some(RawJson::of(&args)),
            result,
            truncated: Truncated::default(),
        };
        let result = RawJson::of(&serde_json::json!({ "error": text }));
        let ended = event(ToolCallStatus::Error, Some(result));
        self.event(EventKind::ToolCall(event(ToolCallStatus::Running, None)));
        self.event(EventKind::ToolCall(ended.clone()));
        self.delta(Delta::ToolCallCompleted(ended));
        self.conversation.push_result(error_answer(&call.id, &call.name, text));
    }

    /// Begins what may begin now.
    pub(super) fn next_batch(&mut self) {
        let Phase::Calling(calls) = &mut self.phase else { return };
        if !calls.running.is_empty() {
            return;
        }
        if calls.stop.is_some() {
            for call in std::mem::take(&mut calls.waiting) {
                let text = "This call was not begun: the run was ended before it.".to_owned();
                self.conversation.push_result(error_answer(&call.id, &call.name, text));
            }
            self.calls_done();
            return;
        }
        let mut batch: Vec<PlannedCall> = calls.waiting.pop_front().into_iter().collect();
        while batch.iter().all(|call| call.together)
            && batch.len() < TOGETHER
            && calls.waiting.front().is_some_and(|call| call.together)
        {
            batch.extend(calls.waiting.pop_front());
        }
        if batch.is_empty() {
            self.calls_done();
            return;
        }
        let first = calls.waiting.len() + batch.len() == calls.made;
        calls.running.clone_from(&batch);
        if !first {
            self.effects.push_back(Effect::Checkpoint);
        }
        for call in &batch {
            let event = call.event(ToolCallStatus::Running, None);
            self.event(EventKind::ToolCall(event.clone()));
            self.delta(Delta::ToolCallStarted(event));
        }
        self.effects.push_back(Effect::Run(batch));
    }

    /// A call ended.
    pub(super) fn call_done(&mut self, done: CallDone) {
        let Phase::Calling(calls) = &mut self.phase else { return };
        let Some(place) = calls.running.iter().position(|call| call.id == done.id) else { return };
        let call = calls.running.remove(place);
        let CallDone { id, content, is_error, result, is_part, usage, cost } = done;
        for part in &content {
            match part {
                UserPart::Text(text) => text.hash(&mut calls.print),
                UserPart::Image { data, .. } => data.len().hash(&mut calls.print),
            }
        }
        self.spend.add_other(usage, cost);
        let status = if is_error { ToolCallStatus::Error } else { ToolCallStatus::Completed };
        let mut event = call.event(status, Some(result));
        event.truncated.result = is_part;
        let whole = event.result.clone().filter(|_| !is_part);
        self.event(EventKind::ToolCall(ToolCallEvent { result: whole, ..event.clone() }));
        self.delta(Delta::ToolCallCompleted(event));
        self.conversation.push_result(ToolAnswer { call_id: id, name: call.name, content, is_error });
        self.next_batch();
    }

    fn calls_done(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        let Phase::Calling(calls) = phase else { return };
        self.effects.push_back(Effect::Checkpoint);
        let stop = calls.stop.or_else(|| self.same_again(calls.made, calls.print.finish()));
        match stop {
            Some(stop) => {
                self.delta(Delta::StepCompleted { step: self.step });
                self.end(stop);
            }
            None => self.step_done(None),
        }
    }

    /// Whether the model does the same again and again: it is told, and in the end it is stopped.
    fn same_again(&mut self, made: usize, print: u64) -> Option<TurnStop> {
        let sameness = &mut self.sameness;
        sameness.refused = if made == 0 { sameness.refused + 1 } else { 0 };
        sameness.same = if sameness.print == Some(print) { sameness.same + 1 } else { 1 };
        sameness.print = Some(print);
        if sameness.refused >= REFUSED_ENDED {
            let reason = format!(
                "the model asked {REFUSED_ENDED} times in a row for calls that cannot be made: it was stopped"
            );
            return Some(TurnStop::Limit(reason));
        }
        if sameness.same >= SAME_ENDED {
            let reason = format!(
                "the model made the same calls {SAME_ENDED} times in a row, with the same results: it was stopped"
            );
            return Some(TurnStop::Limit(reason));
        }
        if sameness.same >= SAME_TOLD {
            self.notice = Some(format!(
                "You have made the same calls {} times in a row, and their results did not change. Do something else, or \
                 say what you are waiting for.",
                sameness.same
            ));
        }
        None
    }
}

impl PlannedCall {
    fn event(&self, status: ToolCallStatus, result: Option<RawJson>) -> ToolCallEvent {
        let (name, args) = match &self.shown {
            Shown::Own => (self.name.clone(), self.shown_arguments.clone()),
            Shown::Mcp { server, tool } => {
                ("mcp".to_owned(), mcp_arguments(server, tool, &self.shown_arguments))
            }
        };
        let truncated = Truncated::default();
        ToolCallEvent { call_id: self.id.clone(), name, status, args: Some(args), result, truncated }
    }
}

/// `{providerIdentifier, toolName, args}` around arguments whose bytes stay as they are.
fn mcp_arguments(server: &str, tool: &str, arguments: &RawJson) -> RawJson {
    let text = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let (server, tool) = (text(server), text(tool));
    let json = format!(r#"{{"providerIdentifier":{server},"toolName":{tool},"args":{}}}"#, arguments.text());
    RawJson::new(json.into_bytes()).unwrap_or_else(|_| RawJson::empty_object())
}

fn error_answer(id: &str, name: &str, text: String) -> ToolAnswer {
    ToolAnswer {
        call_id: id.to_owned(),
        name: name.to_owned(),
        content: vec![UserPart::Text(text)],
        is_error: true,
    }
}

/// The arguments as an object, or what the model is told. Nothing at all is an empty object.
fn arguments(name: &str, raw: &str) -> Result<RawJson, String> {
    const SHOWN: usize = 200;
    if raw.trim().is_empty() {
        return Ok(RawJson::empty_object());
    }
    if raw.trim() == "null" {
        return Ok(RawJson::empty_object());
    }
    // Some models write the object as a text once more.
    let inner = serde_json::from_str::<String>(raw).ok().filter(|inner| inner.trim_start().starts_with('{'));
    // White space around it is nobody's argument.
    let raw = inner.as_deref().unwrap_or(raw).trim();
    let start: String = raw.chars().take(SHOWN).collect();
    let json = RawJson::new(raw.as_bytes().to_vec()).map_err(|error| {
        format!(
            "{name} was not called: its arguments are no JSON ({error}). They began with: {start}\nCall it again with one \
             JSON object."
        )
    })?;
    if !raw.starts_with('{') {
        return Err(format!(
            "{name} was not called: its arguments have to be a JSON object, and they are: {start}\nCall it again with one."
        ));
    }
    if depth(raw) > DEPTH {
        return Err(format!("{name} was not called: its arguments are nested more than {DEPTH} deep."));
    }
    Ok(json)
}

fn depth(json: &str) -> usize {
    let (mut depth, mut most, mut in_text, mut escaped) = (0usize, 0usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}
