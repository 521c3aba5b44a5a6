//! The first agent of one's own: a model, a server, a prompt. Started in the folder that it is to look at.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{Agent, AgentOptions, Machine, McpServer, McpServers, SendOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let files = McpServer::command("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "."]);
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some("gpt-5.1".into());
    options.mcp_servers = McpServers::new().with("files", files.required());
    let agent = Agent::create(options)?;
    let run = agent.send("What is in this folder?", SendOptions::default()).await?;
    let mut events = run.stream()?;
    while let Some(event) = events.next().await {
        println!("{}", event?.to_json());
    }
    agent.dispose().await;
    Ok(())
}
