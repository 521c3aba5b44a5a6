//! Another program thinks, over the Agent Client Protocol: `acp_agent SERVER PROMPT AGENT [ARGUMENTS]`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{
    AcpOptions, Agent, AgentOptions, EngineChoice, LocalOptions, Machine, McpServer, McpServers,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, server, prompt, agent, arguments @ ..] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("acp_agent SERVER PROMPT AGENT [ARGUMENTS]".into());
    };
    let acp = AcpOptions {
        // Or one that is known by name: `preset: Some("opencode".to_owned())`.
        command: Some(agent.to_owned()),
        args: arguments.to_vec(),
        ..AcpOptions::default()
    };
    let mut options = AgentOptions::local(Machine::here()?);
    options.mcp_servers = McpServers::new().with("files", McpServer::command(server).required());
    options.place = LocalOptions { engine: EngineChoice::Acp(acp), ..LocalOptions::default() }.into();
    let state = Agent::prompt(prompt, options).await?;
    println!("{}", state.into_result()?);
    Ok(())
}
