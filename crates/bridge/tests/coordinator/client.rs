//! A legacy MCP client of the run's server.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolway_bridge::AgentOptions;

/// A session with the server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    port: u16,
    path: String,
    session: String,
}

impl Client {
    /// Connects to the server that an agent was made with.
    pub(crate) async fn connect(options: &AgentOptions) -> Result<Self> {
        let url = options.mcp_servers.first().context("no server")?.url.expose().to_owned();
        let rest = url.strip_prefix("http://127.0.0.1:").context("not loopback")?;
        let (port, path) = rest.split_once('/').context("no path")?;
        let mut client = Self { port: port.parse()?, path: format!("/{path}"), session: String::new() };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"},
        });
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = client.send(&initialize).await?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        };
        client.session = answer.lines().find_map(header).context("no session")?;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(client)
    }

    /// The names that it lists.
    pub(crate) async fn tools(&self) -> Result<Vec<String>> {
        let listed = self.ask(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})).await?;
        let tools = listed["result"]["tools"].as_array().context("no tools")?.clone();
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
    }

    /// Calls a tool and waits for the answer.
    pub(crate) async fn call(&self, id: u64, name: &str, arguments: &Value) -> Result<Value> {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await
    }

    /// The one message of the answer, from a body of JSON or of events.
    async fn ask(&self, message: &Value) -> Result<Value> {
        let answer = self.send(message).await?;
        let mut json = answer.lines().filter_map(|line| {
            let line = line.strip_prefix("data: ").unwrap_or(line);
            line.starts_with('{').then_some(line)
        });
        Ok(serde_json::from_str(json.next_back().with_context(|| answer.clone())?)?)
    }

    /// One request on a connection of its own; the answer with its head, as it came.
    async fn send(&self, message: &Value) -> Result<String> {
        let Self { port, path, session } = self;
        let body = message.to_string();
        let session = match session.as_str() {
            "" => String::new(),
            session => format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n"),
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", *port)).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}
