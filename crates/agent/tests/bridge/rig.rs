//! What these tests stand on: a host that is scripted, the bridge as it is, and an agent of either runtime whose model, or
//! whose program, is scripted by the same scene.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_agent::{
    AcpOptions, AgentOptions, EngineChoice, LocalOptions, LocalPort, Machine, McpServer, ModelChoice, Place,
    PortAgent, StoreChoice,
};
use toolway_bridge::{
    Agent, AgentEvent, AgentFailure, AgentModel, AgentOptions as PortOptions, AgentPort, AgentPrompt, CallId,
    Coordinator, Digest, HostPort, HostTool, HostTools, NoticeLevel, Profile, Provenance, RawJson, Session,
    SessionOptions,
};
use toolway_secret::Secret;
use toolway_testkit::{ModelScript, ModelServer};

use super::scene::Scene;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing here takes this long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(Duration::from_mins(1), future).await.context("it takes too long")
}

/// What thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runtime {
    Native,
    Acp,
}

pub(crate) const BOTH: [Runtime; 2] = [Runtime::Native, Runtime::Acp];

/// A host that keeps what it is told.
#[derive(Debug, Default)]
pub(crate) struct Host {
    tools: Mutex<HostTools>,
    aborted: Mutex<Vec<(String, String)>>,
    changed: tokio::sync::Notify,
}

impl Host {
    pub(crate) fn set(&self, tools: Vec<HostTool>) {
        let active = tools.iter().map(|tool| tool.name.clone()).collect();
        *lock(&self.tools) = HostTools { all: tools, active };
    }

    pub(crate) fn aborted(&self) -> Vec<(String, String)> {
        lock(&self.aborted).clone()
    }

    /// Waits until that call is given up. Why it is.
    pub(crate) async fn abort_of(&self, id: &CallId) -> String {
        loop {
            let changed = self.changed.notified();
            if let Some((_, reason)) = lock(&self.aborted).iter().find(|(own, _)| own == id.as_str()) {
                return reason.clone();
            }
            changed.await;
        }
    }
}

pub(crate) fn tool(name: &str, description: &str) -> HostTool {
    HostTool {
        name: name.to_owned(),
        description: description.to_owned(),
        guidelines: Vec::new(),
        parameters: RawJson::of(&json!({"type": "object"})),
        provenance: Provenance::default(),
    }
}

impl HostPort for Host {
    fn tools(&self) -> HostTools {
        lock(&self.tools).clone()
    }

    fn set_active(&self, _names: &[String], _active: bool) {}

    fn abort_call(&self, id: &CallId, reason: &str) {
        lock(&self.aborted).push((id.to_string(), reason.to_owned()));
        self.changed.notify_waiters();
    }

    fn append_entry(&self, _kind: &str, _data: RawJson) {}

    fn notify(&self, _level: NoticeLevel, _text: &str) {}
}

/// What went between the bridge and its agents.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) made: Mutex<Vec<PortOptions>>,
    pub(crate) prompts: Mutex<Vec<(usize, AgentPrompt)>>,
    pub(crate) events: Mutex<Vec<AgentEvent>>,
    ended: AtomicUsize,
    changed: tokio::sync::Notify,
}

impl Seen {
    pub(crate) fn made(&self) -> usize {
        lock(&self.made).len()
    }

    /// The agent of each prompt, and its text.
    pub(crate) fn prompts(&self) -> Vec<(usize, String)> {
        lock(&self.prompts).iter().map(|(agent, prompt)| (*agent, prompt.text.clone())).collect()
    }

    pub(crate) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    /// Waits until so many agents have ended.
    pub(crate) async fn all_ended(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if self.ended() >= count {
                return;
            }
            changed.await;
        }
    }
}

/// The port of this crate, watched.
#[derive(Debug)]
pub(crate) struct Port(LocalPort, Arc<Seen>);

#[derive(Debug)]
pub(crate) struct Watched(PortAgent, usize, Arc<Seen>);

impl AgentPort for Port {
    type Agent = Watched;

    async fn create(&self, options: PortOptions) -> Result<Watched, AgentFailure> {
        let number = {
            let mut made = lock(&self.1.made);
            made.push(options.clone());
            made.len()
        };
        Ok(Watched(self.0.create(options).await?, number, Arc::clone(&self.1)))
    }

    fn identity(&self) -> Option<Digest> {
        self.0.identity()
    }

    fn secrets(&self) -> Vec<Secret> {
        self.0.secrets()
    }

    async fn models(&self) -> Result<Vec<AgentModel>, AgentFailure> {
        self.0.models().await
    }
}

impl Agent for Watched {
    async fn send(&self, prompt: AgentPrompt) -> Result<(), AgentFailure> {
        lock(&self.2.prompts).push((self.1, prompt.clone()));
        self.0.send(prompt).await
    }

    async fn next(&self) -> Option<AgentEvent> {
        let event = self.0.next().await;
        lock(&self.2.events).extend(event.clone());
        event
    }

    async fn cancel(&self) {
        self.0.cancel().await;
    }

    async fn reload(&self) -> Result<(), AgentFailure> {
        self.0.reload().await
    }

    async fn dispose(self) {
        self.0.dispose().await;
        self.2.ended.fetch_add(1, Ordering::SeqCst);
        self.2.changed.notify_waiters();
    }
}

/// A bridge with an agent behind it.
pub(crate) struct Rig {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) host: Arc<Host>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) coordinator: Coordinator<Port>,
    model: Option<ModelServer>,
}

/// What a rig is made with, beside its scene.
pub(crate) type Change = dyn Fn(&mut AgentOptions, &mut LocalOptions);

impl Rig {
    pub(crate) fn new(runtime: Runtime, scene: &Scene) -> Result<Self> {
        Self::with(runtime, scene, &|_, _| {})
    }

    pub(crate) fn with(runtime: Runtime, scene: &Scene, change: &Change) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let work = dir.path().join("work");
        std::fs::create_dir_all(&work)?;
        let variables = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), dir.path().join("home").into_os_string()),
        ];
        let mut options = AgentOptions::local(Machine::new(variables, work));
        let mut local = LocalOptions { store: StoreChoice::Memory, ..LocalOptions::default() };
        let mut model = None;
        match runtime {
            Runtime::Native => {
                let server = ModelServer::start(ModelScript::of(&scene.model())?)?;
                let params = vec![("baseUrl".to_owned(), json!(server.base_url()))];
                options.api_key = Some(Secret::new("key"));
                options.model = Some(ModelChoice { id: "openai::scripted".to_owned(), params });
                model = Some(server);
            }
            Runtime::Acp => {
                let text = |path: PathBuf| path.to_string_lossy().into_owned();
                let script = dir.path().join("script.json");
                std::fs::write(&script, scene.agent().to_string())?;
                local.engine = EngineChoice::Acp(AcpOptions {
                    command: Some(text(toolway_testkit::toolway_acp_agent()?)),
                    args: vec![text(script), "--journal".to_owned(), text(dir.path().join("journal"))],
                    env: BTreeMap::new(),
                    ..AcpOptions::default()
                });
            }
        }
        change(&mut options, &mut local);
        options.place = Place::Local(Box::new(local));
        let seen = Arc::new(Seen::default());
        let coordinator = Coordinator::new(Port(LocalPort::new(options), Arc::clone(&seen)));
        let host = Arc::new(Host::default());
        host.set(vec![tool("todo", "keeps a list"), tool("ask", "asks the user")]);
        Ok(Self { dir, host, seen, coordinator, model })
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn open(&self, change: impl FnOnce(&mut SessionOptions)) -> Result<Session> {
        let mut options = SessionOptions::new("one", Profile::PI);
        options.is_terminal = true;
        change(&mut options);
        Ok(self.coordinator.open(Arc::clone(&self.host) as _, options)?)
    }

    /// The results of MCP calls as the model, or the agent's program, got them.
    pub(crate) fn results(&self) -> Result<Vec<String>> {
        if let Some(model) = &self.model {
            return Ok(model
                .requests()
                .last()
                .map(toolway_testkit::ModelExchange::results)
                .unwrap_or_default());
        }
        let called = self.journal()?.into_iter().filter(|event| event["event"] == "called");
        Ok(called.map(|event| event["result"].to_string()).collect())
    }

    /// Everything that was said to the model, or to the agent's program.
    pub(crate) fn heard(&self) -> Result<String> {
        if let Some(model) = &self.model {
            let said = model.requests().into_iter();
            let said: Vec<_> =
                said.map(|request| format!("{}\n{}", request.system(), request.last())).collect();
            return Ok(said.concat());
        }
        let prompts = self.journal()?.into_iter().filter(|event| event["method"] == "session/prompt");
        let texts =
            prompts.filter_map(|event| Some(event["params"]["prompt"][0]["text"].as_str()?.to_owned()));
        Ok(texts.collect())
    }

    /// What the agent's program noted.
    pub(crate) fn journal(&self) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.dir.path().join("journal"))?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Nothing that was started is there any more.
    pub(crate) fn check_gone(&self) -> Result<()> {
        if self.model.is_some() {
            return Ok(());
        }
        for event in self.journal()?.into_iter().filter(|event| event["event"] == "start") {
            let pid = u32::try_from(event["pid"].as_u64().context("no pid")?)?;
            anyhow::ensure!(toolway_testkit::wait_for_end(pid, Duration::from_secs(10))?, "{pid} is there");
        }
        Ok(())
    }
}

/// A scripted server over stdio with one tool that says this.
pub(crate) fn server(tool: &str, answer: &str) -> Result<McpServer> {
    let script = format!(
        "tool {{\"name\":\"{tool}\",\"inputSchema\":{{\"type\":\"object\"}}}}\non tools/call/{tool} -> text {answer}"
    );
    let fake = toolway_testkit::fakemcp()?.to_string_lossy().into_owned();
    Ok(McpServer::command(fake).args(["--script", &script]).required())
}

pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
