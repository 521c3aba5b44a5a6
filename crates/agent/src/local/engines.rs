//! Owns the making of the engine that an agent's options choose: what it is made of is read when it is first needed, and
//! again by a reload.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::acp::{AcpCommand, AcpEngine, AcpSurroundings};
use crate::context::ContextSources;
use crate::engine::{BoxFuture, Engine, EngineTurn, GRACE, RunSink, TurnEnd};
use crate::error::AgentError;
use crate::generation::guard;
use crate::hooks::Hooks;
use crate::native::model::RemoteModels;
use crate::native::{NativeEngine, NativeOptions, Surroundings};
use crate::options::{AgentOptions, EngineChoice, LocalOptions, Machine, SkillsBy, Trust};
use crate::policy::{Action, Decision, Gate, GateOptions, PermissionMode, PermissionRules};
use crate::sources::Sources;
use crate::store::blocking;
use crate::tools::{Capabilities, ToolSession, ToolSetup};

/// The engine that these options choose. Looks at them, and at nothing else.
pub(crate) fn chosen(options: &AgentOptions) -> Result<Arc<dyn Engine>, AgentError> {
    let mut local = options.local_options().cloned().unwrap_or_default();
    rules(&local)?;
    let capabilities = Capabilities::new(local.tools.as_deref(), &local.disallowed_tools)?;
    let command = match &local.engine {
        EngineChoice::Native => None,
        EngineChoice::Acp(acp) => {
            AcpCommand::check(options)?;
            Some(AcpCommand::of(acp)?)
        }
    };
    let machine = options.work_machine();
    for dir in &mut local.dirs {
        // From where the agent works, not from where this process stands.
        *dir = machine.cwd().join(&dir);
    }
    let setup = Setup { options: options.clone(), local, machine, capabilities, command };
    Ok(Arc::new(Chosen { setup: Arc::new(setup), made: OnceCell::new() }))
}

fn rules(local: &LocalOptions) -> Result<PermissionRules, AgentError> {
    PermissionRules::parse(&local.permissions.allow, &local.permissions.deny)
}

/// What engines are made from.
struct Setup {
    options: AgentOptions,
    local: LocalOptions,
    machine: Machine,
    capabilities: Capabilities,
    /// Of an agent behind a protocol.
    command: Option<AcpCommand>,
}

/// An engine that is made when it is first needed.
struct Chosen {
    setup: Arc<Setup>,
    made: OnceCell<Made>,
}

enum Made {
    Native(Box<NativeEngine>, Sight),
    Acp(Box<AcpEngine>),
}

/// The gate that search tools look through: the one of the last reload.
type Sight = Arc<RwLock<Gate>>;

impl Setup {
    fn sources(&self) -> Sources {
        let (environment, cwd) = (self.machine.environment().clone(), self.machine.cwd().to_owned());
        let mut sources = Sources::new(environment, cwd, self.local.setting_sources.clone());
        sources.trust_project = self.local.trust == Trust::Given;
        sources
    }

    fn helper(&self) -> Option<PathBuf> {
        self.machine.helper().map(PathBuf::from)
    }

    /// Permissions, hooks and what files tell. Waits for the disk.
    fn surroundings(&self) -> Result<(Surroundings, Vec<String>), AgentError> {
        let sources = self.sources();
        let own = rules(&self.local)?;
        let has_allow_list = !own.allow.is_empty();
        let rules = own.and(PermissionRules::load(&sources));
        let hooks = Hooks::load(&sources, self.helper());
        let context = ContextSources::load(&sources);
        let mut told: Vec<String> = Vec::new();
        told.extend(rules.doubts.iter().chain(&rules.warnings).map(ToString::to_string));
        told.extend(hooks.diagnostics().iter().map(ToString::to_string));
        told.extend(context.diagnostics.iter().map(ToString::to_string));
        let mode = PermissionMode::for_program(
            self.local.sandbox.enabled,
            self.local.auto_review,
            has_allow_list,
            self.local.person.approver.is_some(),
        );
        let gate = Gate::new(GateOptions {
            mode,
            rules,
            approver: self.local.person.approver.clone(),
            hooks,
            environment: self.machine.environment().clone(),
            cwd: self.machine.cwd().to_owned(),
            roots: self.local.dirs.clone(),
        });
        Ok((Surroundings { gate, context }, told))
    }

    /// Waits for the disk, and for the sandbox where one is asked for.
    fn make(&self) -> Result<(Made, Vec<String>), AgentError> {
        let (surroundings, mut told) = self.surroundings()?;
        if let Some(command) = &self.command {
            let surroundings = AcpSurroundings {
                machine: self.machine.clone(),
                gate: surroundings.gate,
                roots: self.local.dirs.clone(),
                shim: self.helper(),
                supervise: self.helper(),
                system_prompt: self.local.system_prompt.clone(),
            };
            return Ok((Made::Acp(Box::new(AcpEngine::new(command.clone(), surroundings))), told));
        }
        let (tools, notes) = ToolSetup::of(&self.machine, &self.local)?;
        told.extend(notes.0);
        let sight = Arc::new(RwLock::new(surroundings.gate.clone()));
        let through = Arc::clone(&sight);
        let session = ToolSession::new(tools, self.local.person.host.clone()).with_sight(move |path| {
            let gate = through.read().unwrap_or_else(PoisonError::into_inner);
            !gate.hides_files()
                || !matches!(gate.decide(&Action::Read(path.to_owned())), Decision::Deny { .. })
        });
        let models = RemoteModels::of(&self.machine, self.options.api_key.clone(), self.local.agent_retries);
        let native = NativeOptions {
            models: Arc::new(models),
            capabilities: self.capabilities.clone(),
            session: Arc::new(session),
            guard: Some(guard(&self.local.guard, &self.machine)?),
            system_prompt: self.local.system_prompt.clone(),
            agents: self.options.agents.clone(),
            retries: self.local.agent_retries,
            plan_reads_only: self.local.plan_reads_only,
            skills_by_host: self.local.skills == SkillsBy::Host,
        };
        Ok((Made::Native(Box::new(NativeEngine::new(native, surroundings)), sight), told))
    }
}

impl Chosen {
    async fn made(&self) -> Result<(&Made, Vec<String>), AgentError> {
        let mut told = Vec::new();
        let made = self
            .made
            .get_or_try_init(|| async {
                let setup = Arc::clone(&self.setup);
                let (made, notes) = blocking(move || setup.make()).await?;
                told = notes;
                Ok::<_, AgentError>(made)
            })
            .await?;
        Ok((made, told))
    }
}

impl Engine for Chosen {
    fn name(&self) -> &'static str {
        if self.setup.command.is_some() { "acp" } else { "native" }
    }

    fn needs_model(&self) -> bool {
        self.setup.command.is_none()
    }

    fn grace(&self) -> Duration {
        self.setup.command.as_ref().map_or(GRACE, AcpCommand::grace)
    }

    fn prepare(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(async { Ok(self.made().await?.1) })
    }

    fn tools(&self) -> Vec<String> {
        match self.made.get() {
            Some(Made::Native(native, _)) => native.tools(),
            Some(Made::Acp(acp)) => acp.tools(),
            None => Vec::new(),
        }
    }

    fn reload(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(async {
            let Some(made) = self.made.get() else { return Ok(Vec::new()) };
            let setup = Arc::clone(&self.setup);
            let (surroundings, told) = blocking(move || setup.surroundings()).await?;
            match made {
                Made::Native(native, sight) => {
                    *sight.write().unwrap_or_else(PoisonError::into_inner) = surroundings.gate.clone();
                    native.renew(surroundings);
                }
                Made::Acp(acp) => acp.renew(surroundings.gate).await,
            }
            Ok(told)
        })
    }

    fn run(&self, turn: EngineTurn, sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>> {
        Box::pin(async move {
            match self.made().await?.0 {
                Made::Native(native, _) => native.run(turn, sink).await,
                Made::Acp(acp) => acp.run(turn, sink).await,
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            match self.made.get() {
                Some(Made::Native(native, _)) => native.close().await,
                Some(Made::Acp(acp)) => acp.close().await,
                None => {}
            }
        })
    }
}
