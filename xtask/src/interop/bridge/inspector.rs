//! The Inspector's command line at the bridge: it lists the tools, and calls some.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{Script, expect, heard, printed};
use crate::interop::Stage;
use crate::process::Step;

pub(in crate::interop) fn run(stage: &Stage, name: &str) -> Result<()> {
    let script = Script::read(stage, name, "inspector")?;
    let peers = stage.peers.node24.as_ref().context("no Node.js 24")?;
    let launcher = peers.file("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    let questions = script.scenario["questions"].as_array().context("a scenario has questions")?;
    let visit = |question: &Value| -> Value {
        let words: Vec<&str> =
            question["ask"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let inspector =
            Step::new(&peers.node).arg(&launcher).args(&["--cli", "{url}", "--transport", "http"]);
        let words = inspector.args(&words).words();
        json!({ "name": words.join(" "), "run": "asked", "agents": [words] })
    };
    let visits: Vec<Value> = questions.iter().map(visit).collect();
    let heard = heard(&script.host(stage, &[("visits", json!(visits))])?)?;
    let mut problems = expect::problems(&script.scenario["host"], &heard);
    for (question, visit) in questions.iter().zip(heard["visits"].as_array().into_iter().flatten()) {
        let agent = &visit["agents"][0];
        let answer: Value = serde_json::from_str(printed(agent)?).context("the Inspector printed no JSON")?;
        let found = expect::problems(&question["want"], &answer);
        problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", question["ask"])));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}
