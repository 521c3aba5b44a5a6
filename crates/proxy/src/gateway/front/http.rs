//! The Streamable HTTP front, for clients of both generations on one address: legacy sessions (2025-03-26 to 2025-11-25,
//! "Transports") and modern requests (2026-07-28, "Streamable HTTP"). It carries messages; their meaning is for the hub.

mod answer;
mod body;
mod door;
mod events;
mod gate;
mod heard;
mod legacy;
mod listener;
mod modern;
mod post;
mod session;
mod sessions;
mod stream;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use toolway_guard::Guard;
use toolway_secret::Secret;

use crate::gateway::run::GatewayHandle;
use door::Door;
pub use gate::{CallGate, Judgement, Passed};
pub use heard::{CallListener, Heard};
use sessions::Sessions;
pub use tls::{ServerTls, server_tls};

/// The largest body of a request, in bytes, where nothing else is said.
pub const MAX_BODY: u64 = 32 << 20;

/// How the front is reached and what it allows. Plain values.
#[derive(Debug, Clone)]
pub struct HttpFrontConfig {
    /// Where it is served; everything else is 404.
    pub path: String,
    /// What clients show as `Authorization: Bearer`; `None`: nothing is asked, which is for loopback only.
    pub token: Option<Secret>,
    /// Names that `Host` may have beside those of the address itself, in lower case.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, beside those of loopback: `https://app.example`.
    pub origins: Vec<String>,
    /// TLS, where it is served so.
    pub tls: Option<ServerTls>,
    /// The largest body of a request.
    pub max_body: u64,
    /// Legacy sessions at the same time.
    pub max_sessions: usize,
    /// Connections at the same time.
    pub max_connections: usize,
    /// A session that nobody has used for this long is ended.
    pub session_idle: Duration,
    /// Silence on an event stream after which a comment is sent.
    pub keep_alive: Duration,
    /// A request that is not answered within this time is answered by an event stream.
    pub patience: Duration,
    /// Silence of a client that sends a request, or takes an answer, before its connection is closed.
    pub stall: Duration,
    /// Who is asked before a tool is called; `None`: nobody.
    pub gate: Option<Arc<dyn CallGate>>,
    /// The name in the index of saved results that all sessions share, where they are one client's; `None`: each has its
    /// own.
    pub saved_as: Option<String>,
}

impl Default for HttpFrontConfig {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            token: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            max_body: MAX_BODY,
            max_sessions: 256,
            max_connections: 1024,
            session_idle: Duration::from_mins(30),
            keep_alive: Duration::from_secs(15),
            patience: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            gate: None,
            saved_as: None,
        }
    }
}

/// The front, before it listens.
#[derive(Debug, Clone)]
pub struct HttpFront {
    shared: Arc<Shared>,
}

/// What all connections of the front share.
#[derive(Debug)]
struct Shared {
    config: HttpFrontConfig,
    door: Door,
    gateway: GatewayHandle,
    guard: Arc<Guard>,
    sessions: Sessions,
    visits: AtomicU64,
}

impl HttpFront {
    /// `guard` holds requests that are too large for memory.
    pub fn new(config: HttpFrontConfig, gateway: GatewayHandle, guard: Arc<Guard>) -> Self {
        let door = Door::new(&config);
        let sessions = Sessions::new(config.max_sessions, config.session_idle);
        let visits = AtomicU64::new(0);
        Self { shared: Arc::new(Shared { config, door, gateway, guard, sessions, visits }) }
    }

    /// How many requests have come through the door so far.
    pub fn visits(&self) -> u64 {
        self.shared.visits.load(Ordering::Relaxed)
    }
}

/// The name of a session in the index of saved results: one that no other has, where none is given.
fn session_name(config: &HttpFrontConfig) -> String {
    if let Some(name) = &config.saved_as {
        return name.clone();
    }
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        tracing::warn!("the system has no randomness: saved results of different sessions share a name");
    }
    format!("{:016x}", u64::from_be_bytes(bytes))
}
