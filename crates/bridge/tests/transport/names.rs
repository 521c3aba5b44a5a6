//! What a client of the bridge sees of names: the list, and where each of its names leads.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_bridge::{BridgeConfig, HostResult, HostTool, ManifestOptions, Profile, RawJson, manifest};

use crate::rig::{Rig, call, list, modern, text_of, tool};

fn tools(names: &[&str]) -> Vec<HostTool> {
    names.iter().map(|name| tool(name)).collect()
}

/// The list as each of the two generations sees it.
async fn lists(rig: &Rig) -> Result<[Vec<Value>; 2]> {
    let session = rig.legacy().await?;
    let legacy = session.ask(rig, &list(1)).await?.json()?;
    let modern = rig.ask(&rig.modern(&modern(2, "tools/list", json!({})))).await?.json()?;
    let tools = |answer: &Value| answer["result"]["tools"].as_array().cloned().context("no list");
    Ok([tools(&legacy)?, tools(&modern)?])
}

#[tokio::test]
async fn trial_22_each_listed_name_leads_to_its_tool() -> Result<()> {
    let (a, b) = ("n".repeat(70) + "a", "n".repeat(70) + "b");
    let mut names = vec!["read.file", "read_file", "read file", &a, &b, "数据库", "UPPER", "x__y"];
    for profile in Profile::ALL {
        names.reverse();
        let mut rig = Rig::of(BridgeConfig::new(profile), tools(&names)).await?;
        let [legacy, modern] = lists(&rig).await?;
        assert_eq!(legacy, modern);
        let listed: BTreeSet<&str> = legacy.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(listed.len(), names.len());
        let text = manifest(&profile, rig.run.snapshot(), &ManifestOptions { in_prompt: true });
        let session = rig.legacy().await?;
        for (id, shown) in (10..).zip(&legacy) {
            let name = shown["name"].as_str().context("no name")?;
            assert!(text.contains(name), "{name} is in the manifest");
            let mut wire = crate::wire::Wire::open(rig.port).await?;
            wire.send(&session.post(&rig, &call(id, name, &json!({"id": id})))).await?;
            let started = rig.started().await?;
            assert_eq!(Some(started.tool.as_str()), shown["_meta"][profile.meta_name].as_str());
            assert_eq!(started.mcp_name, name);
            rig.run.settle(&started.id, HostResult::text(&started.tool));
            assert_eq!(text_of(&wire.answer().await?.json()?), started.tool);
        }
        // The host's own names are none to call, and the answer says which ones are.
        for tool in rig.run.snapshot().exposed() {
            let answer = session.ask(&rig, &call(99, &tool.tool.name, &json!({}))).await?.json()?;
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            assert!(text_of(&answer).contains(&tool.mcp_name), "{answer}");
        }
        assert!(rig.told.try_recv().is_err(), "the host was not asked");
    }
    Ok(())
}

#[tokio::test]
async fn trial_22_a_tool_that_the_host_removes_says_so_at_once() -> Result<()> {
    let mut rig = Rig::of(BridgeConfig::new(Profile::PI), tools(&["read.file", "todo"])).await?;
    let session = rig.legacy().await?;
    let mut waiting = crate::wire::Wire::open(rig.port).await?;
    waiting.send(&session.post(&rig, &call(1, "pi__read_file", &json!({})))).await?;
    rig.started().await?;
    rig.run.withdraw("read.file");
    // The call that waits, and the next one.
    let answer = String::from_utf8(waiting.answer().await?.body)?;
    assert!(answer.contains("read.file") || answer.contains("pi__read_file"), "{answer}");
    rig.cancelled().await?;
    let answer = session.ask(&rig, &call(2, "pi__read_file", &json!({}))).await?.json()?;
    assert!(answer["result"]["isError"] == true || answer["error"].is_object(), "{answer}");
    assert!(rig.told.try_recv().is_err(), "the host was not asked");
    Ok(())
}

#[tokio::test]
async fn one_odd_schema_costs_no_client_the_list() -> Result<()> {
    let mut odd = tools(&["true", "null", "any", "none", "parts", "deep", "good"]);
    let deep = format!(r#"{{"type":"object","x":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    let schemas =
        ["true", "null", r#"{"anyOf":[]}"#, "{}", r#"{"type":"object","properties":{"a":true}}"#, &deep];
    for (tool, schema) in odd.iter_mut().zip(schemas) {
        tool.parameters = RawJson::new(schema.to_owned())?;
    }
    let rig = Rig::of(BridgeConfig::new(Profile::PI), odd).await?;
    for list in lists(&rig).await? {
        assert_eq!(list.len(), 7);
        for tool in &list {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            let is_good = tool["name"] == "pi__good";
            assert_eq!(tool["inputSchema"]["properties"] == json!({}), !is_good, "{tool}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn arguments_that_no_host_could_read_are_refused_before_it_hears_of_them() -> Result<()> {
    let mut rig = Rig::of(BridgeConfig::new(Profile::PI), tools(&["todo"])).await?;
    let session = rig.legacy().await?;
    let deep = |levels: usize| {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        serde_json::from_str::<Value>(&text)
    };
    let answer = session.ask(&rig, &call(1, "pi__todo", &deep(101)?)).await?.json()?;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(text_of(&answer).contains("100 levels"), "{answer}");
    assert!(rig.told.try_recv().is_err());
    let mut wire = crate::wire::Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &call(2, "pi__todo", &deep(100)?))).await?;
    let started = rig.started().await?;
    rig.run.settle(&started.id, HostResult::text("read"));
    assert_eq!(text_of(&wire.answer().await?.json()?), "read");
    Ok(())
}
