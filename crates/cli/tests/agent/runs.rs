//! Prompts and answers.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use crate::{House, Told};

#[test]
fn the_answer_goes_to_stdout_and_what_it_did_to_stderr() -> Result<()> {
    let house = House::new(&json!({"replies": [
        {"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "notes.txt"}}]},
        {"text": "It says forty-two."},
    ]}))?;
    std::fs::write(house.rig.path().join("work/notes.txt"), "forty-two\n")?;
    let told = house.run(&["what do the notes say?"])?.ended(0)?;
    assert_eq!(told.out, "I look.\nIt says forty-two.\n");
    told.says(&["- read: notes.txt\n", ": finished, "])?;
    let asked = house.model.requests();
    ensure!(asked[1].results()[0].contains("forty-two"), "{asked:#?}");
    let quiet = house.run(&["-q", "again"])?.ended(0)?;
    assert_eq!(quiet.err, "");
    house.leave()
}

#[test]
fn servers_of_a_file_are_there_and_one_that_fails_is_told() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"result": "sunny"}, "reply": {"text": "Sunny it is."}},
        {"when": {"user": "weather", "tool": "one__weather"}, "reply": {"calls": [{"name": "one__weather", "arguments": {"city": "Ulm"}}]}},
    ], "otherwise": {"text": "I have no such tool."}}))?;
    let file = house.servers(
        "tool {\"name\":\"weather\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/weather -> text sunny",
    )?;
    let told = house.run(&["--mcp-config", &file, "weather?"])?.ended(0)?;
    assert_eq!(told.out, "Sunny it is.\n");
    told.says(&["- one: weather {\"city\":\"Ulm\"}\n"])?;

    let bad = house.rig.path().join("bad.json");
    std::fs::write(
        &bad,
        json!({"mcpServers": {"gone": {"command": "/no/such/program", "required": true}}}).to_string(),
    )?;
    let told = house.run(&["--mcp-config", &bad.to_string_lossy(), "weather?"])?.ended(0)?;
    told.says(&["I have no such tool.", "server \"gone\" is failed", "/no/such/program"])?;
    let denied = house.run(&["--mcp-config", &file, "--disallowed-tools", "mcp", "weather?"])?.ended(0)?;
    assert_eq!(denied.out, "I have no such tool.\n");
    house.leave()
}

#[test]
fn every_event_is_a_line_of_json_and_deltas_are_when_asked_for() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Hello there."}]}))?;
    let lines = house.run(&["--json", "hi"])?.ended(0)?.lines()?;
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"system"), Some(&"result")), "{lines:#?}");
    ensure!(
        kinds.contains(&"user") && kinds.contains(&"assistant") && !kinds.contains(&"delta"),
        "{kinds:?}"
    );
    assert_eq!(lines[0]["subtype"], "init");
    let end = lines.last().context("no end")?;
    assert_eq!((&end["status"], &end["result"]), (&json!("FINISHED"), &json!("Hello there.")));
    let streamed = house.run(&["--json", "--stream", "hi"])?.ended(0)?.lines()?;
    let text: String = streamed.iter().filter_map(|line| line["delta"]["text"].as_str()).collect();
    ensure!(text.contains("Hello there."), "{streamed:#?}");
    ensure!(house.run(&["--stream", "hi"])?.code == Some(2), "deltas are JSON");
    house.leave()
}

#[test]
fn a_prompt_comes_from_stdin_and_pictures_go_with_it() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Read."}]}))?;
    let picture = house.rig.path().join("p.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\n0000")?;
    let words = house.run_words(&["--image", &picture.to_string_lossy(), "-"]);
    let mut command = house.rig.command(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("no stdin")?.write_all(b"a long\nprompt\n")?;
    let told = Told::of(child.wait_with_output()?)?.ended(0)?;
    assert_eq!(told.out, "Read.\n");
    let asked = house.model.requests();
    ensure!(
        asked[0].text.contains("a long\\nprompt") && asked[0].text.contains("iVBORw0KGgow"),
        "{}",
        asked[0].text
    );
    std::fs::write(&picture, b"not a picture")?;
    house.run(&["--image", &picture.to_string_lossy(), "x"])?.ended(2)?.says(&["--image", "is no PNG"])?;
    house.run(&[" "])?.ended(2)?.says(&["PROMPT: is empty"])?;
    house.leave()
}

#[test]
fn an_agent_of_the_protocol_does_it_as_well() -> Result<()> {
    let house = House::new(&json!({}))?;
    let script = json!({"prompts": [{"do": [{"say": "I am another agent."}]}]}).to_string();
    let agent = toolway_testkit::toolway_acp_agent()?;
    let line = shlex::try_join([agent.to_string_lossy().as_ref(), "--script", &script])?;
    let told = house.agent(&["run", "--acp-command", &line, "hi"])?.ended(0)?;
    assert_eq!(told.out, "I am another agent.\n");
    let list = house.agent(&["list", "--json"])?.ended(0)?.json()?;
    assert_eq!(list["agents"][0]["runtime"], "acp");
    house.agent(&["run", "--acp", "nobody", "hi"])?.ended(2)?.says(&["nobody", "opencode"])?;
    house.leave()
}

#[test]
fn a_plan_changes_nothing_and_the_words_to_the_model_may_be_ones_own() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "The plan."}]}))?;
    let own = house.rig.path().join("own.txt");
    std::fs::write(&own, "You are a parrot.")?;
    house.run(&["--plan", "--system-prompt", &format!("@{}", own.display()), "plan it"])?.ended(0)?;
    let asked = &house.model.requests()[0];
    ensure!(asked.system().contains("You are a parrot."), "{}", asked.system());
    house.run(&["--tools", "read,grep", "x"])?.ended(0)?;
    assert_eq!(house.model.requests()[1].tools(), ["read", "grep", "toolway_saved"]);
    house.run(&["--tools", "hammer", "x"])?.ended(2)?.says(&["hammer", "askQuestion"])?;
    house.leave()
}
