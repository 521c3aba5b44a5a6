//! Servers of the project's and the user's files: `project_and_user_sources MODEL PROMPT`, started in the project.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;

use toolway_agent::{Agent, AgentOptions, EventKind, LocalOptions, Machine, SendOptions, SettingSource};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, prompt] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("project_and_user_sources MODEL PROMPT".into());
    };
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.place = LocalOptions {
        setting_sources: vec![SettingSource::Project, SettingSource::User],
        ..LocalOptions::default()
    }
    .into();
    let agent = Agent::create(options)?;
    let run = agent.send(prompt, SendOptions::default()).await?;
    let mut events = run.stream()?;
    while let Some(event) = events.next().await {
        if let EventKind::System(init) = event?.kind {
            for server in init.mcp_servers {
                let reason = server.reason.unwrap_or_default();
                println!("{} ({}): {} {reason}", server.name, server.source, server.state);
            }
            for problem in init.diagnostics {
                println!("{problem}");
            }
        }
    }
    println!("{}", run.wait().await?.into_result()?);
    agent.dispose().await;
    Ok(())
}
