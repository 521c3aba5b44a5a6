//! Owns the servers of a run: one set of them, started together and ended with its last user. It knows no model.

mod calls;
mod core;
mod maker;
mod many;
mod report;
mod scope;
mod unknown;

pub(crate) use maker::guard;
pub use many::{Generations, Reloaded};

pub use crate::catalogue::McpTool;

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_proxy::gateway::{Naming, ServerState};
use toolway_secret::Secret;

use self::core::Core;
use self::maker::Maker;
use crate::compose::Composer;
use crate::error::AgentError;
use crate::event::ToolPair;
use crate::inline::DirectServer;

/// A set of running servers. Runs hold it by `Arc`: it ends with the last one.
#[derive(Debug)]
pub struct Generation {
    parts: Vec<Part>,
    direct: Vec<DirectServer>,
    /// What is told of servers that it does not have.
    aside: Vec<Aside>,
    diagnostics: Vec<String>,
    /// Names whose definition is another one than before.
    changed: Vec<String>,
    maker: Arc<Maker>,
    composer: Composer,
}

/// One gateway, as far as a generation uses it.
#[derive(Debug, Clone)]
struct Part {
    core: Arc<Core>,
    /// These servers of it; `None`: all.
    only: Option<BTreeSet<String>>,
    is_direct: bool,
    /// It was started for this generation.
    owned: bool,
}

/// A server that a generation does not have, and why.
#[derive(Debug, Clone)]
struct Aside {
    name: String,
    transport: String,
    state: ServerState,
}

impl Aside {
    fn new(name: &str, transport: &str, state: ServerState) -> Self {
        Self { name: name.to_owned(), transport: transport.to_owned(), state }
    }
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct McpCall<'a> {
    /// The tool's exposed name.
    pub exposed: &'a str,
    /// A JSON object, with the bytes that the model gave.
    pub arguments: RawJson,
}

/// What a call gave. The model's own faults are results too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpResult {
    /// A `CallToolResult`: `content`, `isError`, `structuredContent`.
    pub content: RawJson,
    /// It says that it is an error.
    pub is_error: bool,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct McpProgress {
    /// How far.
    pub progress: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// What a call is really for: what rules and hooks are asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpTarget {
    /// The server's name; empty for a tool of the gateway's own.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The arguments that it gets.
    pub arguments: RawJson,
    /// It says that it only reads.
    pub read_only: bool,
    /// Its calls may be made at once, see [`McpTool::side_by_side`].
    pub side_by_side: bool,
}

/// A call over the front.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontCall {
    /// What it is known by, see [`FrontGate::call_id`].
    pub id: String,
    /// What is called, and with what.
    pub target: McpTarget,
}

/// Is asked before a tool is called over the front, where agents behind a protocol call. Implemented by their engine.
pub trait FrontGate: fmt::Debug + Send + Sync {
    /// What the call is known by: the caller's own name for it where that is known, and never the same twice.
    fn call_id(&self, target: &McpTarget) -> String;

    /// What is to be called. The arguments to call it with, or the text that the model gets as an error result.
    fn before(&self, call: FrontCall) -> Pin<Box<dyn Future<Output = Result<RawJson, String>> + Send + '_>>;

    /// Whether it wants to hear what calls gave.
    fn hears(&self) -> bool {
        false
    }

    /// What a call gave, a whole `CallToolResult`; its target has the arguments that it was made with. What is returned
    /// goes to the caller.
    fn after(
        &self,
        call: FrontCall,
        result: RawJson,
        duration: Duration,
    ) -> Pin<Box<dyn Future<Output = RawJson> + Send + '_>> {
        let _: (FrontCall, Duration) = (call, duration);
        Box::pin(std::future::ready(result))
    }
}

/// Where the servers of a generation are reached over HTTP, by who has the token: by agents behind a protocol.
#[derive(Debug, Clone)]
pub struct Front {
    /// The address.
    pub url: String,
    /// What to send as `Authorization: Bearer`.
    pub token: Secret,
}

impl Generation {
    /// Without servers.
    fn empty(maker: Arc<Maker>, composer: &Composer) -> Self {
        Self {
            parts: Vec::new(),
            direct: Vec::new(),
            aside: Vec::new(),
            diagnostics: Vec::new(),
            changed: Vec::new(),
            composer: composer.without_files(),
            maker,
        }
    }

    /// What the model has now. Servers that come late add to it: ask before every call to the model.
    pub fn tools(&self) -> Arc<Vec<McpTool>> {
        if let [Part { core, only: None, .. }] = self.parts.as_slice() {
            return Arc::clone(core.view().offer.shown());
        }
        let mut tools: Vec<McpTool> = Vec::new();
        for part in &self.parts {
            let offer = core_offer(part);
            let shown: Vec<&McpTool> = match &part.only {
                // Who has few servers need not search.
                Some(_) => offer.all().iter().filter(|tool| part.has(tool)).collect(),
                None => offer.shown().iter().collect(),
            };
            for tool in shown {
                if !tools.iter().any(|known| known.exposed == tool.exposed) {
                    tools.push(tool.clone());
                }
            }
        }
        Arc::new(tools)
    }

    /// Every tool of a server as (server, tool), whether the model is shown it or finds it by a search.
    pub fn pairs(&self) -> Vec<ToolPair> {
        let mut pairs = Vec::new();
        for part in &self.parts {
            let offer = core_offer(part);
            let of_servers = offer.all().iter().filter(|tool| !tool.server.is_empty() && part.has(tool));
            pairs.extend(
                of_servers.map(|tool| ToolPair { server: tool.server.to_string(), tool: tool.tool.clone() }),
            );
        }
        pairs
    }

    /// What a call of that name with these arguments is really for; `None`: there is no such tool.
    pub fn target(&self, call: &McpCall<'_>) -> Option<McpTarget> {
        let (part, exposed, arguments) = self.meant(call)?;
        let offer = core_offer(part);
        let tool = offer.tool(&exposed)?;
        Some(McpTarget {
            server: tool.server.to_string(),
            tool: tool.tool.clone(),
            arguments,
            read_only: tool.read_only,
            side_by_side: tool.side_by_side,
        })
    }

    /// The same, where the server that the name seems to be of is waited for while it starts.
    pub async fn find(&self, call: &McpCall<'_>, cancel: &CancellationToken) -> Option<McpTarget> {
        if self.meant(call).is_none() {
            tokio::select! {
                () = self.late(call.exposed) => {}
                () = cancel.cancelled() => return None,
            }
        }
        self.target(call)
    }

    /// The configured server that a tool of that name would be of, direct ones aside.
    pub fn server_of(&self, exposed: &str) -> Option<String> {
        self.parts.iter().filter(|part| !part.is_direct).find_map(|part| part.server_of(exposed))
    }

    /// Waits for servers that the first call to the model waits for, and for nothing else.
    pub async fn ready(&self) {
        for part in &self.parts {
            part.core.ready(self.maker.patience).await;
        }
    }

    /// Calls a tool. Never an error of its own: an unknown tool, a server that is not up, a cancellation are results
    /// that say so. Dropping the future gives the call up, and its server hears of it.
    pub async fn call(
        &self,
        call: McpCall<'_>,
        mut progress: impl FnMut(McpProgress) + Send,
        cancel: &CancellationToken,
    ) -> McpResult {
        if !call.arguments.is_object() {
            return calls::failure(&format!("the arguments of {} must be a JSON object", call.exposed));
        }
        if self.meant(&call).is_none() {
            tokio::select! {
                () = self.late(call.exposed) => {}
                () = cancel.cancelled() => return calls::failure("cancelled: nobody waits for the result any more"),
            }
        }
        let found = self.meant(&call);
        if found.is_none()
            && let Some(text) = self.lacking(call.exposed)
        {
            return calls::failure(&text);
        }
        let Some((part, exposed, arguments)) = found.or_else(|| self.unfound(&call)) else {
            return calls::failure(&self.unknown(call.exposed));
        };
        match part.core.calls() {
            Some(calls) => calls.call(&exposed, arguments.bytes(), &mut progress, cancel).await,
            None => calls::failure("the servers of this run have ended"),
        }
    }

    /// Where all but direct servers are reached over loopback HTTP. Opened by the first call; ends with the generation.
    ///
    /// # Errors
    /// No loopback address can be had.
    pub async fn front(&self) -> Result<Option<Front>, AgentError> {
        self.front_through(None).await
    }

    /// The same, where somebody is asked before every call: the last one that was given here.
    ///
    /// # Errors
    /// As [`Generation::front`].
    pub async fn front_through(&self, gate: Option<Arc<dyn FrontGate>>) -> Result<Option<Front>, AgentError> {
        match self.parts.iter().find(|part| !part.is_direct) {
            Some(part) => part.core.front(gate).await.map(Some),
            None => Ok(None),
        }
    }

    /// How many requests have come over the front so far: none, from an agent that does nothing with its servers.
    pub fn front_visits(&self) -> u64 {
        self.parts.iter().find(|part| !part.is_direct).map_or(0, |part| part.core.front_visits())
    }

    /// Servers that agents behind a protocol are given as they are.
    pub fn direct(&self) -> &[DirectServer] {
        &self.direct
    }

    /// What is wrong with files, without being fatal.
    pub fn diagnostics(&self) -> Vec<String> {
        self.diagnostics.clone()
    }

    /// Ends the servers that are its own and waits for their end, 5 s at most. Dropping the last `Arc` does the same in
    /// the background.
    pub async fn shutdown(&self) {
        for part in self.parts.iter().filter(|part| part.owned) {
            part.core.end();
        }
        for part in self.parts.iter().filter(|part| part.owned) {
            part.core.shutdown().await;
        }
    }

    /// The part that a call goes to, the name to call there and the arguments.
    fn meant(&self, call: &McpCall<'_>) -> Option<(&Part, String, RawJson)> {
        for part in &self.parts {
            let offer = core_offer(part);
            if let Some(meant) = offer.meant(call.exposed, call.arguments.bytes()) {
                let fits = offer.tool(&meant.exposed).is_some_and(|tool| part.has(tool));
                let arguments = RawJson::new(meant.arguments).ok()?;
                return fits.then_some((part, meant.exposed, arguments));
            }
            if offer.tool(call.exposed).is_some_and(|tool| part.has(tool)) {
                return Some((part, call.exposed.to_owned(), call.arguments.clone()));
            }
        }
        None
    }

    /// The same without its direct servers.
    fn without_direct(&self) -> Self {
        let parts = self.parts.iter().filter(|part| !part.is_direct);
        Self {
            parts: parts.map(|part| Part { owned: false, ..part.clone() }).collect(),
            direct: Vec::new(),
            aside: self.aside.clone(),
            diagnostics: self.diagnostics.clone(),
            changed: self.changed.clone(),
            maker: Arc::clone(&self.maker),
            composer: self.composer.without_files(),
        }
    }
}

impl Part {
    /// It is within reach. Those of the gateway itself are, for who may read what was saved.
    fn has(&self, tool: &McpTool) -> bool {
        match &self.only {
            None => true,
            Some(_) if tool.server.is_empty() => tool.tool == toolway_guard::READ_BACK_TOOL,
            Some(only) => only.contains(&*tool.server),
        }
    }

    /// The configured server whose tools' names begin as this one.
    fn server_of(&self, exposed: &str) -> Option<String> {
        let naming = Naming::default();
        let begins = |server: &str| {
            let name = naming.exposed(server, "x");
            self.is_direct || name.strip_suffix('x').is_some_and(|prefix| exposed.starts_with(prefix))
        };
        let within = |name: &str| self.only.as_ref().is_none_or(|only| only.contains(name));
        let status = self.core.view().status;
        let mut named = status.iter().map(|one| &one.name).filter(|name| within(name) && begins(name));
        named.next().cloned()
    }
}

fn core_offer(part: &Part) -> Arc<crate::catalogue::Offer> {
    part.core.view().offer
}
