//! A project with six servers in its `.cursor/mcp.json`: an official client lists and calls every tool through
//! `toolway serve`, and finds what it finds at each server alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::interop::client::{Client, Target};
use crate::interop::transcript::merged::{self, Part};
use crate::interop::upstream::{Server, Upstreams, Wire, fill, text};
use crate::interop::{DEADLINE, Stage, large_text};
use crate::process::Step;

/// The servers, each under its name in the project's file.
pub(super) const MEMBERS: [(&str, Server, Wire); 6] = [
    ("everything", Server::Everything, Wire::Stdio),
    ("files", Server::Filesystem, Wire::Stdio),
    ("memory", Server::Memory, Wire::Stdio),
    ("thinking", Server::Thinking, Wire::Stdio),
    ("web", Server::FastMcp, Wire::Http),
    ("events", Server::FastMcp, Wire::Sse),
];

/// A person's home and project, for one client.
#[derive(Debug)]
struct Project {
    home: PathBuf,
    folder: PathBuf,
    files: PathBuf,
}

impl Project {
    fn create(folder: &Path) -> Result<Self> {
        let project = Self {
            home: folder.join("home"),
            folder: folder.join("project"),
            files: folder.join("project/files"),
        };
        fs::create_dir_all(&project.home)?;
        // Toolway takes the top of a repository for the project's.
        fs::create_dir_all(project.folder.join(".git"))?;
        fs::create_dir_all(project.folder.join(".cursor"))?;
        Ok(project)
    }

    /// The files as they are before any client ran.
    fn reset(&self, stage: &Stage) -> Result<()> {
        if self.files.exists() {
            fs::remove_dir_all(&self.files)?;
        }
        fs::create_dir_all(&self.files)?;
        fill(stage, &self.files)
    }

    /// A step in the project, of a person whose home is empty.
    fn step(&self, step: Step) -> Step {
        let mut step = step.dir(&self.folder).env("HOME", &self.home);
        for (name, folder) in [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CACHE_HOME", ".cache"),
            ("XDG_DATA_HOME", ".local/share"),
        ] {
            step = step.env(name, self.home.join(folder));
        }
        step
    }

    /// The file as a person writes it for Cursor.
    fn write(&self, stage: &Stage, upstreams: &Upstreams) -> Result<()> {
        let mut servers = Map::new();
        for (name, server, wire) in MEMBERS {
            let entry = match wire {
                Wire::Stdio => stdio_entry(&server.command_in(stage, wire, 0, &self.files)?),
                Wire::Sse => json!({ "type": "sse", "url": upstreams.url(server, wire)? }),
                Wire::Http | Wire::HttpJson => json!({ "url": upstreams.url(server, wire)? }),
            };
            servers.insert(name.to_owned(), entry);
        }
        let file = json!({ "mcpServers": servers });
        fs::write(self.folder.join(".cursor/mcp.json"), format!("{file:#}\n"))?;
        Ok(())
    }
}

/// `env NAME=VALUE... PROGRAM ARGUMENT...` as an entry of a configuration.
fn stdio_entry(words: &[String]) -> Value {
    let words = words.strip_prefix(&["env".to_owned()][..]).unwrap_or(words);
    let (mut env, mut rest) = (Map::new(), words);
    while let Some((name, value)) = rest.first().and_then(|word| word.split_once('=')) {
        env.insert(name.to_owned(), value.into());
        rest = &rest[1..];
    }
    json!({ "command": rest.first(), "args": rest.get(1..), "env": env })
}

/// The steps for one member: those for the server behind a relay, and those that only a gateway's run tries.
fn scenario(stage: &Stage, server: Server, files: &Path) -> Result<Value> {
    let mut steps = Vec::new();
    for folder in ["scenarios", "scenarios/gateway"] {
        let path = stage.interop(folder).join(format!("{}.json", server.scenario()));
        let Ok(file) = fs::read_to_string(&path) else { continue };
        let file = file.replace("{files}", &text(files)).replace("{large}", &large_text());
        let file: Value = serde_json::from_str(&file).with_context(|| path.display().to_string())?;
        steps.extend(file["steps"].as_array().cloned().context("a scenario has steps")?);
    }
    if steps.is_empty() {
        bail!("no scenario for {}", server.name());
    }
    Ok(json!({ "steps": steps }))
}

pub(super) fn run(stage: &Stage, upstreams: &Upstreams, name: &str, client: Client) -> Result<()> {
    let folder = stage.folder(name)?;
    let project = Project::create(&folder)?;
    let play = |label: &str, scenario: &Value, target: &Target| -> Result<Value> {
        project.reset(stage)?;
        let script = folder.join(format!("{label}.json"));
        fs::write(&script, scenario.to_string())?;
        let output = project.step(client.play(stage, &script, target)?).output(DEADLINE)?;
        fs::write(folder.join(format!("{label}.transcript.json")), &output)?;
        serde_json::from_str(&output).context("the client wrote no transcript")
    };
    let mut parts = Vec::new();
    for (member, server, wire) in MEMBERS {
        let target = match wire {
            Wire::Stdio => Target::Command(server.command_in(stage, wire, 0, &project.files)?),
            _ => upstreams.direct(stage, server, wire)?,
        };
        let scenario = scenario(stage, server, &project.files)?;
        let direct = play(member, &scenario, &target).with_context(|| format!("{member} alone"))?;
        parts.push(Part { server: member.to_owned(), scenario, direct });
    }
    let untried = merged::untried(&parts);
    if !untried.is_empty() {
        bail!("{}", untried.join("\n"));
    }
    project.write(stage, upstreams)?;
    let trust = Step::new(&stage.front).arg("trust").args(&MEMBERS.map(|(member, ..)| member));
    project.step(trust).output(DEADLINE)?;
    let serve = Target::Command(vec![text(&stage.front), "serve".to_owned()]);
    let through = play("gateway", &merged::scenario(&parts), &serve).context("through the gateway")?;
    let differences = merged::differences(&parts, &through);
    if differences.is_empty() {
        return Ok(());
    }
    bail!("{}", differences.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_before_a_program_become_the_entrys() {
        let words = ["env", "A=1", "B=x=y", "/bin/node", "a.js", "C=3"].map(str::to_owned);
        let entry =
            json!({ "command": "/bin/node", "args": ["a.js", "C=3"], "env": { "A": "1", "B": "x=y" } });
        assert_eq!(stdio_entry(&words), entry);
    }
}
