//! Commands that begin with a slash.

use std::io::{BufRead as _, Write as _};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::House;

#[test]
fn the_three_surfaces_and_the_servers_are_told() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Yes."}]}))?;
    let line = house
        .rig
        .server_command("one", "tool {\"name\":\"weather\",\"inputSchema\":{\"type\":\"object\"}}")?;
    let words: Vec<String> = line.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (command, args) = words.split_first().context("no command")?;
    let servers = json!({"mcpServers": {
        "one": {"command": command, "args": args, "required": true},
        "gone": {"command": "/no/such/program", "required": true},
    }});
    house.write("servers.json", &servers.to_string())?;
    let told = house.chat(
        &[
            "--mcp-config",
            &house.rig.path().join("servers.json").to_string_lossy(),
            "--exclude-tools",
            "clipboard",
        ],
        &["/mcp", "/tools", "hello", "/mcp", "/tools"],
    )?;
    let told = told.ended(0)?;
    let (before, after) = told.out.split_once("Yes.\n").context("no answer")?;
    ensure!(before.contains("The agent has not begun") && before.contains("host__todo"), "{before}");
    ensure!(before.contains("Exposed: 3") && before.contains("\"clipboard\": not active"), "{before}");
    let rows: Vec<Vec<&str>> = after.lines().map(|line| line.split_whitespace().collect()).collect();
    ensure!(rows.iter().any(|row| row.starts_with(&["one", "connected"])), "{after}");
    ensure!(rows.iter().any(|row| row.starts_with(&["gone", "failed"])), "{after}");
    ensure!(after.contains("/no/such/program"), "{after}");
    ensure!(
        after.contains("The agent's own tools (native): ") && after.contains("  one: weather\n"),
        "{after}"
    );
    ensure!(after.contains("connected: yes, listed: yes"), "{after}");
    ensure!(!after.contains("host_tools"), "the chat's own server is none of the agent's: {after}");
    house.leave()
}

#[test]
fn what_is_read_again_is_there_for_the_next_prompt() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "One."}, {"text": "Two."}]}))?;
    let mut child = house.start(&[])?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let mut out = std::io::BufReader::new(child.stdout.take().context("no stdout")?);
    let mut line = String::new();
    writeln!(stdin, "first")?;
    out.read_line(&mut line)?;
    let config = json!({"commands": [{"name": "late", "description": "Late.", "command": "true"}]});
    house.write("home/.config/toolway/chat.json", &config.to_string())?;
    writeln!(stdin, "/reload")?;
    out.read_line(&mut line)?;
    writeln!(stdin, "second")?;
    drop(stdin);
    out.read_line(&mut line)?;
    assert_eq!(line, "One.\nRead again: 0 skills, 1 commands; the agent reads its own files again.\nTwo.\n");
    child.wait()?;
    let asked = house.model.requests();
    ensure!(
        !asked[0].tools().contains(&"host__late".to_owned())
            && asked[1].tools().contains(&"host__late".to_owned())
    );
    house.leave()
}

#[test]
fn the_settings_of_the_bridge_are_read_again() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "One."}, {"text": "Two."}, {"text": "Three."}]}))?;
    let mut child = house.start(&[])?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let mut out = std::io::BufReader::new(child.stdout.take().context("no stdout")?);
    let mut said = String::new();
    for (prompt, settings) in [
        ("first", json!({"tools": {"bridge": {"exclude": ["ask", "clipboard"]}}})),
        ("second", json!({"tools": {"bridge": {"enabled": false, "exclud": []}}})),
    ] {
        writeln!(stdin, "{prompt}")?;
        out.read_line(&mut said)?;
        house.write("home/.config/toolway/bridge.json", &settings.to_string())?;
        writeln!(stdin, "/reload")?;
        out.read_line(&mut said)?;
    }
    writeln!(stdin, "third")?;
    drop(stdin);
    out.read_line(&mut said)?;
    let again = "Read again: 0 skills, 0 commands, other settings of the bridge; the agent reads its own files again.\n";
    assert_eq!(said, format!("One.\n{again}Two.\n{again}Three.\n"));
    let ended = child.wait_with_output()?;
    let told = String::from_utf8(ended.stderr)?;
    ensure!(told.contains("warning: bridge.json: tools.bridge.exclud: "), "{told}");
    let asked = house.model.requests();
    let of_host = |at: usize| asked[at].tools().iter().filter(|tool| tool.starts_with("host__")).count();
    assert_eq!((of_host(0), of_host(1), of_host(2)), (4, 2, 0));
    ensure!(asked[1].text.contains("One.") && asked[2].text.contains("Two."), "the conversation goes on");
    house.leave()
}

#[test]
fn models_are_chosen_and_chats_begun_anew_and_gone_on_with() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Hello, Bo."}, {"text": "Who?"}, {"text": "Bo."}]}))?;
    let told = house
        .chat(&[], &["/model", "I am Bo.", "/clear", "/model other", "Who am I?", "/nonsense", "/resume"])?;
    told.says(&[
        "scripted\n",
        "A new chat.\n",
        "From the next prompt on: other\n",
        "there is no command /nonsense",
    ])?;
    told.says(&["1  now", "Who am I?", "2  now", "I am Bo."])?;
    let asked = house.model.requests();
    assert_eq!((&asked[0].body["model"], &asked[1].body["model"]), (&json!("scripted"), &json!("other")));
    ensure!(!asked[1].text.contains("I am Bo."), "{}", asked[1].text);

    let told = house.chat(&[], &["/resume 2", "Who am I?", "/quit", "never sent"])?.ended(0)?;
    told.says(&["Going on with ", ": I am Bo.\n", "Bo.\n"])?;
    let asked = house.model.requests();
    assert_eq!(asked.len(), 3);
    ensure!(asked[2].text.contains("I am Bo.") && asked[2].text.contains("Hello, Bo."), "{}", asked[2].text);
    let house = house.with_variable("ANTHROPIC_API_KEY", "key");
    house.chat(&[], &["/model"])?.ended(0)?.says(&["scripted\nOthers that there is a key for: claude-"])?;
    house.chat(&["--resume", "99"], &["x"])?.ended(1)?.says(&["there is no chat \"99\""])?;
    house.leave()
}
