//! The example hosts of `toolway bridge`: official clients list and call their tools, and cancel; the stand-in for an agent
//! that an example has of its own does what it shows; each ends with nothing left.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use serde_json::{Value, json};

use crate::interop::bridge::play::Play;
use crate::interop::client::Client;
use crate::interop::{DEADLINE, Stage};
use crate::peers::Peers;
use crate::process::Step;

/// The language of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    TypeScript,
    Python,
}

/// One of each generation of the protocol, and of each language.
const CLIENTS: [Client; 2] = [Client::TypeScript2, Client::Python2Auto];

impl Language {
    pub(super) const ALL: [Self; 2] = [Self::TypeScript, Self::Python];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript",
            Self::Python => "Python",
        }
    }

    /// The example, with the program that it starts.
    fn command(self, stage: &Stage, folder: &Path) -> Result<Step> {
        let (interpreter, file) = match self {
            Self::TypeScript => (node(stage)?, "typescript/host.ts"),
            Self::Python => (stage.peers.python2.clone().context("no Python peers")?, "python/host.py"),
        };
        let file = stage.root.join("examples/hosts").join(file);
        Ok(Step::new(interpreter).arg(file).arg(&stage.front).dir(folder).env("HOME", folder))
    }

    /// The example, which prints its MCP server and waits.
    fn serving(self, stage: &Stage, folder: &Path) -> Result<Vec<String>> {
        let mut words = self.command(stage, folder)?.words();
        if self == Self::TypeScript {
            words.push("serve".to_owned());
        }
        Ok(words)
    }
}

/// Whether all that every example needs is there.
pub(super) fn is_there(peers: &Peers) -> bool {
    peers.node24.is_some() && CLIENTS.iter().all(|client| client.is_there(peers))
}

/// Node.js that strips types.
fn node(stage: &Stage) -> Result<PathBuf> {
    Ok(stage.peers.node24.as_ref().context("no Node.js 24")?.node.clone())
}

/// What the TypeScript example prints of its own agent, in any order.
const LINES: [&str; 7] = [
    "agent: sees host__add, host__wait",
    "agent: host__add said: 5",
    "agent: host__wait said: waited 50 ms",
    "agent: host__add failed: a and b must be numbers",
    "host: add answered",
    "host: wait answered",
    "host: add answered",
];

pub(super) fn run(stage: &Stage, name: &str, language: Language) -> Result<()> {
    let folder = stage.folder(name)?;
    if language == Language::TypeScript {
        stand_in(&language.command(stage, &folder)?)?;
    }
    let file = stage.interop(&format!("scenarios/bridge/host-{}.json", language.name().to_lowercase()));
    let scenario: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let plays = CLIENTS
        .iter()
        .map(|client| {
            let file = folder.join(format!("{}.json", client.name()));
            Play::prepare(stage, *client, &scenario["steps"], &file)
        })
        .collect::<Result<Vec<Play>>>()?;
    let commands: Vec<&Vec<String>> = plays.iter().map(|play| &play.command).collect();
    let host = language.serving(stage, &folder)?;
    let script = json!({ "host": host, "agents": commands, "answers": scenario["answers"], "end": "stdin" });
    let came = user(stage, &folder, "ended", &script)?;
    let mut problems = Vec::new();
    for (play, agent) in plays.iter().zip(came["agents"].as_array().into_iter().flatten()) {
        problems.extend(play.problems(agent, &Value::Null)?);
    }
    problems.extend(of_host(&came, scenario["log"].as_str().context("a scenario has a log")?)?);
    // A host that is killed leaves no bridge behind: after all cases it is looked for.
    let killed = json!({ "host": host, "agents": [], "answers": [], "end": "SIGKILL" });
    let killed = user(stage, &folder, "killed", &killed)?;
    if killed["host"]["code"] != "SIGKILL" {
        problems.push(format!("not killed: {}", killed["host"]));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

fn stand_in(example: &Step) -> Result<()> {
    let printed = example.output(DEADLINE)?;
    let mut lines: Vec<&str> = printed.lines().collect();
    let mut wanted = LINES.to_vec();
    lines.sort_unstable();
    wanted.sort_unstable();
    ensure!(lines == wanted, "it printed\n{printed}");
    Ok(())
}

/// What came of a host with its user.
fn user(stage: &Stage, folder: &Path, name: &str, script: &Value) -> Result<Value> {
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, script.to_string())?;
    let user = Step::new(node(stage)?).arg(stage.interop("servers/example_host.mjs")).arg(file).dir(folder);
    serde_json::from_str(&user.output(DEADLINE)?).context("no JSON came of the host")
}

/// How it ended, and what it logged: all that is wanted, and the address nowhere but in the line that hands it over.
fn of_host(came: &Value, wanted: &str) -> Result<Vec<String>> {
    let text = |name: &str| came["host"][name].as_str().unwrap_or_default();
    let (_, rest) = text("stdout").split_once('\n').context("the host printed no line")?;
    let logged = format!("{rest}{}", text("stderr"));
    let mut problems = Vec::new();
    if came["host"]["code"] != 0 {
        problems.push(format!("the host ended with {}", came["host"]["code"]));
    }
    if !Regex::new(wanted)?.is_match(&logged) {
        problems.push(format!("the host logged, unlike {wanted:?},\n{logged}"));
    }
    let url = came["url"].as_str().context("no address")?;
    if logged.contains(url) {
        problems.push("the host logged the address".to_owned());
    }
    Ok(problems)
}
