//! The chat's own tools, and which of them the agent has.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{House, calls};

const CHAT_JSON: &str = "home/.config/toolway/chat.json";

#[test]
fn a_declared_command_runs_without_a_shell() -> Result<()> {
    let house = House::new(&calls("host__say", &json!({"words": ["$HOME; rm x", "b"]})))?;
    let config = json!({"commands": [{"name": "say", "description": "Says it.", "command": "printf", "args": ["<%s>", "{words}"],
        "parameters": {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}, "required": ["words"]}}]});
    house.write(CHAT_JSON, &config.to_string())?;
    let told = house.chat(&[], &["go"])?.ended(0)?;
    told.says(&["● say", "  <$HOME; rm x><b>\n"])?;
    ensure!(house.model.requests()[1].results().join("").contains("<$HOME; rm x><b>"));

    house.write(CHAT_JSON, r#"{"commands": [{"name": "say"}]}"#)?;
    house.chat(&[], &["go"])?.ended(2)?.says(&["chat.json", "description"])?;
    house.leave()
}

#[test]
fn a_command_that_fails_or_needs_a_yes_is_an_error_of_the_tool() -> Result<()> {
    let house = House::new(&calls("host__end", &json!({})))?;
    let command = |more: &str| {
        format!(
            r#"{{"commands": [{{"name": "end", "description": "Ends.", "command": "sh", "args": ["-c", "echo why >&2; exit 3"]{more}}}]}}"#
        )
    };
    house.write(CHAT_JSON, &command(""))?;
    house.chat(&[], &["go"])?.ended(0)?;
    let result = house.model.requests()[1].results().join("");
    ensure!(result.contains("why") && result.contains("exit status: 3"), "{result}");
    house.write(CHAT_JSON, &command(r#", "confirm": true"#))?;
    house.chat(&[], &["go"])?.ended(0)?;
    let result = house.model.requests()[3].results().join("");
    ensure!(result.contains("the user did not allow it"), "{result}");
    house.chat(&["--yes"], &["go"])?.ended(0)?;
    let result = house.model.requests()[5].results().join("");
    ensure!(result.contains("exit status: 3"), "{result}");
    house.leave()
}

#[test]
fn calls_that_come_together_run_together() -> Result<()> {
    // Each of the two waits for the other one.
    let house = House::new(&json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "Both."}},
        {"when": {"user": "go"}, "reply": {"calls": [
            {"name": "host__give", "arguments": {}}, {"name": "host__take", "arguments": {}}]}},
    ]}))?;
    let config = json!({"commands": [
        {"name": "give", "description": "Gives.", "command": "sh", "args": ["-c", "echo met > meeting; echo given"]},
        {"name": "take", "description": "Takes.", "command": "cat", "args": ["meeting"]},
    ]});
    house.write(CHAT_JSON, &config.to_string())?;
    let meeting = house.rig.path().join("work/meeting");
    ensure!(std::process::Command::new("mkfifo").arg(meeting).status()?.success(), "no pipe");
    let told = house.chat(&[], &["go"])?.ended(0)?;
    told.says(&["● give\n  given\n", "● take\n  met\n", "Both.\n"])?;
    assert_eq!(house.model.requests()[1].results(), ["given\n", "met\n"], "in the order of the calls");
    house.leave()
}

#[test]
fn a_large_result_is_cut_for_the_model_and_on_the_screen() -> Result<()> {
    let house = House::new(&calls("host__flood", &json!({})))?;
    let config =
        json!({"commands": [{"name": "flood", "description": "Much.", "command": "seq", "args": ["40000"]}]});
    house.write(CHAT_JSON, &config.to_string())?;
    let told = house.chat(&[], &["go"])?.ended(0)?;
    told.says(&["● flood\n  1\n", "  8\n  … 39992 more lines\n", "That is it.\n"])?;
    let result = house.model.requests()[1].results().join("");
    ensure!(result.len() < 60_000 && result.contains("too large"), "{} {result:.300}", result.len());
    house.leave()
}

#[test]
fn a_tool_that_takes_too_long_says_so() -> Result<()> {
    let house = House::new(&calls("host__wait", &json!({})))?;
    let config =
        json!({"commands": [{"name": "wait", "description": "Waits.", "command": "cat", "args": ["never"]}]});
    house.write(CHAT_JSON, &config.to_string())?;
    house.write("home/.config/toolway/bridge.json", r#"{"tools": {"bridge": {"callTimeoutMs": 300}}}"#)?;
    let never = house.rig.path().join("work/never");
    ensure!(std::process::Command::new("mkfifo").arg(never).status()?.success(), "no pipe");
    let told = house.chat(&[], &["go"])?.ended(0)?;
    let (_, shown) = told.out.split_once("● wait\n").unwrap_or_default();
    ensure!(shown.contains("300 ms") && !shown.contains("the user stopped it"), "{told:#?}");
    let result = house.model.requests()[1].results().join("");
    ensure!(result.contains("300 ms"), "{result}");
    house.leave()
}

#[test]
fn what_looks_like_a_key_is_not_kept() -> Result<()> {
    let key = "ghp_0123456789abcdefghij0123456789abcdef";
    let house = House::new(&calls("host__leak", &json!({})))?;
    let config =
        json!({"commands": [{"name": "leak", "description": "Leaks.", "command": "echo", "args": [key]}]});
    house.write(CHAT_JSON, &config.to_string())?;
    house.chat(&[], &["go", "/resume"])?.ended(0)?;
    let chats = house.rig.path().join("home/.local/state/toolway/chats");
    let mut kept = String::new();
    for chat in std::fs::read_dir(chats)? {
        kept.push_str(&std::fs::read_to_string(chat?.path())?);
    }
    ensure!(kept.contains("toolResult") && kept.contains("That is it.") && !kept.contains(key), "{kept}");
    house.leave()
}

#[test]
fn flags_act_on_the_chats_own_tools_alone() -> Result<()> {
    let house = House::new(&json!({"replies": [{"text": "Yes."}]}))?;
    let offered = |words: &[&str]| -> Result<Vec<String>> {
        house.chat(words, &["x"])?.ended(0)?;
        let asked = house.model.requests();
        Ok(asked.last().map(toolway_testkit::ModelExchange::tools).unwrap_or_default())
    };
    let of_host = |tools: &[String]| -> Vec<String> {
        tools.iter().filter_map(|tool| tool.strip_prefix("host__")).map(str::to_owned).collect()
    };
    let all = offered(&[])?;
    let mut names = of_host(&all);
    names.sort();
    assert_eq!(names, ["ask", "clipboard", "open_in_editor", "todo"]);
    let only = offered(&["--tools", "todo,ask", "--exclude-tools", "ask"])?;
    assert_eq!(of_host(&only), ["todo"]);
    let none = offered(&["--no-tools"])?;
    ensure!(of_host(&none).is_empty() && none.contains(&"shell".to_owned()), "{none:?}");
    house
        .chat(&["--tools", "shell"], &["x"])?
        .ended(2)?
        .says(&["--tools: this chat has no tool \"shell\"", "todo, ask"])?;
    house.leave()
}

#[test]
fn without_a_terminal_nobody_answers_and_nothing_is_opened() -> Result<()> {
    for (tool, arguments, told) in [
        ("host__ask", json!({"question": "Which?"}), "nobody can be asked here"),
        ("host__open_in_editor", json!({"path": "x"}), "no terminal here"),
        ("host__clipboard", json!({"action": "copy", "text": "x"}), "no clipboard here"),
        ("host__clipboard", json!({"action": "paste"}), "no clipboard here"),
    ] {
        let house = House::new(&calls(tool, &arguments))?;
        house.chat(&[], &["go"])?.ended(0)?;
        let result = house.model.requests()[1].results().join("");
        ensure!(result.contains(told), "{tool}: {result}");
        house.leave()?;
    }
    Ok(())
}

#[test]
fn the_clipboard_is_written_by_the_systems_program_and_read_only_with_a_yes() -> Result<()> {
    let house = House::new(&calls("host__clipboard", &json!({"action": "copy", "text": "to paste"})))?;
    house.write(
        "bin/xclip",
        "#!/bin/sh\ncase \"$*\" in *-out*) cat \"$CLIP\";; *) cat > \"$CLIP\";; esac\n",
    )?;
    let program = house.rig.path().join("bin/xclip");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    let (clip, bin) = (house.rig.path().join("clip"), house.rig.path().join("bin"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let house = house
        .with_variable("DISPLAY", ":9")
        .with_variable("CLIP", &clip.to_string_lossy())
        .with_variable("PATH", &path);
    house.chat(&[], &["go"])?.ended(0)?;
    assert_eq!(std::fs::read_to_string(&clip)?, "to paste");
    house.leave()
}

#[test]
fn skills_are_activated_by_name() -> Result<()> {
    let house = House::new(&calls("host__activate_skill", &json!({"name": "brewing"})))?;
    let skill = "---\nname: brewing\ndescription: How tea is made.\n---\nBoil water first.\n";
    house.write("work/.cursor/skills/brewing/SKILL.md", skill)?;
    house.write("work/.git/HEAD", "ref: refs/heads/main\n")?;
    let told = house.chat(&[], &["/skills", "go"])?.ended(0)?;
    told.says(&["brewing: How tea is made.\n", "● activate_skill"])?;
    let asked = house.model.requests();
    ensure!(asked[0].text.contains("How tea is made."), "{}", asked[0].text);
    ensure!(asked[1].results().join("").contains("Boil water first."), "{:?}", asked[1].results());
    house.leave()
}
