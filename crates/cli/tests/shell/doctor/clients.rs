//! `--for CLIENT`: the client's own file, and its limits.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{good, sick, well};
use crate::House;

fn findings(report: &Value, verdict: &str) -> Result<Vec<(String, String)>> {
    let checks = report["client"]["checks"].as_array().context("no client")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = checks.iter().filter(|check| check["verdict"] == verdict);
    Ok(found.map(|check| (text(&check["finding"]), text(&check["fix"]))).collect())
}

#[test]
fn more_tools_than_the_client_takes_are_a_fault() -> Result<()> {
    let house = House::new()?;
    let tools = |from: u32, count: u32| {
        let tool = |n: u32| format!("tool {{\"name\":\"t{n}\",\"inputSchema\":{{\"type\":\"object\"}}}}\n");
        (from..from + count).map(tool).collect::<String>()
    };
    house.configure(&json!({
        "a": house.entry("a", &tools(0, 46))?,
        "b": house.entry("b", &tools(100, 44))?,
    }))?;
    let found = sick(&house, &["--for", "cursor"])?;
    let faults = findings(&found, "fault")?;
    ensure!(
        faults.len() == 1 && faults[0].0.contains("90 tools") && faults[0].0.contains("80"),
        "{faults:?}"
    );
    ensure!(faults[0].1.contains("--expose search"), "{faults:?}");
    well(&house, &["a", "--for", "cursor"])?;
    well(&house, &["--for", "codex"])?;
    house.leave()
}

#[test]
fn a_comment_in_the_file_of_a_strict_client_is_a_fault() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"good": good(&house)?}))?;
    house.write("home/.copilot/mcp-config.json", "{\n  // mine\n  \"mcpServers\": {}\n}\n")?;
    let found = sick(&house, &["--for", "copilot-cli"])?;
    let faults = findings(&found, "fault")?;
    ensure!(faults.len() == 1 && faults[0].0.contains("mcp-config.json:2:"), "{faults:?}");
    house.write("home/.copilot/mcp-config.json", "{\n  \"mcpServers\": {}\n}\n")?;
    well(&house, &["--for", "copilot-cli"])?;
    house.leave()
}

#[test]
fn a_client_that_runs_a_toolway_that_is_gone_is_told() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"good": good(&house)?}))?;
    let entry = json!({"mcpServers": {"all": {"command": "/no/such/toolway", "args": ["serve"]}}});
    house.write("home/.codeium/windsurf/mcp_config.json", &entry.to_string())?;
    let found = sick(&house, &["--for", "windsurf"])?;
    let faults = findings(&found, "fault")?;
    ensure!(faults.len() == 1 && faults[0].0.contains("/no/such/toolway"), "{faults:?}");
    ensure!(faults[0].1.contains("which toolway"), "{faults:?}");
    house
        .run(["doctor", "--for", "windsrf"])?
        .ended(2)?
        .says(&["no client is called", "did you mean windsurf?"])?;
    house.leave()
}

#[test]
fn a_client_without_toolway_is_told_how() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"good": good(&house)?}))?;
    let found = well(&house, &["--for", "codex"])?;
    let warnings = findings(&found, "warning")?;
    ensure!(warnings.iter().any(|(_, fix)| fix.contains("toolway export --to codex")), "{warnings:?}");
    house.leave()
}

#[test]
fn the_clients_own_way_to_the_gateway_is_no_server_of_it() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"good": good(&house)?}))?;
    let front = json!({"mcpServers": {"all": {"command": crate::TOOLWAY, "args": ["serve"]}}});
    house.write("home/.cursor/mcp.json", &front.to_string())?;
    let found = well(&house, &["--for", "cursor"])?;
    let all = found["servers"].as_array().into_iter().flatten().find(|one| one["name"] == "all");
    let all = all.context("the entry is not shown")?;
    ensure!(all["state"] == "disabled" && all["usable"].is_null(), "{all:#}");
    ensure!(all.to_string().contains("does not serve itself"), "{all:#}");
    house.leave()
}

#[test]
fn a_gateway_that_stands_behind_itself_refuses() -> Result<()> {
    let house = House::new()?.with_variable("TOOLWAY_DEPTH", "3");
    house.configure(&json!({"good": good(&house)?}))?;
    house.run(["serve"])?.ended(2)?.says(&["it would serve itself", "--config"])?;
    house.leave()
}
