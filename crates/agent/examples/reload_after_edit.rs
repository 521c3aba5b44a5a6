//! A server is added to the project's file between two prompts: `reload_after_edit MODEL FOLDER SERVER`.
#![expect(clippy::print_stdout, reason = "an example shows what comes")]

use std::error::Error;
use std::path::Path;

use toolway_agent::{Agent, AgentOptions, LocalOptions, Machine, Run, SendOptions, SettingSource};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, model, folder, server] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("reload_after_edit MODEL FOLDER SERVER".into());
    };
    let mut options = AgentOptions::local(Machine::here()?);
    options.model = Some(model.into());
    options.place = LocalOptions {
        cwd: Some(folder.into()),
        setting_sources: vec![SettingSource::Project],
        ..LocalOptions::default()
    }
    .into();
    let agent = Agent::create(options)?;
    tell(&agent.send("Which tools do you have?", SendOptions::default()).await?).await?;

    // Somebody edits the file...
    let file = Path::new(folder).join(".toolway/mcp.json");
    std::fs::create_dir_all(file.with_file_name(""))?;
    let entry = serde_json::json!({ "mcpServers": { "db": { "command": server, "required": true } } });
    std::fs::write(file, entry.to_string())?;

    // ...and the runs to come have what it says. A file with a mistake changes nothing.
    let report = agent.reload().await?;
    println!("reloaded: {} {}", report.reloaded, report.diagnostics.join("; "));
    tell(&agent.send("And now?", SendOptions::default()).await?).await?;
    agent.dispose().await;
    Ok(())
}

async fn tell(run: &Run) -> Result<(), Box<dyn Error>> {
    println!("{}", run.wait().await?.into_result()?);
    Ok(())
}
