//! An engine with a scripted model and a sink that writes down what it is told.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolway_config::SettingSource;
use toolway_guard::{Guard, GuardConfig, ReadBack};

use crate::context::ContextSources;
use crate::custom_tools::CustomTool;
use crate::engine::{BoxFuture, Checkpoint, EngineTurn, RunSink, Steering, TurnEnd};
use crate::error::AgentError;
use crate::event::{AssistantBlock, Delta, EventKind, ToolCallEvent, ToolCallStatus, Usage};
use crate::generation::Generations;
use crate::hooks::Hooks;
use crate::id::{AgentId, RunId};
use crate::native::model::{
    AnswerPart, Message, Model, ModelAnswer, ModelCall, ModelEvent, ModelFacts, ModelRequest, ModelSource,
    ModelStop, ModelStream, Prices, UserPart,
};
use crate::native::{NativeEngine, NativeOptions, Surroundings};
use crate::options::{
    AgentOptions, Limits, Machine, Mode, ModelChoice, Place, Prompt, PromptImage, Retries, SendOptions,
};
use crate::policy::{Gate, GateOptions, PermissionMode, PermissionRules};
use crate::tools::{Capabilities, ToolSession, ToolSetup};

/// What a model does when it is asked.
pub(super) type Reply = Vec<Result<ModelEvent, AgentError>>;

/// What it was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Script {
    replies: Mutex<VecDeque<Reply>>,
    pub(super) asked: Mutex<Vec<Asked>>,
    facts: ModelFacts,
}

#[derive(Debug)]
struct Scripted {
    id: String,
    script: Arc<Script>,
}

#[derive(Debug)]
struct Source(Arc<Script>);

impl ModelSource for Source {
    fn open(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, AgentError> {
        Ok(Arc::new(Scripted { id: choice.id.clone(), script: Arc::clone(&self.0) }))
    }

    fn let_go(&self) {}
}

struct Replying {
    events: VecDeque<Result<ModelEvent, AgentError>>,
    is_endless: bool,
    cancel: CancellationToken,
}

impl ModelStream for Replying {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, AgentError>>> {
        Box::pin(async move {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.is_endless {
                self.cancel.cancelled().await;
            }
            None
        })
    }
}

impl Model for Scripted {
    fn id(&self) -> &str {
        &self.id
    }

    fn facts(&self) -> ModelFacts {
        self.script.facts
    }

    fn stream(&self, request: &ModelRequest<'_>, cancel: &CancellationToken) -> Box<dyn ModelStream> {
        self.script.asked.lock().unwrap().push(Asked {
            model: self.id.clone(),
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
        });
        let reply = self.script.replies.lock().unwrap().pop_front();
        let events: VecDeque<_> = reply
            .unwrap_or_else(|| vec![Err(AgentError::Model { message: "the script has ended".into() })])
            .into();
        let is_endless = !events.iter().any(|event| matches!(event, Ok(ModelEvent::Done(_)) | Err(_)));
        Box::new(Replying { events, is_endless, cancel: cancel.clone() })
    }
}

/// Writes down what it is told.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) lines: Mutex<Vec<String>>,
    pub(super) events: Mutex<Vec<EventKind>>,
    pub(super) deltas: Mutex<Vec<Delta>>,
    pub(super) kept: Mutex<Option<Checkpoint>>,
    /// Cancelled when a call begins.
    pub(super) cancel_at_call: Mutex<Option<CancellationToken>>,
}

impl RunSink for Notes {
    fn event(&self, kind: EventKind) -> BoxFuture<'_, Result<(), AgentError>> {
        self.lines.lock().unwrap().push(line(&kind));
        if let EventKind::ToolCall(ToolCallEvent { status: ToolCallStatus::Running, .. }) = &kind
            && let Some(cancel) = self.cancel_at_call.lock().unwrap().take()
        {
            cancel.cancel();
        }
        self.events.lock().unwrap().push(kind);
        Box::pin(std::future::ready(Ok(())))
    }

    fn delta(&self, delta: Delta) -> BoxFuture<'_, ()> {
        self.deltas.lock().unwrap().push(delta);
        Box::pin(std::future::ready(()))
    }

    fn checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), AgentError>> {
        self.lines.lock().unwrap().push("keep".to_owned());
        *self.kept.lock().unwrap() = Some(checkpoint);
        Box::pin(std::future::ready(Ok(())))
    }
}

fn line(kind: &EventKind) -> String {
    match kind {
        EventKind::Assistant { content } => {
            let blocks = content.iter().map(|block| match block {
                AssistantBlock::Text(text) => text.clone(),
                AssistantBlock::ToolUse { id, name, .. } => format!("{id}={name}"),
            });
            format!("assistant {}", blocks.collect::<Vec<_>>().join(" "))
        }
        EventKind::ToolCall(call) => match call.status {
            ToolCallStatus::Running => format!("running {} {}", call.call_id, call.name),
            ToolCallStatus::Completed => format!("completed {}", call.call_id),
            ToolCallStatus::Error => format!("error {}", call.call_id),
        },
        EventKind::Usage(usage) => format!("usage {}", usage.total()),
        EventKind::Task { status, text } => {
            format!("task {}: {}", status.as_deref().unwrap_or_default(), text.as_deref().unwrap_or_default())
        }
        EventKind::User { text } => format!("user {text}"),
        other => format!("{other:?}"),
    }
}

/// An engine and what belongs to it.
pub(super) struct Rig {
    pub(super) dir: tempfile::TempDir,
    pub(super) script: Arc<Script>,
    pub(super) notes: Arc<Notes>,
    engine: NativeEngine,
    servers: Generations,
    pub(super) turn: Turn,
}

/// What a turn is made with.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) images: Vec<PromptImage>,
    pub(super) mode: Mode,
    pub(super) limits: Limits,
    pub(super) interrupted: Vec<ToolCallEvent>,
    pub(super) cancel: CancellationToken,
    pub(super) steering: Option<Steering>,
}

/// What a rig is made with.
#[derive(Default)]
pub(super) struct Setup {
    pub(super) window: Option<u64>,
    pub(super) custom: Vec<CustomTool>,
    pub(super) agents: std::collections::BTreeMap<String, crate::options::AgentDefinition>,
    pub(super) disallowed: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) context: ContextSources,
    pub(super) plan_reads_only: bool,
    pub(super) skills_by_host: bool,
}

impl Rig {
    pub(super) fn new(replies: Vec<Reply>) -> Self {
        Self::with(Setup::default(), replies)
    }

    pub(super) fn with(setup: Setup, replies: Vec<Reply>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("work");
        std::fs::create_dir(&cwd).unwrap();
        let capabilities = Capabilities::new(None, &setup.disallowed).unwrap();
        let facts = ModelFacts {
            images: true,
            context: setup.window,
            prices: Some(Prices { input: 1e6, output: 1e6, cache_read: 0.0, cache_write: 0.0 }),
        };
        let script = Arc::new(Script { replies: Mutex::new(replies.into()), facts, ..Script::default() });
        let variables = vec![("HOME".into(), dir.path().into()), ("PATH".into(), "/usr/bin:/bin".into())];
        let machine = Machine::new(variables, cwd.clone());
        let environment = machine.environment().clone();
        let mut options = AgentOptions::local(machine);
        if let Place::Local(local) = &mut options.place {
            local.custom_tools = setup.custom;
            local.disallowed_tools.clone_from(&setup.disallowed);
            local.setting_sources = Vec::<SettingSource>::new();
        }
        let servers = Generations::new(&options, "agent-test").unwrap();
        let gate = Gate::new(GateOptions {
            mode: PermissionMode::Unrestricted,
            rules: PermissionRules::parse(Vec::<String>::new(), &setup.deny).unwrap(),
            approver: None,
            hooks: Hooks::default(),
            environment,
            cwd: cwd.clone(),
            roots: Vec::new(),
        });
        let engine = NativeEngine::new(
            NativeOptions {
                models: Arc::new(Source(Arc::clone(&script))),
                capabilities,
                session: Arc::new(ToolSession::new(ToolSetup::new(cwd, dir.path().to_owned()), None)),
                guard: Some(Arc::new(guard(&dir.path().join("saved")))),
                system_prompt: None,
                agents: setup.agents,
                retries: Retries::On,
                plan_reads_only: setup.plan_reads_only,
                skills_by_host: setup.skills_by_host,
            },
            Surroundings { gate, context: setup.context },
        );
        Self { dir, script, notes: Arc::default(), engine, servers, turn: Turn::default() }
    }

    pub(super) fn cwd(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }

    /// Executes a prompt.
    pub(super) async fn run(&mut self, prompt: &str) -> Result<TurnEnd, AgentError> {
        use crate::engine::Engine as _;
        let servers = self.servers.for_run(&SendOptions::default()).await?;
        servers.ready().await;
        let Turn { images, mode, limits, interrupted, cancel, steering } = std::mem::take(&mut self.turn);
        let turn = EngineTurn {
            agent: AgentId::local(),
            run: RunId::random(),
            prompt: Prompt { text: prompt.to_owned(), images },
            model: ModelChoice { id: "scripted".to_owned(), params: Vec::new() },
            mode,
            cwd: self.cwd(),
            servers,
            checkpoint: self.notes.kept.lock().unwrap().clone(),
            interrupted,
            limits,
            steering: steering.unwrap_or_else(Steering::none),
            cancel,
        };
        let sink: Arc<dyn RunSink> = Arc::clone(&self.notes) as Arc<dyn RunSink>;
        self.engine.run(turn, sink).await
    }

    /// The lines since the last look.
    pub(super) fn lines(&self) -> String {
        std::mem::take(&mut *self.notes.lines.lock().unwrap()).join("\n")
    }

    pub(super) fn asked(&self, place: usize) -> Asked {
        self.script.asked.lock().unwrap().get(place).cloned().unwrap()
    }

    /// The results that the model was given with its request of that number.
    pub(super) fn results(&self, place: usize) -> String {
        match self.asked(place).messages.last() {
            Some(Message::Tools(results)) => {
                let texts = results.iter().map(|one| format!("{}: {}", one.call_id, content(&one.content)));
                texts.collect::<Vec<_>>().join("\n")
            }
            other => format!("{other:?}"),
        }
    }
}

pub(super) fn content(parts: &[UserPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        UserPart::Text(text) => text.clone(),
        UserPart::Image { mime_type, .. } => format!("<{mime_type}>"),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn guard(dir: &Path) -> Guard {
    Guard::new(GuardConfig {
        max_response_chars: 40_000,
        read_back: ReadBack::Session,
        ..GuardConfig::new(dir.to_owned())
    })
}

pub(super) fn text(text: &str) -> AnswerPart {
    AnswerPart::Text(text.to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "every test writes it out where it is used")]
pub(super) fn call(id: &str, name: &str, arguments: serde_json::Value) -> AnswerPart {
    AnswerPart::Call(ModelCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.to_string(),
        seal: None,
    })
}

/// A whole answer.
pub(super) fn answer(parts: Vec<AnswerPart>) -> Reply {
    let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
    let stop = if calls { ModelStop::Calls } else { ModelStop::End };
    let usage = Some(Usage { input: 100, output: 10, ..Usage::default() });
    vec![Ok(ModelEvent::Done(ModelAnswer { parts, usage, stop }))]
}

pub(super) fn says(said: &str) -> Reply {
    let mut reply = answer(vec![text(said)]);
    reply.insert(0, Ok(ModelEvent::Text(said.to_owned())));
    reply
}

/// A program's function that answers with what it makes of its arguments.
pub(super) fn function(
    name: &str,
    run: impl Fn(serde_json::Value) -> crate::custom_tools::CustomOutput + Send + Sync + 'static,
) -> CustomTool {
    let run = Arc::new(run);
    CustomTool::new(name, "a function", move |call| {
        let run = Arc::clone(&run);
        async move { Ok(run(call.arguments.tree())) }
    })
}

#[test]
fn arguments_of_the_rig_are_json() {
    assert!(
        matches!(call("a", "b", json!({})), AnswerPart::Call(ModelCall { arguments, .. }) if arguments == "{}")
    );
}
