//! Owns the making of the engine that an agent's options choose: what it is made of is read when it is first needed, and
//! again by a reload.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::acp::{AcpCommand, AcpEngine, AcpSurroundings};
use crate::engine::{BoxFuture, Engine, EngineTurn, RunSink, TurnEnd};
use crate::error::AgentError;
use crate::hooks::Hooks;
use crate::options::{AgentOptions, EngineChoice, LocalOptions, Machine, Trust};
use crate::policy::{Gate, GateOptions, PermissionMode, PermissionRules};
use crate::sources::Sources;
use crate::store::blocking;

/// The engine that these options choose. Looks at them, and at nothing else.
pub(crate) fn chosen(options: &AgentOptions) -> Result<Arc<dyn Engine>, AgentError> {
    let local = options.local_options().cloned().unwrap_or_default();
    rules(&local)?;
    let command = match &local.engine {
        EngineChoice::Native => {
            return Err(AgentError::fault("local.engine", "the native engine is not part of this build"));
        }
        EngineChoice::Acp(acp) => AcpCommand::of(acp)?,
    };
    let setup = Setup { local, machine: options.work_machine(), command };
    Ok(Arc::new(Chosen { setup: Arc::new(setup), made: OnceCell::new() }))
}

fn rules(local: &LocalOptions) -> Result<PermissionRules, AgentError> {
    PermissionRules::parse(&local.permissions.allow, &local.permissions.deny)
}

/// What engines are made from.
struct Setup {
    local: LocalOptions,
    machine: Machine,
    command: AcpCommand,
}

/// An engine that is made when it is first needed.
struct Chosen {
    setup: Arc<Setup>,
    made: OnceCell<AcpEngine>,
}

impl Setup {
    fn helper(&self) -> Option<PathBuf> {
        self.machine.helper().map(PathBuf::from)
    }

    /// Waits for the disk.
    fn make(&self) -> Result<(AcpEngine, Vec<String>), AgentError> {
        let (environment, cwd) = (self.machine.environment().clone(), self.machine.cwd().to_owned());
        let mut sources = Sources::new(environment.clone(), cwd.clone(), self.local.setting_sources.clone());
        sources.trust_project = self.local.trust == Trust::Given;
        let own = rules(&self.local)?;
        let has_allow_list = !own.allow.is_empty();
        let rules = own.and(PermissionRules::load(&sources));
        let hooks = Hooks::load(&sources, self.helper());
        let mut told: Vec<String> = Vec::new();
        told.extend(rules.doubts.iter().chain(&rules.warnings).map(ToString::to_string));
        told.extend(hooks.diagnostics().iter().map(ToString::to_string));
        let (sandbox, review) = (self.local.sandbox.enabled, self.local.auto_review);
        let mode = PermissionMode::for_program(sandbox, review, has_allow_list, false);
        let roots = self.local.dirs.clone();
        let gate =
            Gate::new(GateOptions { mode, rules, approver: None, hooks, environment, cwd, roots: roots.clone() });
        let surroundings = AcpSurroundings {
            machine: self.machine.clone(),
            gate,
            roots,
            shim: self.helper(),
            supervise: self.helper(),
            system_prompt: self.local.system_prompt.clone(),
        };
        Ok((AcpEngine::new(self.command.clone(), surroundings), told))
    }
}

impl Chosen {
    async fn made(&self) -> Result<(&AcpEngine, Vec<String>), AgentError> {
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
        "acp"
    }

    fn needs_model(&self) -> bool {
        false
    }

    fn prepare(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(async { Ok(self.made().await?.1) })
    }

    fn tools(&self) -> Vec<String> {
        Vec::new()
    }

    fn run<'a>(
        &'a self,
        turn: EngineTurn,
        sink: Arc<dyn RunSink>,
    ) -> BoxFuture<'a, Result<TurnEnd, AgentError>> {
        Box::pin(async move { self.made().await?.0.run(turn, sink).await })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(acp) = self.made.get() {
                acp.close().await;
            }
        })
    }
}
