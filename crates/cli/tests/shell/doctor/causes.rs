//! Causes that a program's file, its last words, its stdout and its command line tell: each is named, and its fix is
//! that of the cause, not of the symptom.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Cause, checks, good, holds, sick};
use crate::House;

/// Doctor's report for one server, beside one that works.
fn report(house: &House, entry: &Value) -> Result<Value> {
    house.configure(&json!({"s": entry, "good": good(house)?}))?;
    sick(house, &["s"])
}

const fn cause(layer: &'static str, says: &'static [&'static str], fix: &'static str) -> Cause {
    Cause { server: "s", layer, says, fix }
}

#[test]
fn a_file_that_the_system_does_not_run_says_what_is_wrong_with_it() -> Result<()> {
    for (content, cause) in [
        ("#!/no/such/interpreter\n", cause("spawn", &["/no/such/interpreter", "not there"], "first line")),
        ("#!/bin/sh\r\nexit 0\r\n", cause("spawn", &["carriage return"], "line ends")),
        ("echo hi\n", cause("spawn", &["no #! line"], "interpreter")),
        ("\u{7f}ELF\u{2}", cause("spawn", &["processor"], "this machine")),
        ("#!/usr/bin/env nodex\n", cause("spawn", &["nodex", "127"], "env.PATH")),
    ] {
        let house = House::new()?;
        house.write("home/run", content)?;
        let program = house.rig.path().join("home/run");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
        let found = report(&house, &json!({"command": program}))?;
        holds(&found, "fault", cause).with_context(|| content.to_owned())?;
        house.leave()?;
    }
    Ok(())
}

#[test]
fn last_words_have_their_own_fix() -> Result<()> {
    for (words, fix) in [
        ("npm error code E404", "check its name"),
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "start Docker"),
        ("ModuleNotFoundError: No module named 'mcp'", "Python"),
        ("Error: Cannot find module '/x/dist/index.js'", "dependencies"),
        ("Error: listen EADDRINUSE: address already in use 127.0.0.1:1", "port"),
        ("TypeError: getaddrinfo ENOTFOUND api.example.com", "HTTPS_PROXY"),
    ] {
        let house = House::new()?;
        let entry = house.entry("s", &format!("on start -> stderr {words}\n    exit 1"))?;
        holds(&report(&house, &entry)?, "fault", cause("spawn", &["code 1"], fix)).context(words)?;
        house.leave()?;
    }
    Ok(())
}

#[test]
fn what_stands_on_stdout_in_the_place_of_messages_is_the_cause() -> Result<()> {
    for (script, says, fix) in [
        ("on initialize -> raw Content-Length: 20\\r\\n\\r\\n", "Content-Length: 20", "language servers"),
        ("on initialize -> raw Listening on port 3000\\n", "Listening on port 3000", "log to stderr"),
    ] {
        let house = House::new()?;
        let mut entry = house.entry("s", script)?;
        entry["startupTimeoutMs"] = 2000.into();
        let found = report(&house, &entry)?;
        let all = checks(&found, "s")?;
        let told = all.iter().any(|check| {
            let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
            check["layer"] == "generation" && text("finding").contains(says) && text("fix").contains(fix)
        });
        anyhow::ensure!(told, "{script}: {all:#?}");
        house.leave()?;
    }
    Ok(())
}

#[test]
fn a_line_that_only_a_shell_understands_is_told() -> Result<()> {
    let house = House::new()?;
    let folder = house.rig.path().to_owned();
    for (entry, cause) in [
        (json!({"command": "cd /tmp && npx x"}), cause("command", &["cd"], "no shell")),
        (
            json!({"command": "no-such-xyz", "args": ["a", "|", "b"]}),
            cause("command", &["no-such-xyz"], "no shell"),
        ),
        (json!({"command": "API_KEY=x npx y"}), cause("command", &["API_KEY"], "put API_KEY into env")),
        (json!({"command": folder}), cause("command", &[], "folder")),
        (json!({"command": "C:\\x\\npx.cmd", "args": []}), cause("command", &["npx.cmd"], "Windows")),
        (json!({"command": "npx -y 'x"}), cause("file", &["quote"], "apart")),
    ] {
        holds(&report(&house, &entry)?, "fault", cause).with_context(|| entry.to_string())?;
    }
    house.write("home/file", "")?;
    let entry = json!({"command": "true", "cwd": house.rig.path().join("home/file")});
    holds(&report(&house, &entry)?, "fault", cause("spawn", &["is no directory"], "cwd"))?;
    house.leave()
}

#[test]
fn plain_http_behind_https_is_told() -> Result<()> {
    let house = House::new()?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("https://{}/mcp", listener.local_addr()?);
    // Answers whatever comes, as web servers do; it ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let asked = stream.read(&mut [0; 1024]);
            if asked.is_ok() {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").ok();
            }
        }
    });
    let found = report(&house, &json!({"url": url}))?;
    holds(&found, "fault", cause("transport", &["TLS"], "http://"))?;
    house.leave()
}

#[test]
fn a_plugin_that_brings_nothing_is_told() -> Result<()> {
    let house = House::new()?;
    let manifest = "home/.cursor/plugins/local/p/.cursor-plugin/plugin.json";
    house.write(manifest, r#"{"name": "p", "mcpServers": "../../../elsewhere.json"}"#)?;
    let found = sick(&house, &["--sources", "plugins"])?;
    let files = found["files"].as_array().context("no files")?;
    let told = files.iter().find(|file| file["source"] == "plugins").context("no plugin")?;
    anyhow::ensure!(told["checks"][0]["finding"].to_string().contains("leads out of the plugin"), "{told:#}");
    house.leave()
}

#[test]
fn approvals_that_cannot_be_used_are_told_beside_what_they_keep_from_starting() -> Result<()> {
    let house = House::new()?;
    house.write(".git/HEAD", "")?;
    house.write(".toolway/mcp.json", &json!({"mcpServers": {"s": good(&house)?}}).to_string())?;
    house.write("home/.config/toolway/trust.json", "{")?;
    let found = sick(&house, &[])?;
    holds(&found, "fault", cause("trust", &["not approved"], "toolway trust s"))?;
    let files = found["files"].as_array().context("no files")?;
    let told = files.iter().find(|file| file["source"] == "approvals").context("no approvals")?;
    anyhow::ensure!(
        told["checks"][0]["fix"].as_str().is_some_and(|fix| fix.contains("remove it")),
        "{told:#}"
    );
    house.run(["trust", "s"])?.ended(2)?.says(&["trust.json", "remove it"])?;
    house.leave()
}
