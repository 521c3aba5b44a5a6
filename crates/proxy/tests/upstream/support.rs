//! Scripted servers, their definitions, and waiting for events with a deadline.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use toolway_guard::{Guard, GuardConfig};
use toolway_proxy::gateway::{
    ChildTarget, Eras, Face, Protocol, RawLists, RemoteKind, RemoteTarget, ServerConfig, ServerState, Share,
    Shared, Target, Timeouts, ToolFilter, Upstream, UpstreamEvent, UpstreamId,
};
use toolway_secret::Secret;
use toolway_testkit::{Hub, Leaks, Peer, fakemcp};
use toolway_transport::{ChildConfig, HttpConfig, Members, Outbound, Payload};
use toolway_wire::{Scanner, Verdict};

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// What all connections of a test share; nothing on disk.
pub(crate) fn shared() -> Shared {
    shared_with(Eras::new(None))
}

pub(crate) fn shared_with(eras: Eras) -> Shared {
    let face = Face { capabilities: r#"{"elicitation":{}}"#.to_owned(), ..Face::default() };
    let saved = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("upstream-saved");
    Shared::new(Arc::new(Guard::new(GuardConfig::new(saved))), Arc::new(eras), face)
}

/// A word that no other test uses.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("upstream-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn config(target: Target) -> ServerConfig {
    ServerConfig {
        name: "fake".to_owned(),
        target,
        digest: mark(),
        timeouts: Timeouts::default(),
        required: false,
        lazy: false,
        share: Share::default(),
        filter: ToolFilter::default(),
        protocol: Protocol::Auto,
        max_response_chars: None,
        secrets: vec![Secret::new("hunter2-token")],
        roots: None,
    }
}

/// A command with a small environment.
pub(crate) fn command(command: &str, args: &[&str]) -> ServerConfig {
    let env = BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]);
    let args = args.iter().map(|arg| (*arg).into()).collect();
    let child = ChildConfig { args, env, ..ChildConfig::default() };
    config(Target::Child(ChildTarget { command: command.to_owned(), child }))
}

/// A scripted server over stdio. The mark is in its arguments.
pub(crate) fn child(script: &str, mark: &str) -> Result<ServerConfig> {
    let program = fakemcp()?;
    let program = program.to_str().context("an odd path")?;
    Ok(command(program, &["--script", script, "--mark", mark]))
}

/// A scripted server over HTTP, in a process of its own.
#[derive(Debug)]
pub(crate) struct Web {
    process: Child,
    pub(crate) peer: Peer,
    _hub: Hub,
}

impl Web {
    pub(crate) fn start(script: &str, transport: &str) -> Result<Self> {
        let mut hub = Hub::new()?;
        let mut command = Command::new(fakemcp()?);
        command.args(["--script", script, "--transport", transport, "--test", &hub.address().to_string()]);
        let process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let peer = hub.arrival("server", DEADLINE)?;
        Ok(Self { process, peer, _hub: hub })
    }

    pub(crate) fn config(&self, path: &str, kind: RemoteKind) -> Result<ServerConfig> {
        remote(&format!("http://127.0.0.1:{}{path}", self.peer.port()), kind)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // Ended already is what is wanted.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

pub(crate) fn remote(url: &str, kind: RemoteKind) -> Result<ServerConfig> {
    let mut http = HttpConfig::new(url)?;
    http.headers.push(("Authorization".to_owned(), Secret::new("Bearer hunter2-token")));
    Ok(config(Target::Remote(RemoteTarget { http, kind })))
}

/// An upstream and what it says.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) upstream: Upstream,
    pub(crate) events: mpsc::Receiver<(UpstreamId, UpstreamEvent)>,
    tasks: TaskTracker,
    mark: String,
}

impl Watched {
    pub(crate) fn start(config: ServerConfig, mark: &str) -> Self {
        Self::start_with(config, shared(), mark)
    }

    pub(crate) fn start_with(config: ServerConfig, shared: Shared, mark: &str) -> Self {
        let (sender, events) = mpsc::channel(64);
        let tasks = TaskTracker::new();
        let upstream = Upstream::start(UpstreamId(7), Arc::new(config), shared, sender, &tasks);
        tasks.close();
        Self { upstream, events, tasks, mark: mark.to_owned() }
    }

    pub(crate) async fn event(&mut self) -> Result<UpstreamEvent> {
        let event = timeout(DEADLINE, self.events.recv()).await.context("no event in time")?;
        let (id, event) = event.context("no more events")?;
        anyhow::ensure!(id == UpstreamId(7));
        Ok(event)
    }

    /// The next event that `pick` takes; the others are passed over.
    pub(crate) async fn until<T>(&mut self, pick: impl Fn(UpstreamEvent) -> Option<T>) -> Result<T> {
        loop {
            if let Some(found) = pick(self.event().await?) {
                return Ok(found);
            }
        }
    }

    pub(crate) async fn state(&mut self, name: &str) -> Result<ServerState> {
        self.until(|event| match event {
            UpstreamEvent::State(state) if state.name() == name => Some(state),
            _ => None,
        })
        .await
        .with_context(|| format!("waiting for the state {name}"))
    }

    pub(crate) async fn lists(&mut self) -> Result<Arc<RawLists>> {
        self.until(|event| if let UpstreamEvent::Lists(lists) = event { Some(lists) } else { None }).await
    }

    /// The next message, as text.
    pub(crate) async fn message(&mut self) -> Result<String> {
        self.until(|event| match event {
            UpstreamEvent::Message(message) => {
                message.content.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            }
            _ => None,
        })
        .await
    }

    pub(crate) fn send(&self, text: &str) -> Result<()> {
        match self.upstream.try_send(outbound(text)?) {
            Ok(()) => Ok(()),
            Err(_) => bail!("no room"),
        }
    }

    /// Stops it: nothing is left.
    pub(crate) async fn stop(self) -> Result<()> {
        let mark = self.mark.clone();
        self.upstream.stop();
        self.ended().await?;
        Leaks::new(&mark).check(Duration::ZERO)
    }

    /// Waits for the end of one that was stopped: it says so last.
    pub(crate) async fn ended(mut self) -> Result<()> {
        let stopped = |event| matches!(event, UpstreamEvent::Stopped).then_some(());
        self.until(stopped).await?;
        timeout(DEADLINE, self.tasks.wait()).await?;
        Ok(())
    }
}

pub(crate) fn outbound(text: &str) -> Result<Outbound> {
    let mut scanner = Scanner::new();
    let Verdict::Message(envelope) = scanner.whole(text.as_bytes()) else { bail!("no message: {text}") };
    let members = Members::One(envelope.clone());
    Ok(Outbound { payload: Payload::Bytes(text.to_owned().into()), members })
}

/// The names in a list.
pub(crate) fn names(items: &[bytes::Bytes]) -> Result<Vec<String>> {
    let name = |item: &bytes::Bytes| -> Result<String> {
        let value: serde_json::Value = serde_json::from_slice(item)?;
        Ok(value.get("name").and_then(|name| name.as_str()).context("no name")?.to_owned())
    };
    items.iter().map(name).collect()
}
