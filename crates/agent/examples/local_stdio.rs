//! An agent with one MCP server, which runs as a child of this program: `local_stdio MODEL SERVER PROMPT`.
//! The server is a command line, as in 'npx -y @modelcontextprotocol/server-filesystem .'.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;
use std::process::ExitCode;

use toolway_agent::{
    Agent, AgentOptions, AssistantBlock, EventKind, Machine, McpServer, McpServers, SendOptions,
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // Where this program is started again as a helper of its own, it does that and ends.
    if let Some(code) = toolway_agent::begin(std::env::args_os()) {
        return Ok(code);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(talk())?;
    Ok(ExitCode::SUCCESS)
}

async fn talk() -> Result<(), Box<dyn Error>> {
    let [_, model, server, prompt] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("local_stdio MODEL SERVER PROMPT".into());
    };
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.mcp_servers = McpServers::new().with("files", McpServer::command(server).required());
    let agent = Agent::create(options)?;
    let run = agent.send(prompt, SendOptions::default()).await?;
    let mut events = run.stream()?;
    while let Some(event) = events.next().await {
        show(&event?.kind);
    }
    agent.dispose().await;
    Ok(())
}

fn show(event: &EventKind) {
    match event {
        EventKind::System(init) => {
            for server in &init.mcp_servers {
                let reason = server.reason.as_deref().unwrap_or_default();
                println!("server {}: {}, {} tools {reason}", server.name, server.state, server.tools);
            }
        }
        EventKind::ToolCall(call) => println!("{}: {:?}", call.name, call.status),
        EventKind::Assistant { content } => {
            for block in content {
                if let AssistantBlock::Text(text) = block {
                    println!("{text}");
                }
            }
        }
        EventKind::Status { status, message: Some(why) } => println!("{status:?}: {why}"),
        _ => {}
    }
}
