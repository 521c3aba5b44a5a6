//! The Streamable HTTP transport: one POST for each message of the client, answers as JSON or event streams, the
//! server's own stream and the session of the legacy era, the headers of the modern one. It owns the order in which
//! messages start; it must not know what the client's messages ask for.
//!
//! Specification 2025-11-25, "Transports", "Streamable HTTP"; specification 2026-07-28, "Streamable HTTP".

pub(crate) mod body;
mod challenge;
pub(crate) mod client;
pub(crate) mod config;
pub(crate) mod conn;
mod exchange;
pub(crate) mod failure;
mod fetch;
pub(crate) mod flight;
mod heads;
mod io;
mod job;
pub(crate) mod listen;
pub(crate) mod messages;
mod observe;
mod pool;
mod post;
mod renew;
mod session;
pub(crate) mod shared;
pub(crate) mod stream;
pub(crate) mod target;
mod tcp;
mod tls;
mod tools;

use std::sync::Arc;

use http_types::{HeaderName, HeaderValue, Method};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_wire::era::{Era, ProtocolVersion, header, header_safe};
use toolway_wire::find::{Step, find, string};
use toolway_wire::{Envelope, Id, Kind};

use ::http as http_types;

pub use config::HttpConfig;
pub use fetch::fetch;
pub use heads::Head;
pub use io::Connector;
pub use post::{JsonPost, PostAnswer};
pub use tls::Roots;
pub use tools::mirrored_mismatch;

use self::body::Message;
use self::client::{Call, Signing};
use self::flight::Flight;
use self::job::{Job, Modern, Role};
use self::session::PROTOCOL_VERSION;
use self::shared::Shared;
use crate::limits::{CLOSE_TIME, INBOUND_QUEUE, INITIALIZED_WAIT, MAX_PARAM_BODY};
use crate::transport::{Inbound, Life, Members, Outbound, Transport, TransportError};

const METHOD: HeaderName = HeaderName::from_static(header::METHOD);
const NAME: HeaderName = HeaderName::from_static(header::NAME);
/// The scanner keeps names up to this length: longer ones are looked up again.
const KEPT_NAME: usize = 1024;

/// A Streamable HTTP server as upstream.
///
/// Connections are opened when they are needed, so a server that is not there yet, or not any more, costs the
/// requests of that time and nothing else. Must be used within a tokio runtime with time and I/O.
#[derive(Debug)]
pub struct HttpTransport {
    shared: Arc<Shared>,
    inbound: mpsc::Receiver<Inbound>,
    tasks: JoinSet<()>,
    /// What the next message waits for.
    gate: Option<CancellationToken>,
    /// A legacy session was begun by the client.
    legacy: bool,
    /// The revision that the last modern request named.
    modern_version: Option<String>,
    listening: bool,
    life: Life,
}

impl HttpTransport {
    /// Checks the configuration; nothing is sent.
    pub fn new(config: &HttpConfig) -> Result<Self, TransportError> {
        let (events, inbound) = mpsc::channel(INBOUND_QUEUE);
        Ok(Self {
            shared: Arc::new(Shared::new(config, events)?),
            inbound,
            tasks: JoinSet::new(),
            gate: None,
            legacy: false,
            modern_version: None,
            listening: false,
            life: Life::Open,
        })
    }

    /// How the server answered the first requests: for choosing between transports, and for a diagnosis.
    pub fn heads(&self) -> Vec<Head> {
        self.shared.client.heads.first()
    }

    /// Learns which tool parameters are mirrored into headers, from a complete `tools/list` answer or its result.
    ///
    /// Answers that pass through this transport in the modern era are learnt from without a call.
    pub fn learn_tools(&self, list: &[u8]) {
        self.shared.tools.learn(list);
    }

    /// Puts the message into its place: what it waits for, and what waits for it.
    fn job(&mut self, message: Outbound) -> Option<Job> {
        let members = message.members.as_slice();
        let single = if let Members::One(envelope) = &message.members { Some(envelope) } else { None };
        let ids = request_ids(members);
        let method = single.and_then(Envelope::method).unwrap_or_default();
        let mut role = match (method, ids.is_empty()) {
            ("initialize", false) => Role::Initialize,
            ("notifications/initialized", true) => Role::Initialized,
            _ => Role::Other,
        };
        let cancels = single.filter(|_| method == "notifications/cancelled").and_then(Envelope::request_id);
        let behind = cancels.and_then(|id| self.shared.flight(id));
        if let Some(flight) = behind.as_ref().filter(|flight| flight.modern) {
            flight.cancel();
            return None;
        }
        let era = self.era(single, method);
        if cancels.is_some() && era == Era::Modern {
            return None;
        }
        if behind.as_ref().is_some_and(|flight| flight.give_up()) {
            return None;
        }
        let payload = Message::new(message.payload);
        let modern = single.filter(|_| era == Era::Modern).map(|envelope| {
            if let Some(version) = envelope.protocol_version() {
                self.modern_version = Some(version.to_owned());
            }
            modern(envelope, self.modern_version.as_deref(), &payload)
        });
        let mut opens = None;
        match role {
            Role::Initialize => {
                self.legacy = true;
                if let Some(id) = ids.first() {
                    self.shared.session.begin(&payload, id);
                }
                opens = Some(CancellationToken::new());
            }
            Role::Initialized if era == Era::Legacy => {
                self.shared.session.keep_initialized(&payload);
                opens = Some(CancellationToken::new());
                self.listen();
            }
            _ => role = Role::Other,
        }
        let flight = Arc::new(Flight::new(era == Era::Modern, single.is_some() && ids.len() == 1));
        self.shared.take_off(&ids, &flight);
        let after = self.gate.take_if(|gate| gate.is_cancelled()).map_or_else(|| self.gate.clone(), |_| None);
        if opens.is_some() {
            self.gate.clone_from(&opens);
        }
        Some(Job {
            message: payload,
            role,
            modern,
            repeatable: !ids.is_empty() && is_repeatable(method),
            listens: method == "subscriptions/listen",
            after,
            opens,
            behind,
            slot: Some(self.shared.slots.take()),
            flight,
            ids,
        })
    }

    /// A request says itself which era it belongs to; the rest goes with the session.
    fn era(&self, single: Option<&Envelope>, method: &str) -> Era {
        let version = single.and_then(Envelope::protocol_version).and_then(ProtocolVersion::parse);
        match version {
            _ if method == "initialize" || single.is_none() => Era::Legacy,
            Some(version) => version.era(),
            None if !self.legacy && self.modern_version.is_some() => Era::Modern,
            None => Era::Legacy,
        }
    }

    /// Starts the task that holds the server's own stream.
    fn listen(&mut self) {
        if !std::mem::replace(&mut self.listening, true) {
            self.tasks.spawn(listen::listen(Arc::clone(&self.shared)));
        }
    }

    /// Tells the server that the session is over.
    async fn end_session(&self) {
        let snapshot = self.shared.session.snapshot();
        if snapshot.id.is_none() {
            return;
        }
        let call = Call {
            method: Method::DELETE,
            message: None,
            repeatable: true,
            headers: &snapshot.headers,
            public: &self.shared.public,
            bound: &|origin, headers| snapshot.bind(origin, headers),
            signing: Signing::AtHand,
            flight: None,
        };
        match timeout(CLOSE_TIME, self.shared.client.send(&self.shared.target, call)).await {
            Ok(Ok((answer, _))) => tracing::debug!(status = %answer.status, "the session was ended"),
            Ok(Err(error)) => tracing::debug!(?error, "the session could not be ended"),
            Err(_elapsed) => tracing::debug!("the server did not end the session in time"),
        }
    }
}

impl Transport for HttpTransport {
    fn ready(&self) -> bool {
        self.life == Life::Open && self.shared.slots.free()
    }

    fn ready_for_note(&self) -> bool {
        self.life == Life::Open && self.shared.slots.free_for_note()
    }

    fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        if self.life != Life::Open {
            return Err(TransportError::Closed);
        }
        while self.tasks.try_join_next().is_some() {}
        let tidying = self.tasks.is_empty();
        if tidying {
            let pool = Arc::clone(&self.shared.client.pool);
            self.tasks.spawn(async move { pool.tidy().await });
        }
        let Some(job) = self.job(message) else { return Ok(()) };
        let (role, opens) = (job.role, job.opens.clone());
        self.tasks.spawn(exchange::run(Arc::clone(&self.shared), job));
        if let (Role::Initialized, Some(gate)) = (role, opens) {
            // A server that never acknowledges it holds the rest up for this long only.
            self.tasks.spawn(async move {
                if timeout(INITIALIZED_WAIT, gate.cancelled()).await.is_err() {
                    gate.cancel();
                }
            });
        }
        Ok(())
    }

    async fn receive(&mut self) -> Option<Inbound> {
        if self.life != Life::Open {
            return self.life.end();
        }
        // The transport itself holds a sender, so the queue never ends by itself.
        self.inbound.recv().await
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        self.inbound.try_recv().ok()
    }

    async fn close(&mut self) {
        if self.life != Life::Open {
            return;
        }
        self.life = Life::Closed;
        self.tasks.shutdown().await;
        self.end_session().await;
        self.shared.client.pool.clear();
        self.inbound.close();
        while self.inbound.try_recv().is_ok() {}
    }
}

/// The ids of the requests among `members`.
fn request_ids(members: &[Envelope]) -> Vec<Id> {
    let requests = members.iter().filter(|envelope| envelope.kind() == Kind::Request);
    requests.filter_map(|envelope| envelope.id().cloned()).collect()
}

/// Carrying these out twice does no more than once: a lost connection may repeat them.
fn is_repeatable(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "server/discover"
            | "tools/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "prompts/list"
            | "prompts/get"
            | "completion/complete"
    )
}

/// The headers that mirror the message (specification 2026-07-28, "Standard Request Headers").
fn modern(envelope: &Envelope, version: Option<&str>, message: &Message) -> Modern {
    let method = envelope.method().unwrap_or_default();
    let mut headers = Vec::with_capacity(3);
    let mut add = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::try_from(&*header_safe(value)) {
            headers.push((name, value));
        }
    };
    add(PROTOCOL_VERSION, version.unwrap_or_default());
    add(METHOD, method);
    let name = match method {
        "tools/call" | "prompts/get" => whole(envelope.name(), "name", message),
        "resources/read" => whole(envelope.uri(), "uri", message),
        _ => None,
    };
    if let Some(name) = &name {
        add(NAME, name);
    }
    let tool = name.filter(|_| method == "tools/call");
    Modern { headers, tool, lists_tools: method == "tools/list" }
}

/// `params.MEMBER` in full length.
fn whole(kept: Option<&str>, member: &str, message: &Message) -> Option<String> {
    let kept = kept?;
    if kept.len() + 4 < KEPT_NAME {
        return Some(kept.to_owned());
    }
    let bytes = message.bytes(MAX_PARAM_BODY)?;
    let at = find(&bytes, &[Step::Key("params"), Step::Key(member)])?;
    string(&bytes, at)
}
