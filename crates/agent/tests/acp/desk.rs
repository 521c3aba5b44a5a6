//! What an agent asks for: permissions by the rules, files and commands inside the workspace alone.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use toolway_agent::{Delta, DirectServer, EventKind};
use toolway_secret::Secret;

use crate::rig::{Rig, script};

fn ask(method: &str, params: Value) -> Value {
    let mut step = json!({"ask": {"method": method}});
    step["ask"]["params"] = params;
    step
}

#[tokio::test]
async fn permissions_are_the_rules_and_the_agent_is_told_yes_or_no_once() -> Result<()> {
    let shell = |command: &str| {
        json!({"permission": {
            "toolCall": {"toolCallId": command, "kind": "execute", "title": command, "rawInput": {"command": command}},
            "allowed": [{"say": format!("ran {command};")}], "refused": [{"say": format!("no {command};")}],
        }})
    };
    let rig = Rig::with(
        &script(json!([shell("git status"), shell("git push"), shell("rm -rf /")])),
        &["Shell(git *)"],
        &["Shell(git push)"],
    )?;
    let (end, _) = rig.prompt("go").await?;
    assert_eq!(end?.result.as_deref(), Some("ran git status;no git push;no rm -rf /;"));
    let options: Vec<Value> =
        rig.answers()?.iter().map(|answer| answer["result"]["outcome"]["optionId"].clone()).collect();
    assert_eq!(options, ["yes", "no", "no"]);
    Ok(())
}

#[tokio::test]
async fn files_are_served_inside_the_workspace_alone() -> Result<()> {
    let rig = Rig::new(&json!({}))?;
    let (work, outside) = (rig.work(), rig.outside().to_owned());
    std::fs::write(work.join("a.txt"), "one\ntwo\n")?;
    std::fs::write(outside.join("secret"), "secret")?;
    std::os::unix::fs::symlink(outside.join("secret"), work.join("link"))?;
    let steps = json!([
        ask("fs/read_text_file", json!({"path": work.join("a.txt"), "line": 2, "limit": 1})),
        ask("fs/write_text_file", json!({"path": work.join("new/b.txt"), "content": "written"})),
        ask("fs/read_text_file", json!({"path": outside.join("secret")})),
        ask("fs/read_text_file", json!({"path": work.join("link")})),
        ask("fs/write_text_file", json!({"path": work.join("../secret"), "content": "x"})),
        ask("fs/read_text_file", json!({"path": work.join("none")})),
        ask("fs/read_text_file", json!({"path": work.join("a.txt"), "sessionId": "another"})),
        ask("session/eat", json!({})),
    ]);
    std::fs::write(outside.join("script.json"), script(steps).to_string())?;
    let (end, sink) = rig.prompt("go").await?;
    end?;
    let answers = rig.answers()?;
    assert_eq!(answers[0]["result"], json!({"content": "two\n"}));
    assert_eq!(std::fs::read_to_string(work.join("new/b.txt"))?, "written");
    let codes: Vec<&Value> = answers.iter().skip(2).map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32602, -32602, -32602, -32002, -32602, -32601]);
    ensure!(!answers.iter().any(|answer| answer.to_string().contains("\"secret\"")), "{answers:?}");
    assert_eq!(std::fs::read_to_string(outside.join("secret"))?, "secret");
    assert_eq!(sink.notes("refused").len(), 3, "{:?}", sink.events());
    Ok(())
}

#[tokio::test]
async fn what_is_denied_for_files_and_commands_is_denied_here_too() -> Result<()> {
    let rig = Rig::with(&json!({}), &[], &["Read(secret/**)", "Shell(touch *)"])?;
    let work = rig.work();
    std::fs::create_dir(work.join("secret"))?;
    std::fs::write(work.join("secret/key"), "k")?;
    let steps = json!([
        ask("fs/read_text_file", json!({"path": work.join("secret/key")})),
        ask("terminal/create", json!({"command": "touch", "args": ["made"]})),
        ask("terminal/create", json!({"command": "touch made"})),
    ]);
    std::fs::write(rig.outside().join("script.json"), script(steps).to_string())?;
    rig.prompt("go").await?.0?;
    for answer in rig.answers()? {
        ensure!(answer["error"]["code"] == -32602, "{answer}");
    }
    ensure!(!work.join("made").exists());
    Ok(())
}

#[tokio::test]
async fn commands_run_in_the_workspace_and_their_output_is_told() -> Result<()> {
    let rig = Rig::new(&json!({}))?;
    let terminal = |method: &str| ask(method, json!({"terminalId": "term-1"}));
    let shown = json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "echo", "kind": "execute",
        "status": "in_progress", "rawInput": {"command": "echo"}, "content": [{"type": "terminal", "terminalId": "term-1"}]});
    let steps = json!([
        ask("terminal/create", json!({"command": "echo out; echo err >&2; echo $HIDDEN-$GIVEN; pwd; exit 3",
            "env": [{"name": "GIVEN", "value": "given"}], "outputByteLimit": 1000})),
        {"update": shown},
        terminal("terminal/wait_for_exit"),
        terminal("terminal/output"),
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}},
        terminal("terminal/release"),
        terminal("terminal/output"),
        ask("terminal/create", json!({"command": "sleep", "args": ["1000"]})),
        ask("terminal/kill", json!({"terminalId": "term-2"})),
        ask("terminal/wait_for_exit", json!({"terminalId": "term-2"})),
        ask("terminal/create", json!({"command": "ls", "args": ["-a"], "cwd": "/"})),
        ask("terminal/create", json!({"command": "no-such-program", "args": ["-a"]})),
    ]);
    std::fs::write(rig.outside().join("script.json"), script(steps).to_string())?;
    let (end, sink) = rig.prompt("go").await?;
    end?;
    let answers = rig.answers()?;
    assert_eq!(answers[1]["result"]["exitCode"], 3);
    let output = answers[2]["result"]["output"].as_str().unwrap_or_default().to_owned();
    let work = std::fs::canonicalize(rig.work())?;
    for part in ["out\n", "err\n", "-given\n", &work.to_string_lossy()] {
        ensure!(output.contains(part), "{part}: {output}");
    }
    ensure!(answers[4]["error"]["code"] == -32002, "{}", answers[4]);
    ensure!(answers[7]["result"]["signal"].is_string(), "{}", answers[7]);
    ensure!(answers[8]["error"]["code"] == -32602 && answers[9]["error"]["code"] == -32602, "{answers:?}");
    let result = sink.events().into_iter().rev().find_map(|event| match event {
        EventKind::ToolCall(call) => call.result,
        _ => None,
    });
    ensure!(result.is_some_and(|result| result.text().contains("err\\n")));
    let told: String = sink
        .deltas()
        .iter()
        .filter_map(|delta| match delta {
            Delta::ShellOutput { call_id, text, .. } if call_id == "c1" => Some(text.as_str()),
            _ => None,
        })
        .collect();
    // What was written before the call showed the terminal is in the result alone.
    ensure!(output.contains(told.trim()), "{told}");
    Ok(())
}

#[tokio::test]
async fn of_a_refusal_the_user_is_told_why() -> Result<()> {
    let shell = |command: &str| json!({"permission": {"toolCall": {"toolCallId": command, "kind": "execute", "rawInput": {"command": command}}}});
    let mut always = shell("git log");
    always["permission"]["options"] =
        json!([{"optionId": "always", "name": "Always", "kind": "allow_always"}]);
    let rig = Rig::with(
        &script(json!([shell("git status"), shell("git push"), shell("make"), always])),
        &["Shell(git *)"],
        &["Shell(git push)"],
    )?;
    let (end, sink) = rig.prompt("go").await?;
    end?;
    let notes = sink.notes("refused");
    ensure!(notes.len() == 3, "{notes:?}");
    ensure!(notes[0].contains("run git push") && notes[0].contains("the rule Shell(git push)"), "{notes:?}");
    ensure!(notes[1].contains("run make") && notes[1].contains("permissions.allow"), "{notes:?}");
    ensure!(notes[2].contains("git log") && notes[2].contains("one time only"), "{notes:?}");
    Ok(())
}

#[tokio::test]
async fn a_rule_denies_what_an_agent_calls_past_the_front_where_it_asks() -> Result<()> {
    let question = |tool: &str| {
        json!({"permission": {
            "toolCall": {"toolCallId": tool, "kind": "other", "title": format!("pi_tools_{tool}"), "rawInput": {}},
            "allowed": [{"say": format!("called {tool};")}], "refused": [{"say": format!("no {tool};")}],
        }})
    };
    let direct = DirectServer {
        name: "pi_tools".to_owned(),
        url: Secret::new("http://127.0.0.1:9/mcp"),
        headers: Vec::new(),
    };
    let rig = Rig::with(&script(json!([question("ask"), question("erase")])), &[], &["Mcp(pi_tools:erase)"])?;
    let (end, sink) = rig.direct(direct).prompt("go").await?;
    assert_eq!(end?.result.as_deref(), Some("called ask;no erase;"));
    assert_eq!(sink.notes("refused").len(), 1);
    Ok(())
}

#[tokio::test]
async fn no_more_terminals_run_than_are_allowed_however_fast_they_are_asked_for() -> Result<()> {
    let rig = Rig::new(&json!({}))?;
    let create = |_| ask("terminal/create", json!({"command": "sleep", "args": ["1000"]}));
    let many: Vec<Value> = (0..40).map(create).collect();
    let steps = json!([{"at_once": many}]);
    std::fs::write(rig.outside().join("script.json"), script(steps).to_string())?;
    rig.prompt("go").await?.0?;
    let answers = rig.answers()?;
    let created = answers.iter().filter(|answer| answer["result"]["terminalId"].is_string()).count();
    let refused =
        answers.iter().filter(|answer| answer["error"]["message"].to_string().contains("release")).count();
    assert_eq!((created, refused), (16, 24), "{answers:?}");
    Ok(())
}
