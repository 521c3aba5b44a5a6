//! A real editor's side of the Agent Client Protocol before `toolway acp`: the protocol's own TypeScript SDK, which checks
//! every message against its schemas, with a scripted model where there is no network but the loopback.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::interop::{DEADLINE, Stage, alone};
use crate::peers::Peers;
use crate::process::Step;

const SDK: &str = "@agentclientprotocol/sdk";

/// Whether the SDK and a node that runs it are there.
pub(super) fn is_there(peers: &Peers) -> bool {
    let sdk = peers.acp.as_ref().map(|acp| acp.file(SDK));
    peers.node24.is_some() && sdk.is_some_and(|sdk| sdk.join("dist/v1/stable/acp.js").is_file())
}

pub(super) fn run(stage: &Stage, name: &str) -> Result<()> {
    let folder = stage.folder(name)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let kit = ["build", "--quiet", "--package", "toolway-testkit", "--bins"];
    Step::new(cargo).args(&kit).dir(&stage.root).output(DEADLINE * 8)?;
    let node = stage.peers.node24.as_ref().context("no Node.js 24")?.node.clone();
    let sdk = stage.peers.acp.as_ref().context("the SDK is not installed")?.file(SDK);
    let (home, work) = (folder.join("home"), folder.join("work"));
    for folder in [&home, &work] {
        fs::create_dir_all(folder)?;
    }
    let script = "tool {\"name\":\"build\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/build -> text built it";
    let play = json!({
        "sdk": sdk,
        "model": [stage.program("toolway-model"), stage.interop("scenarios/editor/model.json")],
        "agent": [stage.front, "acp", "--model", "openai::scripted", "--allow", "Mcp(one:*)"],
        "home": home,
        "cwd": work,
        "server": {"name": "one", "command": stage.program("fakemcp"), "args": ["--script", script], "env": []},
    });
    let file = folder.join("editor.json");
    fs::write(&file, play.to_string())?;
    let driver = alone::step(node)?.arg(stage.interop("clients/acp_editor.mjs")).arg(file).dir(&folder);
    let came = driver.output(DEADLINE)?;
    let came: Value = serde_json::from_str(&came).context("no JSON came of the editor")?;
    let made = fs::read_to_string(work.join("made.txt")).unwrap_or_default();
    let problems = problems(&came, &made);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// What is not as it should be.
fn problems(came: &Value, made: &str) -> Vec<String> {
    let mut problems: Vec<String> = texts(&came["faults"]).into_iter().map(str::to_owned).collect();
    let (first, second) = (&came["days"][0], &came["days"][1]);
    let wrong = |place: &str| first["wrong"].pointer(place).cloned().unwrap_or_default();
    let codes: Vec<Value> = (0..7).map(|at| wrong(&format!("/{at}/code"))).collect();
    let of_first = &first["updates"][text(&first["first"])];
    let of_second = &first["updates"][text(&first["second"])];
    let repeated = &second["repeated"];
    let wanted = [
        ("made", json!(made), json!("made\n")),
        ("version", first["version"].clone(), json!(1)),
        ("end of the first prompt", first["made"]["stopReason"].clone(), json!("end_turn")),
        ("tokens of the first prompt", json!(first["made"]["usage"]["totalTokens"].is_u64()), json!(true)),
        ("a second prompt meanwhile", first["meanwhile"]["code"].clone(), json!(-32600)),
        ("end of the cancelled prompt", first["cancelled"]["stopReason"].clone(), json!("cancelled")),
        ("end of the call of a server", first["built"]["stopReason"].clone(), json!("end_turn")),
        ("codes", json!(codes), json!([-32602, -32602, -32002, -32602, -32002, -32602, -32601])),
        ("questions", json!(first["asked"].as_array().map(Vec::len)), json!(1)),
        ("session that is asked for", first["asked"][0]["sessionId"].clone(), first["first"].clone()),
        ("plan", of(of_first, "plan")["entries"][0]["content"].clone(), json!("make it")),
        ("difference", difference(of_first), json!("made\n")),
        ("text", json!(said(of_first)), json!("Making.Done with it.Building.Built.")),
        ("the other's text", json!(said(of_second).starts_with("on and ")), json!(true)),
        ("calls", json!(calls(of_first)), json!(["Write made.txt", "build (one)"])),
        ("titles", json!(second["listed"].to_string().contains("make it")), json!(true)),
        ("repeated text", json!(said(repeated)), json!("Making.Done with it.Building.Built.")),
        ("repeated calls", json!(calls(repeated)), json!(["Write made.txt", "build (one)"])),
        ("end of a prompt of another day", second["remembered"]["stopReason"].clone(), json!("end_turn")),
        ("ends", json!([first["code"], second["code"]]), json!([0, 0])),
        ("stderr", json!([first["stderr"], second["stderr"]]), json!(["", ""])),
    ];
    for (what, found, wanted) in wanted {
        if found != wanted {
            problems.push(format!("{what}: {found}, and not {wanted}"));
        }
    }
    problems
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn kinds<'a>(updates: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    updates.as_array().into_iter().flatten().filter(move |update| update["sessionUpdate"] == kind)
}

fn of(updates: &Value, kind: &str) -> Value {
    kinds(updates, kind).next().cloned().unwrap_or_default()
}

fn said(updates: &Value) -> String {
    kinds(updates, "agent_message_chunk").map(|update| text(&update["content"]["text"])).collect()
}

/// The titles of calls, in the order in which they ended well.
fn calls(updates: &Value) -> Vec<&str> {
    let all = kinds(updates, "tool_call").chain(kinds(updates, "tool_call_update"));
    all.filter(|update| update["status"] == "completed").map(|update| text(&update["title"])).collect()
}

fn difference(updates: &Value) -> Value {
    let ended = kinds(updates, "tool_call_update").filter(|update| update["status"] == "completed");
    let blocks = ended.filter_map(|update| update["content"].as_array()).flatten();
    let found = blocks.filter(|block| block["type"] == "diff").map(|block| block["newText"].clone());
    found.last().unwrap_or_default()
}
