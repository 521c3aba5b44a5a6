//! Prompts, answers, and how they end.

use std::io::{BufRead as _, BufReader, Write as _};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use toolway_testkit::SOON;

use crate::{House, Told, calls};

#[test]
fn every_line_is_a_prompt_and_answers_stay_as_the_model_wrote_them() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "# One\n**bold**"}, {"text": "Two."}]}))?;
    let told = house.chat(&[], &["first", "", "second \\", "line"])?.ended(0)?;
    assert_eq!((told.out.as_str(), told.err.as_str()), ("# One\n**bold**\nTwo.\n", ""));
    let asked = house.model.requests();
    assert_eq!(asked.len(), 2);
    ensure!(asked[1].last().contains("second \nline"), "{}", asked[1].last());
    ensure!(asked[1].text.contains("# One"), "the agent remembers: {}", asked[1].text);
    house.leave()
}

#[test]
fn what_the_agent_does_by_itself_is_a_card() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"result": "is updated"}, "reply": {"text": "Changed."}},
        {"when": {"result": "forty-two"}, "reply": {"calls": [{"name": "edit", "arguments": {"path": "notes.txt", "oldText": "forty-two", "newText": "forty-three"}}]}},
        {"when": {"user": "go"}, "reply": {"calls": [{"name": "read", "arguments": {"path": "notes.txt"}}]}},
    ], "otherwise": {"text": "Changed."}}))?;
    house.write("work/notes.txt", "forty-two\n")?;
    let told = house.chat(&["--allow", "Write(**)"], &["go"])?.ended(0)?;
    told.says(&[
        "● read notes.txt\n",
        "forty-two",
        "● edit notes.txt (+1 -1)\n",
        "  -forty-two\n",
        "  +forty-three\n",
    ])?;
    ensure!(told.out.ends_with("Changed.\n"), "{told:#?}");
    let text = std::fs::read_to_string(house.rig.path().join("work/notes.txt"))?;
    assert_eq!(text, "forty-three\n", "shown, and done once");
    house.leave()
}

#[test]
fn a_failure_is_told_and_the_chat_goes_on() -> Result<()> {
    let house =
        House::new(&json!({"replies": [{"status": 401, "error": "bad key"}, {"text": "Here again."}]}))?;
    let told = house.chat(&[], &["first", "second"])?.ended(0)?;
    told.says(&["error: ", "refused (401): bad key"])?;
    assert_eq!(told.out, "Here again.\n");
    let house = House::new(&json!({"replies": [{"status": 401, "error": "bad key"}]}))?;
    house.chat(&[], &["first", "/model"])?.ended(1)?.says(&["scripted\n"])?;
    let mut command = house.rig.command(["chat"]);
    let told = Told::of(command.stdin(std::process::Stdio::null()).output()?)?.ended(2)?;
    told.says(&["error: --model: is missing", "hint: name a model"])?;
    house.leave()
}

#[test]
fn servers_that_are_not_there_are_told_once_and_one_that_dies_is_an_error_of_its_tool() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "times": 1, "reply": {"text": "It died."}},
        {"when": {"user": "second"}, "reply": {"text": "Still here."}},
        {"when": {"user": "first"}, "reply": {"calls": [{"name": "mortal__die", "arguments": {}}]}},
    ]}))?;
    let servers = house.servers(&[
        (
            "mortal",
            "tool {\"name\":\"die\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/die -> exit 3",
        ),
        ("never", "exit 7"),
    ])?;
    let told = house
        .chat(&["--mcp-config", &servers, "--allow", "Mcp(mortal:*)"], &["first", "second", "/mcp"])?
        .ended(0)?;
    assert_eq!(told.err.matches("warning: server \"never\" is failed: ").count(), 1, "{told:#?}");
    told.says(&[
        "● Agent MCP",
        "  server \"mortal\" did not answer",
        "It died.\n",
        "Still here.\n",
        "As the last prompt began:\n",
    ])?;
    house.leave()
}

#[test]
fn a_signal_stops_the_turn_and_not_the_chat() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"user": "second"}, "reply": {"text": "Still here."}},
        {"when": {"user": "first"}, "reply": {"text": "It takes", "stall": "middle"}},
    ]}))?;
    let mut child = house.start(&[])?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    writeln!(stdin, "first")?;
    house.model.wait_for_requests(1, SOON)?;
    kill_process(Pid::from_raw(i32::try_from(child.id())?).context("no pid")?, Signal::INT)?;
    let mut err = BufReader::new(child.stderr.take().context("no stderr")?);
    let mut line = String::new();
    err.read_line(&mut line)?;
    assert_eq!(line, "note: stopping; Ctrl-C once more ends the chat\n");
    writeln!(stdin, "second")?;
    drop(stdin);
    let told = Told::of(child.wait_with_output()?)?.ended(0)?;
    ensure!(told.out.ends_with("Still here.\n"), "{told:#?}");

    let mut child = house.start(&[])?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let before = house.model.requests().len();
    writeln!(stdin, "first")?;
    house.model.wait_for_requests(before + 1, SOON)?;
    kill_process(Pid::from_raw(i32::try_from(child.id())?).context("no pid")?, Signal::TERM)?;
    Told::of(child.wait_with_output()?)?.ended(143)?;
    house.leave()
}

#[test]
fn a_command_that_does_not_want_to_end_ends_with_its_turn() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"user": "second"}, "reply": {"text": "Still here."}},
        {"when": {"user": "first"}, "reply": {"calls": [{"name": "host__stubborn", "arguments": {}}]}},
    ]}))?;
    let code = "trap '' TERM; echo begun > begun; cat never";
    let config = json!({"commands": [{"name": "stubborn", "description": "Stays.", "command": "sh", "args": ["-c", code]}]});
    house.write("home/.config/toolway/chat.json", &config.to_string())?;
    let begun = house.rig.path().join("work/begun");
    let never = house.rig.path().join("work/never");
    ensure!(std::process::Command::new("mkfifo").args([&begun, &never]).status()?.success(), "no pipes");
    for signals in [1, 2] {
        let mut child = house.start(&[])?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        writeln!(stdin, "first")?;
        assert_eq!(std::fs::read_to_string(&begun)?, "begun\n");
        let mut err = BufReader::new(child.stderr.take().context("no stderr")?);
        let mut line = String::new();
        let pid = Pid::from_raw(i32::try_from(child.id())?).context("no pid")?;
        kill_process(pid, Signal::INT)?;
        err.read_line(&mut line)?;
        assert_eq!(line, "note: stopping; Ctrl-C once more ends the chat\n");
        if signals == 1 {
            writeln!(stdin, "second")?;
        } else {
            kill_process(pid, Signal::INT)?;
        }
        drop(stdin);
        let told = Told::of(child.wait_with_output()?)?;
        if signals == 1 {
            ensure!(told.out.ends_with("  the user stopped it\nStill here.\n"), "{told:#?}");
        } else {
            told.ended(130)?;
        }
    }
    house.leave()
}

#[test]
fn an_agent_of_the_protocol_has_the_chats_tools_too() -> Result<()> {
    let house = House::new(&json!({}))?;
    let call = json!({"mcp": {"server": "host_tools", "tool": "host__todo", "arguments": {"todos": [{"content": "from afar"}]}}});
    let script = json!({"prompts": [{"do": [call, {"say": "Noted."}]}]}).to_string();
    let agent = toolway_testkit::toolway_acp_agent()?;
    let line = shlex::try_join([agent.to_string_lossy().as_ref(), "--script", &script])?;
    let mut command = house.rig.command(["chat", "--acp-command", &line]);
    let mut child = command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no stdin")?.write_all(b"go\n")?;
    let told = Told::of(child.wait_with_output()?)?.ended(0)?;
    told.says(&["● todo", "  [ ] from afar\n", "Noted.\n"])?;
    house.leave()
}

#[test]
fn a_call_is_run_once_and_its_result_is_the_models() -> Result<()> {
    let house =
        House::new(&calls("host__todo", &json!({"todos": [{"content": "write", "status": "in_progress"}]})))?;
    let told = house.chat(&[], &["go"])?.ended(0)?;
    assert_eq!(told.out.matches("● todo").count(), 1, "{told:#?}");
    told.says(&["  [>] write\n", "That is it.\n"])?;
    ensure!(house.model.requests()[1].results().join("").contains("[>] write"));
    house.leave()
}
