//! A real host whose model is an agent of Toolway's: pi with its extension, and a scripted model behind the native
//! runtime, where there is no network but the loopback. In one session the model calls a tool of pi, a configured MCP
//! server's with a large result, one of the agent's own, and a skill; the user stops a tool and goes on; the bridge dies while
//! a tool runs, which is stopped, and there is another one for the next prompt; pi's log and the debug command tell the truth.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::interop::{DEADLINE, Stage, alone};
use crate::peers::Peers;
use crate::process::Step;

const CLI: &str = "@earendil-works/pi-coding-agent/dist/bundle/cli.js";
/// What the slow city says when it is stopped.
const GIVEN_UP: &str = "given up";
/// Characters of the large result.
const LARGE: usize = 200_000;

/// Whether pi and a node that runs it are there.
pub(super) fn is_there(peers: &Peers) -> bool {
    peers.node24.is_some() && peers.pi.as_ref().is_some_and(|pi| pi.file(CLI).is_file())
}

pub(super) fn run(stage: &Stage, name: &str) -> Result<()> {
    let folder = stage.folder(name)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let kit = ["build", "--quiet", "--package", "toolway-testkit", "--bins"];
    Step::new(cargo).args(&kit).dir(&stage.root).output(DEADLINE * 8)?;
    let node = stage.peers.node24.as_ref().context("no Node.js 24")?.node.clone();
    let file = prepare(stage, &folder, &node)?;
    let driver = alone::step(node)?.arg(stage.interop("clients/pi.mjs")).arg(file).dir(&folder);
    let came = driver.output(DEADLINE)?;
    let came: Value = serde_json::from_str(&came).context("no JSON came of pi")?;
    let problems = [log(&came)?, asked(&folder)?, report(&came), end(&came)].concat();
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}\n{}", problems.join("\n"), came["stderr"].as_str().unwrap_or_default())
}

/// The user's home, the project, and what is to be done there, as a file for the driver.
fn prepare(stage: &Stage, folder: &Path, node: &Path) -> Result<std::path::PathBuf> {
    let (home, work) = (folder.join("home"), folder.join("work"));
    let skill = home.join(".pi/agent/skills/knots");
    for folder in [&skill, &home.join(".cursor"), &work] {
        fs::create_dir_all(folder)?;
    }
    fs::write(
        skill.join("SKILL.md"),
        "---\nname: knots\ndescription: How ropes are tied.\n---\nOver, then under.\n",
    )?;
    fs::write(work.join("note.txt"), "the note of the project\n")?;
    let stock = folder.join("stock.txt");
    let large: String = (0..).map(|n| format!("item {n} of the stock; ")).take(LARGE / 20).collect();
    ensure!(large.len() >= LARGE, "the large result is not large");
    let tool = "tool {\"name\":\"list\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/list -> text ";
    fs::write(&stock, format!("{tool}{large}"))?;
    let servers = json!({"mcpServers": {"stock": {"command": stage.program("fakemcp"), "args": [stock]}}});
    fs::write(home.join(".cursor/mcp.json"), servers.to_string())?;
    let pi = stage.peers.pi.as_ref().context("pi is not installed")?.file(CLI);
    let command = [
        node.to_path_buf(),
        pi,
        "--mode".into(),
        "rpc".into(),
        "--extension".into(),
        stage.root.join("integrations/pi"),
        "--extension".into(),
        stage.interop("clients/pi_tool.ts"),
        "--model".into(),
        "toolway/native:scripted".into(),
    ];
    let environment = json!({
        "HOME": home,
        "PATH": std::env::var("PATH").unwrap_or_default(),
        "PI_OFFLINE": "1",
        "PI_TELEMETRY": "0",
        "TOOLWAY_BIN": stage.front,
        "TOOLWAY_PI_MODELS": "native:scripted",
        "OPENAI_API_KEY": "key-of-the-test",
    });
    let file = folder.join("pi.json");
    let play = json!({
        "model": [stage.program("toolway-model"), stage.interop("scenarios/pi/model.json"), "--journal", folder.join("asked.jsonl")],
        "command": command,
        "cwd": work,
        "env": environment,
        "prompts": [
            {"message": "Please go through them.", "run": true},
            {"message": "Now the slow city.", "run": true, "abort": "tool_execution_update"},
            {"message": "Now the slow town.", "run": true, "kill": "tool_execution_update"},
            {"message": "Are you still there?", "run": true},
            {"message": "/cursor-tools", "run": false},
        ],
    });
    fs::write(&file, play.to_string())?;
    Ok(file)
}

/// The log of the session: which calls there were, under which ids and names, and what came of each.
fn log(came: &Value) -> Result<Vec<String>> {
    let session = came["session"].as_str().context("pi has no session file")?;
    let log = fs::read_to_string(session).context("pi's log cannot be read")?;
    let entries: Vec<Value> = log.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let messages: Vec<&Value> =
        entries.iter().filter(|entry| entry["type"] == "message").map(|entry| &entry["message"]).collect();
    let blocks = messages.iter().filter(|message| message["role"] == "assistant");
    let blocks: Vec<&Value> = blocks.filter_map(|message| message["content"].as_array()).flatten().collect();
    let mut problems = Vec::new();
    let calls: Vec<&Value> = blocks.iter().copied().filter(|block| block["type"] == "toolCall").collect();
    let wanted = [
        ("weather", "cursor-pi-bridge-run-", "snow in Ulm"),
        ("cursor", "cursor-replay-", "item 0 of the stock"),
        ("read", "cursor-replay-", "the note of the project"),
        ("cursor_activate_skill", "cursor-pi-bridge-run-", "Over, then under."),
        ("weather", "cursor-pi-bridge-run-", GIVEN_UP),
        ("weather", "cursor-pi-bridge-run-", GIVEN_UP),
    ];
    let seen: Vec<&str> = calls.iter().filter_map(|call| call["name"].as_str()).collect();
    if seen != wanted.map(|(name, ..)| name) {
        problems.push(format!("the log has calls of {seen:?}"));
    }
    for (call, (name, prefix, text)) in calls.iter().zip(wanted) {
        let id = call["id"].as_str().unwrap_or_default();
        if !id.starts_with(prefix) || id.len() > 64 {
            problems.push(format!("the call of {name} has the id {id}"));
        }
        let results = messages.iter().filter(|message| message["toolCallId"] == call["id"]);
        let results: Vec<String> = results.map(ToString::to_string).collect();
        let [result] = results.as_slice() else {
            problems.push(format!("{name} has {} results", results.len()));
            continue;
        };
        let is_error = format!("\"isError\":{}", text == GIVEN_UP);
        if !result.contains(text) || !result.contains(&is_error) || result.len() > LARGE / 2 {
            let shown: String = result.chars().take(500).collect();
            problems.push(format!("the result of {name} is {shown}"));
        }
    }
    let said: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    if said != ["First the weather.", "All four were there.", "I am."] {
        problems.push(format!("the log has the words {said:?}"));
    }
    Ok(problems)
}

/// What the model was asked: the large result was cut for it, with the place where it is whole.
fn asked(folder: &Path) -> Result<Vec<String>> {
    let asked = fs::read_to_string(folder.join("asked.jsonl")).context("the model was not asked")?;
    let longest = asked.lines().map(str::len).max().unwrap_or_default();
    Ok(if longest > LARGE { vec![format!("the model was sent {longest} bytes at once")] } else { Vec::new() })
}

/// What the debug command shows.
fn report(came: &Value) -> Vec<String> {
    let notices = came["notices"].as_array().into_iter().flatten();
    let texts: Vec<&str> = notices.filter_map(|notice| notice["text"].as_str()).collect();
    let Some(report) = texts.iter().find(|text| text.contains("tools.bridge.enabled")) else {
        return vec![format!("no report among the notices: {texts:?}")];
    };
    let wanted = [
        "tools.bridge.enabled: enabled",
        "pi__weather",
        "pi__cursor_activate_skill",
        "cursor-pi-bridge-run-",
        "bash",
    ];
    let missing = wanted.iter().filter(|part| !report.contains(**part));
    let mut problems: Vec<String> =
        missing.map(|part| format!("the report lacks {part:?}:\n{report}")).collect();
    if !texts.iter().any(|text| text.contains("toolway bridge has ended")) {
        problems.push(format!("the end of the bridge is not told: {texts:?}"));
    }
    if report.contains("127.0.0.1") {
        problems.push(format!("the report has an address:\n{report}"));
    }
    problems
}

fn end(came: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if came["code"] != 0 {
        problems.push(format!("pi ended with {}", came["code"]));
    }
    if came["errors"].as_array().is_some_and(|errors| !errors.is_empty()) {
        problems.push(format!("the extension failed: {}", came["errors"]));
    }
    problems
}
