//! What the tests of the ACP runtime stand on: a scripted agent as a process, and a sink that keeps what it is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_agent::{
    AcpCommand, AcpEngine, AcpOptions, AcpSurroundings, AcpTimeouts, AgentError, AgentId, AgentOptions,
    BoxFuture, Checkpoint, Delta, DirectServer, Engine as _, EngineTurn, EventKind, Gate, GateOptions,
    Generation, Generations, Hooks, Limits, LocalOptions, Machine, McpServers, Mode, ModelChoice,
    PermissionMode, PermissionRules, Place, Prompt, RunId, RunSink, SendOptions, Steering, TurnEnd,
};
use toolway_secret::Secret;

/// What a run told.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) events: Mutex<Vec<EventKind>>,
    pub(crate) deltas: Mutex<Vec<Delta>>,
    pub(crate) checkpoint: Mutex<Option<Checkpoint>>,
    changed: Notify,
}

/// Long enough for a machine with other things to do.
pub(crate) const LONG: Duration = Duration::from_mins(1);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    pub(crate) fn events(&self) -> Vec<EventKind> {
        lock(&self.events).clone()
    }

    pub(crate) fn deltas(&self) -> Vec<Delta> {
        lock(&self.deltas).clone()
    }

    /// Waits until it was told what is wanted.
    pub(crate) async fn until(&self, holds: impl Fn(&Self) -> bool) -> Result<()> {
        let waits = async {
            loop {
                let changed = self.changed.notified();
                if holds(self) {
                    return;
                }
                changed.await;
            }
        };
        timeout(LONG, waits).await.with_context(|| format!("it was not told in time: {self:?}"))
    }

    /// Waits until the agent has said something.
    pub(crate) async fn until_something_is_said(&self) -> Result<()> {
        self.until(|told| !told.deltas().is_empty()).await
    }

    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        lock(&self.checkpoint).clone()
    }

    /// Texts of the notes of this kind.
    pub(crate) fn notes(&self, wanted: &str) -> Vec<String> {
        let note = |event: EventKind| match event {
            EventKind::Task { status: Some(status), text: Some(text) } if status == wanted => Some(text),
            _ => None,
        };
        self.events().into_iter().filter_map(note).collect()
    }
}

impl RunSink for Recorder {
    fn event(&self, kind: EventKind) -> BoxFuture<'_, Result<(), AgentError>> {
        lock(&self.events).push(kind);
        self.changed.notify_waiters();
        Box::pin(async { Ok(()) })
    }

    fn delta(&self, delta: Delta) -> BoxFuture<'_, ()> {
        lock(&self.deltas).push(delta);
        self.changed.notify_waiters();
        Box::pin(async {})
    }

    fn checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), AgentError>> {
        *lock(&self.checkpoint) = Some(checkpoint);
        Box::pin(async { Ok(()) })
    }
}

/// A folder with an agent that is scripted.
pub(crate) struct Rig {
    dir: tempfile::TempDir,
    pub(crate) command: AcpCommand,
    pub(crate) surroundings: AcpSurroundings,
    options: AgentOptions,
    kept: Mutex<Vec<Generations>>,
}

impl Rig {
    pub(crate) fn new(script: &Value) -> Result<Self> {
        Self::with(script, &[], &[])
    }

    /// With permission rules. Without any everything is allowed that no rule denies.
    pub(crate) fn with(script: &Value, allow: &[&str], deny: &[&str]) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let work = dir.path().join("work");
        std::fs::create_dir(&work)?;
        let variables = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), dir.path().join("home").into_os_string()),
            ("HIDDEN".into(), "hidden".into()),
        ];
        let machine = Machine::new(variables, work);
        let script_file = dir.path().join("script.json");
        std::fs::write(&script_file, script.to_string())?;
        let journal = dir.path().join("journal");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let options = AcpOptions {
            command: Some(text(&toolway_testkit::toolway_acp_agent()?)),
            args: vec![text(&script_file), "--journal".to_owned(), text(&journal)],
            env: BTreeMap::from([("TOKEN".to_owned(), Secret::new("s3cr3t-value"))]),
            ..AcpOptions::default()
        };
        let mut command = AcpCommand::of(&options)?;
        command.timeouts = AcpTimeouts {
            start: Duration::from_secs(20),
            sign_in: Duration::from_secs(20),
            session: Duration::from_secs(20),
            cancel: Duration::from_secs(10),
        };
        let strict = !allow.is_empty();
        let gate = Gate::new(GateOptions {
            mode: if strict { PermissionMode::Ask } else { PermissionMode::Unrestricted },
            rules: PermissionRules::parse(allow, deny)?,
            approver: None,
            hooks: Hooks::default(),
            environment: machine.environment().clone(),
            cwd: machine.cwd().to_owned(),
            roots: Vec::new(),
        });
        let surroundings = AcpSurroundings {
            machine: machine.clone(),
            gate,
            roots: Vec::new(),
            shim: None,
            supervise: None,
            system_prompt: None,
        };
        let options = AgentOptions::local(machine.clone());
        Ok(Self { dir, command, surroundings, options, kept: Mutex::default() })
    }

    /// With servers, given by the program.
    pub(crate) fn servers(mut self, servers: McpServers) -> Self {
        self.options.mcp_servers = servers;
        self
    }

    /// With a server that the agent is given as it is.
    pub(crate) fn direct(mut self, server: DirectServer) -> Self {
        self.options.place = Place::Local(Box::new(LocalOptions {
            direct_servers: vec![server],
            server_patience: Some(Duration::ZERO),
            ..LocalOptions::default()
        }));
        self
    }

    /// The machine with one more variable.
    pub(crate) fn machine_with(&self, name: &str, value: &str) -> Machine {
        let mut variables = self.surroundings.machine.variables().to_vec();
        variables.push((name.into(), value.into()));
        Machine::new(variables, self.work())
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn outside(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn engine(&self) -> AcpEngine {
        AcpEngine::new(self.command.clone(), self.surroundings.clone())
    }

    /// A generation of its own. It lives as long as the rig.
    pub(crate) async fn generation(&self) -> Result<Arc<Generation>> {
        let generations = Generations::new(&self.options, "agent-test")?;
        let generation = generations.for_run(&SendOptions::default()).await?;
        lock(&self.kept).push(generations);
        Ok(generation)
    }

    pub(crate) fn turn(&self, text: &str, servers: &Arc<Generation>) -> EngineTurn {
        EngineTurn {
            agent: AgentId::local(),
            run: RunId::random(),
            prompt: Prompt { text: text.to_owned(), images: Vec::new() },
            model: ModelChoice::default(),
            mode: Mode::Agent,
            cwd: self.work(),
            servers: Arc::clone(servers),
            checkpoint: None,
            interrupted: Vec::new(),
            limits: Limits::default(),
            steering: Steering::none(),
            cancel: CancellationToken::new(),
        }
    }

    /// One prompt to a new engine, which is closed afterwards.
    pub(crate) async fn prompt(&self, text: &str) -> Result<(Result<TurnEnd, AgentError>, Arc<Recorder>)> {
        let servers = self.generation().await?;
        let (engine, sink) = (self.engine(), Arc::new(Recorder::default()));
        let end = engine.run(self.turn(text, &servers), sink.clone()).await;
        engine.close().await;
        Ok((end, sink))
    }

    /// What the agent noted.
    pub(crate) fn journal(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.dir.path().join("journal"))?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// The parameters of all calls of a method.
    pub(crate) fn calls(&self, method: &str) -> Result<Vec<Value>> {
        let ours = |event: &Value| event["event"] == "message" && event["method"] == method;
        Ok(self.journal()?.into_iter().filter(ours).map(|event| event["params"].clone()).collect())
    }

    /// What the agent's questions were answered.
    pub(crate) fn answers(&self) -> Result<Vec<Value>> {
        let ours = |event: &Value| event["event"] == "asked";
        Ok(self.journal()?.into_iter().filter(ours).map(|event| event["answer"].clone()).collect())
    }

    /// The processes that the agent was, latest last.
    pub(crate) fn pids(&self) -> Result<Vec<u32>> {
        let starts = self.journal()?.into_iter().filter(|event| event["event"] == "start");
        starts
            .map(|event| u32::try_from(event["pid"].as_u64().context("no pid")?).context("no pid"))
            .collect()
    }

    pub(crate) fn is_gone(&self) -> Result<bool> {
        for pid in self.pids()? {
            if !toolway_testkit::wait_for_end(pid, Duration::from_secs(10))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A prompt's steps.
pub(crate) fn script(steps: Value) -> Value {
    let mut script = json!({"prompts": [{}]});
    script["prompts"][0]["do"] = steps;
    script
}
