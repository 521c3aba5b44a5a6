//! Owns how the gateways of an agent are made: their settings beside the servers, and what they share. It reads no files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_guard::{Guard, GuardConfig, QueryProcess, ReadBack};
use toolway_proxy::gateway::{
    Eras, Expose, Face, GatewayConfig, MAX_NAME_CHARS, Protocol, RemoteKind, RemoteTarget, ServerConfig,
    ServerEntry, ServerState, Share, Shared, Stage, Target, Timeouts, ToolFilter, Wait,
};
use toolway_transport::HttpConfig;

use super::core::{Core, CoreConfig};
use crate::compose::{Composed, Configured, failed_entry, wait_for_calls};
use crate::custom_tools::{CUSTOM_SERVER, CustomServer, CustomTool};
use crate::error::AgentError;
use crate::inline::DirectServer;
use crate::options::{AgentOptions, EngineChoice, GuardOptions, Machine};

/// How long a function of the program may take where nothing else is said: it has its own ends.
const CUSTOM_CALL: Duration = Duration::from_hours(1);
/// The number of tools above which a model searches for them.
const SEARCH_ABOVE: usize = 100;

/// Makes gateways.
#[derive(Debug)]
pub(super) struct Maker {
    guard: Arc<Guard>,
    shared: Shared,
    catalogue_dir: Option<PathBuf>,
    saved_as: String,
    search_above: usize,
    pub(super) patience: Option<Duration>,
    /// Direct servers are only told of: the agent connects to them itself.
    hands_over: bool,
    pub(super) tasks: TaskTracker,
    pub(super) root: CancellationToken,
}

impl Maker {
    /// Does no I/O.
    pub(super) fn new(options: &AgentOptions, saved_as: &str) -> Result<Self, AgentError> {
        let local = options.local_options();
        let machine = options.work_machine();
        let guard = guard(&local.map(|local| local.guard.clone()).unwrap_or_default(), &machine)?;
        let eras = machine.cache_dir().map(|cache| cache.join("eras.jsonl"));
        Ok(Self {
            shared: Shared::new(Arc::clone(&guard), Arc::new(Eras::new(eras)), Face::of_gateway()),
            guard,
            catalogue_dir: machine.cache_dir().map(|cache| cache.join("catalogues")),
            saved_as: saved_as.to_owned(),
            search_above: local.and_then(|local| local.search_above).unwrap_or(SEARCH_ABOVE),
            patience: local.and_then(|local| local.server_patience),
            hands_over: local.is_some_and(|local| matches!(local.engine, EngineChoice::Acp(_))),
            tasks: TaskTracker::new(),
            root: CancellationToken::new(),
        })
    }

    /// A gateway for what was composed, and for functions of the program. `None`: there is nothing to run.
    pub(super) async fn main(
        &self,
        composed: &Composed,
        custom: &[CustomTool],
        timeouts: Timeouts,
    ) -> Option<Arc<Core>> {
        if composed.configured.is_empty() && custom.is_empty() {
            return None;
        }
        let (mut configured, mut entries) = (composed.configured.clone(), composed.entries.clone());
        if !custom.is_empty() {
            let server = CustomServer::new(custom.to_vec(), self.tasks.clone());
            let longest = timeouts.call_max.max(CUSTOM_CALL);
            let timeouts = Timeouts { call_idle: longest, call_max: longest, ..timeouts };
            let config = ServerConfig {
                required: true,
                share: Share::Always,
                protocol: Protocol::Legacy,
                ..plain(CUSTOM_SERVER, Target::Embedded(Arc::new(server)), timeouts)
            };
            configured.push(Configured {
                name: CUSTOM_SERVER.to_owned(),
                source: "custom".to_owned(),
                place: None,
                transport: Some("memory"),
                state: None,
                required: true,
                lazy: false,
                command: None,
                url: None,
                secrets: Vec::new(),
            });
            entries.push(entry(config, "custom"));
        }
        let gateway = self.settings(entries, false, Arc::clone(&self.guard));
        Some(Arc::new(self.start(gateway, configured, &self.shared).await))
    }

    /// A gateway for one server of the program's own.
    pub(super) async fn direct(&self, server: &DirectServer, timeouts: Timeouts) -> Arc<Core> {
        let mut configured = Configured {
            name: server.name.clone(),
            source: "direct".to_owned(),
            place: None,
            transport: Some("http"),
            state: None,
            required: true,
            lazy: false,
            command: None,
            url: server.url.expose().split(['?', '#']).next().map(str::to_owned),
            secrets: Vec::new(),
        };
        let entries = match HttpConfig::new(server.url.expose()) {
            _ if self.hands_over => Vec::new(),
            Ok(mut http) => {
                http.headers.clone_from(&server.headers);
                // Its own deadlines are shorter, and say more.
                let longest = timeouts.call_max;
                let timeouts = Timeouts { call_idle: longest, call_max: longest, ..timeouts };
                wait_for_calls(&mut http, &timeouts);
                let target = Target::Remote(RemoteTarget { http, kind: RemoteKind::StreamableHttp });
                let secrets = server.headers.iter().map(|(_, value)| value.clone());
                let secrets = secrets.chain([server.url.clone()]).collect();
                let config =
                    ServerConfig { required: true, secrets, ..plain(&server.name, target, timeouts) };
                vec![entry(config, "direct")]
            }
            Err(error) => {
                let (reason, hint) = (error.to_string(), None);
                let state = ServerState::Failed { stage: Stage::Configure, reason, hint };
                vec![failed_entry(&server.name, "direct", state)]
            }
        };
        if entries.is_empty() {
            let by = "the agent, which connects to it itself".to_owned();
            configured.state = Some(ServerState::Disabled { by });
        }
        let mut settings = self.guard.config().clone();
        (settings.max_response_chars, settings.read_back) = (u64::MAX, ReadBack::Off);
        let guard = Arc::new(Guard::new(settings));
        let gateway = self.settings(entries, true, guard);
        Arc::new(self.start(gateway, vec![configured], &self.shared).await)
    }

    async fn start(&self, gateway: GatewayConfig, configured: Vec<Configured>, shared: &Shared) -> Core {
        let bare = gateway.bare;
        let config = CoreConfig {
            gateway,
            configured,
            saved_as: self.saved_as.clone(),
            search_above: if bare { usize::MAX } else { self.search_above },
        };
        Core::start(config, shared, &self.tasks, &self.root).await
    }

    fn settings(&self, servers: Vec<ServerEntry>, bare: bool, guard: Arc<Guard>) -> GatewayConfig {
        GatewayConfig {
            servers,
            expose: Expose::All,
            bare,
            max_name_chars: MAX_NAME_CHARS,
            // The generation waits, and says for whom.
            wait: Wait::None,
            pin_tools: false,
            catalogue_dir: self.catalogue_dir.clone().filter(|_| !bare),
            guard,
        }
    }
}

fn entry(config: ServerConfig, source: &str) -> ServerEntry {
    ServerEntry { name: config.name.clone(), source: source.to_owned(), plan: Ok(Arc::new(config)) }
}

/// A server with nothing but defaults.
fn plain(name: &str, target: Target, timeouts: Timeouts) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        target,
        digest: String::new(),
        timeouts,
        required: false,
        lazy: false,
        share: Share::Auto,
        filter: ToolFilter { rename: BTreeMap::new(), ..ToolFilter::default() },
        protocol: Protocol::Auto,
        max_response_chars: None,
        secrets: Vec::new(),
        roots: None,
    }
}

/// What saves large results of an agent with these options.
pub(crate) fn guard(options: &GuardOptions, machine: &Machine) -> Result<Arc<Guard>, AgentError> {
    let usual = || {
        let home = machine.home();
        (!home.as_os_str().is_empty()).then(|| home.join(".cache").join("cursor-mcp-response-proxy"))
    };
    let given = options.output_dir.as_ref().map(|dir| machine.cwd().join(dir));
    let dir = given.or_else(usual).ok_or_else(|| {
        AgentError::fault("local.guard.outputDir", "there is no home directory: name one for large results")
    })?;
    let mut config = GuardConfig::new(dir);
    config.max_response_chars = options.max_response_chars;
    config.preview_chars = options.preview_chars;
    config.read_back = ReadBack::Session;
    config.query_process = machine.helper().map(|helper| QueryProcess::new(helper.into()));
    if let Some(dir) = &options.output_dir {
        config.saved_command = format!("toolway saved --output-dir {}", dir.display());
    }
    Ok(Arc::new(Guard::new(config)))
}
