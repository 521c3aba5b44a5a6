//! A running daemon, and gateways of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_guard::{Guard, GuardConfig};
use toolway_proxy::daemon::{Daemon, DaemonClient, DaemonConfig, DaemonStatus, PeerUser, peer_user};
use toolway_proxy::gateway::{
    ChildTarget, Client, Eras, Face, Protocol, ServerConfig, Share, Shared, Target, Timeouts, ToolFilter,
};
use toolway_testkit::{Leaks, fakemcp};
use toolway_transport::ChildConfig;

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct Rig {
    directory: TempDir,
    pub(crate) socket: PathBuf,
    pub(crate) shared: Shared,
    pub(crate) mark: String,
    end: CancellationToken,
    running: JoinHandle<()>,
}

impl Rig {
    pub(crate) fn new() -> Result<Self> {
        Self::with(Duration::from_mins(10), peer_user)
    }

    pub(crate) fn with(idle: Duration, peer_user: PeerUser) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join("d.sock");
        let mut config = GuardConfig::new(directory.path().join("saved"));
        config.max_response_chars = u64::MAX;
        let guard = Arc::new(Guard::new(config));
        let shared = Shared::new(Arc::clone(&guard), Arc::new(Eras::new(None)), Face::default());
        let daemon = Daemon::bind(DaemonConfig {
            socket: socket.clone(),
            idle,
            guard,
            shared: shared.clone(),
            supervisor: None,
            user: user(),
            peer_user,
        })?;
        let end = CancellationToken::new();
        #[expect(clippy::disallowed_methods, reason = "a test owns it by its handle")]
        let running = tokio::spawn(daemon.run(end.clone()));
        let mark = format!("daemon-{}-{}-end", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { directory, socket, shared, mark, end, running })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The way to the daemon.
    pub(crate) fn client(&self) -> Arc<DaemonClient> {
        let lock = self.path().join("lock");
        Arc::new(DaemonClient { socket: self.socket.clone(), lock, launch: None, user: user() })
    }

    pub(crate) async fn status(&self) -> Result<DaemonStatus> {
        timeout(DEADLINE, self.client().status()).await??.context("no daemon")
    }

    /// A scripted server, with this in its environment.
    pub(crate) fn server(&self, script: &str, variable: &str) -> Result<ServerConfig> {
        let env = BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("VARIABLE".into(), variable.into()),
        ]);
        let args = ["--script", script, "--mark", &self.mark].map(Into::into).to_vec();
        let command = fakemcp()?.to_str().context("an odd path")?.to_owned();
        let child = ChildConfig { args, env, cwd: Some("/tmp".into()), ..ChildConfig::default() };
        Ok(ServerConfig {
            name: "fake".to_owned(),
            target: Target::Child(ChildTarget { command, child }),
            digest: String::new(),
            timeouts: Timeouts::default(),
            required: false,
            lazy: false,
            share: Share::Auto,
            filter: ToolFilter::default(),
            protocol: Protocol::Auto,
            max_response_chars: None,
            secrets: Vec::new(),
            roots: None,
        })
    }

    /// A gateway's connection to its copy.
    pub(crate) async fn attach(&self, config: &ServerConfig) -> Result<Client> {
        let shared = self.client().share(config).context("it cannot be shared")?;
        let opened = timeout(DEADLINE, Client::open(&shared, &self.shared)).await?;
        opened.map_err(|error| anyhow::anyhow!("{}", error.state()))
    }

    /// Sends these bytes, and gives all that comes back until the daemon closes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> Result<String> {
        let mut stream = UnixStream::connect(&self.socket).await?;
        // It may close before it has taken all.
        stream.write_all(bytes).await.ok();
        let mut answer = Vec::new();
        timeout(DEADLINE, stream.read_to_end(&mut answer)).await?.ok();
        Ok(String::from_utf8(answer)?)
    }

    /// Waits for the end that came by itself, or brings it; nothing is left.
    pub(crate) async fn end(self, by_itself: bool) -> Result<()> {
        if !by_itself {
            self.end.cancel();
        }
        timeout(DEADLINE, self.running).await??;
        if self.socket.exists() {
            bail!("the socket is left");
        }
        let mark = self.mark.clone();
        tokio::task::spawn_blocking(move || Leaks::new(&mark).check(DEADLINE)).await?
    }
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
