//! `toolway serve`: many servers behind one front.

mod nothing;
mod watching;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_proxy::Ending;
use toolway_proxy::gateway::{
    Eras, Face, GatewayHandle, HttpFront, Observer, Shared, StdioFront, serve_stdio,
};
use toolway_transport::{AsyncInput, AsyncOutput};

use super::remote;
use crate::args::{ServeArgs, SourceArgs};
use crate::compose::serve::{Listening, Serving, listening};
use crate::compose::servers::{Servers, refuse_circle};
use crate::compose::{Environment, UsageError, cache_dir};
use crate::exit::Exit;
use crate::logs;
use watching::Watching;

/// What the end of all servers gets.
const END: Duration = Duration::from_secs(8);

/// Runs the gateway.
pub(super) fn run(args: ServeArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    refuse_circle(&own)?;
    let ServeArgs { sources, gateway, http, common } = args;
    let serving = Serving::new(gateway, common, &own)?;
    let listening = listening(http, &own)?;
    logs::start(serving.log);
    let mut loader = toolway_config::Loader::default();
    let servers = Servers::load_again(&sources, &own, &mut loader)?;
    watching::tell(&servers);
    if servers.entries.is_empty() {
        return nothing::run(&servers, serving, listening.is_some());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| UsageError::new("system", error.to_string()))?;
    tidy(&serving.guard);
    let served = runtime.block_on(async {
        let gateway = Gateway { serving, sources, own };
        match listening {
            None => gateway.over_stdio(servers, loader).await,
            Some(listening) => gateway.over_http(servers, loader, listening).await,
        }
    });
    runtime.block_on(toolway_auth::settle());
    logs::finish();
    // A thread may still wait for the client's input: it ends with the process.
    runtime.shutdown_background();
    Ok(served?.into())
}

/// Removes the saved results that are due, beside everything else.
fn tidy(guard: &toolway_guard::Guard) {
    let store = guard.store().clone();
    let work = move || {
        if let Err(error) = store.tidy(std::time::SystemTime::now()) {
            tracing::debug!(%error, "saved results could not be purged");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("purge".to_owned()).stack_size(256 << 10).spawn(work)
    {
        tracing::debug!(%error, "saved results are not purged");
    }
}

/// A gateway that is to be served.
struct Gateway {
    serving: Serving,
    sources: SourceArgs,
    own: Environment,
}

impl Gateway {
    /// Starts all servers, and the watch over the files.
    fn start(&self, servers: Servers, loader: toolway_config::Loader) -> Result<Running, UsageError> {
        let watched = servers.resolved.watched();
        let entries = self.entries(servers)?;
        let eras = Eras::new(cache_dir(&self.own).map(|cache| cache.join("eras.jsonl")));
        let shared = Shared::new(Arc::clone(&self.serving.guard), Arc::new(eras), Face::of_gateway());
        let tasks = TaskTracker::new();
        let end = CancellationToken::new();
        let observer = Observer::start(&self.serving.observe, &tasks, &end)
            .map_err(|error| UsageError::new("--metrics, --audit or OTEL_*", error.to_string()))?;
        let handle = GatewayHandle::start_observed(self.serving.with(entries), shared, observer.clone());
        Ok(Running { handle, watching: Watching::start(watched, loader), observer, tasks, end })
    }

    fn entries(&self, servers: Servers) -> Result<Vec<toolway_proxy::gateway::ServerEntry>, UsageError> {
        if !self.serving.shared {
            return Ok(servers.entries);
        }
        super::daemon::share(servers.entries, &self.own)
    }

    /// One client, at stdin and stdout.
    async fn over_stdio(
        mut self,
        servers: Servers,
        loader: toolway_config::Loader,
    ) -> Result<Ending, UsageError> {
        let system = |error: std::io::Error| UsageError::new("system", error.to_string());
        let outside = remote::outside(super::stream(std::io::stdin())?)?;
        let input = AsyncInput::stdin().map_err(system)?;
        let output = AsyncOutput::stdout().map_err(system)?;
        let running = self.start(servers, loader)?;
        let (handle, watching, ended) = running.parts();
        let front = StdioFront {
            guard: Arc::clone(&self.serving.guard),
            saved_as: crate::compose::session_name(),
            drain: self.serving.drain,
            record: self.serving.record.take(),
        };
        // In a task of its own: each time that this one is woken, the runtime asks the system for events once more.
        let served = handle.clone();
        let mut session = JoinSet::new();
        session.spawn(async move { serve_stdio(&served, &front, input, output, outside).await });
        let ending = tokio::select! {
            ended = session.join_next() => ended.and_then(Result::ok).unwrap_or(Ending::UpstreamEnded),
            never = watching.run(&self, &handle) => match never {},
        };
        ended.await;
        Ok(ending)
    }

    /// Any clients, over HTTP, until a signal comes.
    async fn over_http(
        self,
        servers: Servers,
        loader: toolway_config::Loader,
        listening: Listening,
    ) -> Result<Ending, UsageError> {
        let Listening { address, http, said } = listening;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| UsageError::new("--listen", format!("cannot listen at {address}: {error}")))?;
        let bound = listener.local_addr().unwrap_or(address);
        let scheme = if http.tls.is_some() { "https" } else { "http" };
        let mut signals = signals()?;
        let running = self.start(servers, loader)?;
        let (handle, watching, ended) = running.parts();
        tell(scheme, bound, &said);
        let front = HttpFront::new(http, handle.clone(), Arc::clone(&self.serving.guard));
        let stop = CancellationToken::new();
        let mut serving = std::pin::pin!(front.serve(listener, stop.clone()));
        let ending = tokio::select! {
            () = serving.as_mut() => Ending::UpstreamEnded,
            Some(signal) = signals.recv() => Ending::Signal(signal),
            never = watching.run(&self, &handle) => match never {},
        };
        stop.cancel();
        if ending != Ending::UpstreamEnded {
            serving.await;
        }
        ended.await;
        Ok(ending)
    }
}

/// Where it listens, and with which token: said once, and never logged.
fn tell(scheme: &str, bound: SocketAddr, said: &str) {
    use std::io::Write as _;
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "toolway serves MCP at {scheme}://{bound}/mcp\n{said}").ok();
}

/// A gateway that runs.
struct Running {
    handle: GatewayHandle,
    watching: Watching,
    observer: Observer,
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Running {
    /// The gateway, the watch over its files, and what ends it all: servers first, then what tells of them.
    fn parts(self) -> (GatewayHandle, Watching, impl Future<Output = ()>) {
        let Self { handle, watching, observer, tasks, end } = self;
        let gateway = handle.clone();
        let ended = async move {
            if timeout(END, gateway.shutdown()).await.is_err() {
                tracing::warn!("some servers did not end in time");
            }
            observer.close().await;
            end.cancel();
            tasks.close();
            timeout(END, tasks.wait()).await.ok();
        };
        (handle, watching, ended)
    }
}

/// The signals that end the program.
pub(super) fn signals() -> Result<mpsc::Receiver<i32>, UsageError> {
    let (sender, receiver) = mpsc::channel(4);
    let signals = super::signals()?;
    let forward = move || {
        for signal in signals {
            if sender.blocking_send(signal).is_err() {
                return;
            }
        }
    };
    let named = std::thread::Builder::new().name("signals".to_owned()).stack_size(128 << 10);
    named.spawn(forward).map_err(|error| UsageError::new("signals", error.to_string()))?;
    Ok(receiver)
}
