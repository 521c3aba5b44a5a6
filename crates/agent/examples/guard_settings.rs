//! Results over a limit are saved whole, and the model gets a preview: `guard_settings MODEL SERVER FOLDER PROMPT`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{
    Agent, AgentOptions, Delta, GuardOptions, LocalOptions, Machine, McpServer, McpServers, SendOptions,
    ToolCallStatus,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, server, folder, prompt] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("guard_settings MODEL SERVER FOLDER PROMPT".into());
    };
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.mcp_servers = McpServers::new().with("logs", McpServer::command(server).required());
    let guard =
        GuardOptions { max_response_chars: 10_000, preview_chars: 1_000, output_dir: Some(folder.into()) };
    options.place = LocalOptions { guard, ..LocalOptions::default() }.into();
    let agent = Agent::create(options)?;

    // What happens between events goes to a listener; the run waits for it.
    let (deltas, mut listener) = tokio::sync::mpsc::channel(64);
    let send = SendOptions { deltas: Some(deltas), ..SendOptions::default() };
    let run = agent.send(prompt, send).await?;
    while let Some(delta) = listener.recv().await {
        if let Delta::ToolCallCompleted(call) = delta
            && call.status == ToolCallStatus::Completed
        {
            let shown = call.result.map(|result| result.bytes().len()).unwrap_or_default();
            println!("{}: {shown} bytes went to the model", call.name);
        }
    }
    println!("{}", run.wait().await?.into_result()?);
    for entry in std::fs::read_dir(folder)? {
        println!("saved: {}", entry?.path().display());
    }
    agent.dispose().await;
    Ok(())
}
