//! Owns one gateway and the one client that uses it inside this process: started together, ended together, and looked
//! after by one task. It knows no options.

use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{OnceCell, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use toolway_bridge::RawJson;
use toolway_guard::Guard;
use toolway_proxy::gateway::{
    CallGate, CallListener, Expose, GatewayConfig, GatewayHandle, Heard, HttpFront, HttpFrontConfig,
    Judgement, Passed, SessionOptions, Shared, Status,
};
use toolway_secret::Secret;

use super::calls::Calls;
use super::{Front, FrontCall, FrontGate, McpTarget};
use crate::catalogue::Offer;
use crate::compose::Configured;
use crate::error::AgentError;

/// What the end of all servers gets.
pub(super) const END: Duration = Duration::from_secs(5);

/// A gateway with its servers. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Core {
    /// Everything that is configured, also what the gateway does not know.
    pub(super) configured: Vec<Configured>,
    shared: Arc<CoreShared>,
    begun: Instant,
    end: CancellationToken,
    over: CancellationToken,
    front: OnceCell<(Front, HttpFront)>,
    tasks: TaskTracker,
    guard: Arc<Guard>,
    /// Its name in the index of saved results, whichever way it is called.
    saved_as: String,
    _drop: DropGuard,
}

/// What the task and the users share.
#[derive(Debug)]
struct CoreShared {
    handle: GatewayHandle,
    calls: Option<Calls>,
    /// It has nothing but a server of the program's own.
    bare: bool,
    view: RwLock<View>,
    seen: watch::Sender<u64>,
    /// Who is asked about calls over the front, by now.
    gate: RwLock<Option<Arc<dyn FrontGate>>>,
}

/// What the gateway was like when it was last looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub(super) status: Arc<Vec<Status>>,
    pub(super) offer: Arc<Offer>,
}

/// What a core is started with.
#[derive(Debug)]
pub(super) struct CoreConfig {
    pub(super) gateway: GatewayConfig,
    pub(super) configured: Vec<Configured>,
    pub(super) saved_as: String,
    pub(super) search_above: usize,
}

impl Core {
    /// Starts all servers. Does not wait for them.
    pub(super) async fn start(
        config: CoreConfig,
        shared: &Shared,
        tasks: &TaskTracker,
        root: &CancellationToken,
    ) -> Self {
        let CoreConfig { gateway, configured, saved_as, search_above } = config;
        let guard = Arc::clone(&gateway.guard);
        let handle = GatewayHandle::start(gateway.clone(), shared.clone());
        let session = handle.open(SessionOptions { saved_as: saved_as.clone(), passing: false }).await;
        let calls = match session {
            Some(session) => Some(Calls::over(session).await),
            None => None,
        };
        let shared = Arc::new(CoreShared {
            handle: handle.clone(),
            calls,
            bare: gateway.bare,
            view: RwLock::default(),
            seen: watch::channel(0).0,
            gate: RwLock::default(),
        });
        shared.look().await;
        let (end, over) = (root.child_token(), CancellationToken::new());
        let keeper = Keeper { shared: Arc::clone(&shared), gateway, search_above };
        tasks.spawn(keeper.run(end.clone(), over.clone()));
        Self {
            configured,
            shared,
            begun: Instant::now(),
            end: end.clone(),
            over,
            front: OnceCell::new(),
            tasks: tasks.clone(),
            guard,
            saved_as,
            _drop: end.drop_guard(),
        }
    }

    /// What it is like now.
    pub(super) fn view(&self) -> View {
        self.shared.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The client's calls; `None`: it has ended.
    pub(super) fn calls(&self) -> Option<&Calls> {
        self.shared.calls.as_ref()
    }

    /// Waits until the view is as wanted, or for ever where it never is. At once where all is over.
    pub(super) async fn until(&self, wanted: impl Fn(&View) -> bool) {
        let mut seen = self.shared.seen.subscribe();
        loop {
            seen.borrow_and_update();
            if wanted(&self.view()) {
                return;
            }
            tokio::select! {
                changed = seen.changed() => if changed.is_err() { return },
                () = self.end.cancelled() => return,
            }
        }
    }

    /// Waits for the servers that the first call to the model waits for: those that are required, and the others for
    /// as long as `patience` says, counted from the start.
    pub(super) async fn ready(&self, patience: Option<Duration>) {
        let required = |name: &str| self.configured.iter().any(|one| one.name == name && one.required);
        let settled = |status: &Status| status.settled || status.lazy;
        self.until(|view| view.status.iter().all(|one| settled(one) || !required(&one.name))).await;
        let any = self.configured.iter().any(|one| one.required);
        let patience = patience.unwrap_or(if any { Duration::ZERO } else { PATIENCE });
        let left = patience.saturating_sub(self.begun.elapsed());
        if !left.is_zero() {
            // Whoever is late comes later.
            timeout(left, self.until(|view| view.status.iter().all(settled))).await.ok();
        }
    }

    /// Serves the same gateway over loopback HTTP, from the first call of this on.
    pub(super) async fn front(&self, gate: Option<Arc<dyn FrontGate>>) -> Result<Front, AgentError> {
        *self.shared.gate.write().unwrap_or_else(PoisonError::into_inner) = gate;
        let (front, _) = self.front.get_or_try_init(|| self.listen()).await?;
        Ok(front.clone())
    }

    /// How many requests have come over it.
    pub(super) fn front_visits(&self) -> u64 {
        self.front.get().map_or(0, |(_, front)| front.visits())
    }

    async fn listen(&self) -> Result<(Front, HttpFront), AgentError> {
        let failed = |what: &str, reason: &dyn std::fmt::Display| AgentError::Runtime {
            message: format!("servers cannot be offered to the agent: {what}: {reason}"),
        };
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(|error| failed("loopback", &error))?;
        let address = listener.local_addr().map_err(|error| failed("loopback", &error))?;
        let token = token().map_err(|error| failed("a token", &error))?;
        let gate: Arc<dyn CallGate> = Arc::new(Asking(Arc::downgrade(&self.shared)));
        let config = HttpFrontConfig {
            token: Some(token.clone()),
            gate: Some(gate),
            saved_as: Some(self.saved_as.clone()),
            ..HttpFrontConfig::default()
        };
        let front = HttpFront::new(config, self.shared.handle.clone(), Arc::clone(&self.guard));
        let end = self.end.clone();
        let served = front.clone();
        self.tasks.spawn(async move { served.serve(listener, end).await });
        Ok((Front { url: format!("http://{address}/mcp"), token }, front))
    }

    /// Begins to end it.
    pub(super) fn end(&self) {
        self.end.cancel();
    }

    /// Ends it and waits for that.
    pub(super) async fn shutdown(&self) {
        self.end.cancel();
        self.over.cancelled().await;
    }
}

/// How long the first call to a model waits for servers where none is said to be required. A model that is asked without
/// its tools answers without them, and never asks again; a package runner takes seconds. A server that is mute costs this
/// once for each generation.
const PATIENCE: Duration = Duration::from_secs(5);

impl CoreShared {
    async fn look(&self) {
        let (status, tools) = (self.handle.status().await, self.handle.tools().await);
        let offer = Offer::of(&tools);
        // A server of the program's own runs what it is asked in the order that its host chooses.
        let offer = Arc::new(if self.bare { offer.side_by_side() } else { offer });
        let view = View { status: Arc::new(status), offer };
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        self.seen.send_modify(|seen| *seen = seen.wrapping_add(1));
    }
}

/// Asks about calls over the front.
#[derive(Debug)]
struct Asking(Weak<CoreShared>);

impl CallGate for Asking {
    fn before(&self, tool: String, arguments: Bytes) -> Judgement<'_> {
        Box::pin(async move {
            let Some(shared) = self.0.upgrade() else {
                return Err("the servers of this run have ended".to_owned());
            };
            let gate = shared.gate.read().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(gate) = gate else { return Ok(Passed::default()) };
            let offer = shared.view.read().unwrap_or_else(PoisonError::into_inner).offer.clone();
            let through = offer.meant(&tool, &arguments);
            let (exposed, own) = match &through {
                Some(meant) => (meant.exposed.as_str(), meant.arguments.clone()),
                None => (tool.as_str(), arguments),
            };
            // What is not there is told so, and the gateway's own tools touch nothing.
            let Some(found) = offer.tool(exposed).filter(|found| !found.server.is_empty()) else {
                return Ok(Passed::default());
            };
            let own = RawJson::new(own).map_err(|_| "the arguments are no JSON".to_owned())?;
            let target = McpTarget {
                server: found.server.to_string(),
                tool: found.tool.clone(),
                arguments: own.clone(),
                read_only: found.read_only,
                side_by_side: found.side_by_side,
            };
            let call = FrontCall { id: gate.call_id(&target), target };
            let allowed = gate.before(call.clone()).await?;
            let arguments = match (allowed == own, through.is_some()) {
                (true, _) => None,
                (false, false) => Some(allowed.bytes().clone()),
                (false, true) => {
                    let name = serde_json::Value::from(exposed);
                    Some(format!(r#"{{"name":{name},"arguments":{}}}"#, allowed.text()).into())
                }
            };
            let listener = gate.hears().then(|| -> Box<dyn CallListener> {
                let target = McpTarget { arguments: allowed, ..call.target };
                Box::new(Hearing { gate, call: FrontCall { target, ..call }, begun: Instant::now() })
            });
            Ok(Passed { arguments, listener })
        })
    }
}

/// Tells whoever was asked about a call what it gave.
#[derive(Debug)]
struct Hearing {
    gate: Arc<dyn FrontGate>,
    call: FrontCall,
    begun: Instant,
}

impl CallListener for Hearing {
    fn after(self: Box<Self>, result: Bytes) -> Heard {
        Box::pin(async move {
            // What is no JSON reaches nobody as a result.
            let Ok(given) = RawJson::new(result.clone()) else { return result };
            let Self { gate, call, begun } = *self;
            gate.after(call, given, begun.elapsed()).await.bytes().clone()
        })
    }
}

/// The task that looks after a gateway.
struct Keeper {
    shared: Arc<CoreShared>,
    gateway: GatewayConfig,
    search_above: usize,
}

impl Keeper {
    async fn run(mut self, end: CancellationToken, over: CancellationToken) {
        // Whoever waits for the end learns of it also where this task is aborted.
        let _over = over.drop_guard();
        let shared = Arc::clone(&self.shared);
        let receiving = async {
            if let Some(calls) = &shared.calls {
                calls.receive().await;
            }
            // All that remains is the end.
            std::future::pending::<()>().await;
        };
        let looking = async {
            let mut changes = shared.handle.changes();
            while changes.changed().await.is_ok() {
                self.look().await;
            }
        };
        let ending = async {
            end.cancelled().await;
            if timeout(END, shared.handle.shutdown()).await.is_err() {
                tracing::warn!("some servers did not end within {} s", END.as_secs());
            }
        };
        tokio::select! {
            () = ending => {}
            ((), ()) = async { tokio::join!(receiving, looking) } => {}
        }
    }

    async fn look(&mut self) {
        self.shared.look().await;
        let tools = self.shared.view.read().unwrap_or_else(PoisonError::into_inner).offer.all().len();
        if tools > self.search_above && matches!(self.gateway.expose, Expose::All) {
            self.gateway.expose = Expose::Search { pinned: Vec::new() };
            self.shared.handle.reload(self.gateway.clone()).await;
            self.shared.look().await;
        }
    }
}

/// 256 bits that nobody can guess.
fn token() -> Result<Secret, getrandom::Error> {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(Secret::in_use(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
}
