//! Owns agents on this machine: the handle's state, the beginning of runs, reload, end. It knows engines by their trait.

mod buffer;
mod detached;
mod engines;
mod live;
mod observe;
mod pieces;
mod shelf;
mod task;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use engines::chosen as chosen_engine;
pub(crate) use shelf::Shelf;
pub use shelf::{AgentList, RunList};

use self::live::Live;
use self::task::Task;
use crate::engine::{BoxFuture, Engine, Steering};
use crate::error::AgentError;
use crate::generation::Generations;
use crate::id::{AgentId, RunId};
use crate::inline::{InlineDifference, InlineRecord};
use crate::options::{
    AgentDefinition, AgentOptions, ModelChoice, Prompt, SendOptions, ServerChange, offers_mcp,
};
use crate::redact::{Redactors, given};
use crate::run::{Run, RunSource as _};
use crate::runtime::{Artifact, ReloadReport, Runtime, UsageReport};
use crate::store::{AgentRecord, Begin, Begun, Keeper, Presence, Store, now};

/// How long everything may take to end.
const END: Duration = Duration::from_secs(5);
/// How long a run may take of that before its servers and its engine are ended under it.
const RUN_END: Duration = Duration::from_millis(500);

/// An agent on this machine.
pub(crate) struct LocalRuntime {
    shared: Arc<Shared>,
}

struct Shared {
    id: AgentId,
    options: AgentOptions,
    engine: Arc<dyn Engine>,
    generations: Arc<Generations>,
    keeper: OnceCell<Keeper>,
    state: Mutex<State>,
    /// One prompt is taken in at a time.
    sending: tokio::sync::Mutex<()>,
    tasks: TaskTracker,
    closing: CancellationToken,
    ended: CancellationToken,
    is_closed: AtomicBool,
}

#[derive(Debug)]
struct State {
    presence: Presence,
    model: Option<ModelChoice>,
    active: Option<Arc<Live>>,
    /// Where tasks run, once there were any.
    runtime: Option<Handle>,
}

impl fmt::Debug for LocalRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { id, engine, .. } = &*self.shared;
        f.debug_struct("LocalRuntime")
            .field("agent", id)
            .field("engine", &engine.name())
            .finish_non_exhaustive()
    }
}

impl LocalRuntime {
    /// An agent that is new, or known to a store. Starts, reads and connects nothing.
    pub(crate) fn new(
        id: AgentId,
        options: AgentOptions,
        engine: Arc<dyn Engine>,
        presence: Presence,
        keeper: Option<Keeper>,
    ) -> Result<Self, AgentError> {
        let generations = Arc::new(Generations::new(&options, id.as_str())?);
        let model = options.model.clone();
        let shared = Shared {
            id,
            options,
            engine,
            generations,
            keeper: OnceCell::new_with(keeper),
            state: Mutex::new(State { presence, model, active: None, runtime: None }),
            sending: tokio::sync::Mutex::new(()),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            ended: CancellationToken::new(),
            is_closed: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Compares the servers that are given with those that were given when the agent was made.
    pub(crate) async fn compare_servers(&self, record: &AgentRecord) -> Result<InlineDifference, AgentError> {
        if record.servers.is_empty() {
            return Ok(InlineDifference::default());
        }
        let key = self.shared.keeper().await?.call(Store::digest_key).await?;
        let difference = InlineRecord::compare(&record.servers, &self.shared.options.mcp_servers, &key);
        self.shared.generations.set_missing(difference.missing.clone());
        self.shared.generations.set_changed(difference.changed.clone());
        Ok(difference)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed(&self) -> AgentError {
        AgentError::Closed { agent: self.id.clone() }
    }

    async fn keeper(&self) -> Result<&Keeper, AgentError> {
        self.keeper.get_or_try_init(|| shelf::open(&self.options)).await
    }

    async fn send(self: Arc<Self>, prompt: Prompt, send: SendOptions) -> Result<Run, AgentError> {
        send.check(&self.options, &prompt)?;
        let _one = self.sending.lock().await;
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(self.closed());
        }
        let (presence, sticky, before) = {
            let state = self.state();
            (state.presence, state.model.clone(), state.active.clone())
        };
        let model = match send.model.clone().or(sticky) {
            Some(model) => model,
            None if self.engine.needs_model() => {
                return Err(AgentError::fault(
                    "model",
                    "is not named: name one with the agent or with the prompt",
                ));
            }
            None => ModelChoice::default(),
        };
        let keeper = self.keeper().await?.clone();
        let before = before.filter(|live| !live.is_over());
        let begin = self.begin(&keeper, &send, presence, &model).await?;
        let (record, claim) = match keeper.call(move |store| store.begin(&begin)).await? {
            Begun::Started { run, claim } => (run, claim),
            Begun::Known(record) => {
                let live = self.state().active.clone().filter(|live| *live.id() == record.id);
                return Ok(match live {
                    Some(live) => Run::new(live),
                    None => detached::Detached::run(keeper, *record),
                });
            }
            Begun::Busy { run, alive } => {
                return Err(AgentError::AgentBusy { agent: self.id.clone(), run, is_alive: alive });
            }
            Begun::Archived => return Err(AgentError::AgentArchived { agent: self.id.clone() }),
            Begun::NoAgent => {
                let store = keeper.place();
                return Err(AgentError::AgentNotFound { agent: self.id.clone(), store });
            }
            Begun::Exists => {
                let fault = format!("{} is there already: resume it", self.id);
                return Err(AgentError::fault("agentId", fault));
            }
        };
        let given = given(&self.options, Some(&send));
        let redactor = Redactors::new(given.clone());
        let (steer, steering) = Steering::channel();
        let cancel = self.closing.child_token();
        let live = Live::new(&record, keeper, redactor, send.deltas.clone(), steer, cancel);
        let own: Vec<&str> = self.options.mcp_servers.names().collect();
        let task = Task {
            live: Arc::clone(&live),
            engine: Arc::clone(&self.engine),
            generations: Arc::clone(&self.generations),
            notes: task::replaced(&send, &own).into_iter().collect(),
            mode: send.mode.unwrap_or(self.options.mode),
            limits: send.limits.clone().unwrap_or_else(|| self.options.limits.clone()),
            agents: self.checked_agents(&send),
            cwd: self.options.work_machine().cwd().to_owned(),
            model: model.clone(),
            prompt,
            send,
            steering,
            before,
            given,
            claim,
        };
        {
            let mut state = self.state();
            state.presence = Presence::Known;
            state.model = Some(model).filter(|model| !model.id.is_empty());
            state.active = Some(Arc::clone(&live));
            state.runtime = Handle::try_current().ok();
        }
        self.tasks.spawn(task.run());
        Ok(Run::new(live))
    }

    /// Subagents whose servers have to be there: all, where the run has servers at all.
    fn checked_agents(&self, send: &SendOptions) -> BTreeMap<String, AgentDefinition> {
        let offered = self.options.local_options().is_none_or(offers_mcp);
        let has_servers = offered && !matches!(send.mcp_servers, ServerChange::None);
        if has_servers { self.options.agents.clone() } else { BTreeMap::new() }
    }

    async fn begin(
        &self,
        keeper: &Keeper,
        send: &SendOptions,
        presence: Presence,
        model: &ModelChoice,
    ) -> Result<Begin, AgentError> {
        let at = now();
        let mut agent = AgentRecord {
            id: self.id.clone(),
            name: self.options.name.clone(),
            cwd: self.options.work_machine().cwd().display().to_string(),
            runtime: self.engine.name().to_owned(),
            created_at: at,
            updated_at: at,
            archived: false,
            active_run: None,
            servers: Vec::new(),
        };
        if presence != Presence::Known && !self.options.mcp_servers.is_empty() {
            let key = keeper.call(Store::digest_key).await?;
            agent.servers = InlineRecord::of(&self.options.mcp_servers, &key);
        }
        let force = send.local().is_some_and(|local| local.force);
        Ok(Begin {
            agent,
            presence,
            run: RunId::random(),
            model: Some(model.id.clone()).filter(|id| !id.is_empty()),
            at,
            idempotency: send.idempotency_key.as_ref().map(|key| digest(&self.id, key)),
            force: force.then(|| "given up: another prompt was sent with force".to_owned()),
        })
    }

    async fn end(self: Arc<Self>) {
        self.closing.cancel();
        let active = self.state().active.clone();
        let all = async {
            let run = async {
                if let Some(live) = &active {
                    live.wait().await.ok();
                }
            };
            let rest = async {
                if let Some(live) = &active {
                    timeout(RUN_END, live.wait()).await.ok();
                }
                tokio::join!(self.generations.close(), self.engine.close());
                if let Some(keeper) = self.keeper.get() {
                    // A handle that is held longer holds nothing open; what it is asked opens the store again.
                    let rest = |store: &dyn Store| {
                        store.rest();
                        Ok(())
                    };
                    keeper.call(rest).await.ok();
                }
            };
            tokio::join!(run, rest);
        };
        if timeout(END, all).await.is_err() {
            tracing::warn!(agent = %self.id, "not everything of an agent ended in time");
        }
        self.ended.cancel();
    }

    /// Begins to end everything, once.
    fn close(self: &Arc<Self>) {
        if self.is_closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.closing.cancel();
        let runtime = Handle::try_current().ok().or_else(|| self.state().runtime.clone());
        match runtime {
            Some(runtime) => drop(self.tasks.spawn_on(Arc::clone(self).end(), &runtime)),
            // Nothing was ever started.
            None => self.ended.cancel(),
        }
        self.tasks.close();
    }
}

/// Who sends the same again is recognised by a digest of the key.
fn digest(agent: &AgentId, key: &str) -> String {
    hex(&Sha256::digest(format!("{agent}\n{key}")))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").ok();
        hex
    })
}

impl Drop for LocalRuntime {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Runtime for LocalRuntime {
    fn name(&self) -> &'static str {
        self.shared.engine.name()
    }

    fn agent(&self) -> &AgentId {
        &self.shared.id
    }

    fn model(&self) -> Option<ModelChoice> {
        self.shared.state().model.clone()
    }

    fn send(&self, prompt: Prompt, options: SendOptions) -> BoxFuture<'_, Result<Run, AgentError>> {
        Box::pin(Arc::clone(&self.shared).send(prompt, options))
    }

    fn reload(&self) -> BoxFuture<'_, Result<ReloadReport, AgentError>> {
        Box::pin(async {
            let shared = &self.shared;
            if shared.is_closed.load(Ordering::SeqCst) {
                return Err(shared.closed());
            }
            let reloaded = shared.generations.reload().await?;
            let mut report = ReloadReport { reloaded: reloaded.is_new, diagnostics: reloaded.diagnostics };
            // Files that cannot be read leave everything as it is.
            if report.reloaded || report.diagnostics.is_empty() {
                report.diagnostics.extend(shared.engine.reload().await?);
            }
            Ok(report)
        })
    }

    fn close(&self) {
        self.shared.close();
    }

    fn dispose(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.shared.close();
            self.shared.ended.cancelled().await;
        })
    }

    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<Artifact>, AgentError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn artifact(&self, path: String) -> BoxFuture<'_, Result<Vec<u8>, AgentError>> {
        let fault = format!(
            "{path:?} is no artifact: an agent on this machine has none, its files are where it works"
        );
        Box::pin(std::future::ready(Err(AgentError::fault("path", fault))))
    }

    fn usage(&self, run: Option<RunId>) -> BoxFuture<'_, Result<UsageReport, AgentError>> {
        Box::pin(async move {
            if self.shared.state().presence != Presence::Known && run.is_none() {
                return Ok(UsageReport { cost: Some(0.0), ..UsageReport::default() });
            }
            Shelf::of(self.shared.keeper().await?.clone()).usage(&self.shared.id, run).await
        })
    }
}
