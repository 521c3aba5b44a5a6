//! Owns agents as the bridge drives them: makes an agent of this crate for a host's session, and turns what it tells into
//! the bridge's events. It decides nothing about tools.

mod telling;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use toolway_bridge::{
    AgentEnd, AgentEvent, AgentFailure, AgentMode, AgentModel, AgentOptions as PortOptions, AgentPort,
    AgentPrompt, Digest, SafetyOption,
};
use toolway_config::SettingSource;
use toolway_secret::Secret;

use self::telling::Telling;
use crate::agent::Agent;
use crate::engine::Engine;
use crate::error::AgentError;
use crate::event::Delta;
use crate::inline::DirectServer;
use crate::native::model::{ModelFacts, at_hand};
use crate::options::{
    AgentOptions, EngineChoice, LocalOptions, Mode, ModelChoice, Place, Prompt, PromptImage, SandboxOptions,
    SendOptions, ServerTimeouts,
};
use crate::run::Run;

/// Deltas that wait for the bridge. A host that does not read slows the agent.
const DELTAS: usize = 64;

/// Makes the engine of an agent, where it is not the one that the options choose.
type MakeEngine = dyn Fn(&AgentOptions) -> Result<Arc<dyn Engine>, AgentError> + Send + Sync;

/// Is told of each run as it begins.
type Observer = dyn Fn(&Run) + Send + Sync;

/// Is told of everything that a run tells between its events.
type Watcher = dyn Fn(&Delta) + Send + Sync;

/// Makes agents of this crate for the bridge's coordinator.
pub struct LocalPort {
    /// What every agent is made with; the session adds its own.
    options: AgentOptions,
    engine: Option<Box<MakeEngine>>,
    observer: Option<Arc<Observer>>,
    watcher: Option<Arc<Watcher>>,
}

impl std::fmt::Debug for LocalPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalPort").field("options", &self.options).finish_non_exhaustive()
    }
}

impl LocalPort {
    /// Agents with these options: engine, store, permissions, servers. Folder, model, sources and the bridge's server come
    /// from each session.
    pub fn new(options: AgentOptions) -> Self {
        Self { options, engine: None, observer: None, watcher: None }
    }

    /// The same on engines of the program's own.
    #[must_use]
    pub fn with_engine(
        mut self,
        make: impl Fn(&AgentOptions) -> Result<Arc<dyn Engine>, AgentError> + Send + Sync + 'static,
    ) -> Self {
        self.engine = Some(Box::new(make));
        self
    }

    /// The same, and `observer` is told of each run as it begins: for hosts that show more than turns do. It must not wait.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(&Run) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// The same, and `watcher` is told of everything that a run tells between its events: progress above all, for which the
    /// bridge has no word. It must not wait.
    #[must_use]
    pub fn with_watcher(mut self, watcher: impl Fn(&Delta) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Arc::new(watcher));
        self
    }

    fn agent_options(&self, session: &PortOptions) -> Result<AgentOptions, AgentError> {
        let mut options = self.options.clone();
        let mut local = options.local_options().cloned().unwrap_or_default();
        local.cwd = Some(session.cwd.clone());
        let named = SettingSource::parse_list(session.setting_sources.iter().map(String::as_str));
        local.setting_sources =
            named.map_err(|problem| AgentError::fault("local.settingSources", problem.to_string()))?;
        let direct = session.mcp_servers.iter().map(|server| DirectServer {
            name: server.key.to_owned(),
            url: server.url.clone(),
            headers: Vec::new(),
        });
        local.direct_servers.extend(direct);
        let ServerTimeouts { startup, list, call, .. } = &mut local.timeouts;
        // What the definition of a server says stands above these.
        startup.get_or_insert(session.timeouts.connect);
        list.get_or_insert(session.timeouts.connect);
        call.get_or_insert(session.timeouts.tool);
        local.auto_review |= session.safety.contains(&SafetyOption::AutoReview);
        let sandbox = session.safety.contains(&SafetyOption::Sandbox);
        local.sandbox = SandboxOptions { enabled: local.sandbox.enabled || sandbox };
        // A model that is not named is the agent's own choice, or that of the options.
        if !session.model.is_empty() {
            let params = options.model.take().map(|model| model.params).unwrap_or_default();
            options.model = Some(ModelChoice { id: session.model.clone(), params });
        }
        options.place = Place::Local(Box::<LocalOptions>::new(local));
        Ok(options)
    }
}

impl AgentPort for LocalPort {
    type Agent = PortAgent;

    async fn create(&self, session: PortOptions) -> Result<PortAgent, AgentFailure> {
        let made = self.agent_options(&session).and_then(|options| match &self.engine {
            Some(make) => {
                let engine = make(&options)?;
                Agent::create_on(options, engine)
            }
            None => Agent::create(options),
        });
        let agent = made.map_err(|error| failure(&error))?;
        Ok(PortAgent {
            agent,
            turn: tokio::sync::Mutex::new(None),
            run: Mutex::default(),
            begun: tokio::sync::Notify::new(),
            observer: self.observer.clone(),
            watcher: self.watcher.clone(),
        })
    }

    fn identity(&self) -> Option<Digest> {
        let key = self.options.api_key.as_ref()?;
        Some(Digest::of(key.expose().as_bytes()))
    }

    async fn models(&self) -> Result<Vec<AgentModel>, AgentFailure> {
        let local = self.options.local_options();
        // A program behind the protocol tells of its models in a session, and of none before.
        if self.engine.is_some() || !local.is_some_and(|local| matches!(local.engine, EngineChoice::Native)) {
            return Ok(Vec::new());
        }
        let machine = self.options.work_machine();
        let models = at_hand(&machine, self.options.api_key.as_ref(), self.options.model.as_ref());
        let model = |(id, facts): (String, ModelFacts)| AgentModel {
            name: id.clone(),
            id,
            context_tokens: facts.context,
            output_tokens: None,
        };
        Ok(models.into_iter().map(model).collect())
    }

    fn secrets(&self) -> Vec<Secret> {
        crate::redact::given(&self.options, None).secrets
    }
}

/// One agent of this crate, driven by the bridge.
pub struct PortAgent {
    agent: Agent,
    /// What the prompt on its way tells. Only [`toolway_bridge::Agent::next`] waits on it.
    turn: tokio::sync::Mutex<Option<Turn>>,
    /// The run on its way, to be cancelled.
    run: Mutex<Option<Run>>,
    /// A prompt was sent.
    begun: tokio::sync::Notify,
    observer: Option<Arc<Observer>>,
    watcher: Option<Arc<Watcher>>,
}

/// One prompt on its way.
struct Turn {
    run: Run,
    deltas: mpsc::Receiver<Delta>,
    telling: Telling,
    /// The deltas ended.
    is_quiet: bool,
    watcher: Option<Arc<Watcher>>,
}

fn failure(error: &AgentError) -> AgentFailure {
    AgentFailure::new(error.to_string())
}

impl std::fmt::Debug for PortAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortAgent").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl PortAgent {
    fn active(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl toolway_bridge::Agent for PortAgent {
    async fn send(&self, prompt: AgentPrompt) -> Result<(), AgentFailure> {
        let (sender, deltas) = mpsc::channel(DELTAS);
        let images = prompt
            .images
            .into_iter()
            .map(|image| PromptImage { mime_type: image.mime_type, data: image.data });
        let mode = match prompt.mode {
            AgentMode::Agent => Mode::Agent,
            AgentMode::Plan => Mode::Plan,
        };
        let options = SendOptions { mode: Some(mode), deltas: Some(sender), ..SendOptions::default() };
        let prompt = Prompt { text: prompt.text, images: images.collect() };
        let run = self.agent.send(prompt, options).await.map_err(|error| failure(&error))?;
        *self.active() = Some(run.clone());
        if let Some(observer) = &self.observer {
            observer(&run);
        }
        let (telling, watcher) = (Telling::default(), self.watcher.clone());
        *self.turn.lock().await = Some(Turn { run, deltas, telling, is_quiet: false, watcher });
        self.begun.notify_one();
        Ok(())
    }

    async fn next(&self) -> Option<AgentEvent> {
        loop {
            {
                let mut turn = self.turn.lock().await;
                if let Some(open) = turn.as_mut() {
                    let (event, is_end) = open.next().await;
                    if is_end {
                        *turn = None;
                        self.active().take();
                    }
                    return Some(event);
                }
            }
            self.begun.notified().await;
        }
    }

    async fn cancel(&self) {
        let run = self.active().clone();
        if let Some(run) = run
            && let Err(error) = run.cancel().await
        {
            tracing::debug!(%error, "a run was not cancelled");
        }
    }

    async fn reload(&self) -> Result<(), AgentFailure> {
        let report = self.agent.reload().await.map_err(|error| failure(&error))?;
        if report.reloaded || report.diagnostics.is_empty() {
            return Ok(());
        }
        Err(AgentFailure::new(report.diagnostics.join("\n")))
    }

    async fn dispose(self) {
        self.agent.dispose().await;
    }
}

impl Turn {
    /// The next event, and whether it is the last one. Loses nothing when it is dropped.
    async fn next(&mut self) -> (AgentEvent, bool) {
        while !self.is_quiet {
            match self.deltas.recv().await {
                Some(delta) => {
                    if let Some(watcher) = &self.watcher {
                        watcher(&delta);
                    }
                    if let Some(event) = self.telling.tell(delta) {
                        return (event, false);
                    }
                }
                None => self.is_quiet = true,
            }
        }
        let end = match self.run.wait().await {
            Ok(state) => telling::end(state),
            Err(error) => AgentEnd::Failed(failure(&error)),
        };
        (AgentEvent::Ended(end), true)
    }
}
