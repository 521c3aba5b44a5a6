//! A gateway in front of scripted servers, each a process of its own, and clients of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use tempfile::TempDir;
use tokio::time::timeout;
use toolway_guard::{Guard, GuardConfig, ReadBack};
use toolway_proxy::gateway::{
    ChildTarget, ClientMessage, ClientSession, Content, Eras, Expose, Face, GatewayConfig, GatewayHandle,
    Message, Protocol, ServerConfig, ServerEntry, SessionOptions, Share, Shared, Target, Timeouts,
    ToolFilter, Wait,
};
use toolway_testkit::{Leaks, fakemcp};
use toolway_transport::{ChildConfig, Payload};
use toolway_wire::{Scanner, Verdict};

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// A word that no other test uses.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("gateway-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A command with a small environment.
pub(crate) fn command(name: &str, command: &str, args: &[&str]) -> ServerConfig {
    let env = BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
    let args: Vec<_> = args.iter().map(|arg| (*arg).into()).collect();
    let digest = format!("{name} {command} {args:?}");
    let child = ChildConfig { args, env, ..ChildConfig::default() };
    ServerConfig {
        name: name.to_owned(),
        target: Target::Child(ChildTarget { command: command.to_owned(), child }),
        digest,
        timeouts: Timeouts { startup: Duration::from_secs(5), ..Timeouts::default() },
        required: false,
        lazy: false,
        share: Share::default(),
        filter: ToolFilter::default(),
        protocol: Protocol::Auto,
        max_response_chars: None,
        secrets: Vec::new(),
        roots: None,
    }
}

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) handle: GatewayHandle,
    guard: Arc<Guard>,
    mark: String,
    _dir: TempDir,
}

impl Gate {
    pub(crate) fn start(servers: impl FnOnce(&str) -> Result<Vec<ServerConfig>>) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mark = mark();
        let mut guard = GuardConfig::new(dir.path().to_path_buf());
        guard.read_back = ReadBack::Session;
        let guard = Arc::new(Guard::new(guard));
        let shared = Shared::new(Arc::clone(&guard), Arc::new(Eras::new(None)), Face::default());
        let handle = GatewayHandle::start(settings(&guard, servers(&mark)?), shared);
        Ok(Self { handle, guard, mark, _dir: dir })
    }

    /// A scripted server over stdio that also lists the tool `echo`. The mark is in its arguments.
    pub(crate) fn scripted(name: &str, script: &str, mark: &str) -> Result<ServerConfig> {
        let program = fakemcp()?;
        let program = program.to_str().context("an odd path")?;
        let script = format!("tool {{\"name\":\"echo\",\"inputSchema\":{{\"type\":\"object\"}}}}\n{script}");
        Ok(command(name, program, &["--script", &script, "--mark", mark]))
    }

    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    pub(crate) async fn reload(&self, servers: Vec<ServerConfig>) {
        self.handle.reload(settings(&self.guard, servers)).await;
    }

    /// A client that has shaken hands.
    pub(crate) async fn client(&self) -> Result<Client> {
        let options = SessionOptions { saved_as: "test".to_owned(), passing: false };
        let session = self.handle.open(options).await.context("the gateway has ended")?;
        let mut client = Client { session, waiting: Vec::new() };
        client
            .send(r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#)
            .await?;
        client.answer("\"hello\"").await?;
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(client)
    }

    /// Waits until a server has that state.
    pub(crate) async fn state(&self, server: &str, state: &str) -> Result<String> {
        let wait = async {
            loop {
                let status = self.handle.status().await;
                let found = status.iter().find(|one| one.name == server).map(|one| one.state.clone());
                match found {
                    Some(found) if found.name() == state => return found.to_string(),
                    _ => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        timeout(DEADLINE, wait).await.with_context(|| format!("{server} does not become {state}"))
    }

    /// Ends it: nothing is left.
    pub(crate) async fn end(self) -> Result<()> {
        timeout(DEADLINE, self.handle.shutdown()).await.context("it does not end")?;
        Leaks::new(&self.mark).check(Duration::ZERO)
    }
}

fn settings(guard: &Arc<Guard>, servers: Vec<ServerConfig>) -> GatewayConfig {
    let entry = |config: ServerConfig| ServerEntry {
        name: config.name.clone(),
        source: "test".to_owned(),
        plan: Ok(Arc::new(config)),
    };
    GatewayConfig {
        servers: servers.into_iter().map(entry).collect(),
        expose: Expose::All,
        bare: false,
        max_name_chars: 64,
        wait: Wait::None,
        pin_tools: false,
        catalogue_dir: None,
        guard: Arc::clone(guard),
    }
}

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) session: ClientSession,
    /// Messages that have come and were not looked at.
    waiting: Vec<String>,
}

impl Client {
    pub(crate) async fn send(&self, json: &str) -> Result<()> {
        let mut scanner = Scanner::new();
        let Verdict::Message(envelope) = scanner.whole(json.as_bytes()) else { bail!("no message: {json}") };
        let content = Content::Bytes(Bytes::copy_from_slice(json.as_bytes()));
        anyhow::ensure!(
            self.session.send(Message { content, envelope: envelope.clone() }).await,
            "it has ended"
        );
        Ok(())
    }

    pub(crate) async fn call(&self, id: &str, tool: &str) -> Result<()> {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
        );
        self.send(&call).await
    }

    /// The next message that holds `part`; others wait.
    pub(crate) async fn message(&mut self, part: &str) -> Result<String> {
        let wait = async {
            loop {
                if let Some(at) = self.waiting.iter().position(|message| message.contains(part)) {
                    return Ok(self.waiting.remove(at));
                }
                let mut messages: Vec<ClientMessage> = Vec::new();
                if !self.session.outlet.receive(&mut messages).await {
                    bail!("the session has ended");
                }
                for message in messages {
                    let Payload::Bytes(bytes) = message.payload else { bail!("a file") };
                    self.waiting.push(String::from_utf8(bytes.to_vec())?);
                }
            }
        };
        timeout(DEADLINE, wait).await.with_context(|| format!("waiting for {part}"))?
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, id: &str) -> Result<serde_json::Value> {
        let message = self.message(&format!("\"id\":{id},")).await?;
        Ok(serde_json::from_str(&message)?)
    }

    /// The names of the tools, without those of the gateway.
    pub(crate) async fn tools(&mut self) -> Result<Vec<String>> {
        self.send(r#"{"jsonrpc":"2.0","id":"tools","method":"tools/list"}"#).await?;
        let list = self.answer("\"tools\"").await?;
        let tools = list["result"]["tools"].as_array().context("no tools")?;
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        Ok(names.filter(|name| !name.starts_with("toolway_")).map(str::to_owned).collect())
    }
}
