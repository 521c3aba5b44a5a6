//! A place for an agent on the native runtime: a home, a project in it, a scripted model, servers that report to the test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use toolway_agent::{
    Agent, AgentOptions, EventKind, LocalOptions, Machine, McpServer, McpServers, ModelChoice, Place, Run,
    RunState, SendOptions, StoreChoice, SystemInit, ToolCallEvent, ToolCallStatus,
};
use toolway_secret::Secret;
use toolway_testkit::{Hub, Leaks, ModelScript, ModelServer, fakemcp};

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40);
const ECHO: &str = "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\n";

pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) hub: Hub,
    pub(crate) mark: String,
}

impl Bench {
    pub(crate) fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("user-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let this = Self { dir: tempfile::tempdir()?, hub: Hub::new()?, mark };
        std::fs::create_dir_all(this.path("home/project/.git"))?;
        std::fs::create_dir_all(this.path("managed"))?;
        Ok(this)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// A scripted server with a tool `echo`.
    pub(crate) fn server(&self, script: &str) -> Result<McpServer> {
        let (program, test) = (fakemcp()?, self.hub.address().to_string());
        let script = format!("{ECHO}{script}");
        let args = ["--script", &script, "--mark", &self.mark, "--test", &test];
        Ok(McpServer::command(program.to_str().context("an odd path")?).args(args).required())
    }

    /// The same as an entry of a file.
    pub(crate) fn entry(&self, script: &str) -> Result<Value> {
        Ok(Value::Object(self.server(script)?.members().clone()))
    }

    pub(crate) fn leaks(&self) -> Leaks {
        Leaks::new(&self.mark)
    }

    pub(crate) fn options(
        &self,
        model: &ModelServer,
        servers: McpServers,
        local: LocalOptions,
    ) -> AgentOptions {
        options(self.dir.path(), &model.base_url(), servers, local)
    }

    /// Files of the default store.
    pub(crate) fn kept(&self) -> Result<String> {
        let mut text = String::new();
        for file in toolway_testkit::files(&self.path("home")) {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(file)?));
        }
        Ok(text)
    }
}

/// Options of an agent in that folder.
pub(crate) fn options(dir: &Path, model: &str, servers: McpServers, mut local: LocalOptions) -> AgentOptions {
    let variables = vec![
        ("HOME".into(), dir.join("home").into_os_string()),
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("FILE_TOKEN".into(), "t0ken-of-a-file".into()),
    ];
    let machine = Machine::new(variables, dir.join("home/project"));
    let mut options = AgentOptions::local(machine.with_managed_dirs(vec![dir.join("managed")]));
    options.api_key = Some(Secret::new("key-of-model"));
    let prices = json!({"input": 2.5, "output": 10});
    let params = vec![("baseUrl".to_owned(), json!(model)), ("prices".to_owned(), prices)];
    options.model = Some(ModelChoice { id: "openai::gpt-4o".to_owned(), params });
    options.mcp_servers = servers;
    if matches!(local.store, StoreChoice::Default) {
        local.store = StoreChoice::Sqlite(dir.join("home/store"));
    }
    options.place = Place::Local(Box::new(local));
    options
}

pub(crate) fn script(value: &Value) -> Result<ModelServer> {
    ModelServer::start(ModelScript::of(value)?)
}

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> Result<T> {
    Ok(timeout(DEADLINE, what).await?)
}

/// What a run told.
pub(crate) struct Told {
    pub(crate) state: RunState,
    pub(crate) events: Vec<EventKind>,
}

impl Told {
    pub(crate) fn init(&self) -> Result<&SystemInit> {
        match self.events.first() {
            Some(EventKind::System(init)) => Ok(init),
            other => anyhow::bail!("the first message is {other:?}"),
        }
    }

    /// The calls that ended: whether well, and the text of the result.
    pub(crate) fn calls(&self) -> Vec<(bool, String)> {
        let ended = |kind: &EventKind| match kind {
            EventKind::ToolCall(ToolCallEvent { status, result, .. })
                if *status != ToolCallStatus::Running =>
            {
                let text = result.as_ref().map(|result| result.text().to_owned()).unwrap_or_default();
                Some((*status == ToolCallStatus::Completed, text))
            }
            _ => None,
        };
        self.events.iter().filter_map(ended).collect()
    }
}

/// A run to its end.
pub(crate) async fn ended(run: &Run) -> Result<Told> {
    let mut stream = run.stream()?;
    let mut events = Vec::new();
    while let Some(event) = soon(stream.next()).await? {
        events.push(event?.kind);
    }
    Ok(Told { state: soon(run.wait()).await??, events })
}

/// One prompt of a new agent, to the end of both.
pub(crate) async fn told(options: AgentOptions, prompt: &str) -> Result<Told> {
    let agent = Agent::create(options)?;
    let run = agent.send(prompt, SendOptions::default()).await?;
    let told = ended(&run).await?;
    soon(agent.dispose()).await?;
    Ok(told)
}
