//! A server at an address, with a header of its own: `local_http MODEL URL PROMPT`, with its key in `TICKETS_TOKEN`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{Agent, AgentOptions, Machine, McpServer, McpServers};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, url, prompt] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("local_http MODEL URL PROMPT".into());
    };
    let token = std::env::var("TICKETS_TOKEN")?;
    let tickets = McpServer::url(url).header("Authorization", format!("Bearer {token}")).required();
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.mcp_servers = McpServers::new().with("tickets", tickets);
    let state = Agent::prompt(prompt, options).await?;
    println!("{}", state.into_result()?);
    Ok(())
}
