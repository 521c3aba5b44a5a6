//! Owns a gateway's side of the daemon: it finds the socket, starts the daemon where none runs, and never gives a
//! definition to anybody but itself.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};
use toolway_secret::Secret;
use toolway_transport::SocketTransport;

use super::definition::Definition;
use super::hello::{DaemonStatus, Hello, Reply, Want, receive, send};
use super::listener::peer_user;
use crate::gateway::{Attach, AttachFault, Attaching, ServerConfig, Share, Target};

/// What a daemon may take to listen.
const START: Duration = Duration::from_secs(10);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(10);
/// What the daemon takes beyond a server's own startup time, and a gateway beyond the daemon.
const MARGIN: Duration = Duration::from_secs(5);

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Our own program.
    pub program: PathBuf,
    /// Its arguments: it is to start the daemon and to end.
    pub args: Vec<String>,
    /// Where its stderr goes.
    pub log: Option<PathBuf>,
}

/// The way to the daemon of this user and this version.
#[derive(Debug)]
pub struct DaemonClient {
    /// Its socket.
    pub socket: PathBuf,
    /// Held while one is started, so that only one is.
    pub lock: PathBuf,
    /// `None`: it is never started.
    pub launch: Option<Launch>,
    /// This user.
    pub user: u32,
}

/// One server of a gateway, run by the daemon.
struct Attached {
    client: Arc<DaemonClient>,
    /// The whole first line, secrets in it.
    hello: Secret,
    name: String,
    startup: Duration,
}

impl std::fmt::Debug for Attached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attached").field("name", &self.name).finish_non_exhaustive()
    }
}

fn fault(reason: impl Into<String>) -> AttachFault {
    AttachFault { reason: reason.into(), hint: None }
}

impl DaemonClient {
    /// The settings of a server as one that the daemon runs. `None`: it is not to be shared, or cannot be.
    pub fn share(self: &Arc<Self>, config: &ServerConfig) -> Option<ServerConfig> {
        if config.share == Share::Never {
            return None;
        }
        let definition = Definition::of(config)?;
        let hello = serde_json::to_string(&Hello::new(Want::Attach(Box::new(definition)))).ok()?;
        let attached = Attached {
            client: Arc::clone(self),
            hello: Secret::new(hello),
            name: config.name.clone(),
            startup: config.timeouts.startup,
        };
        let mut shared = config.clone();
        // Each client of this gateway may use the connection: the daemon tells its clients apart, not ours.
        shared.timeouts.startup += 2 * MARGIN;
        shared.target = Target::Attached(Arc::new(attached));
        Some(shared)
    }

    /// What runs. `None`: no daemon does.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn status(&self) -> io::Result<Option<DaemonStatus>> {
        let Some(mut stream) = self.running().await? else { return Ok(None) };
        let reply = ask(&mut stream, &Hello::new(Want::Status)).await?;
        reply.status.map(Some).ok_or_else(|| io::Error::other(reply.error.unwrap_or_default()))
    }

    /// Ends it, and waits until it is gone; false: none runs.
    ///
    /// # Errors
    /// It does not answer.
    pub async fn stop(&self) -> io::Result<bool> {
        let Some(mut stream) = self.running().await? else { return Ok(false) };
        ask(&mut stream, &Hello::new(Want::Stop)).await?;
        // It closes when it has ended.
        while UnixStream::connect(&self.socket).await.is_ok() {
            sleep(LOOK).await;
        }
        Ok(true)
    }

    /// A connection to the daemon that runs.
    async fn running(&self) -> io::Result<Option<UnixStream>> {
        let stream = match UnixStream::connect(&self.socket).await {
            Ok(stream) => stream,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        // Whoever listens there gets our secrets: it has to be us.
        if peer_user(&stream)? != self.user {
            return Err(io::Error::other("the socket belongs to another user"));
        }
        Ok(Some(stream))
    }

    /// A connection to the daemon, which is started where none runs.
    async fn connect(&self) -> io::Result<UnixStream> {
        if let Some(stream) = self.running().await? {
            return Ok(stream);
        }
        let Some(launch) = &self.launch else { return Err(io::Error::other("no daemon runs")) };
        let until = Instant::now() + START;
        let _lock = self.locked(until).await?;
        if let Some(stream) = self.running().await? {
            return Ok(stream);
        }
        let mut starter = start(launch)?;
        // The daemon itself is another process, which nobody has to wait for.
        let started = tokio::task::spawn_blocking(move || starter.wait()).await??;
        if !started.success() {
            return Err(io::Error::other(format!("the daemon could not be started: {started}")));
        }
        loop {
            if let Some(stream) = self.running().await? {
                return Ok(stream);
            }
            if Instant::now() >= until {
                return Err(io::Error::other("the daemon does not listen"));
            }
            sleep(LOOK).await;
        }
    }

    /// The lock under which a daemon is started.
    async fn locked(&self, until: Instant) -> io::Result<File> {
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&self.lock)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => sleep(LOOK).await,
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process has been starting the daemon for long"));
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Starts a daemon that outlives us and no signal of our terminal reaches.
fn start(launch: &Launch) -> io::Result<std::process::Child> {
    use std::os::unix::process::CommandExt as _;
    let log = match &launch.log {
        None => Stdio::null(),
        Some(path) => {
            let mut options = File::options();
            options.create(true).append(true);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options.open(path)?.into()
        }
    };
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.process_group(0).current_dir("/").spawn()
}

/// Says hello, and gives the answer.
async fn ask(stream: &mut UnixStream, hello: &Hello) -> io::Result<Reply> {
    send(stream, hello).await?;
    let line = receive(stream, Duration::ZERO).await?;
    serde_json::from_slice(&line).map_err(io::Error::other)
}

impl Attach for Attached {
    fn attach(&self) -> Attaching<'_> {
        Box::pin(async move {
            let failed = |error: io::Error| fault(format!("the daemon could not be reached: {error}"));
            let mut stream = self.client.connect().await.map_err(failed)?;
            let hello: &serde_json::value::RawValue =
                serde_json::from_str(self.hello.expose()).map_err(|error| fault(error.to_string()))?;
            send(&mut stream, hello).await.map_err(failed)?;
            let line = receive(&mut stream, self.startup + MARGIN).await.map_err(failed)?;
            let reply: Reply = serde_json::from_slice(&line).map_err(|error| failed(error.into()))?;
            match reply.error {
                Some(reason) => Err(AttachFault { reason, hint: reply.hint }),
                None => Ok(SocketTransport::new(stream)),
            }
        })
    }
}
