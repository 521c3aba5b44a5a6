//! A legacy MCP client of the run's server.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_bridge::AgentOptions;

use crate::wire::{Wire, request};

/// A session with the server.
#[derive(Debug, Clone)]
pub struct Client {
    port: u16,
    path: String,
    session: String,
}

impl Client {
    /// Connects to the server that an agent was made with.
    pub async fn connect(options: &AgentOptions) -> Result<Self> {
        let url = options.mcp_servers.first().context("no server")?.url.expose().to_owned();
        let rest = url.strip_prefix("http://127.0.0.1:").context("not loopback")?;
        let (port, path) = rest.split_once('/').context("no path")?;
        let mut client = Self { port: port.parse()?, path: format!("/{path}"), session: String::new() };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"},
        });
        let mut wire = client
            .send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await?;
        let answer = wire.answer().await?;
        client.session = answer.head.header("mcp-session-id").context("no session")?.to_owned();
        client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?
            .answer()
            .await?;
        Ok(client)
    }

    /// The names that it lists.
    pub async fn tools(&self) -> Result<Vec<String>> {
        let listed = self.ask(&json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})).await?;
        let tools = listed["result"]["tools"].as_array().context("no tools")?.clone();
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
    }

    /// Calls a tool and waits for the answer.
    pub async fn call(&self, id: u64, name: &str, arguments: Value) -> Result<Value> {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await
    }

    async fn ask(&self, message: &Value) -> Result<Value> {
        let answer = self.send(message).await?.answer().await?;
        if !answer.head.is_events() {
            return answer.json();
        }
        let text = String::from_utf8(answer.body)?;
        let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        Ok(serde_json::from_str(data.context("no answer")?)?)
    }

    async fn send(&self, message: &Value) -> Result<Wire> {
        let host = format!("127.0.0.1:{}", self.port);
        let mut headers = vec![
            ("Host", host.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if !self.session.is_empty() {
            headers.push(("Mcp-Session-Id", &self.session));
            headers.push(("MCP-Protocol-Version", "2025-11-25"));
        }
        let mut wire = Wire::open(self.port).await?;
        wire.send(&request("POST", &self.path, &headers, message.to_string().as_bytes())).await?;
        Ok(wire)
    }
}
