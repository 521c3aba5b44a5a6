//! An agent of the protocol that takes no servers over HTTP: the binary itself stands between, as a process.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{House, TOOLWAY};

#[test]
fn servers_reach_an_agent_without_http_through_the_binary_and_no_secret_is_on_its_command_line() -> Result<()>
{
    let house = House::new(&json!({}))?;
    let file = house.servers(
        "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/echo -> text from the server",
    )?;
    let script = json!({
        "initialize": {"agentCapabilities": {"mcpCapabilities": {"http": false}}},
        "prompts": [{"do": [{"mcp": {"server": "toolway", "tool": "one__echo", "arguments": {"n": 1}}}, {"say": "called"}]}],
    });
    let journal = house.rig.path().join("journal");
    let agent = toolway_testkit::toolway_acp_agent()?.to_string_lossy().into_owned();
    let line = shlex::try_join([
        agent.as_str(),
        "--script",
        &script.to_string(),
        "--journal",
        &journal.to_string_lossy(),
    ])?;
    let words = ["run", "--acp-command", &line, "--mcp-config", &file, "--allow", "Mcp(one:*)", "hi"];
    assert_eq!(house.agent(&words)?.ended(0)?.out, "called\n");
    let text = std::fs::read_to_string(&journal)?;
    let events: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let opened = events.iter().find(|event| event["method"] == "session/new").context("no session")?;
    let entry = &opened["params"]["mcpServers"][0];
    assert_eq!((entry["name"].as_str(), entry["command"].as_str()), (Some("toolway"), Some(TOOLWAY)));
    let args = entry["args"].to_string();
    ensure!(!args.contains("127.0.0.1") && !args.contains("Bearer"), "{args}");
    ensure!(entry["env"].to_string().contains("Bearer "), "the token goes by the environment");
    let told = events.iter().find(|event| event["event"] == "server").context("no server")?;
    assert_eq!(told["tools"], json!(["one__echo", "toolway_saved"]), "{told}");
    let called = events.iter().find(|event| event["event"] == "called").context("no call")?;
    assert_eq!(called["result"]["content"][0]["text"], "from the server", "{called}");
    house.leave()
}
