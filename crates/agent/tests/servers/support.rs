//! A place for an agent: a home, a project, and scripted servers that report to the test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_agent::{
    AgentError, AgentOptions, Generation, Generations, LocalOptions, Machine, McpCall, McpResult, McpServer,
    McpServers, Place, SendOptions, ServerReport,
};
use toolway_bridge::RawJson;
use toolway_testkit::{Hub, Leaks, Peer, fakemcp};

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A tool that every scripted server has.
const ECHO: &str = "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\n";

/// A home, a project in it, and what listens to servers.
pub(crate) struct Bench {
    dir: TempDir,
    pub(crate) hub: Hub,
    mark: String,
    more: Vec<(String, String)>,
}

impl Bench {
    pub(crate) fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("agent-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let this = Self { dir: tempfile::tempdir()?, hub: Hub::new()?, mark, more: Vec::new() };
        std::fs::create_dir_all(this.project().join(".git"))?;
        std::fs::create_dir_all(this.home())?;
        std::fs::create_dir_all(this.path("managed"))?;
        Ok(this)
    }

    /// Another variable of the machine.
    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        self.more.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Writes a file and the folders above it.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Writes servers into a file.
    pub(crate) fn servers(&self, name: &str, servers: &[(&str, Value)]) -> Result<PathBuf> {
        let map: serde_json::Map<String, Value> =
            servers.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone())).collect();
        self.write(name, &json!({ "mcpServers": map }).to_string())
    }

    pub(crate) fn machine(&self) -> Machine {
        let home = self.home();
        let mut variables =
            vec![("HOME".into(), home.clone().into_os_string()), ("OUTSIDE".into(), "unseen".into())];
        if !self.more.iter().any(|(name, _)| name == "PATH") {
            variables.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
        }
        variables.extend(self.more.iter().map(|(name, value)| (name.into(), value.into())));
        Machine::new(variables, self.project()).with_managed_dirs(vec![self.path("managed")])
    }

    /// Options of an agent that works in the project.
    pub(crate) fn options(&self, servers: McpServers, local: LocalOptions) -> AgentOptions {
        let mut options = AgentOptions::local(self.machine());
        options.mcp_servers = servers;
        options.place = Place::Local(Box::new(local));
        options
    }

    /// The arguments by which a scripted server is run.
    fn args(&self, script: &str) -> Vec<String> {
        let test = self.hub.address().to_string();
        let script = format!("{ECHO}{script}");
        ["--script", &script, "--mark", &self.mark, "--test", &test].map(str::to_owned).to_vec()
    }

    /// A scripted server over stdio.
    pub(crate) fn scripted(&self, script: &str) -> Result<McpServer> {
        let program = fakemcp()?;
        Ok(McpServer::command(program.to_str().context("an odd path")?).args(self.args(script)))
    }

    /// The same as an entry of a file.
    pub(crate) fn entry(&self, script: &str) -> Result<Value> {
        Ok(Value::Object(self.scripted(script)?.members().clone()))
    }

    /// A scripted server that listens, and its address.
    pub(crate) fn web(&mut self, script: &str, transport: &str) -> Result<Web> {
        let mut command = std::process::Command::new(fakemcp()?);
        command.args(self.args(script)).args(["--transport", transport]);
        command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let child = command.spawn()?;
        let peer = self.hub.arrival("server", DEADLINE)?;
        let path = if transport == "sse" { "sse" } else { "mcp" };
        let url = format!("http://127.0.0.1:{}/{path}", peer.port());
        Ok(Web { url, peer, child })
    }

    /// The next server that reports.
    pub(crate) fn peer(&mut self) -> Result<Peer> {
        self.hub.arrival("server", DEADLINE)
    }

    pub(crate) fn leaks(&self) -> Leaks {
        Leaks::new(&self.mark)
    }
}

/// The generations of an agent with these options, which are checked.
pub(crate) fn generations(options: &AgentOptions) -> Result<Generations> {
    options.check()?;
    Ok(Generations::new(options, "agent-test")?)
}

/// A server that listens.
pub(crate) struct Web {
    pub(crate) url: String,
    pub(crate) peer: Peer,
    child: std::process::Child,
}

impl Drop for Web {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// The servers of a run, ready.
pub(crate) async fn run(agent: &Generations) -> Result<Arc<Generation>> {
    run_with(agent, &SendOptions::default()).await
}

/// The servers of a run with these options, ready.
pub(crate) async fn run_with(agent: &Generations, send: &SendOptions) -> Result<Arc<Generation>> {
    let generation = agent.for_run(send).await?;
    timeout(DEADLINE, generation.ready()).await?;
    Ok(generation)
}

/// Waits until the report of a server is as wanted.
pub(crate) async fn report(generation: &Generation, server: &str, state: &str) -> Result<ServerReport> {
    let wait = async {
        loop {
            let reports = generation.reports();
            if let Some(found) = reports.iter().find(|one| one.name == server && one.state == state) {
                return found.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match timeout(DEADLINE, wait).await {
        Ok(report) => Ok(report),
        Err(_) => bail!("{server} does not become {state}: {:?}", generation.reports()),
    }
}

/// Waits until there is a tool of that exposed name.
pub(crate) async fn tool(generation: &Generation, exposed: &str) -> Result<()> {
    let wait = async {
        while !names(generation).contains(&exposed.to_owned()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = timeout(DEADLINE, wait).await;
    waited.with_context(|| format!("no tool {exposed}: {:?}", generation.reports()))
}

/// The names of all tools of servers.
pub(crate) fn names(generation: &Generation) -> Vec<String> {
    let tools = generation.tools();
    tools.iter().filter(|tool| !tool.server.is_empty()).map(|tool| tool.exposed.clone()).collect()
}

/// Calls a tool.
pub(crate) async fn call(generation: &Generation, exposed: &str, arguments: Value) -> Result<McpResult> {
    let call = McpCall { exposed, arguments: RawJson::of(&arguments) };
    let cancel = CancellationToken::new();
    let called = generation.call(call, |_| {}, &cancel);
    Ok(timeout(DEADLINE, called).await?)
}

/// The text of a result.
pub(crate) fn text(result: &McpResult) -> String {
    let tree = result.content.tree();
    let blocks = tree["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// The faults of an error.
pub(crate) fn faults(error: &AgentError) -> Vec<String> {
    match error {
        AgentError::Configuration(faults) => faults.iter().map(ToString::to_string).collect(),
        other => vec![format!("another error: {other}")],
    }
}

/// Some file below the folder holds the text.
pub(crate) fn on_disk(folder: &Path, text: &str) -> bool {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    toolway_testkit::files(folder).iter().any(holds)
}
