//! Owns the loopback MCP server of a registry: one listener, one secret path for each run, both generations of the
//! protocol. It carries requests to the call table and answers back; it never runs a tool.
//!
//! Specification 2025-11-25, "Transports" and 2026-07-28, "Streamable HTTP".

mod answer;
mod body;
mod dispatch;
mod door;
mod events;
mod flight;
mod intake;
mod legacy;
mod message;
mod modern;
mod post;
mod routes;
mod session;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_secret::Secret;
use toolway_transport::http_server::{
    AcceptLimits, Accepted, ConnectionTimes, Standing, Watched, accept_all, serve_http1,
};

use crate::calls::random_uuid;
use crate::error::BridgeError;
use crate::profile::Profile;
use crate::run::Run;
use door::Door;
use routes::Routes;

/// The whole end of a listener takes no longer.
const CLOSE: Duration = Duration::from_millis(250);
/// Connections that wait to be accepted.
const QUEUE: u32 = 4096;
/// What answers that are being written get of it.
const GRACE: Duration = Duration::from_millis(150);

/// What the server allows. Plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerOptions {
    /// The largest body of a request, in bytes.
    pub(crate) max_body: u64,
    /// Bytes of large bodies that are being received at the same time.
    pub(crate) body_budget: usize,
    /// Connections at the same time.
    pub(crate) max_connections: usize,
    /// Legacy sessions of one run; the one that was not used for longest makes room for one more.
    pub(crate) max_sessions: usize,
    /// A call that is not answered within this time is answered by an event stream, so that no client waits for the head
    /// of an answer.
    pub(crate) patience: Duration,
    /// Silence on an event stream after which a comment is sent.
    pub(crate) keep_alive: Duration,
    /// Time for a new connection to show a request that may come in.
    pub(crate) admission: Duration,
    /// Time between two requests of a connection.
    pub(crate) idle: Duration,
    /// Silence of a client that sends a body, or takes an answer.
    pub(crate) stall: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_body: 16 << 20,
            body_budget: 64 << 20,
            max_connections: 4096,
            max_sessions: 4096,
            patience: Duration::from_secs(5),
            keep_alive: Duration::from_secs(15),
            admission: Duration::from_secs(10),
            idle: Duration::from_mins(5),
            stall: Duration::from_secs(30),
        }
    }
}

/// 127.0.0.1, a port that the system chooses. The queue is long: an agent may open a thousand connections in one moment,
/// and the 128 of the standard library have the system reset the rest of them.
fn listener() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(QUEUE)
}

/// What all connections of a listener share.
#[derive(Debug)]
struct Server {
    profile: Profile,
    /// Who gives a result, as a member of the `_meta` of each one of the modern generation.
    identity: Bytes,
    options: ServerOptions,
    door: Door,
    routes: Routes,
    /// Bytes of large bodies, in KiB.
    budget: Semaphore,
    /// The last number of a session.
    sessions: AtomicU64,
}

impl Server {
    /// A number that no other session of this listener has. Each modern request is a session of its own.
    fn session_number(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}

/// The place of one run at a listener: its secret token, and the URL that is made of it.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    token: Secret,
    url: Secret,
}

impl Endpoint {
    /// `http://127.0.0.1:<port>/<segment>/<token>/mcp`.
    pub(crate) fn url(&self) -> &Secret {
        &self.url
    }
}

/// A listener that runs. Dropping it closes everything at once.
#[derive(Debug)]
pub(crate) struct Listener {
    server: Arc<Server>,
    address: SocketAddr,
    stop: CancellationToken,
    accepting: JoinSet<()>,
}

impl Listener {
    /// Listens on 127.0.0.1, on a port that the system chooses. Must be called within a runtime.
    pub(crate) fn start(profile: &Profile, options: ServerOptions) -> Result<Self, BridgeError> {
        let listener = listener().map_err(BridgeError::Listen)?;
        let address = listener.local_addr().map_err(BridgeError::Listen)?;
        let server = Arc::new(Server {
            profile: *profile,
            identity: message::identity(profile),
            door: Door::new(address.port()),
            routes: Routes::new(profile.path_segment),
            budget: Semaphore::new(options.body_budget >> 10),
            sessions: AtomicU64::new(1),
            options,
        });
        let stop = CancellationToken::new();
        let limits = AcceptLimits { max_connections: server.options.max_connections, grace: GRACE };
        let mut accepting = JoinSet::new();
        let (serving, end) = (Arc::clone(&server), stop.clone());
        accepting.spawn(async move {
            accept_all(listener, limits, end.cancelled(), |accepted| {
                connection(Arc::clone(&serving), accepted)
            })
            .await;
        });
        Ok(Self { server, address, stop, accepting })
    }

    /// A place for one more run. Its token is random and has nothing to do with the run's id.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, BridgeError> {
        let token = random_uuid()?;
        let url = format!(
            "http://127.0.0.1:{}/{}/{token}/mcp",
            self.address.port(),
            self.server.profile.path_segment
        );
        Ok(Endpoint { token: Secret::in_use(token), url: Secret::new(url) })
    }

    /// Requests to the endpoint go to this run from now on.
    pub(crate) fn open(&self, endpoint: &Endpoint, run: Run) {
        self.server.routes.open(endpoint.token.clone(), run, self.server.options.max_sessions);
    }

    /// The run is gone: its endpoint answers 410 while the listener lives.
    pub(crate) fn close(&self, endpoint: &Endpoint) {
        self.server.routes.close(&endpoint.token);
    }

    /// Stops listening and closes all connections, idle or not, within 250 ms.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if timeout(CLOSE, self.accepting.join_next()).await.is_err() {
            self.accepting.shutdown().await;
        }
    }
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
struct Client {
    /// The address that it has come to.
    local: SocketAddr,
    standing: Standing,
    stream: Watched,
}

/// Serves one connection to its end.
async fn connection(server: Arc<Server>, accepted: Accepted) {
    let Accepted { stream, peer, stop, standing } = accepted;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Ok(local) = stream.local_addr() else { return };
    let ServerOptions { admission, idle, stall, .. } = server.options;
    let times = ConnectionTimes { admission, idle, stall, half_open: true };
    let stream = Watched::new(stream);
    let client = Client { local, standing: standing.clone(), stream: stream.clone() };
    let served = serve_http1(stream, times, &stop, &standing, |request| {
        let (server, client) = (Arc::clone(&server), client.clone());
        async move { post::handle(&server, &client, request).await }
    });
    if let Err(error) = served.await {
        tracing::debug!(%peer, %error, "a connection to the bridge ended");
    }
}
