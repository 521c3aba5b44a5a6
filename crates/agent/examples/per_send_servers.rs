//! Other servers for one prompt, and none for another: `per_send_servers MODEL SERVER OTHER`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{
    Agent, AgentOptions, EventKind, Machine, McpServer, McpServers, SendOptions, ServerChange,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, server, other] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("per_send_servers MODEL SERVER OTHER".into());
    };
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.mcp_servers = McpServers::new().with("usual", McpServer::command(server).required());
    let agent = Agent::create(options)?;

    let replaced = McpServers::new().with("special", McpServer::command(other).required());
    for servers in [
        ServerChange::Inherit,
        // These in place of those that the agent was made with. They end with the run.
        ServerChange::Replace(replaced),
        ServerChange::None,
        ServerChange::Inherit,
    ] {
        let send = SendOptions { mcp_servers: servers, ..SendOptions::default() };
        let run = agent.send("Which tools do you have?", send).await?;
        let mut events = run.stream()?;
        while let Some(event) = events.next().await {
            if let EventKind::System(init) = event?.kind {
                let tools = init.mcp_tools.iter().filter(|tool| !tool.server.is_empty());
                let tools: Vec<_> = tools.map(|tool| format!("{} of {}", tool.tool, tool.server)).collect();
                println!("tools: {}", tools.join(", "));
            }
        }
    }
    agent.dispose().await;
    Ok(())
}
