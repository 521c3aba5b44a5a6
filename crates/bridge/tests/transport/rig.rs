//! Owns a bridge with a host that a test plays, and clients of both generations that reach it over real sockets.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolway_bridge::{
    Bridge, BridgeConfig, CallId, CallSink, HostCall, HostResult, HostTool, HostTools, Profile, Provenance,
    RawJson, Run, Snapshot, SurfaceOptions,
};

use crate::wire::{Answer, Wire, request};

/// What the host is told.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Start(HostCall),
    Cancelled(CallId, String),
}

/// Passes on what it is told. Calls of `echo` it settles at once with their arguments.
struct Sink {
    told: mpsc::Sender<Told>,
    run: Run,
}

impl CallSink for Sink {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        if call.tool == "echo" {
            self.run.settle(&call.id, HostResult::text(call.arguments.text()));
            return Ok(());
        }
        self.told.try_send(Told::Start(call)).map_err(|error| error.to_string())
    }

    fn cancelled(&mut self, id: &CallId, reason: &str) {
        // A test that does not listen any more has seen what it wanted.
        self.told.try_send(Told::Cancelled(id.clone(), reason.to_owned())).ok();
    }
}

pub(crate) fn tool(name: &str) -> HostTool {
    HostTool {
        name: name.to_owned(),
        description: format!("does {name}"),
        guidelines: vec!["  be brief ".to_owned(), " ".to_owned()],
        parameters: RawJson::of(&json!({"type": "object", "properties": {"text": {"type": "string"}}})),
        provenance: Provenance::default(),
    }
}

pub(crate) fn snapshot(profile: &Profile, tools: Vec<HostTool>) -> Arc<Snapshot> {
    let active = tools.iter().map(|tool| tool.name.clone()).collect();
    let options = SurfaceOptions { enabled: true, ..SurfaceOptions::default() };
    Arc::new(Snapshot::take(profile, &options, &HostTools { all: tools, active }))
}

/// One bridge, one run of it, and the host's side.
pub(crate) struct Rig {
    pub(crate) bridge: Bridge,
    pub(crate) run: Run,
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) told: mpsc::Receiver<Told>,
}

impl Rig {
    /// Tools `echo` and `slow`; `slow` waits for the test.
    pub(crate) async fn new() -> Result<Self> {
        Self::of(BridgeConfig::new(Profile::PI), vec![tool("echo"), tool("slow")]).await
    }

    pub(crate) async fn of(config: BridgeConfig, tools: Vec<HostTool>) -> Result<Self> {
        let profile = config.profile;
        let bridge = Bridge::new(config);
        let run = bridge.open(snapshot(&profile, tools)).await?.context("nothing is exposed")?;
        let (port, path) = address(&run)?;
        let (sender, told) = mpsc::channel(4096);
        run.bind(Box::new(Sink { told: sender, run: run.clone() }));
        Ok(Self { bridge, run, port, path, told })
    }

    /// The next call that the host is to run.
    pub(crate) async fn started(&mut self) -> Result<HostCall> {
        match self.told.recv().await.context("the sink is gone")? {
            Told::Start(call) => Ok(call),
            Told::Cancelled(id, reason) => anyhow::bail!("{id} was cancelled: {reason}"),
        }
    }

    /// The next call that the host is to stop.
    pub(crate) async fn cancelled(&mut self) -> Result<(CallId, String)> {
        match self.told.recv().await.context("the sink is gone")? {
            Told::Cancelled(id, reason) => Ok((id, reason)),
            Told::Start(call) => anyhow::bail!("{} was started", call.id),
        }
    }

    /// A request with these headers beside `Host`, `Content-Type` and `Accept`.
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        let host = format!("127.0.0.1:{}", self.port);
        let mut all = vec![
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend_from_slice(headers);
        request("POST", &self.path, &all, body)
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, bytes: &[u8]) -> Result<Answer> {
        let mut wire = Wire::open(self.port).await?;
        wire.send(bytes).await?;
        wire.answer().await
    }

    /// A legacy session.
    pub(crate) async fn legacy(&self) -> Result<Legacy> {
        let answer = self.ask(&self.post(&[], initialize("2025-11-25").to_string().as_bytes())).await?;
        let session = answer.head.header("mcp-session-id").context("no session")?.to_owned();
        let legacy = Legacy { session };
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let noted = legacy.ask(self, &initialized).await?;
        anyhow::ensure!(noted.status() == 202, "{noted:?}");
        Ok(legacy)
    }

    /// A modern request.
    pub(crate) fn modern(&self, message: &Value) -> Vec<u8> {
        self.modern_with(message, &[])
    }

    /// The same with more headers.
    pub(crate) fn modern_with(&self, message: &Value, more: &[(&str, &str)]) -> Vec<u8> {
        let method = message["method"].as_str().unwrap_or_default();
        let name = message["params"]["name"].as_str();
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        headers.extend_from_slice(more);
        self.post(&headers, message.to_string().as_bytes())
    }
}

/// A legacy client with a session.
#[derive(Debug, Clone)]
pub(crate) struct Legacy {
    pub(crate) session: String,
}

impl Legacy {
    pub(crate) fn post(&self, rig: &Rig, message: &Value) -> Vec<u8> {
        let headers = [("Mcp-Session-Id", self.session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
        rig.post(&headers, message.to_string().as_bytes())
    }

    pub(crate) async fn ask(&self, rig: &Rig, message: &Value) -> Result<Answer> {
        rig.ask(&self.post(rig, message)).await
    }
}

/// Port and path of a run's endpoint.
pub(crate) fn address(run: &Run) -> Result<(u16, String)> {
    let url = run.server().url.expose().to_owned();
    let rest = url.strip_prefix("http://127.0.0.1:").with_context(|| url.clone())?;
    let (port, path) = rest.split_once('/').context("no path")?;
    Ok((port.parse()?, format!("/{path}")))
}

pub(crate) fn initialize(version: &str) -> Value {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

pub(crate) fn list(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})
}

pub(crate) fn call(id: u64, name: &str, arguments: &Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

/// A modern request of that method; `params` get the `_meta` that they need.
pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    if let Some(given) = params["_meta"].as_object() {
        for (name, value) in given {
            meta[name] = value.clone();
        }
    }
    params["_meta"] = meta;
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The text of a call's result.
pub(crate) fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}
