//! Owns the daemon's socket: who may connect, what the first line may be, and the end when nobody needs it. Each
//! connection is a task of its own; none can end the daemon but by asking for it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use toolway_guard::Guard;
use toolway_transport::{AsyncInput, AsyncOutput};

use super::VERSION;
use super::copies::{Copies, Making, Using};
use super::hello::{DaemonStatus, Hello, Reply, Want, receive, send};
use crate::gateway::{Shared, StdioFront, serve_stdio};
use crate::relay::Outside;

/// Connections at the same time.
const CONNECTIONS: usize = 512;
/// How often idle servers are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// What the ends of sessions may take.
const GRACE: Duration = Duration::from_secs(3);
/// How long answers are awaited after a gateway has closed.
const DRAIN: Duration = Duration::from_secs(1);

/// The user at the other end of a socket.
pub type PeerUser = fn(&UnixStream) -> io::Result<u32>;

/// As the system says.
pub fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    stream.peer_cred().map(|credentials| credentials.uid())
}

/// What a daemon is made of.
#[derive(Debug, Clone)]
pub struct DaemonConfig {
    /// Its socket; the directory is there, and belongs to this user alone.
    pub socket: PathBuf,
    /// A server, and the daemon itself, that nobody has used for this long ends.
    pub idle: Duration,
    /// Holds messages that are too large for memory, and passes everything.
    pub guard: Arc<Guard>,
    /// For the connections to servers.
    pub shared: Shared,
    /// Our own program, which watches over processes.
    pub supervisor: Option<PathBuf>,
    /// The user whose connections are taken.
    pub user: u32,
    /// Who is at the other end; [`peer_user`] but for tests.
    pub peer_user: PeerUser,
}

/// A daemon that listens.
#[derive(Debug)]
pub struct Daemon {
    listener: UnixListener,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: DaemonConfig,
    copies: Copies,
    /// Somebody has asked for the end.
    stop: CancellationToken,
}

impl Daemon {
    /// Takes the socket. One that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// `AddrInUse`: there is a daemon already.
    pub fn bind(config: DaemonConfig) -> io::Result<Self> {
        if config.socket.exists() {
            match std::os::unix::net::UnixStream::connect(&config.socket) {
                Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
                Err(_) => std::fs::remove_file(&config.socket)?,
            }
        }
        let listener = UnixListener::bind(&config.socket)?;
        // The directory keeps others out already.
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&config.socket, private)?;
        let making = Making {
            guard: Arc::clone(&config.guard),
            shared: config.shared.clone(),
            supervisor: config.supervisor.clone(),
        };
        let inner = Inner { copies: Copies::new(making), config, stop: CancellationToken::new() };
        Ok(Self { listener, inner: Arc::new(inner) })
    }

    /// Serves until it is asked to end, `end` comes, or nobody has needed it for long. Afterwards no server is left.
    pub async fn run(self, end: CancellationToken) {
        let Self { listener, inner } = self;
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut sweep = interval(SWEEP.min(inner.config.idle));
        let mut used = Instant::now();
        loop {
            let accepted = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                biased;
                () = end.cancelled() => break,
                () = inner.stop.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                _ = sweep.tick() => {
                    if inner.copies.sweep(inner.config.idle).await > 0 || !connections.is_empty() {
                        used = Instant::now();
                    } else if used.elapsed() >= inner.config.idle {
                        break;
                    }
                    continue;
                }
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    used = Instant::now();
                    let inner = Arc::clone(&inner);
                    connections.spawn(async move {
                        inner.connection(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
        // The next gateway starts another daemon from now on.
        remove(&inner.config.socket);
        drop(listener);
        inner.stop.cancel();
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            connections.shutdown().await;
        }
        inner.copies.end_all().await;
    }
}

fn remove(socket: &Path) {
    if let Err(error) = std::fs::remove_file(socket) {
        tracing::debug!(%error, "the socket could not be removed");
    }
}

impl Inner {
    async fn connection(&self, mut stream: UnixStream) {
        match (self.config.peer_user)(&stream) {
            Ok(user) if user == self.config.user => {}
            Ok(user) => return tracing::warn!(user, "another user was turned away"),
            Err(error) => return tracing::warn!(%error, "a connection without a user was turned away"),
        }
        let hello = match receive(&mut stream, Duration::ZERO).await {
            Ok(line) => serde_json::from_slice::<Hello>(&line),
            Err(error) => return tracing::debug!(%error, "a connection without a first line"),
        };
        let reply = match hello {
            Err(_) => Reply::error("the first line is not understood"),
            Ok(hello) if !hello.is_ours() => Reply::error(format!("this is the daemon of toolway {VERSION}")),
            Ok(Hello { want: Want::Status, .. }) => {
                let servers = self.copies.status().await;
                let status = DaemonStatus { pid: std::process::id(), version: VERSION.to_owned(), servers };
                Reply { status: Some(status), ..Reply::default() }
            }
            Ok(Hello { want: Want::Stop, .. }) => {
                send(&mut stream, &Reply::default()).await.ok();
                return self.stop.cancel();
            }
            Ok(Hello { want: Want::Attach(definition), .. }) => match self.copies.get(&definition).await {
                Ok(using) => {
                    if send(&mut stream, &Reply::default()).await.is_ok() {
                        self.session(stream, &using).await;
                    }
                    return;
                }
                Err(reply) => reply,
            },
        };
        send(&mut stream, &reply).await.ok();
    }

    /// One gateway uses one copy.
    async fn session(&self, stream: UnixStream, using: &Using) {
        let streams = stream.into_std().and_then(|stream| {
            let own = stream.try_clone()?;
            let file = |stream| File::from(OwnedFd::from(stream));
            Ok((AsyncInput::open(file(stream))?, AsyncOutput::open(file(own))?))
        });
        let (input, output) = match streams {
            Ok(streams) => streams,
            Err(error) => return tracing::warn!(%error, "a connection could not be used"),
        };
        let front = StdioFront {
            guard: Arc::clone(&self.config.guard),
            saved_as: String::new(),
            drain: DRAIN,
            record: None,
        };
        let (tell, outside) = mpsc::channel(1);
        let handle = using.0.handle.clone();
        let served = serve_stdio(&handle, &front, input, output, outside);
        let mut served = std::pin::pin!(served);
        tokio::select! {
            _ = served.as_mut() => {}
            () = self.stop.cancelled() => {
                tell.send(Outside::Signal(15)).await.ok();
                served.await;
            }
        }
    }
}
