//! The official clients at the bridge: every tool, and every way in which a call can end.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::play::Play;
use super::{Script, expect, heard};
use crate::interop::Stage;
use crate::interop::client::Client;
use crate::interop::upstream::{Server, Upstreams, Wire};

/// One agent's stay, or that of several at once, in a run.
#[derive(Debug)]
struct Visit {
    name: String,
    play: Play,
    /// For the host: the run, its session and the agents' commands.
    script: Value,
    /// How often each tool must have been called.
    called: Value,
    /// The tools whose calls must have been cancelled, each once, and for which reason.
    cancelled: Value,
    /// Whether an ordinary server has to give the same.
    is_plain: bool,
}

impl Visit {
    fn prepare(stage: &Stage, client: Client, visit: &Value, folder: &Path) -> Result<Self> {
        let name = visit["name"].as_str().context("a visit has a name")?.to_owned();
        let file = folder.join(format!("{}.json", name.replace(' ', "-")));
        let play = Play::prepare(stage, client, &visit["steps"], &file)?;
        let agents = usize::try_from(visit["agents"].as_u64().unwrap_or(1))?;
        let script = json!({
            "name": name,
            "run": visit["run"],
            "session": visit["session"],
            "agents": vec![play.command.clone(); agents],
        });
        let (called, cancelled) = (visit["heard"].clone(), visit["cancelled"].clone());
        let is_plain = visit["plain"] == true;
        Ok(Self { name, play, script, called, cancelled, is_plain })
    }

    fn agents<'a>(&self, heard: &'a Value) -> Result<&'a Vec<Value>> {
        let mut visits = heard["visits"].as_array().into_iter().flatten();
        let visit =
            visits.find(|visit| visit["name"] == self.name).context("the host reports no such visit")?;
        visit["agents"].as_array().context("a visit has agents")
    }

    /// What the client sees otherwise at an ordinary server, where the visit says that it must be the same.
    fn unlike_plain(&self, url: &str, heard: &Value) -> Result<Vec<String>> {
        let agent = self.agents(heard)?.first().context("a visit has agents")?;
        if self.is_plain { self.play.unlike_plain(url, agent) } else { Ok(Vec::new()) }
    }

    /// What is not as the scenario wants it.
    fn problems(&self, tools: &Value, heard: &Value) -> Result<Vec<String>> {
        let mut found = self.calls(heard);
        for agent in self.agents(heard)? {
            found.extend(self.play.problems(agent, tools)?);
        }
        Ok(found.into_iter().map(|problem| format!("{}: {problem}", self.name)).collect())
    }

    /// What the host heard of the calls of this visit.
    fn calls(&self, heard: &Value) -> Vec<String> {
        let all = heard["heard"].as_array().into_iter().flatten();
        let (mut called, mut found) = (BTreeMap::<&str, u64>::new(), Vec::new());
        for call in all.filter(|call| call["visit"] == self.name) {
            let tool = call["tool"].as_str().unwrap_or_default();
            *called.entry(tool).or_default() += 1;
            let reason = &self.cancelled[tool];
            let is_cancelled = !reason.is_null();
            // A call that the host fails, or leaves behind, is never asked for nor answered again.
            let mut wanted = json!({ "tool": tool, "settled": !is_cancelled });
            if call["unasked"] != true {
                wanted["admitted"] = json!(!is_cancelled);
                wanted["again"] = json!(false);
            }
            wanted["cancelled"] = if is_cancelled { json!([reason]) } else { json!([]) };
            found.extend(
                expect::problems(&wanted, call).into_iter().map(|problem| format!("{tool}{problem}")),
            );
        }
        if json!(called) != self.called {
            found.push(format!("the host heard of {called:?}, not of {}", self.called));
        }
        found
    }
}

pub(in crate::interop) fn run(
    stage: &Stage,
    upstreams: &Upstreams,
    name: &str,
    client: Client,
) -> Result<()> {
    let script = Script::read(stage, name, "clients")?;
    let scenario = &script.scenario;
    let visits = scenario["visits"].as_array().context("a scenario has visits")?.iter();
    let visits = visits.map(|visit| Visit::prepare(stage, client, visit, &script.folder));
    let visits = visits.collect::<Result<Vec<Visit>>>()?;
    let stays: Vec<&Value> = visits.iter().map(|visit| &visit.script).collect();
    let heard = heard(&script.host(stage, &[("visits", json!(stays))])?)?;
    let ended = json!({ "code": 0, "closing": "~.", "facts": scenario["facts"] });
    let mut problems = expect::problems(&ended, &heard);
    let plain = upstreams.url(Server::PlainTools, Wire::Http)?;
    for visit in &visits {
        problems.extend(visit.unlike_plain(&plain, &heard)?);
        problems.extend(visit.problems(&scenario["tools"], &heard)?);
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}
