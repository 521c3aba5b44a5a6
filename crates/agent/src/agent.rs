//! Owns the handle of an agent and what can be done with agents by their ids. It decides which runtime an agent is on, by
//! its options or the first letters of its id, and knows nothing else of runtimes.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::engine::Engine;
use crate::error::{AgentError, Fault};
use crate::id::{AgentId, RunId};
pub use crate::local::{AgentList, RunList};
use crate::local::{LocalRuntime, Shelf, chosen_engine};
use crate::options::{AgentOptions, ModelChoice, Place, Prompt, SendOptions};
use crate::run::{Observed, Run, RunState};
use crate::runtime::{Artifact, ReloadReport, Runtime, UsageReport};
use crate::store::{AgentChange, AgentRecord, Page, Presence};

/// An agent: a conversation that lasts, and what executes its prompts. Dropping the handle ends what it started, in the
/// background; [`Agent::dispose`] waits for that. What is kept of the agent stays.
#[derive(Debug)]
pub struct Agent {
    runtime: Box<dyn Runtime>,
}

impl Agent {
    /// A new agent. Nothing is started, connected or read, and nothing kept, before the first prompt.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all that is wrong with the options.
    pub fn create(options: AgentOptions) -> Result<Self, AgentError> {
        let engine = chosen_engine(&options)?;
        Self::create_on(options, engine)
    }

    /// A new agent on an engine of the program's own.
    ///
    /// # Errors
    /// As [`Agent::create`].
    pub fn create_on(options: AgentOptions, engine: Arc<dyn Engine>) -> Result<Self, AgentError> {
        options.check()?;
        is_local(&options)?;
        let (id, presence) = match (&options.agent_id, &options.idempotency_key) {
            (Some(id), _) => (id.clone(), Presence::New),
            // The same key is the same agent: the key's digest is its id.
            (None, Some(key)) => (AgentId::of_digest(&Sha256::digest(key)), Presence::Any),
            (None, None) => (AgentId::local(), Presence::New),
        };
        not_cloud(&id)?;
        Ok(Self { runtime: Box::new(LocalRuntime::new(id, options, engine, presence, None)?) })
    }

    /// An agent that was sent prompts before, maybe by another process. Servers, tools, permissions, the model and the
    /// words to it are not kept: they are given again in the options.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`]; [`AgentError::Configuration`] also where servers that it was made with are missing
    /// and the options require them.
    pub async fn resume(id: &AgentId, options: AgentOptions) -> Result<Self, AgentError> {
        let engine = chosen_engine(&options)?;
        Self::resume_on(id, options, engine).await
    }

    /// The same on an engine of the program's own.
    ///
    /// # Errors
    /// As [`Agent::resume`].
    pub async fn resume_on(
        id: &AgentId,
        options: AgentOptions,
        engine: Arc<dyn Engine>,
    ) -> Result<Self, AgentError> {
        not_cloud(id)?;
        is_local(&options)?;
        options.check()?;
        let shelf = Shelf::open(&options).await?;
        let record = shelf.get(id).await?;
        let required = options.local_options().is_some_and(|local| local.require_servers);
        let keeper = Some(shelf.keeper());
        let runtime = LocalRuntime::new(id.clone(), options, engine, Presence::Known, keeper)?;
        let missing = runtime.compare_servers(&record).await?.missing;
        if required && !missing.is_empty() {
            let fault = |server: crate::inline::InlineRecord| Fault {
                field: format!("mcpServers.{}", server.name),
                message: format!(
                    "the agent was made with this server ({}), and it is not given again",
                    server.transport
                ),
                subject: Some(server.name),
            };
            return Err(AgentError::Configuration(missing.into_iter().map(fault).collect()));
        }
        Ok(Self { runtime: Box::new(runtime) })
    }

    /// One prompt from its sending to its end: a new agent, its run, and the end of the handle.
    ///
    /// # Errors
    /// Where the prompt could not be sent. A run that failed is in the answer.
    pub async fn prompt(prompt: impl Into<Prompt>, options: AgentOptions) -> Result<RunState, AgentError> {
        let agent = Self::create(options)?;
        let state = match agent.send(prompt, SendOptions::default()).await {
            Ok(run) => run.wait().await,
            Err(error) => Err(error),
        };
        agent.dispose().await;
        state
    }

    /// Its id.
    pub fn id(&self) -> &AgentId {
        self.runtime.agent()
    }

    /// The runtime that it is on: `native`, `acp`, ...
    pub fn runtime(&self) -> &'static str {
        self.runtime.name()
    }

    /// The model that the next prompt goes to: the last one that a prompt was sent to, else that of the options.
    pub fn model(&self) -> Option<ModelChoice> {
        self.runtime.model()
    }

    /// Sends a prompt. Ends when the run has begun.
    ///
    /// # Errors
    /// [`AgentError::Configuration`]; [`AgentError::AgentBusy`] while a run of the agent is not over, in whatever process,
    /// or was left behind by a process that died; [`AgentError::AgentArchived`]; [`AgentError::Store`].
    pub async fn send(&self, prompt: impl Into<Prompt>, options: SendOptions) -> Result<Run, AgentError> {
        self.runtime.send(prompt.into(), options).await
    }

    /// Reads files again: servers, rules, hooks, skills, subagents. For the runs to come; a run on its way keeps what it
    /// has. Nothing before the first prompt.
    ///
    /// # Errors
    /// [`AgentError::Closed`]. What is wrong with files is in the report.
    pub async fn reload(&self) -> Result<ReloadReport, AgentError> {
        self.runtime.reload().await
    }

    /// Begins to end the handle: its run, its servers, its engine. Does not wait.
    pub fn close(&self) {
        self.runtime.close();
    }

    /// Ends the handle: its run, its servers, its engine, in 5 s at most. The second time there is nothing to do.
    pub async fn dispose(&self) {
        self.runtime.dispose().await;
        // A token that is on its way is kept, for whoever comes next.
        toolway_auth::settle().await;
    }

    /// Files that it made for its user elsewhere: none on this machine.
    ///
    /// # Errors
    /// None on this machine.
    pub async fn list_artifacts(&self) -> Result<Vec<Artifact>, AgentError> {
        self.runtime.artifacts().await
    }

    /// The bytes of such a file.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] on this machine, always.
    pub async fn download_artifact(&self, path: &str) -> Result<Vec<u8>, AgentError> {
        self.runtime.artifact(path.to_owned()).await
    }

    /// Tokens of one run, or of all.
    ///
    /// # Errors
    /// [`AgentError::RunNotFound`], [`AgentError::Store`].
    pub async fn usage(&self, run: Option<RunId>) -> Result<UsageReport, AgentError> {
        self.runtime.usage(run).await
    }
}

/// What can be done with agents that are kept, by their ids. The options say in which store.
impl Agent {
    /// Agents, the youngest first.
    ///
    /// # Errors
    /// [`AgentError::Store`].
    pub async fn list(options: &AgentOptions, page: Page) -> Result<AgentList, AgentError> {
        shelf(None, options).await?.list(page).await
    }

    /// One agent.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn get(id: &AgentId, options: &AgentOptions) -> Result<AgentRecord, AgentError> {
        shelf(Some(id), options).await?.get(id).await
    }

    /// Runs of an agent, the youngest first.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn list_runs(id: &AgentId, options: &AgentOptions, page: Page) -> Result<RunList, AgentError> {
        shelf(Some(id), options).await?.runs(id, page).await
    }

    /// A run of an agent, to be observed, read or cancelled from outside of the handle that executes it.
    ///
    /// # Errors
    /// [`AgentError::RunNotFound`].
    pub async fn get_run(id: &AgentId, run: &RunId, options: &AgentOptions) -> Result<Run, AgentError> {
        shelf(Some(id), options).await?.run(id, run).await
    }

    /// Cancels a run, in whatever process it is.
    ///
    /// # Errors
    /// [`AgentError::RunNotFound`]; [`AgentError::Runtime`] where its process does not.
    pub async fn cancel_run(id: &AgentId, run: &RunId, options: &AgentOptions) -> Result<(), AgentError> {
        Self::get_run(id, run, options).await?.cancel().await
    }

    /// Another name for people.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn rename(
        id: &AgentId,
        name: Option<String>,
        options: &AgentOptions,
    ) -> Result<(), AgentError> {
        shelf(Some(id), options).await?.change(id, AgentChange::Name(name)).await
    }

    /// The agent takes no prompts and is not listed.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn archive(id: &AgentId, options: &AgentOptions) -> Result<(), AgentError> {
        shelf(Some(id), options).await?.change(id, AgentChange::Archived(true)).await
    }

    /// The agent takes prompts again.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn unarchive(id: &AgentId, options: &AgentOptions) -> Result<(), AgentError> {
        shelf(Some(id), options).await?.change(id, AgentChange::Archived(false)).await
    }

    /// Cancels what the agent does and removes all that is kept of it.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn delete(id: &AgentId, options: &AgentOptions) -> Result<(), AgentError> {
        shelf(Some(id), options).await?.delete(id).await
    }

    /// Tokens of an agent, or of one of its runs.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`], [`AgentError::RunNotFound`].
    pub async fn usage_of(
        id: &AgentId,
        run: Option<RunId>,
        options: &AgentOptions,
    ) -> Result<UsageReport, AgentError> {
        shelf(Some(id), options).await?.usage(id, run).await
    }

    /// What its user and the model said, the oldest first.
    ///
    /// # Errors
    /// [`AgentError::AgentNotFound`].
    pub async fn messages(id: &AgentId, options: &AgentOptions) -> Result<Vec<Observed>, AgentError> {
        shelf(Some(id), options).await?.messages(id).await
    }
}

async fn shelf(id: Option<&AgentId>, options: &AgentOptions) -> Result<Shelf, AgentError> {
    id.map_or(Ok(()), not_cloud)?;
    is_local(options)?;
    Shelf::open(options).await
}

fn is_local(options: &AgentOptions) -> Result<(), AgentError> {
    match options.place {
        Place::Local(_) => Ok(()),
        Place::Cloud(_) => {
            Err(AgentError::fault("cloud", "this version of Toolway has no agents in the cloud"))
        }
    }
}

fn not_cloud(id: &AgentId) -> Result<(), AgentError> {
    if id.is_cloud() {
        let fault = format!("{id} is an agent in the cloud, and this version of Toolway has none");
        return Err(AgentError::fault("agentId", fault));
    }
    Ok(())
}
