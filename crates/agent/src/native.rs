//! Owns the native runtime: a turn loop over any model, its tools and its conversation. It knows no store.

mod context;
mod conversation;
mod driver;
mod estimate;
mod guarded;
pub(crate) mod model;
mod prompt;
mod results;
mod toolset;
mod turn_loop;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use toolway_guard::Guard;

use self::conversation::{Conversation, Origin};
use self::driver::{Driver, Work};
use self::model::{ModelSource, UserPart};
use crate::context::ContextSources;
use crate::engine::{BoxFuture, Engine, EngineTurn, RunSink, TurnEnd};
use crate::error::AgentError;
use crate::hooks::HookFacts;
use crate::options::{AgentDefinition, Prompt, Retries};
use crate::policy::Gate;
use crate::subagent::{Subagents, TASK};
use crate::tools::{Capabilities, Capability, ToolRegistry, ToolSession};

/// What a native engine is made of, for the whole life of an agent's handle.
pub(crate) struct NativeOptions {
    /// Opens models.
    pub(crate) models: Arc<dyn ModelSource>,
    /// What it may use.
    pub(crate) capabilities: Capabilities,
    /// What built-in tools keep.
    pub(crate) session: Arc<ToolSession>,
    /// Saves what is too large; its saved results are listed under the agent's id.
    pub(crate) guard: Option<Arc<Guard>>,
    /// In place of our words to the model.
    pub(crate) system_prompt: Option<String>,
    /// Subagents of the program.
    pub(crate) agents: BTreeMap<String, AgentDefinition>,
    /// Whether a step that broke off is asked again.
    pub(crate) retries: Retries,
    /// In plan mode, tools of servers are offered only where they say that they only read.
    pub(crate) plan_reads_only: bool,
    /// Skills are told to subagents alone: its host tells its model of them.
    pub(crate) skills_by_host: bool,
}

/// What a reload changes: permissions with their hooks, and what files tell.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) gate: Gate,
    pub(crate) context: ContextSources,
}

/// Executes prompts by asking a model and calling the tools it wants.
pub(crate) struct NativeEngine {
    setup: Arc<NativeSetup>,
    agents: BTreeMap<String, AgentDefinition>,
    surroundings: Mutex<Arc<Surroundings>>,
}

/// What runs need of the options.
struct NativeSetup {
    models: Arc<dyn ModelSource>,
    capabilities: Capabilities,
    registry: ToolRegistry,
    session: Arc<ToolSession>,
    guard: Option<Arc<Guard>>,
    system_prompt: Option<String>,
    attempts: u32,
    plan_reads_only: bool,
    skills_by_host: bool,
}

impl fmt::Debug for NativeEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeEngine").field("tools", &self.setup.registry.names()).finish_non_exhaustive()
    }
}

impl NativeEngine {
    /// An engine. It does no I/O.
    pub(crate) fn new(options: NativeOptions, surroundings: Surroundings) -> Self {
        let NativeOptions {
            models,
            capabilities,
            session,
            guard,
            system_prompt,
            agents,
            retries,
            plan_reads_only,
            skills_by_host,
        } = options;
        let attempts = if retries == Retries::On { turn_loop::ATTEMPTS } else { 1 };
        let registry = ToolRegistry::built_in(&capabilities);
        let setup = NativeSetup {
            models,
            capabilities,
            registry,
            session,
            guard,
            system_prompt,
            attempts,
            plan_reads_only,
            skills_by_host,
        };
        Self { setup: Arc::new(setup), agents, surroundings: Mutex::new(Arc::new(surroundings)) }
    }

    /// From the next run on: what a reload found.
    pub(crate) fn renew(&self, surroundings: Surroundings) {
        *self.surroundings.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(surroundings);
    }

    fn surroundings(&self) -> Arc<Surroundings> {
        Arc::clone(&self.surroundings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn execute(&self, turn: EngineTurn, sink: Arc<dyn RunSink>) -> Result<TurnEnd, AgentError> {
        let surroundings = self.surroundings();
        let conversation = resumed(&turn)?;
        if let Some(todos) = &conversation.todos {
            self.setup.session.restore_todos(todos);
        }
        let model = self.setup.models.open(&turn.model)?;
        let mut roots = vec![turn.cwd.clone()];
        roots.extend(self.setup.session.setup.dirs.iter().cloned());
        let facts = HookFacts {
            conversation_id: turn.agent.to_string(),
            generation_id: turn.run.to_string(),
            model: turn.model.id.clone(),
            cwd: turn.cwd.clone(),
            roots,
        };
        let work = Work {
            setup: Arc::clone(&self.setup),
            subagents: Arc::new(Subagents::new(&self.agents, &surroundings.context.subagents)),
            surroundings,
            servers: turn.servers,
            sink,
            facts,
            mode: turn.mode,
            model,
            choice: turn.model,
            words: self.setup.system_prompt.clone(),
            is_subagent: false,
            tools: None,
            reads_only: false,
            limits: turn.limits,
        };
        let mut driver = Driver::new(Arc::new(work), conversation, turn.steering, turn.cancel).await;
        driver.run(parts(turn.prompt)).await
    }
}

impl Engine for NativeEngine {
    fn name(&self) -> &'static str {
        "native"
    }

    fn tools(&self) -> Vec<String> {
        let mut names = self.setup.registry.names();
        if self.setup.capabilities.has(Capability::Task) {
            names.push(TASK.to_owned());
        }
        names
    }

    fn run(&self, turn: EngineTurn, sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>> {
        Box::pin(self.execute(turn, sink))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.setup.session.close().await;
            self.setup.models.let_go();
        })
    }
}

/// The conversation so far, whole: what broke off is said in it.
fn resumed(turn: &EngineTurn) -> Result<Conversation, AgentError> {
    let mut conversation = match &turn.checkpoint {
        Some(kept) => Conversation::restore(kept)?,
        None => Conversation::default(),
    };
    let begun: Vec<String> = turn.interrupted.iter().map(|call| call.call_id.clone()).collect();
    conversation.close_broken_calls(&begun);
    let strangers: Vec<String> = turn
        .interrupted
        .iter()
        .filter(|call| !conversation.knows(&call.call_id))
        .map(|call| format!("- {} {}", call.name, call.args.as_ref().map_or("", |args| args.text())))
        .collect();
    if !strangers.is_empty() {
        let text = format!(
            "[An earlier run of yours broke off. These calls were begun in it and may have run, wholly or in part:\n{}\nLook at \
             what is there before you do them again.]",
            strangers.join("\n")
        );
        conversation.push_user(Origin::Notice, vec![UserPart::Text(text)]);
    }
    Ok(conversation)
}

fn parts(prompt: Prompt) -> Vec<UserPart> {
    let Prompt { text, images } = prompt;
    let images =
        images.into_iter().map(|image| UserPart::Image { mime_type: image.mime_type, data: image.data });
    let text = (!text.is_empty() || images.len() == 0).then_some(UserPart::Text(text));
    text.into_iter().chain(images).collect()
}

#[cfg(test)]
mod tests;
