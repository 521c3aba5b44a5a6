//! The official clients at the bridge: every tool, and every way in which a call can end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Script, expect, heard, printed};
use crate::interop::Stage;
use crate::interop::client::{Client, Target};
use crate::interop::transcript;

/// One agent's stay, or that of several at once, in a run.
#[derive(Debug)]
struct Visit {
    client: Client,
    name: String,
    steps: Vec<Value>,
    /// For the host: the run, its session and the agents' commands.
    script: Value,
    /// How often each tool must have been called.
    called: Value,
    /// The tools whose calls must have been cancelled, each once, and for which reason.
    cancelled: Value,
}

impl Visit {
    fn prepare(stage: &Stage, client: Client, visit: &Value, folder: &Path) -> Result<Self> {
        let name = visit["name"].as_str().context("a visit has a name")?.to_owned();
        let steps = visit["steps"].as_array().context("a visit has steps")?;
        let own = steps.iter().filter(|step| is_for(step, client));
        let steps = own.map(repeated).collect::<Result<Vec<Value>>>()?;
        let file = folder.join(format!("{}.json", name.replace(' ', "-")));
        fs::write(&file, json!({ "steps": steps }).to_string())?;
        let words = client.play(stage, &file, &Target::Http("{url}".to_owned()))?.words();
        let agents = usize::try_from(visit["agents"].as_u64().unwrap_or(1))?;
        let script = json!({
            "name": name,
            "run": visit["run"],
            "session": visit["session"],
            "agents": vec![words; agents],
        });
        let (called, cancelled) = (visit["heard"].clone(), visit["cancelled"].clone());
        Ok(Self { client, name, steps, script, called, cancelled })
    }

    /// Clients may show one thing in several ways: then each has its own.
    fn wanted<'a>(&self, step: &'a Value) -> &'a Value {
        let members = step["want"].as_object().into_iter().flatten();
        let mut own = members.filter(|(name, _)| self.client.name().starts_with(name.as_str()));
        own.next().map_or(&step["want"], |(_, want)| want)
    }

    /// What is not as the scenario wants it.
    fn problems(&self, scenario: &Value, heard: &Value) -> Result<Vec<String>> {
        let visits = heard["visits"].as_array().context("the host reports no visits")?;
        let visit = visits.iter().find(|visit| visit["name"] == self.name).context("no such visit")?;
        let mut found = Vec::new();
        for agent in visit["agents"].as_array().into_iter().flatten() {
            let transcript: Value = serde_json::from_str(printed(agent)?)?;
            for (index, step) in self.steps.iter().enumerate() {
                let came = &transcript["steps"][index];
                let problems = match step["saved"].as_str() {
                    Some(tool) => transcript::large(&answer_of(scenario, tool), came),
                    None => expect::problems(self.wanted(step), came),
                };
                let place = format!("{}: {}", self.name, transcript::name_of(index, step));
                found.extend(problems.into_iter().map(|problem| format!("{place}: {problem}")));
            }
        }
        let of_host = self.calls(heard);
        found.extend(of_host.into_iter().map(|problem| format!("{}: the host: {problem}", self.name)));
        Ok(found)
    }

    /// What the host heard of the calls of this visit.
    fn calls(&self, heard: &Value) -> Vec<String> {
        let all = heard["heard"].as_array().into_iter().flatten();
        let (mut called, mut found) = (BTreeMap::<&str, u64>::new(), Vec::new());
        for call in all.filter(|call| call["visit"] == self.name) {
            let tool = call["tool"].as_str().unwrap_or_default();
            *called.entry(tool).or_default() += 1;
            let wanted = &self.cancelled[tool];
            let is_cancelled = !wanted.is_null();
            let reasons = if is_cancelled { json!([wanted]) } else { json!([]) };
            found.extend(expect::problems(&json!({ "tool": tool, "cancelled": reasons }), call));
            // A call that the host fails is never asked for, and never answered again.
            let of_others = json!({ "settled": !is_cancelled, "admitted": !is_cancelled, "again": false });
            let of_failed = json!({ "settled": true });
            let is_failed = call["failed"] == true;
            found.extend(expect::problems(if is_failed { &of_failed } else { &of_others }, call));
        }
        if json!(called) != self.called {
            found.push(format!("heard of {called:?}, not of {}", self.called));
        }
        found
    }
}

pub(in crate::interop) fn run(stage: &Stage, name: &str, client: Client) -> Result<()> {
    let script = Script::read(stage, name, "clients")?;
    let scenario = &script.scenario;
    let visits = scenario["visits"].as_array().context("a scenario has visits")?;
    let visits = visits
        .iter()
        .map(|visit| Visit::prepare(stage, client, visit, &script.folder))
        .collect::<Result<Vec<Visit>>>()?;
    let stays: Vec<Value> = visits.iter().map(|visit| visit.script.clone()).collect();
    let host = script.host(stage, &[("visits", json!(stays))])?;
    let heard = heard(&host, &script.folder)?;
    let ended = json!({ "code": 0, "closing": "~.", "facts": scenario["facts"] });
    let mut problems = expect::problems(&ended, &heard);
    for visit in &visits {
        problems.extend(visit.problems(scenario, &heard)?);
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// A step may be for clients of one language, or of one generation of the protocol, only.
fn is_for(step: &Value, client: Client) -> bool {
    match step["only"].as_str() {
        Some("legacy") => !client.is_probing(),
        Some(language) => client.name().starts_with(language),
        None => true,
    }
}

/// A step of `count` calls at once is written once; the number of each call stands where `"{n}"` is.
fn repeated(step: &Value) -> Result<Value> {
    let Some(count) = step["count"].as_u64().filter(|_| step["do"] == "calls") else {
        return Ok(step.clone());
    };
    let copies = |value: &Value| -> Result<Vec<Value>> {
        let text = value.to_string();
        (0..count)
            .map(|n| {
                let text = text.replace("\"{n}\"", &n.to_string()).replace("{n}", &n.to_string());
                serde_json::from_str(&text).context("a call with its number")
            })
            .collect()
    };
    let (calls, want) = (copies(&step["call"])?, copies(&step["want"])?);
    Ok(json!({ "do": "calls", "calls": calls, "want": { "result": want } }))
}

/// What the tool of this name answers, as a client has it without a limit.
fn answer_of(scenario: &Value, tool: &str) -> Value {
    let tools = scenario["tools"].as_array().into_iter().flatten();
    let tool = tools.filter(|entry| entry["name"] == tool).next_back();
    json!({ "result": { "content": tool.map(|tool| tool["does"]["content"].clone()) } })
}
