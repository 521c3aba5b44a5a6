//! The examples, as a user runs them, against scripted models, servers and agents; and the page that shows them.
#![cfg(unix)]

mod page;
mod rig;

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use self::rig::Rig;

const ECHO: &str =
    "tool {\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/echo -> text said\n";

/// A model that calls the tool once and then answers.
fn calls(tool: &str, arguments: &Value, result: &str, answer: &str) -> Value {
    json!({"rules": [
        {"when": {"user": "go", "tool": tool}, "times": 1, "reply": {"calls": [{"name": tool, "arguments": arguments}]}},
        {"when": {"result": result}, "reply": {"text": answer}},
    ]})
}

/// A model that says by their names which of these tools it was offered.
fn sees(tools: &[&str]) -> Value {
    let rules: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"when": {"tool": tool}, "reply": {"text": format!("I have {tool}.")}}))
        .collect();
    json!({"rules": rules, "otherwise": {"text": "I have none of them."}})
}

#[test]
fn the_first_agent_calls_its_server() -> Result<()> {
    let rig = Rig::new(&json!({"rules": [
        {"when": {"user": "What is in this folder?"}, "times": 1, "reply": {"calls": [{"name": "files__echo", "arguments": {}}]}},
        {"when": {"result": "said"}, "reply": {"text": "It said so."}},
    ]}))?;
    // In place of a program that would be fetched.
    let npx = rig.path("home/npx");
    fs::write(&npx, format!("#!/bin/sh\n[ \"$1 $3\" = '-y .' ] && exec {}\n", rig.server(ECHO)?))?;
    fs::set_permissions(&npx, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let out = rig.run("first_agent", &[])?;
    let events = out.lines().map(toolway_agent::Event::from_json).collect::<Result<Vec<_>, _>>()?;
    ensure!(events.first().is_some_and(|event| event.kind.name() == "system"), "{out}");
    ensure!(out.contains("It said so.") && out.contains("\"FINISHED\""), "{out}");
    Ok(())
}

#[test]
fn a_local_server_over_stdio() -> Result<()> {
    let rig = Rig::new(&calls("files__echo", &json!({}), "said", "It said so."))?;
    let server = rig.server(ECHO)?;
    let out = rig.run("local_stdio", &["openai::m", &server, "go"])?;
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    ensure!(
        lines == ["server files: connected, 1 tools", "mcp: Running", "mcp: Completed", "It said so."],
        "{out}"
    );
    Ok(())
}

#[test]
fn a_server_at_an_address_gets_its_header() -> Result<()> {
    let mut rig = Rig::new(&calls("tickets__echo", &json!({}), "said", "It said so."))?;
    rig.variable("TICKETS_TOKEN", "top-secret-1");
    let (url, mut peer) = rig.web(ECHO)?;
    let out = rig.run("local_http", &["openai::m", &url, "go"])?;
    ensure!(out == "It said so.\n", "{out}");
    let requests = peer.requests();
    ensure!(requests.len() > 2, "{requests:?}");
    for request in requests {
        ensure!(request.header("authorization") == Some("Bearer top-secret-1"), "{request:?}");
    }
    Ok(())
}

#[test]
fn the_project_stands_above_the_user() -> Result<()> {
    let rig = Rig::new(&calls("both__echo", &json!({}), "said", "It said so."))?;
    let entry = json!({"command": rig.server(ECHO)?, "required": true});
    let broken = json!({"command": "no-such-program-here"});
    rig.servers("project/.cursor/mcp.json", &json!({"both": entry, "ours": broken}))?;
    rig.servers("home/.cursor/mcp.json", &json!({"both": broken, "mine": entry}))?;
    let out = rig.run("project_and_user_sources", &["openai::m", "go"])?;
    for line in [
        "both (project): connected",
        "mine (user): connected",
        "ours (project): failed",
        "both (user): shadowed",
    ] {
        ensure!(out.lines().any(|own| own.starts_with(line)), "no {line}: {out}");
    }
    ensure!(out.contains("no-such-program-here") && out.ends_with("It said so.\n"), "{out}");
    Ok(())
}

#[test]
fn a_resume_tells_what_is_missing_and_has_what_is_given_again() -> Result<()> {
    let script = json!({"rules": [
        {"when": {"any": "heron", "user": "Which word", "tool": "db__echo"}, "reply": {"text": "heron, and I have db"}},
        {"when": {"any": "heron", "user": "Which word"}, "reply": {"text": "heron"}},
        {"when": {"user": "Remember", "tool": "db__echo"}, "reply": {"text": "I will."}},
    ]});
    let rig = Rig::new(&script)?;
    let out = rig.run("resume_with_servers", &["openai::m", &rig.server(ECHO)?])?;
    let expected = "db: connected\nI will.\ndb: missing\nheron\ndb: connected\nheron, and I have db\n";
    ensure!(out == expected, "{out}");
    Ok(())
}

#[test]
fn a_reload_brings_the_server_that_was_added() -> Result<()> {
    let rig = Rig::new(&sees(&["db__echo"]))?;
    let folder = rig.path("project").to_string_lossy().into_owned();
    let out = rig.run("reload_after_edit", &["openai::m", &folder, &rig.server(ECHO)?])?;
    ensure!(out == "I have none of them.\nreloaded: true \nI have db__echo.\n", "{out}");
    Ok(())
}

#[test]
fn a_function_of_the_program_is_called() -> Result<()> {
    let tool = "custom-user-tools__price";
    let rig = Rig::new(&calls(tool, &json!({"article": "lamp"}), "4900", "49 euros."))?;
    let out = rig.run("custom_tools", &["openai::m", "go"])?;
    ensure!(out == "49 euros.\n", "{out}");
    let rig =
        Rig::new(&calls(tool, &json!({"article": "moon"}), "there is no article Some(\"moon\")", "No."))?;
    ensure!(rig.run("custom_tools", &["openai::m", "go"])? == "No.\n");
    Ok(())
}

#[test]
fn one_prompt_has_other_servers() -> Result<()> {
    let rig = Rig::new(&sees(&["special__echo", "usual__echo"]))?;
    let server = rig.server(ECHO)?;
    let out = rig.run("per_send_servers", &["openai::m", &server, &server])?;
    let expected = "tools: echo of usual\ntools: echo of special\ntools: \ntools: echo of usual\n";
    ensure!(out == expected, "{out}");
    Ok(())
}

#[test]
fn a_large_result_is_saved_whole_and_shown_in_part() -> Result<()> {
    let log = "tool {\"name\":\"log\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/log -> text {x*200000}\n";
    let rig = Rig::new(&calls("logs__log", &json!({}), "toolway_saved", "I read on."))?;
    let saved = rig.path("saved");
    fs::create_dir_all(&saved)?;
    let folder = saved.to_string_lossy().into_owned();
    let out = rig.run("guard_settings", &["openai::m", &rig.server(log)?, &folder, "go"])?;
    ensure!(out.contains("I read on.\n") && out.contains(&format!("saved: {folder}")), "{out}");
    let shown =
        out.lines().find_map(|line| line.strip_prefix("mcp: ")?.split(' ').next()?.parse::<u64>().ok());
    ensure!(shown.is_some_and(|bytes| (500..10_000).contains(&bytes)), "{out}");
    let sizes =
        fs::read_dir(&saved)?.map(|entry| Ok(entry?.metadata()?.len())).collect::<Result<Vec<_>>>()?;
    ensure!(sizes.iter().any(|size| *size >= 200_000), "{sizes:?}");
    Ok(())
}

#[test]
fn another_program_thinks() -> Result<()> {
    let rig = Rig::new(&json!({}))?;
    let call = json!({"mcp": {"id": "a", "server": "toolway", "tool": "files__echo", "arguments": {}}});
    let script = json!({"prompts": [{"do": [call, {"say": "It said so."}]}]}).to_string();
    let agent = toolway_testkit::toolway_acp_agent()?.to_string_lossy().into_owned();
    let out = rig.run("acp_agent", &[&rig.server(ECHO)?, "go", &agent, "--script", &script])?;
    ensure!(out == "It said so.\n", "{out}");
    ensure!(rig.asked() == 0, "the agent's own model is not ours");
    Ok(())
}

#[test]
fn examples_say_how_they_are_used_and_what_went_wrong() -> Result<()> {
    for example in rig::names()? {
        let lines = rig::source(&example)?.lines().count();
        ensure!(lines < 60, "{example} has {lines} lines");
        if example == "first_agent" {
            continue;
        }
        let rig = Rig::new(&json!({}))?;
        let (ok, _, err) = rig.outcome(&example, &[])?;
        ensure!(!ok && err.contains(&format!("{example} ")), "{example}: {err}");
    }
    let rig = Rig::new(&json!({"otherwise": {"text": "Without it, then."}}))?;
    let out = rig.run("local_stdio", &["openai::m", "no-such-program-here", "go"])?;
    ensure!(out.contains("files: failed") && out.contains("no-such-program-here; searched"), "{out}");
    ensure!(out.ends_with("Without it, then.\n"), "{out}");
    let rig = Rig::new(&json!({"replies": [{"status": 401, "error": "no such account"}]}))?;
    let (ok, out, err) = rig.outcome("local_stdio", &["openai::m", &rig.server(ECHO)?, "go"])?;
    ensure!(ok && out.contains("Error: ") && out.contains("no such account"), "{out}{err}");
    let (ok, out, err) = rig.outcome("reload_after_edit", &["openai::m", ".", "none"])?;
    ensure!(!ok && err.contains("no such account"), "{out}{err}");
    Ok(())
}
