//! Causes that stand in a file.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Cause, good, holds, sick, well};
use crate::House;

/// The broken entry, as text inside `"mcpServers": {...}` of a user's file, and its cause.
const ENTRIES: [(&str, Cause); 12] = [
    (
        r#""x": {"comand": "npx"}"#,
        Cause {
            server: "x",
            layer: "file",
            says: &["mcp.json:3", "neither command nor url"],
            fix: "command",
        },
    ),
    (
        r#""x": {"command": "npx", "url": "https://h.example/mcp"}"#,
        Cause { server: "x", layer: "file", says: &["mcp.json:3", "command", "url"], fix: "" },
    ),
    (
        r#""x": {"type": "http", "command": "npx"}"#,
        Cause { server: "x", layer: "file", says: &["type"], fix: "" },
    ),
    (
        r#""x": {"command": "npx", "env": {"A": 1}}"#,
        Cause { server: "x", layer: "file", says: &["env.A"], fix: "" },
    ),
    (
        r#""x": {"url": "ftp://h.example/mcp"}"#,
        Cause { server: "x", layer: "file", says: &["url", "http"], fix: "" },
    ),
    (
        r#""x": {"url": "https://me:pw-sentinel@h.example/mcp"}"#,
        Cause { server: "x", layer: "file", says: &["url"], fix: "" },
    ),
    (
        r#""x": {"url": "https://h.example/mcp", "headers": {"A B": "c"}}"#,
        Cause { server: "x", layer: "file", says: &["headers.A B"], fix: "" },
    ),
    (
        r#""x": {"url": "https://h.example/mcp", "headers": {"Authorization": "a"}, "auth": {"CLIENT_ID": "i"}}"#,
        Cause { server: "x", layer: "file", says: &["auth"], fix: "" },
    ),
    (
        r#""x": {"url": "https://h.example/mcp", "headers": {"X-Key": "${env:NOT_SET_HERE}"}}"#,
        Cause { server: "x", layer: "variables", says: &["NOT_SET_HERE"], fix: "set NOT_SET_HERE" },
    ),
    (
        r#""x": {"command": "npx", "args": ["${input:key}"]}"#,
        Cause { server: "x", layer: "variables", says: &["key"], fix: "" },
    ),
    (
        r#""x": {"command": "npx", "envFile": "/no/such/file.env"}"#,
        Cause { server: "x", layer: "variables", says: &["/no/such/file.env"], fix: "" },
    ),
    (
        r#""x": {"type": "websocket", "url": "https://h.example/mcp"}"#,
        Cause { server: "x", layer: "file", says: &["WebSocket"], fix: "" },
    ),
];

#[test]
fn one_bad_entry_is_named_and_the_others_work() -> Result<()> {
    for (entry, cause) in ENTRIES {
        let house = House::new()?;
        let text =
            format!("{{\n  \"mcpServers\": {{\n    {entry},\n    \"good\": {}\n  }}\n}}\n", good(&house)?);
        house.write("home/.cursor/mcp.json", &text)?;
        let found = sick(&house, &[])?;
        ensure!(!found.to_string().contains("pw-sentinel"), "{found:#}");
        holds(&found, "fault", cause)?;
        ensure!(
            found["servers"].as_array().is_some_and(|all| all.iter().any(|one| one["usable"] == true)),
            "{entry}"
        );
        house.leave()?;
    }
    Ok(())
}

/// A whole file that cannot be used, and what must be said of it.
const FILES: [(&str, &[&str]); 5] = [
    (
        "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n    \"b\": {\"command\": \"y\"}\n  }\n}",
        &["mcp.json:3:26: a comma is missing"],
    ),
    ("{\"mcpServers\": {", &["mcp.json:1:"]),
    ("[]", &["mcp.json"]),
    ("", &["mcp.json"]),
    ("\u{0}\u{0}\u{0}", &["mcp.json"]),
];

#[test]
fn a_file_that_cannot_be_read_is_named_with_line_and_column() -> Result<()> {
    for (text, says) in FILES {
        let house = House::new()?;
        house.configure(&json!({"good": good(&house)?}))?;
        house.write("home/.cursor/mcp.json", text)?;
        let found = sick(&house, &[])?;
        let faults: Vec<String> = found["files"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|file| file["checks"].as_array().into_iter().flatten())
            .filter(|check| check["verdict"] == "fault" && check["fix"].is_string())
            .map(|check| check["finding"].to_string())
            .collect();
        ensure!(
            says.iter().all(|part| faults.iter().any(|fault| fault.contains(part))),
            "{text:?}: {found:#}"
        );
        ensure!(found["servers"][0]["usable"] == true, "the other file still counts: {found:#}");
        house.leave()?;
    }
    Ok(())
}

#[test]
fn a_folder_in_the_place_of_a_file_is_named() -> Result<()> {
    let house = House::new()?;
    house.write("home/.cursor/mcp.json/inside", "")?;
    let found = sick(&house, &[])?;
    ensure!(found["files"].to_string().contains("mcp.json"), "{found:#}");
    house.leave()
}

#[test]
fn a_circle_of_links_is_named() -> Result<()> {
    let house = House::new()?;
    house.write("home/.cursor/x", "")?;
    std::os::unix::fs::symlink("mcp.json", house.rig.path().join("home/.cursor/mcp.json"))?;
    let found = sick(&house, &["--for", "cursor"])?;
    for checks in [&found["files"], &found["client"]] {
        ensure!(checks.to_string().contains("circle"), "{found:#}");
    }
    ensure!(!found.to_string().contains("has no file"), "{found:#}");
    house.leave()
}

#[test]
fn a_pipe_in_the_place_of_a_file_keeps_nobody_waiting() -> Result<()> {
    for path in ["home/.cursor/mcp.json", "home/.config/toolway/mcp.json", "home/.config/toolway/trust.json"]
    {
        let house = House::new()?;
        house.write(&format!("{path}.beside"), "")?;
        let made = std::process::Command::new("mkfifo").arg(house.rig.path().join(path)).status()?;
        ensure!(made.success(), "no mkfifo");
        let found = sick(&house, &["--for", "cursor"])?;
        ensure!(found.to_string().contains("no regular file"), "{path}: {found:#}");
        for args in
            [&["import", "--from", "cursor"][..], &["list"], &["trust", "--list"], &["config", "check"]]
        {
            let told = house.run(args)?;
            ensure!(told.code.is_some(), "{path}: {args:?}: {told:#?}");
        }
        house.leave()?;
    }
    Ok(())
}

#[test]
fn a_shadowed_entry_names_the_winner() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"s": good(&house)?}))?;
    house.write("home/.cursor/mcp.json", &json!({"mcpServers": {"s": {"command": "other"}}}).to_string())?;
    let found = well(&house, &[])?;
    let cause = Cause {
        server: "s",
        layer: "merge",
        says: &["toolway/mcp.json", "holds instead"],
        fix: "rename or remove one",
    };
    holds(&found, "warning", cause)?;
    house.leave()
}

#[test]
fn an_untrusted_project_is_named_and_not_started() -> Result<()> {
    let mut house = House::new()?;
    house.write(".cursor/mcp.json", &json!({"mcpServers": {"p": good(&house)?}}).to_string())?;
    let found = sick(&house, &[])?;
    let cause = Cause { server: "p", layer: "trust", says: &["not approved"], fix: "toolway trust p" };
    holds(&found, "fault", cause)?;
    ensure!(!house.rig.has_started(), "it was started");
    house.run(["trust", "p"])?.ended(0)?;
    well(&house, &[])?;
    house.leave()
}

#[test]
fn what_is_switched_off_is_said_and_is_no_fault() -> Result<()> {
    let house = House::new()?;
    let mut off = good(&house)?;
    off["disabled"] = true.into();
    house.configure(&json!({"off": off}))?;
    let found = well(&house, &[])?;
    let cause =
        Cause { server: "off", layer: "merge", says: &["switched off at"], fix: "toolway enable off" };
    holds(&found, "warning", cause)?;
    house.leave()
}

#[test]
fn names_that_differ_in_case_only_are_named() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"Db": good(&house)?, "db": good(&house)?}))?;
    let found = sick(&house, &[])?;
    ensure!(found.to_string().to_lowercase().contains("case"), "{found:#}");
    house.leave()
}
