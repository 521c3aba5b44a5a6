//! Owns the work of a run: it does what the turn loop says, with the model, the tools and the sink, and tells it what came
//! of it. It decides nothing that the loop can decide.

mod execute;
mod fit;
mod made;
mod task;
mod told;
mod waits;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use self::made::{absent, resolver, system};
use self::told::{cut_off, panicked};
use self::waits::{next_event, stopped, until};
use super::context::Window;
use super::conversation::Conversation;
use super::model::{Model, ModelEvent, ModelRequest, ModelStream, ToolSpec, UserPart};
use super::toolset::{Parts, Toolset};
use super::turn_loop::{CallDone, Effect, Input, PlannedCall, Remedy, TurnLoop};
use super::{NativeSetup, Surroundings, estimate, guarded};
use crate::engine::{RunSink, Steering, TurnEnd, TurnStop};
use crate::error::AgentError;
use crate::generation::{Generation, McpTool};
use crate::hooks::HookFacts;
use crate::options::{Limits, Mode, ModelChoice};
use crate::subagent::{Subagents, TASK};
use crate::tools::Capability;

/// How long calls have to end once they were cancelled.
const GRACE: Duration = Duration::from_secs(4);

/// What all calls of a run, or of a subagent, share.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) setup: Arc<NativeSetup>,
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) servers: Arc<Generation>,
    pub(super) sink: Arc<dyn RunSink>,
    pub(super) facts: HookFacts,
    pub(super) mode: Mode,
    pub(super) model: Arc<dyn Model>,
    pub(super) choice: ModelChoice,
    pub(super) subagents: Arc<Subagents>,
    /// Whose words stand before the conversation in place of ours.
    pub(super) words: Option<String>,
    /// It is a subagent's: it has none itself.
    pub(super) is_subagent: bool,
    /// The only tools that it has.
    pub(super) tools: Option<Vec<String>>,
    /// It has tools that read alone.
    pub(super) reads_only: bool,
    /// When it stops by itself.
    pub(super) limits: Limits,
}

/// A run on its way.
pub(super) struct Driver {
    work: Arc<Work>,
    turn: TurnLoop,
    toolset: Arc<Toolset>,
    /// What the toolset was made of.
    listed: Option<Arc<Vec<McpTool>>>,
    system: String,
    window: Window,
    ask: Option<(Duration, bool)>,
    stream: Option<Box<dyn ModelStream>>,
    /// Something of the answer came.
    has_begun: bool,
    /// Units of the request that is being answered.
    asked: u64,
    calls: JoinSet<CallDone>,
    running: HashMap<Id, String>,
    calls_cancel: CancellationToken,
    grace: Option<Instant>,
    steering: Steering,
    cancel: CancellationToken,
    deadline: Option<Instant>,
    is_stopping: bool,
    begun: Instant,
}

impl Driver {
    pub(super) async fn new(
        work: Arc<Work>,
        conversation: Conversation,
        steering: Steering,
        cancel: CancellationToken,
    ) -> Self {
        let facts = work.model.facts();
        let attempts = work.setup.attempts;
        let begun = Instant::now();
        let system = system(&work).await;
        Self {
            turn: TurnLoop::new(conversation, work.limits.clone(), facts.prices, attempts),
            toolset: Arc::new(Toolset::default()),
            listed: None,
            system,
            window: Window::new(facts.context),
            ask: None,
            stream: None,
            has_begun: false,
            asked: 0,
            calls: JoinSet::new(),
            running: HashMap::new(),
            calls_cancel: cancel.child_token(),
            grace: None,
            steering,
            deadline: work.limits.time.and_then(|time| begun.checked_add(time)),
            cancel,
            is_stopping: false,
            begun,
            work,
        }
    }

    /// Tokens so far, and what they cost.
    pub(super) fn spent(&self) -> (crate::event::Usage, Option<f64>) {
        self.turn.spent()
    }

    /// Executes a prompt to its end.
    pub(super) async fn run(&mut self, prompt: Vec<UserPart>) -> Result<TurnEnd, AgentError> {
        self.turn.start(prompt);
        loop {
            while let Some(effect) = self.turn.next_effect() {
                if let Some(end) = self.perform(effect).await {
                    self.calls.shutdown().await;
                    return end;
                }
            }
            let input = self.next_input().await;
            self.turn.handle(self.begun.elapsed(), input);
        }
    }

    /// Does one thing. The end, if it is that.
    async fn perform(&mut self, effect: Effect) -> Option<Result<TurnEnd, AgentError>> {
        match effect {
            Effect::Event(kind) => {
                let told = self.work.sink.event(kind).await;
                self.failed(told);
            }
            Effect::Delta(delta) => {
                // Who listens slowly slows the run, but does not keep it from being cancelled.
                tokio::select! {
                    () = self.work.sink.delta(delta) => {}
                    () = self.cancel.cancelled() => {}
                }
            }
            Effect::Checkpoint => {
                if !self.work.is_subagent {
                    self.turn.conversation.todos = Some(self.work.setup.session.todos());
                }
                let kept = match self.turn.conversation.checkpoint() {
                    Ok(checkpoint) => self.work.sink.checkpoint(checkpoint).await,
                    Err(error) => Err(error),
                };
                self.failed(kept);
            }
            Effect::Boundary => self.boundary(),
            Effect::Ask { delay, shorten } => self.ask = Some((delay, shorten)),
            Effect::Hush => {
                self.stream = None;
                self.ask = None;
            }
            Effect::Run(calls) => self.begin(calls),
            Effect::CancelCalls => {
                self.calls_cancel.cancel();
                self.grace = Instant::now().checked_add(GRACE);
            }
            Effect::End(stop) => {
                let (usage, cost) = self.turn.spent();
                let result = self.turn.said().map(str::to_owned);
                return Some(Ok(TurnEnd { stop, result, usage, cost }));
            }
            Effect::Fail(error) => return Some(Err(error)),
        }
        None
    }

    fn failed(&mut self, outcome: Result<(), AgentError>) {
        if let Err(error) = outcome {
            self.turn.handle(self.begun.elapsed(), Input::Failed(error));
        }
    }

    /// Takes what the user said meanwhile, and looks which tools there are now.
    fn boundary(&mut self) {
        let steering: Vec<String> = std::iter::from_fn(|| self.steering.try_take()).collect();
        self.refresh();
        let offer = Arc::clone(&self.toolset.offer);
        self.turn.handle(self.begun.elapsed(), Input::Boundary { steering, offer });
    }

    fn refresh(&mut self) {
        let work = &self.work;
        let listed = work.servers.tools();
        if self.listed.as_ref().is_some_and(|known| Arc::ptr_eq(known, &listed) || **known == *listed) {
            return;
        }
        let setup = &work.setup;
        let has = |name: &str| {
            work.tools.as_ref().is_none_or(|only| only.iter().any(|one| one.eq_ignore_ascii_case(name)))
        };
        let built_in = setup.registry.iter().filter(|tool| has(tool.name())).cloned().collect();
        let with_task = !work.is_subagent && setup.capabilities.has(Capability::Task);
        let servers: Vec<McpTool> = listed
            .iter()
            .filter(|tool| has("mcp") || has(&tool.exposed) || tool.server.is_empty())
            .cloned()
            .collect();
        let mut toolset = Toolset::new(Parts {
            plans: work.mode == Mode::Plan || work.reads_only,
            built_in,
            task: with_task.then(|| ToolSpec {
                name: TASK.to_owned(),
                description: work.subagents.description(),
                schema: RawJson::of(&work.subagents.schema()),
            }),
            saved: setup.guard.as_ref().and_then(|_| guarded::read_back_spec()),
            servers: &servers,
            plan_reads_only: setup.plan_reads_only || work.reads_only,
        });
        toolset.resolve_by(resolver(&work.servers));
        if has("mcp") && !(setup.plan_reads_only || work.reads_only) {
            toolset.absent_by(absent(&work.servers));
        }
        self.toolset = Arc::new(toolset);
        self.listed = Some(listed);
    }

    /// What happens next.
    async fn next_input(&mut self) -> Input {
        if let Some((delay, shorten)) = self.ask.take() {
            let (cancel, deadline) = (self.cancel.clone(), self.deadline);
            let asked = tokio::select! {
                biased;
                stop = stopped(&cancel, deadline) => Err(stop),
                asked = self.begin_answer(delay, shorten) => Ok(asked),
            };
            match asked {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Input::Failed(error),
                Err(stop) => {
                    self.is_stopping = true;
                    return Input::Stop(stop);
                }
            }
        }
        loop {
            tokio::select! {
                biased;
                stop = stopped(&self.cancel, self.deadline), if !self.is_stopping => {
                    self.is_stopping = true;
                    return Input::Stop(stop);
                }
                () = until(self.grace), if self.grace.is_some() && !self.calls.is_empty() => {
                    self.calls.abort_all();
                    self.grace = None;
                }
                event = next_event(&mut self.stream), if self.stream.is_some() => {
                    return self.model_said(event);
                }
                Some(done) = self.calls.join_next_with_id(), if !self.calls.is_empty() => {
                    if let Some(done) = self.call_ended(done) {
                        return Input::CallDone(done);
                    }
                }
                else => {
                    let message = "the run waits for nothing: this is a fault of the turn loop".to_owned();
                    return Input::Failed(AgentError::Runtime { message });
                }
            }
        }
    }

    /// Makes room where it is needed, and begins to ask.
    async fn begin_answer(&mut self, delay: Duration, shorten: bool) -> Result<(), AgentError> {
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        self.asked = self.fit(shorten).await?;
        let request = ModelRequest {
            system: &self.system,
            messages: self.turn.conversation.messages(),
            tools: &self.toolset.specs,
            max_output: None,
        };
        self.has_begun = false;
        self.stream = Some(self.work.model.stream(&request, &self.cancel));
        Ok(())
    }

    fn model_said(&mut self, event: Option<Result<ModelEvent, AgentError>>) -> Input {
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => return self.broken(error),
            None if self.cancel.is_cancelled() => {
                self.stream = None;
                self.is_stopping = true;
                return Input::Stop(TurnStop::Cancelled);
            }
            None => {
                let message = "the model's answer ended without an end".to_owned();
                return self.broken(AgentError::Network { message });
            }
        };
        match event {
            ModelEvent::Retry { attempt, delay, reason } => Input::Retry { attempt, delay, reason },
            ModelEvent::Text(text) => {
                self.has_begun = true;
                Input::Text(text)
            }
            ModelEvent::Thinking(text) => {
                self.has_begun = true;
                Input::Thinking(text)
            }
            ModelEvent::CallDelta { id, name, arguments } => {
                self.has_begun = true;
                Input::CallDelta { id, name, arguments }
            }
            ModelEvent::Done(answer) => {
                self.stream = None;
                if let Some(usage) = answer.usage {
                    let read = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
                    let conversation = &mut self.turn.conversation;
                    conversation.ratio = estimate::correct(conversation.ratio, self.asked, read);
                }
                Input::Answered(answer)
            }
        }
    }

    /// A request that never got through was sent again by the model already; an answer that broke off was not.
    fn broken(&mut self, error: AgentError) -> Input {
        self.stream = None;
        let remedy = if told::is_too_long(&error) {
            Remedy::Shorten
        } else if self.has_begun && matches!(error, AgentError::Network { .. } | AgentError::RateLimit { .. })
        {
            Remedy::Again
        } else {
            Remedy::None
        };
        Input::Broken { error, remedy }
    }

    fn begin(&mut self, calls: Vec<PlannedCall>) {
        let (usage, cost) = self.turn.spent();
        let limits = &self.work.limits;
        let left = Limits {
            turns: None,
            tokens: limits.tokens.map(|tokens| tokens.saturating_sub(usage.total()).max(1)),
            time: None,
            cost: limits.cost.map(|most| (most - cost.unwrap_or(0.0)).max(0.0)),
        };
        for call in calls {
            let (work, toolset) = (Arc::clone(&self.work), Arc::clone(&self.toolset));
            let (cancel, left) = (self.calls_cancel.clone(), left.clone());
            let id = call.id.clone();
            let task =
                self.calls.spawn(async move { execute::call(work, toolset, call, left, cancel).await });
            self.running.insert(task.id(), id);
        }
    }

    fn call_ended(&mut self, done: Result<(Id, CallDone), tokio::task::JoinError>) -> Option<CallDone> {
        match done {
            Ok((task, done)) => {
                self.running.remove(&task);
                Some(done)
            }
            Err(error) => {
                let id = self.running.remove(&error.id())?;
                Some(if error.is_cancelled() { cut_off(id) } else { panicked(id) })
            }
        }
    }
}
