//! Owns the gateway's plain settings: all values are final, expanded and checked. Reads no file and no environment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolway_guard::{Glob, Guard};
use toolway_secret::Secret;
use toolway_transport::{ChildConfig, HttpConfig, Signer};

use super::state::ServerState;

/// Everything that one gateway runs with. A reload brings a new one; [`ServerConfig::digest`] tells what has changed.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// Every configured entry, also those that are never started.
    pub servers: Vec<ServerEntry>,
    /// What the client sees.
    pub expose: Expose,
    /// Tools and prompts keep their own names: for one server without renames.
    pub bare: bool,
    /// The most characters of an exposed name, at most 64.
    pub max_name_chars: usize,
    /// What the first answer to a client waits for.
    pub wait: Wait,
    /// Tools whose definition has changed since it was approved are held back.
    pub pin_tools: bool,
    /// Where catalogues are kept; `None`: nowhere.
    pub catalogue_dir: Option<PathBuf>,
    /// The size policy for clients.
    pub guard: Arc<Guard>,
}

/// One configured entry.
#[derive(Debug, Clone)]
pub struct ServerEntry {
    /// Its name as configured: the identity, case and all.
    pub name: String,
    /// Where it is configured, for people: `~/.cursor/mcp.json:12`.
    pub source: String,
    /// How to run it, or why not.
    pub plan: Result<Arc<ServerConfig>, ServerState>,
}

/// How to reach and treat one server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name as configured.
    pub name: String,
    /// Where it runs.
    pub target: Target,
    /// Digest of the whole resolved definition, environment and working directory included: what is equal needs no
    /// restart at a reload, may be shared, and finds its catalogue and its era again.
    pub digest: String,
    /// Bounds of time.
    pub timeouts: Timeouts,
    /// The gateway is not ready without it (see [`Wait::Required`]).
    pub required: bool,
    /// Started by its first call; its tools come from the catalogue kept on disk, or from one start without it.
    pub lazy: bool,
    /// Whether several clients use one copy.
    pub share: Share,
    /// Which tools are shown, and how.
    pub filter: ToolFilter,
    /// Which protocol generation is spoken.
    pub protocol: Protocol,
    /// Another limit of the guard for this server's results, in characters.
    pub max_response_chars: Option<u64>,
    /// Texts that no message for people may show: values of its variables, arguments and headers that may be secret.
    pub secrets: Vec<Secret>,
    /// Roots that are told to a server that asks, as file URLs; `None`: the client's own.
    pub roots: Option<Vec<String>>,
}

/// Where a server runs.
#[derive(Debug, Clone)]
pub enum Target {
    /// A child process.
    Child(ChildTarget),
    /// An address.
    Remote(RemoteTarget),
    /// A server inside this process.
    Embedded(Arc<dyn Embedded>),
    /// A copy that another process of the same user runs for several gateways.
    #[cfg(unix)]
    Attached(Arc<dyn Attach>),
}

impl Target {
    /// Who signs the requests to it.
    pub fn signer(&self) -> Option<&Signer> {
        if let Self::Remote(target) = self { target.http.authorizer.as_ref() } else { None }
    }
}

/// A server inside this process. Implemented by who embeds the gateway, called at each start.
pub trait Embedded: std::fmt::Debug + Send + Sync {
    /// Begins to serve, in a task that the implementation owns, and gives the client's end. The task ends when that end
    /// is closed.
    fn connect(&self) -> toolway_transport::memory::MemoryEnd;
}

/// The way to a copy of a server that another process runs. Implemented by the daemon's client, called at each start.
#[cfg(unix)]
pub trait Attach: std::fmt::Debug + Send + Sync {
    /// Connects, and starts that process where it does not run. The copy has answered when this has.
    fn attach(&self) -> Attaching<'_>;
}

/// What [`Attach::attach`] gives.
#[cfg(unix)]
pub type Attaching<'a> = std::pin::Pin<
    Box<dyn Future<Output = Result<toolway_transport::SocketTransport, AttachFault>> + Send + 'a>,
>;

/// Why there is no copy to attach to.
#[cfg(unix)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachFault {
    /// What happened, without secrets.
    pub reason: String,
    /// What to do.
    pub hint: Option<String>,
}

/// A server that is started as a child process.
#[derive(Debug, Clone)]
pub struct ChildTarget {
    /// The command as configured; looked up in the `PATH` of `child.env` at each start.
    pub command: String,
    /// All else; its program is filled in at each start.
    pub child: ChildConfig,
}

/// A server at an address.
#[derive(Debug, Clone)]
pub struct RemoteTarget {
    /// URL, headers, time limits, and who signs.
    pub http: HttpConfig,
    /// Which transport.
    pub kind: RemoteKind,
}

/// Which transport a server at an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemoteKind {
    /// Streamable HTTP, then legacy SSE where a definite refusal says so; the other way round where the path ends in
    /// `/sse`.
    Auto,
    /// Streamable HTTP only... with the fallback that the specification asks of clients.
    StreamableHttp,
    /// Legacy SSE only.
    Sse,
}

/// Bounds of time for one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start to the answer to `initialize`; 60 s.
    pub startup: Duration,
    /// For one page of a list; 60 s.
    pub list: Duration,
    /// A call without progress; 60 s. Progress starts it again.
    pub call_idle: Duration,
    /// A call in all; 3600 s.
    pub call_max: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            startup: Duration::from_mins(1),
            list: Duration::from_mins(1),
            call_idle: Duration::from_mins(1),
            call_max: Duration::from_hours(1),
        }
    }
}

/// Whether several clients use one copy of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// Yes, unless the server is found to keep state for each client.
    #[default]
    Auto,
    /// Yes, whatever it does.
    Always,
    /// Each client has its own copy.
    Never,
}

/// Which protocol generation is spoken to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// What worked before for the same definition; else `initialize` first, `server/discover` after an error.
    #[default]
    Auto,
    /// `initialize` only.
    Legacy,
    /// 2026-07-28 only.
    Modern,
}

/// Which of a server's tools are shown, and how. Globs match the server's own names.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    /// `None`: all. First the allowed ones...
    pub allow: Option<Vec<Glob>>,
    /// ...then without these.
    pub deny: Vec<Glob>,
    /// Server's name of a tool to the name that replaces it (before the server's prefix).
    pub rename: BTreeMap<String, String>,
    /// Server's name of a tool to another description.
    pub describe: BTreeMap<String, String>,
}

/// What the client sees in its lists.
#[derive(Debug, Clone, Default)]
pub enum Expose {
    /// Every tool.
    #[default]
    All,
    /// `toolway_search`, `toolway_call` and the tools that fit these globs (exposed names).
    Search {
        /// Tools that are shown all the same.
        pinned: Vec<Glob>,
    },
}

/// What the first list waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Nothing: tools appear as servers come up.
    #[default]
    None,
    /// The required servers, within their startup time.
    Required,
    /// All servers, within their startup time.
    All,
}
