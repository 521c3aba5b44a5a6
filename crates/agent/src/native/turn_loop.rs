//! Owns the turn loop: what happens between a prompt and its end, as a state machine. Inputs go in, effects come out; it
//! does no I/O, reads no clock and knows no tool by name.

mod answer;
mod calls;
mod ends;
mod offer;
mod spend;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::conversation::{Conversation, Origin};
use super::model::{ModelAnswer, Prices, UserPart};
use crate::engine::TurnStop;
use crate::error::AgentError;
use crate::event::{Delta, EventKind, Usage};
use crate::options::Limits;

pub(crate) use self::calls::{CallDone, PlannedCall};
use self::calls::{Calls, Sameness};
pub(crate) use self::offer::{Offer, Offered, Resolve, Resolved, Shown};
use self::spend::Spend;
use self::watch::Watch;

/// What happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// The answer to [`Effect::Boundary`]: what the user said meanwhile, and the tools that the next step has.
    Boundary { steering: Vec<String>, offer: Arc<Offer> },
    /// The model wrote text.
    Text(String),
    /// The model thought.
    Thinking(String),
    /// The model writes a call: all of its arguments so far.
    CallDelta { id: String, name: String, arguments: String },
    /// The model's service asks to wait.
    Retry { attempt: u32, delay: Duration, reason: String },
    /// The model's answer is whole.
    Answered(ModelAnswer),
    /// The model's stream failed, before or after it began.
    Broken { error: AgentError, remedy: Remedy },
    /// A call ended.
    CallDone(CallDone),
    /// The run is to end now.
    Stop(TurnStop),
    /// Something outside failed: the store.
    Failed(AgentError),
}

/// What can be done about a failed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Ask again.
    Again,
    /// Make the conversation shorter and ask again.
    Shorten,
    /// Nothing.
    None,
}

/// What is to be done, in this order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Tell.
    Event(EventKind),
    /// Tell those who listen.
    Delta(Delta),
    /// Keep the conversation before anything else is done.
    Checkpoint,
    /// A boundary: answer with [`Input::Boundary`].
    Boundary,
    /// Ask the model, after that long. `shorten`: the conversation is too long for it, whatever the estimate says.
    Ask { delay: Duration, shorten: bool },
    /// Drop the model's stream.
    Hush,
    /// Begin these calls, all at once.
    Run(Vec<PlannedCall>),
    /// End the calls that run; each still gives its [`Input::CallDone`].
    CancelCalls,
    /// The run is over.
    End(TurnStop),
    /// The run failed.
    Fail(AgentError),
}

/// How many times a step is asked in all when its stream breaks, where nobody says otherwise.
pub(crate) const ATTEMPTS: u32 = 3;
/// How many times a run goes on after an answer that was cut at its length limit.
const CONTINUATIONS: u32 = 3;

#[derive(Debug)]
enum Phase {
    /// At a boundary; with a stop, the model is done and only steering goes on.
    Boundary(Option<TurnStop>),
    /// The model answers.
    Answering,
    /// Calls run.
    Calling(Calls),
    /// It is over.
    Over,
}

/// What the model has shown of an answer that is not whole yet.
#[derive(Debug, Default)]
struct Partial {
    text: String,
    thinking: String,
    thought_from: Option<Duration>,
    thought_for: Option<Duration>,
}

/// A run's turn loop.
#[derive(Debug)]
pub(crate) struct TurnLoop {
    pub(crate) conversation: Conversation,
    limits: Limits,
    spend: Spend,
    watch: Watch,
    phase: Phase,
    offer: Arc<Offer>,
    step: u32,
    attempts: u32,
    attempt: u32,
    shortened: bool,
    continuations: u32,
    shown: Partial,
    /// The last text of the run.
    said: Option<String>,
    /// The call that was last shown while its arguments grow, and how long they were.
    partial_call: (String, usize),
    sameness: Sameness,
    /// What the loop has to tell the model with the next step.
    notice: Option<String>,
    now: Duration,
    effects: VecDeque<Effect>,
}

impl TurnLoop {
    /// A loop that goes on with a conversation. A step is asked so many times in all when its stream breaks.
    pub(crate) fn new(
        conversation: Conversation,
        limits: Limits,
        prices: Option<Prices>,
        attempts: u32,
    ) -> Self {
        Self {
            conversation,
            spend: Spend::new(prices),
            watch: Watch::default(),
            limits,
            phase: Phase::Over,
            offer: Arc::new(Offer::default()),
            step: 0,
            attempts,
            attempt: 1,
            shortened: false,
            continuations: 0,
            shown: Partial::default(),
            said: None,
            partial_call: (String::new(), 0),
            sameness: Sameness::default(),
            notice: None,
            now: Duration::ZERO,
            effects: VecDeque::new(),
        }
    }

    /// Begins with what the user says.
    pub(crate) fn start(&mut self, parts: Vec<UserPart>) {
        let text = parts.iter().filter_map(|part| match part {
            UserPart::Text(text) => Some(text.as_str()),
            UserPart::Image { .. } => None,
        });
        self.delta(Delta::UserMessageAppended(text.collect()));
        self.conversation.push_user(Origin::Prompt, parts);
        self.effects.push_back(Effect::Checkpoint);
        if self.limits.cost.is_some() && !self.spend.has_prices() {
            self.note(
                "limit",
                "the cost limit cannot be held: nothing is known of this model's prices".to_owned(),
            );
        }
        self.boundary(None);
    }

    /// The next thing to do.
    pub(crate) fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Tokens of the run so far, and what they cost where that is known.
    pub(crate) fn spent(&self) -> (Usage, Option<f64>) {
        (self.spend.usage(), self.spend.cost())
    }

    /// The last text that the model said in this run.
    pub(crate) fn said(&self) -> Option<&str> {
        self.said.as_deref()
    }

    /// Tokens for something else that belongs to the run: a summary.
    pub(crate) fn charge(&mut self, usage: Usage, cost: Option<f64>) {
        self.spend.add_other(usage, cost);
    }

    /// Takes what happened. `now` is the time since the run began.
    pub(crate) fn handle(&mut self, now: Duration, input: Input) {
        self.now = now;
        match input {
            Input::Boundary { steering, offer } => self.at_boundary(steering, offer),
            Input::Text(text) => self.text(text),
            Input::Thinking(text) => self.thinking(text),
            Input::CallDelta { id, name, arguments } => self.call_delta(id, name, arguments),
            Input::Retry { attempt, delay, reason } => {
                let millis = delay.as_millis();
                self.note(
                    "retry",
                    format!("the model is asked again in {millis} ms ({attempt} so far): {reason}"),
                );
            }
            Input::Answered(answer) => self.answered(answer),
            Input::Broken { error, remedy } => self.broken(error, remedy),
            Input::CallDone(done) => self.call_done(done),
            Input::Stop(stop) => self.stop(stop),
            Input::Failed(error) => self.fail(error),
        }
    }

    fn event(&mut self, kind: EventKind) {
        self.effects.push_back(Effect::Event(kind));
    }

    fn delta(&mut self, delta: Delta) {
        self.effects.push_back(Effect::Delta(delta));
    }

    fn note(&mut self, status: &str, text: String) {
        self.event(EventKind::Task { status: Some(status.to_owned()), text: Some(text) });
    }

    fn boundary(&mut self, stop: Option<TurnStop>) {
        self.phase = Phase::Boundary(stop);
        self.effects.push_back(Effect::Boundary);
    }

    fn at_boundary(&mut self, steering: Vec<String>, offer: Arc<Offer>) {
        let Phase::Boundary(stop) = &mut self.phase else { return };
        let stop = stop.take();
        let goes_on = !steering.is_empty();
        for text in steering {
            self.conversation.push_user(Origin::Steering, vec![UserPart::Text(text.clone())]);
            self.event(EventKind::User { text: text.clone() });
            self.delta(Delta::UserMessageAppended(text));
        }
        if let Some(stop) = stop
            && !goes_on
        {
            self.end(stop);
            return;
        }
        if let Some(text) = self.notice.take() {
            self.conversation.push_user(Origin::Notice, vec![UserPart::Text(text)]);
        }
        if let Some(reached) = self.spend.over(&self.limits, self.step) {
            if goes_on {
                self.effects.push_back(Effect::Checkpoint);
            }
            self.end(TurnStop::Limit(reached));
            return;
        }
        if goes_on {
            self.effects.push_back(Effect::Checkpoint);
        }
        self.offer = offer;
        self.step += 1;
        self.attempt = 1;
        self.shortened = false;
        self.delta(Delta::StepStarted { step: self.step });
        self.ask(Duration::ZERO, false);
    }

    fn ask(&mut self, delay: Duration, shorten: bool) {
        self.phase = Phase::Answering;
        self.shown = Partial::default();
        self.watch.begin();
        self.effects.push_back(Effect::Ask { delay, shorten });
    }

    fn end(&mut self, stop: TurnStop) {
        self.phase = Phase::Over;
        self.effects.push_back(Effect::End(stop));
    }
}

#[cfg(test)]
mod tests;
