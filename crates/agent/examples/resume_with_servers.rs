//! An agent goes on where it was, with its servers given again: `resume_with_servers MODEL SERVER`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{Agent, AgentOptions, EventKind, Machine, McpServer, McpServers, Run, SendOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, server] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("resume_with_servers MODEL SERVER".into());
    };
    let bare = || -> Result<AgentOptions, Box<dyn Error>> {
        let mut options = AgentOptions::local(Machine::here()?);
        options.model = Some(model.into());
        Ok(options)
    };
    let mut whole = bare()?;
    whole.mcp_servers = McpServers::new().with("db", McpServer::command(server).required());

    let agent = Agent::create(whole.clone())?;
    let id = agent.id().clone();
    tell(&agent.send("Remember the word heron.", SendOptions::default()).await?).await?;
    agent.dispose().await;

    // Without them: the conversation goes on, and the report says what is missing.
    let agent = Agent::resume(&id, bare()?).await?;
    tell(&agent.send("Which word was it?", SendOptions::default()).await?).await?;
    agent.dispose().await;

    // With them: everything is back.
    let agent = Agent::resume(&id, whole).await?;
    tell(&agent.send("Which word was it?", SendOptions::default()).await?).await?;
    agent.dispose().await;
    Ok(())
}

async fn tell(run: &Run) -> Result<(), Box<dyn Error>> {
    let mut events = run.stream()?;
    while let Some(event) = events.next().await {
        if let EventKind::System(init) = event?.kind {
            for server in init.mcp_servers {
                println!("{}: {}", server.name, server.state);
            }
        }
    }
    println!("{}", run.wait().await?.into_result()?);
    Ok(())
}
