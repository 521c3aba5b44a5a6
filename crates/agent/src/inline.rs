//! Owns servers as a program gives them, and what is remembered of them when it has gone: names, transports and a keyed
//! digest. It judges nothing and starts nothing.

mod record;

pub use record::{InlineDifference, InlineRecord, RecordKey};

use std::fmt;

use serde_json::{Map, Value, json};
use toolway_secret::Secret;

/// Servers by name, as they stand under `mcpServers`. `Debug` shows the names alone.
#[derive(Clone, Default, PartialEq)]
pub struct McpServers(Vec<(String, McpServer)>);

/// What one server's entry says: the members of `command` or `url` and all that may stand beside them. `Debug` shows no
/// values.
#[derive(Clone, Default, PartialEq)]
pub struct McpServer(Map<String, Value>);

impl McpServer {
    /// A server that is started as a child process.
    pub fn command(command: impl Into<String>) -> Self {
        Self(Map::from_iter([("command".to_owned(), Value::String(command.into()))]))
    }

    /// A server at an address: Streamable HTTP, with the fallback to legacy SSE.
    pub fn url(url: impl Into<String>) -> Self {
        Self(Map::from_iter([("url".to_owned(), Value::String(url.into()))]))
    }

    /// As it stands in JSON.
    pub fn from_json(members: Map<String, Value>) -> Self {
        Self(members)
    }

    /// Arguments of the command.
    #[must_use]
    pub fn args<T: Into<String>>(self, args: impl IntoIterator<Item = T>) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        self.with("args", json!(args))
    }

    /// A variable of the child process.
    #[must_use]
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.below("env", name.into(), value.into())
    }

    /// A header of every request.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.below("headers", name.into(), value.into())
    }

    /// Where the child process works. Without it: where the agent works.
    #[must_use]
    pub fn cwd(self, cwd: impl Into<String>) -> Self {
        let cwd = cwd.into();
        self.with("cwd", Value::String(cwd))
    }

    /// The first call to the model waits for it.
    #[must_use]
    pub fn required(self) -> Self {
        self.with("required", Value::Bool(true))
    }

    /// Any other member, by its name in JSON.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// As it stands in JSON.
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    /// `stdio`, `http` or `sse`, as far as the entry says it.
    pub fn transport(&self) -> &'static str {
        if self.0.contains_key("command") {
            return "stdio";
        }
        match self.0.get("type").and_then(Value::as_str) {
            Some("sse") => "sse",
            _ => "http",
        }
    }

    fn below(mut self, member: &str, name: String, value: String) -> Self {
        let map = self.0.entry(member).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(map) = map {
            map.insert(name, Value::String(value));
        }
        self
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("members", &self.0.keys().collect::<Vec<_>>()).finish()
    }
}

impl McpServers {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more. A name that is there already is a fault that is told when the servers are used.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, server: McpServer) -> Self {
        self.insert(name, server);
        self
    }

    /// One more.
    pub fn insert(&mut self, name: impl Into<String>, server: McpServer) {
        self.0.push((name.into(), server));
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &McpServer)> {
        self.0.iter().map(|(name, server)| (name.as_str(), server))
    }

    /// The names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The entry of that name.
    pub fn get(&self, name: &str) -> Option<&McpServer> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, server)| server)
    }

    /// The map that stands under `mcpServers`; the first of equal names.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map = Map::new();
        for (name, server) in &self.0 {
            map.entry(name.clone()).or_insert_with(|| Value::Object(server.0.clone()));
        }
        map
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpServers").field(&self.names().collect::<Vec<_>>()).finish()
    }
}

impl<N: Into<String>> FromIterator<(N, McpServer)> for McpServers {
    fn from_iter<T: IntoIterator<Item = (N, McpServer)>>(servers: T) -> Self {
        Self(servers.into_iter().map(|(name, server)| (name.into(), server)).collect())
    }
}

impl<N: Into<String>, const COUNT: usize> From<[(N, McpServer); COUNT]> for McpServers {
    fn from(servers: [(N, McpServer); COUNT]) -> Self {
        servers.into_iter().collect()
    }
}

/// A server at a loopback address that belongs to the program itself: its tools keep their own names, its results are
/// handed on whole, and no guard, policy or file stands between.
#[derive(Debug, Clone)]
pub struct DirectServer {
    /// What it is called in reports.
    pub name: String,
    /// Its address, Streamable HTTP. Whoever has it can call it.
    pub url: Secret,
    /// Headers of every request.
    pub headers: Vec<(String, Secret)>,
}
