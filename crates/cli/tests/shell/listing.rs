//! `toolway list`: every entry has a state, and one bad server keeps no good one from being shown.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::House;

fn server<'v>(listed: &'v Value, name: &str) -> Result<&'v Value> {
    let servers = listed["servers"].as_array().context("no servers")?;
    servers.iter().find(|server| server["name"] == name).with_context(|| format!("no {name} in {listed:#}"))
}

#[test]
fn one_good_one_absent_one_mute_one_crashed() -> Result<()> {
    let house = House::new()?;
    let mute = {
        let mut entry = house.entry("mute", "set defaults off")?;
        entry["startupTimeoutMs"] = json!(2000);
        entry
    };
    let crash = "on start\n    stderr {(line of trouble {count}\\n)*200}last words\n    exit 7";
    house.configure(&json!({
        "ok": house.entry("ok", "on tools/call/hi -> text hello\non tools/call/ho -> text hello")?,
        "gone": {"command": "no-such-binary-xyz", "args": []},
        "mute": mute,
        "late": house.entry("late", "on initialize\n    delay 1s\n    answer {\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"late\",\"version\":\"3\"}}")?,
        "crash": house.entry("crash", crash)?,
    }))?;
    let begun = Instant::now();
    let listed = house.run(["list", "--json"])?.ended(0)?.json()?;
    // One after the other they would take longer than the mute one and the late one together.
    ensure!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(listed["schema"], 1);
    let ok = server(&listed, "ok")?;
    assert_eq!(
        (&ok["state"], &ok["tools"], &ok["transport"]),
        (&json!("connected"), &json!(2), &json!("stdio"))
    );
    assert_eq!(ok["server"], json!({"name": "fake", "version": "1"}));
    assert_eq!(server(&listed, "late")?["server"]["name"], "late");
    for (name, stage, texts) in [
        ("gone", "resolve", ["command not found: no-such-binary-xyz", "searched: "]),
        ("mute", "initialize", ["initialize", "2 s"]),
        ("crash", "spawn", ["7", "last words"]),
    ] {
        let server = server(&listed, name)?;
        assert_eq!((&server["state"], &server["stage"]), (&json!("failed"), &json!(stage)), "{server}");
        let reason = server["reason"].as_str().context("no reason")?;
        ensure!(texts.iter().all(|text| reason.contains(text)), "{name}: {reason}");
    }
    house.leave()
}

#[test]
fn skipped_entries_are_shown_with_their_reason_and_place() -> Result<()> {
    let mut house = House::new()?;
    let good = house.entry("good", "on tools/call/hi -> text hello")?;
    let off = {
        let mut entry = good.clone();
        entry["enabled"] = json!(false);
        entry
    };
    house.configure(&json!({"both": good, "off": off}))?;
    house.write(
        "home/.cursor/mcp.json",
        &json!({"mcpServers": {"both": {"command": "never"}, "broken": {"command": "x", "url": "http://h/"}}}).to_string(),
    )?;
    house.write(".cursor/mcp.json", &json!({"mcpServers": {"unseen": {"command": "never"}}}).to_string())?;
    for args in [vec!["list", "--json"], vec!["list", "--json", "--no-start"]] {
        let listed = house.run(&args)?.ended(0)?.json()?;
        let states: Vec<(&str, &str)> = listed["servers"]
            .as_array()
            .context("no servers")?
            .iter()
            .filter_map(|server| Some((server["name"].as_str()?, server["state"].as_str()?)))
            .collect();
        let started = if args.contains(&"--no-start") { "ready" } else { "connected" };
        for expected in [
            ("both", started),
            ("both", "shadowed"),
            ("off", "disabled"),
            ("broken", "failed"),
            ("unseen", "untrusted"),
        ] {
            ensure!(states.contains(&expected), "{expected:?} is not in {states:?}");
        }
        let broken = server(&listed, "broken")?;
        assert_eq!(broken["stage"], "configure");
        ensure!(broken["reason"].as_str().is_some_and(|reason| reason.contains("mcp.json:1:")), "{broken}");
        assert_eq!(server(&listed, "off")?["source"]["kind"], "user");
    }
    drop(house.rig.arrival()?);
    ensure!(!house.rig.has_started(), "--no-start has started something");
    let table = house.run(["list", "--no-start"])?.ended(0)?;
    table.says(&["SERVER", "untrusted", "shadowed", "toolway trust unseen", "switched off at "])?;
    house.leave()
}

#[test]
fn with_nothing_configured_the_list_says_what_to_do() -> Result<()> {
    let house = House::new()?;
    let told = house.run(["list"])?.ended(0)?;
    told.says(&["no server is configured", ".cursor/mcp.json", "toolway import"])?;
    assert_eq!(house.run(["list", "--json"])?.ended(0)?.json()?["servers"], json!([]));
    house.run(["tools"])?.ended(2)?.says(&["toolway list"])?;
    house.run(["ping"])?.ended(2)?;
    house.leave()
}

#[test]
fn a_tool_that_no_client_can_take_is_named_and_the_others_stay() -> Result<()> {
    let house = House::new()?;
    let tools = r#"tool {"name":"good","inputSchema":{"type":"object"}}
tool {"name":"odd","inputSchema":"string"}
tool {"name":"fine","inputSchema":{"type":"object","properties":{}}}"#;
    house.configure(&json!({"s": house.entry("s", tools)?}))?;
    let told = house.run(["tools", "s"])?.ended(0)?;
    ensure!(told.out.contains("good\n") && told.out.contains("fine\n"), "{told:?}");
    told.says(&["note: s: tool \"odd\" of \"s\"", "kept from clients"])?;
    let listed = house.run(["list", "--json"])?.ended(0)?.json()?;
    let server = server(&listed, "s")?;
    assert_eq!(server["state"], "connected");
    ensure!(server["notes"].to_string().contains("odd"), "{server}");
    house.leave()
}

#[test]
fn tools_of_all_servers_are_listed_and_failures_are_notes() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({
        "a": house.entry("a", "tool {\"name\":\"one\",\"description\":\"First.\\nMore.\",\"inputSchema\":{\"type\":\"object\"}}")?,
        "b": house.entry("b", "on tools/call/two -> text x")?,
        "gone": {"command": "no-such-binary-xyz"},
    }))?;
    let told = house.run(["tools"])?.ended(0)?;
    assert_eq!(told.out, "a  one  First.\nb  two\n");
    told.says(&["note: gone: failed (resolve): command not found"])?;
    let listed = house.run(["tools", "--json"])?.ended(0)?.json()?;
    assert_eq!(listed["servers"][0]["tools"][0]["description"], "First.\nMore.");
    let one = house.run(["tools", "a", "one"])?.ended(0)?;
    assert_eq!(one.out, "a one\n\nFirst.\nMore.\n\ntoolway call a one\n");
    house.leave()
}
