//! The same scenario on both runtimes: a server over stdio, one over HTTP and a host's own tools over the bridge, called by
//! a scripted model. What the two tell about it is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolway_agent::{
    AcpOptions, Agent, AgentOptions, AssistantBlock, DirectServer, EngineChoice, Event, EventKind,
    LocalOptions, Machine, McpServer, McpServers, ModelChoice, Place, RunStatus, SendOptions, StoreChoice,
    SystemInit, ToolCallEvent, ToolCallStatus,
};
use toolway_bridge::{
    Bridge, BridgeConfig, CallId, CallSink, HostCall, HostResult, HostTool, HostTools, Profile, Provenance,
    RawJson, Run, Snapshot, SurfaceOptions,
};
use toolway_secret::Secret;
use toolway_testkit::{ModelScript, ModelServer};

/// A scripted server that listens. It ends with the test.
struct Web(Child, String);

impl Web {
    fn start(tool: &str, answer: &str) -> Result<Self> {
        let mut command = Command::new(toolway_testkit::fakemcp()?);
        command.args(["--script", &script(tool, answer), "--transport", "http"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stderr.take().context("no stderr")?).read_line(&mut line)?;
        let port = line.trim().strip_prefix("LISTEN ").context("no port")?.to_owned();
        Ok(Self(child, format!("http://127.0.0.1:{port}/mcp")))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).ok();
    }
}

/// A host with one tool, `ask`, behind the bridge.
struct Host {
    bridge: Bridge,
    run: Run,
    calls: mpsc::Receiver<HostCall>,
}

/// Where calls come in.
struct Desk(mpsc::Sender<HostCall>);

impl CallSink for Desk {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        self.0.try_send(call).map_err(|error| error.to_string())
    }

    fn cancelled(&mut self, _id: &CallId, _reason: &str) {}
}

impl Host {
    async fn start() -> Result<Self> {
        let ask = HostTool {
            name: "ask".to_owned(),
            description: "asks the user".to_owned(),
            guidelines: Vec::new(),
            parameters: RawJson::of(&json!({"type": "object"})),
            provenance: Provenance::default(),
        };
        let tools = HostTools { all: vec![ask], active: vec!["ask".to_owned()] };
        let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
        let snapshot = Snapshot::take(&Profile::PI, &SurfaceOptions::default(), &tools);
        let run = bridge.open(snapshot.into()).await?.context("nothing is exposed")?;
        let (sender, calls) = mpsc::channel(8);
        run.bind(Box::new(Desk(sender)));
        Ok(Self { bridge, run, calls })
    }

    fn server(&self) -> DirectServer {
        let server = self.run.server();
        DirectServer { name: server.key.to_owned(), url: server.url, headers: Vec::new() }
    }

    /// Runs what it is asked to run, by its own names, for ever.
    async fn work(&mut self, ran: &mut Vec<(String, Value)>) {
        while let Some(call) = self.calls.recv().await {
            ran.push((call.tool.clone(), call.arguments.tree()));
            self.run.settle(&call.id, HostResult::text("from the host"));
        }
    }
}

fn script(tool: &str, answer: &str) -> String {
    format!(
        "tool {{\"name\":\"{tool}\",\"inputSchema\":{{\"type\":\"object\"}}}}\non tools/call/{tool} -> text {answer}"
    )
}

/// A model that calls these tools at once, and says what it was told.
fn model(tools: &[&str]) -> Result<ModelServer> {
    let calls: Vec<Value> = tools.iter().map(|tool| json!({"name": tool, "arguments": {"n": 1}})).collect();
    let first = tools.first().copied().unwrap_or_default();
    ModelServer::start(ModelScript::of(&json!({
        "rules": [
            {"when": {"user": "go", "tool": first}, "times": 1, "reply": {"text": "I call them.", "calls": calls}},
            {"when": {"result": "from stdio", "tool": first}, "reply": {"text": "All are there."}},
        ],
        "otherwise": {"text": "A title"},
    }))?)
}

/// What was told, without what is every run's own.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    status: RunStatus,
    result: Option<String>,
    /// Every event as it came; of calls at once, those that begin before those that end, by their servers.
    told: Vec<String>,
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The first message: servers, where each comes from and what it is, and every tool with its server.
fn init(init: &SystemInit) -> String {
    let mut servers: Vec<String> = init
        .mcp_servers
        .iter()
        .map(|one| {
            let transport = one.transport.as_deref().unwrap_or_default();
            format!("{} ({} {transport} {} {})", one.name, one.source, one.state, one.tools)
        })
        .collect();
    let mut tools: Vec<String> =
        init.mcp_tools.iter().map(|pair| format!("{}/{}", pair.server, pair.tool)).collect();
    servers.sort();
    tools.sort();
    format!("system {}; {}", servers.join(", "), tools.join(", "))
}

/// A call: how far it is, server, tool, arguments, and the text of its result.
fn call(call: &ToolCallEvent) -> String {
    let args = call.args.as_ref().map(RawJson::tree).unwrap_or_default();
    let result = call.result.as_ref().map(RawJson::tree).unwrap_or_default();
    let (server, tool) = (text(&args["providerIdentifier"]), text(&args["toolName"]));
    let step = match call.status {
        ToolCallStatus::Running => "1 begins",
        ToolCallStatus::Completed => "2 completed",
        ToolCallStatus::Error => "2 failed",
    };
    format!("{} {step} {server}/{tool} {} {}", call.name, args["args"], text(&result["content"][0]["text"]))
}

fn story(events: &[Event]) -> Result<Vec<String>> {
    let (mut told, mut calls) = (Vec::new(), Vec::new());
    let mut begun = BTreeSet::new();
    for event in events {
        if let EventKind::ToolCall(one) = &event.kind {
            match one.status {
                ToolCallStatus::Running => ensure!(begun.insert(&one.call_id), "{one:?}"),
                _ => ensure!(begun.remove(&one.call_id), "{one:?}"),
            }
            calls.push(call(one));
            continue;
        }
        calls.sort();
        told.append(&mut calls);
        match &event.kind {
            EventKind::System(system) => told.push(init(system)),
            EventKind::User { text } => told.push(format!("user {text}")),
            EventKind::Assistant { content } => {
                for block in content {
                    match block {
                        AssistantBlock::Text(text) => told.push(format!("assistant {text}")),
                        // The calls themselves are told one by one.
                        AssistantBlock::ToolUse { .. } => {}
                    }
                }
            }
            EventKind::Status { status, message } => told.push(format!("status {status:?} {message:?}")),
            // What an agent offers of its own, and what it used: each counts in its own way.
            EventKind::Task { status: Some(status), .. } if status == "commands" => {}
            EventKind::Usage(_) | EventKind::Request { .. } => {}
            other => told.push(format!("{other:?}")),
        }
    }
    ensure!(begun.is_empty() && calls.is_empty(), "calls have no end: {begun:?} {calls:?}");
    Ok(told)
}

async fn play(dir: &Path, engine: EngineChoice, model: Option<ModelChoice>, path: &str) -> Result<Story> {
    let (web, mut host) = (Web::start("echo", "from http")?, Host::start().await?);
    let work = dir.join("work");
    std::fs::create_dir_all(&work)?;
    let variables = vec![
        ("PATH".into(), format!("{path}/usr/local/bin:/usr/bin:/bin").into()),
        ("HOME".into(), dir.join("home").into_os_string()),
    ];
    let fake = toolway_testkit::fakemcp()?.to_string_lossy().into_owned();
    let mut options = AgentOptions::local(Machine::new(variables, work));
    options.api_key = Some(Secret::new("key"));
    options.model = model;
    options.mcp_servers = McpServers::new()
        .with("one", McpServer::command(fake).args(["--script", &script("echo", "from stdio")]).required())
        .with("web", McpServer::url(web.1.clone()).required());
    options.place = Place::Local(Box::new(LocalOptions {
        engine,
        store: StoreChoice::Memory,
        direct_servers: vec![host.server()],
        ..LocalOptions::default()
    }));
    let agent = Agent::create(options)?;
    let run = agent.send("go", SendOptions::default()).await?;
    let mut ran = Vec::new();
    let state = tokio::select! {
        state = run.wait() => state?,
        () = host.work(&mut ran) => anyhow::bail!("the bridge is gone"),
    };
    assert_eq!(ran, [("ask".to_owned(), json!({"n": 1}))], "the host ran its tool once, by its own name");
    ensure!(state.error.is_none(), "{:?}", state.error);
    let mut events = Vec::new();
    let mut seen = run.observe(0)?;
    while let Some(observed) = seen.next().await {
        events.push(observed?.event);
    }
    let told = story(&events)?;
    let story = Story { status: state.status, result: state.result, told };
    agent.dispose().await;
    host.bridge.shutdown("the end").await;
    Ok(story)
}

/// An agent behind the protocol connects to a host's bridge itself, so that its state and its tools are not ours to tell;
/// all the rest is the same.
fn expected(is_native: bool) -> Story {
    let calls = ["one/echo", "pi_tools/pi__ask", "web/echo"];
    let texts = ["from stdio", "from the host", "from http"];
    let begun = calls.map(|call| format!("mcp 1 begins {call} {{\"n\":1}} "));
    let ended =
        std::iter::zip(calls, texts).map(|(call, text)| format!("mcp 2 completed {call} {{\"n\":1}} {text}"));
    let (host, tools) = if is_native {
        ("pi_tools (direct http connected 1)", "one/echo, pi_tools/pi__ask, web/echo")
    } else {
        ("pi_tools (direct http handed_over 0)", "one/echo, web/echo")
    };
    let before = [
        format!("system one (inline stdio connected 1), {host}, web (inline http connected 1); {tools}"),
        "status Running None".to_owned(),
        "user go".to_owned(),
        "assistant I call them.".to_owned(),
    ];
    let after = ["assistant All are there.".to_owned(), "status Finished None".to_owned()];
    Story {
        status: RunStatus::Finished,
        result: Some("All are there.".to_owned()),
        told: before.into_iter().chain(begun).chain(ended).chain(after).collect(),
    }
}

#[tokio::test]
async fn the_native_runtime_plays_the_scenario() -> Result<()> {
    let model = model(&["one__echo", "web__echo", "pi__ask"])?;
    let dir = tempfile::tempdir()?;
    let params = vec![("baseUrl".to_owned(), json!(model.base_url()))];
    let choice = ModelChoice { id: "openai::scripted".to_owned(), params };
    assert_eq!(play(dir.path(), EngineChoice::Native, Some(choice), "").await?, expected(true));
    Ok(())
}

#[tokio::test]
async fn a_scripted_agent_plays_the_scenario() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let call = |id: &str, server: &str, tool: &str| json!({"mcp": {"id": id, "server": server, "tool": tool, "arguments": {"n": 1}}});
    let script = json!({"prompts": [{"do": [
        {"say": "I call them."}, call("a", "toolway", "one__echo"), call("b", "toolway", "web__echo"),
        call("c", "pi_tools", "pi__ask"), {"say": "All are there."},
    ]}]});
    let acp = AcpOptions {
        command: Some(toolway_testkit::toolway_acp_agent()?.to_string_lossy().into_owned()),
        args: vec!["--script".to_owned(), script.to_string()],
        ..AcpOptions::default()
    };
    assert_eq!(play(dir.path(), EngineChoice::Acp(acp), None, "").await?, expected(false));
    Ok(())
}

/// opencode with a provider of its own at this address, and nothing that it would fetch.
fn opencode(model: &ModelServer) -> AcpOptions {
    let config = json!({
        "model": "scripted/m1", "small_model": "scripted/m1", "autoupdate": false, "share": "disabled",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": {
            "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
            "options": {"baseURL": model.base_url(), "apiKey": "key"},
            "models": {"m1": {"name": "M1"}, "m2": {"name": "M2"}},
        }},
    });
    let quiet = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"];
    let mut env: BTreeMap<String, Secret> =
        quiet.map(|name| (format!("OPENCODE_DISABLE_{name}"), Secret::new("1"))).into();
    env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), Secret::new(config.to_string()));
    AcpOptions { preset: Some("opencode".to_owned()), env, ..AcpOptions::default() }
}

#[tokio::test]
#[ignore = "needs opencode, named by TOOLWAY_OPENCODE: cargo xtask interop --only opencode"]
async fn opencode_plays_the_scenario() -> Result<()> {
    let program = std::env::var_os("TOOLWAY_OPENCODE").context("TOOLWAY_OPENCODE names no program")?;
    let model = model(&["toolway_one__echo", "toolway_web__echo", "pi_tools_pi__ask"])?;
    let dir = tempfile::tempdir()?;
    let choice = ModelChoice { id: "scripted/m1".to_owned(), params: Vec::new() };
    let folder = Path::new(&program).parent().context("no folder")?;
    let path = format!("{}:", folder.display());
    let acp = EngineChoice::Acp(opencode(&model));
    assert_eq!(play(dir.path(), acp, Some(choice), &path).await?, expected(false));
    Ok(())
}
