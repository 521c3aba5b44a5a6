//! The servers of an agent behind the protocol: who uses them, who does not, and what a call is while a run changes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_agent::{
    AcpOptions, Agent, AgentOptions, Engine as _, EngineChoice, EventKind, LocalOptions, Machine, McpServer,
    McpServers, Place, RunStatus, SendOptions, StoreChoice, ToolCallStatus, TurnStop,
};

use crate::rig::{Recorder, Rig, script};

fn one(tool: &str, answer: &str) -> Result<McpServers> {
    let script = format!(
        "tool {{\"name\":\"{tool}\",\"inputSchema\":{{\"type\":\"object\"}}}}\non tools/call/{tool} -> {answer}"
    );
    let fake = toolway_testkit::fakemcp()?.to_string_lossy().into_owned();
    Ok(McpServers::new().with("one", McpServer::command(fake).args(["--script", &script]).required()))
}

#[tokio::test]
async fn an_agent_that_ignores_its_servers_is_noticed_once_a_session() -> Result<()> {
    let script =
        json!({"ignores_servers": true, "prompts": [{"do": [{"say": "one"}]}, {"do": [{"say": "two"}]}]});
    let rig = Rig::new(&script)?.servers(one("echo", "text from one")?);
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let mut notes = Vec::new();
    for text in ["one", "two"] {
        let sink = Arc::new(Recorder::default());
        engine.run(rig.turn(text, &servers), sink.clone()).await?;
        notes.push(sink.notes("servers"));
    }
    engine.close().await;
    ensure!(notes[0].len() == 1 && notes[0][0].contains("has not connected to the MCP servers"), "{notes:?}");
    ensure!(notes[1].is_empty(), "{notes:?}");
    Ok(())
}

#[tokio::test]
async fn an_agent_that_uses_its_servers_or_has_none_is_told_nothing_of() -> Result<()> {
    for servers in [McpServers::new(), one("echo", "text from one")?] {
        let rig = Rig::new(&json!({}))?.servers(servers);
        let (end, sink) = rig.prompt("go").await?;
        end?;
        ensure!(sink.notes("servers").is_empty(), "{:?}", sink.notes("servers"));
    }
    Ok(())
}

#[tokio::test]
async fn a_command_that_begins_with_our_name_is_asked_about() -> Result<()> {
    let question = |kind: &str, title: &str| {
        json!({"permission": {
            "toolCall": {"toolCallId": title, "kind": kind, "title": title, "rawInput": {"command": title}},
            "allowed": [{"say": format!("ran {title};")}], "refused": [{"say": format!("no {title};")}],
        }})
    };
    let steps = json!([
        question("execute", "toolway-model --x"),
        question("execute", "toolway_one__echo"),
        question("edit", "toolway/one"),
        question("other", "toolway_one__echo"),
    ]);
    let rig = Rig::with(&script(steps), &["Shell(git *)"], &[])?.servers(one("echo", "text from one")?);
    let (end, _) = rig.prompt("go").await?;
    let expected = "no toolway-model --x;no toolway_one__echo;no toolway/one;ran toolway_one__echo;";
    assert_eq!(end?.result.as_deref(), Some(expected));
    Ok(())
}

#[tokio::test]
async fn a_cancel_in_the_middle_of_a_call_gives_it_up_and_keeps_the_agent() -> Result<()> {
    let rig = Rig::new(&json!({"prompts": [
        {"do": [{"mcp": {"server": "toolway", "tool": "one__slow"}}, {"end": "cancelled"}]},
        {"do": [{"say": "back"}]},
    ]}))?
    .servers(one("slow", "never")?);
    let (engine, servers) = (rig.engine(), rig.generation().await?);
    let sink = Arc::new(Recorder::default());
    let turn = rig.turn("one", &servers);
    let cancel = turn.cancel.clone();
    let run = engine.run(turn, sink.clone());
    let cut = async {
        let begun = |event: &EventKind| matches!(event, EventKind::ToolCall(call) if call.status == ToolCallStatus::Running);
        let told = sink.until(|told| told.events().iter().any(begun)).await;
        cancel.cancel();
        told
    };
    let (end, told) = tokio::join!(run, cut);
    told?;
    assert_eq!(end?.stop, TurnStop::Cancelled);
    let ended = sink
        .events()
        .into_iter()
        .any(|event| matches!(event, EventKind::ToolCall(call) if call.status == ToolCallStatus::Error));
    ensure!(ended, "the call has an end: {:?}", sink.events());
    let end = engine.run(rig.turn("two", &servers), Arc::new(Recorder::default())).await?;
    assert_eq!(end.result.as_deref(), Some("back"));
    assert_eq!(rig.pids()?.len(), 1);
    engine.close().await;
    ensure!(rig.is_gone()?);
    Ok(())
}

/// An agent of the whole crate on the scripted program.
fn agent(
    dir: &std::path::Path,
    script: &Value,
    change: impl FnOnce(&mut AgentOptions, &mut LocalOptions),
) -> Result<Agent> {
    let work = dir.join("work");
    std::fs::create_dir_all(&work)?;
    let variables = vec![
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("HOME".into(), dir.join("home").into_os_string()),
    ];
    let mut options = AgentOptions::local(Machine::new(variables, work));
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let acp = AcpOptions {
        command: Some(text(toolway_testkit::toolway_acp_agent()?)),
        args: vec![
            "--script".to_owned(),
            script.to_string(),
            "--journal".to_owned(),
            text(dir.join("journal")),
        ],
        ..AcpOptions::default()
    };
    let mut local = LocalOptions {
        engine: EngineChoice::Acp(acp),
        store: StoreChoice::Memory,
        ..LocalOptions::default()
    };
    change(&mut options, &mut local);
    options.place = Place::Local(Box::new(local));
    Ok(Agent::create(options)?)
}

fn journal(dir: &std::path::Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(dir.join("journal"))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[tokio::test]
async fn calls_after_a_cancelled_run_are_judged_for_their_own_run() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let script = json!({"prompts": [
        {"do": [{"say": "I wait"}, {"await_cancel": true}, {"end": "cancelled"}]},
        {"do": [{"mcp": {"server": "toolway", "tool": "one__echo"}}, {"say": "called"}]},
    ]});
    let hooks = json!({"version": 1, "hooks": {"beforeMCPExecution": [
        {"command": "cat >> seen; echo >> seen; echo '{\"permission\":\"allow\"}'"},
    ]}});
    std::fs::create_dir_all(dir.path().join("work/.cursor"))?;
    std::fs::create_dir_all(dir.path().join("work/.git"))?;
    std::fs::write(dir.path().join("work/.cursor/hooks.json"), hooks.to_string())?;
    let servers = one("echo", "text from one")?;
    let agent = agent(dir.path(), &script, |options, local| {
        options.mcp_servers = servers;
        local.setting_sources = vec![toolway_config::SettingSource::Project];
    })?;
    let run = agent.send("one", SendOptions::default()).await?;
    let waits = async {
        while !journal(dir.path())
            .is_ok_and(|lines| lines.iter().any(|line| line["method"] == "session/prompt"))
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waits).await?;
    run.cancel().await?;
    assert_eq!(run.wait().await?.status, RunStatus::Cancelled);
    let second = agent.send("two", SendOptions::default()).await?;
    let state = second.wait().await?;
    assert_eq!(state.result.as_deref(), Some("called"), "{state:?}");
    let lines = journal(dir.path())?;
    let called = lines.iter().find(|line| line["event"] == "called").context("no call")?;
    ensure!(called["result"].to_string().contains("from one"), "{called}");
    assert_eq!(lines.iter().filter(|line| line["event"] == "start").count(), 1, "the agent was kept");
    // The hook is told of the run that calls.
    let seen = std::fs::read_to_string(dir.path().join("work/seen"))
        .or_else(|_| std::fs::read_to_string(dir.path().join("work/.cursor/seen")))?;
    let told: Value = serde_json::from_str(seen.lines().next().context("no hook ran")?)?;
    assert_eq!(told["generation_id"], second.id().to_string(), "{told}");
    agent.dispose().await;
    Ok(())
}

#[tokio::test]
async fn a_reload_in_the_middle_of_a_conversation_changes_the_servers_and_keeps_the_session() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let call = |tool: &str| json!({"mcp": {"server": "toolway", "tool": tool}});
    let script = json!({"prompts": [
        {"do": [call("one__echo"), {"say": "first"}]},
        {"do": [call("two__echo"), {"say": "second"}]},
    ]});
    let file = |name: &str, answer: &str| -> Result<()> {
        let fake = toolway_testkit::fakemcp()?;
        let script = format!(
            "tool {{\"name\":\"echo\",\"inputSchema\":{{\"type\":\"object\"}}}}\non tools/call/echo -> text {answer}"
        );
        let mut servers = json!({"mcpServers": {}});
        servers["mcpServers"][name] =
            json!({"command": fake, "args": ["--script", script], "required": true});
        std::fs::create_dir_all(dir.path().join("work/.cursor"))?;
        std::fs::create_dir_all(dir.path().join("work/.git"))?;
        Ok(std::fs::write(dir.path().join("work/.cursor/mcp.json"), servers.to_string())?)
    };
    file("one", "from the first file")?;
    let agent = agent(dir.path(), &script, |_, local| {
        local.setting_sources = vec![toolway_config::SettingSource::Project];
    })?;
    for (text, said) in [("one", "first"), ("two", "second")] {
        let run = agent.send(text, SendOptions::default()).await?;
        assert_eq!(run.wait().await?.result.as_deref(), Some(said));
        file("two", "from the second file")?;
        ensure!(agent.reload().await?.reloaded);
    }
    agent.dispose().await;
    let lines = journal(dir.path())?;
    let results: Vec<String> = lines
        .iter()
        .filter(|line| line["event"] == "called")
        .map(|line| line["result"].to_string())
        .collect();
    ensure!(results[0].contains("the first file") && results[1].contains("the second file"), "{results:?}");
    let sessions: Vec<&Value> = lines
        .iter()
        .filter(|line| line["method"] == "session/prompt")
        .map(|line| &line["params"]["sessionId"])
        .collect();
    ensure!(sessions[0] == sessions[1], "one conversation: {sessions:?}");
    assert_eq!(lines.iter().filter(|line| line["method"] == "session/load").count(), 1);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_takes_its_time_to_stop_is_waited_for_and_heard() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let script = json!({"prompts": [
        {"do": [{"say": "working"}, {"await_cancel": true}, {"sleep": 2500}, {"say": " and tidied up"}, {"end": "cancelled"}]},
        {"do": [{"say": "back"}]},
    ]});
    let agent = agent(dir.path(), &script, |_, _| {})?;
    let run = agent.send("one", SendOptions::default()).await?;
    let mut deltas = run.deltas()?;
    while let Some(delta) = deltas.next().await {
        if matches!(delta, toolway_agent::Delta::Text(_)) {
            break;
        }
    }
    run.cancel().await?;
    let state = run.wait().await?;
    assert_eq!(
        (state.status, state.result.as_deref()),
        (RunStatus::Cancelled, Some("working and tidied up"))
    );
    let second = agent.send("two", SendOptions::default()).await?;
    assert_eq!(second.wait().await?.result.as_deref(), Some("back"));
    agent.dispose().await;
    assert_eq!(journal(dir.path())?.iter().filter(|line| line["event"] == "start").count(), 1);
    Ok(())
}

#[tokio::test]
async fn hooks_know_a_call_by_the_agents_own_id_before_and_after() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let shown = json!({"sessionUpdate": "tool_call", "toolCallId": "call-7", "title": "toolway_one__echo",
        "kind": "other", "status": "in_progress", "rawInput": {"n": 1}});
    let script = json!({"prompts": [{"do": [
        {"update": shown},
        // Answered once what was told before is known.
        {"ask": {"method": "fs/read_text_file", "params": {"path": "none"}}},
        {"mcp": {"id": "call-7", "server": "toolway", "tool": "one__echo", "arguments": {"n": 1}}},
        {"say": "called"},
    ]}]});
    let hook = |name: &str| json!([{"command": format!("cat >> {name}; echo >> {name}; echo '{{}}'")}]);
    let hooks = json!({"version": 1, "hooks": {"preToolUse": hook("pre"), "postToolUse": hook("post")}});
    std::fs::create_dir_all(dir.path().join("work/.cursor"))?;
    std::fs::create_dir_all(dir.path().join("work/.git"))?;
    std::fs::write(dir.path().join("work/.cursor/hooks.json"), hooks.to_string())?;
    let servers = one("echo", "text from one")?;
    let agent = agent(dir.path(), &script, |options, local| {
        options.mcp_servers = servers;
        local.setting_sources = vec![toolway_config::SettingSource::Project];
    })?;
    let run = agent.send("go", SendOptions::default()).await?;
    let state = run.wait().await?;
    assert_eq!(state.result.as_deref(), Some("called"), "{state:?}");
    agent.dispose().await;
    for name in ["pre", "post"] {
        let seen = std::fs::read_to_string(dir.path().join("work").join(name))
            .or_else(|_| std::fs::read_to_string(dir.path().join("work/.cursor").join(name)))?;
        let told: Value = serde_json::from_str(seen.lines().next().context("no hook ran")?)?;
        assert_eq!(told["tool_use_id"], "call-7", "{name}: {told}");
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn fifty_agents_leave_nothing_behind() -> Result<()> {
    let mine = std::process::id();
    let mut files = 0;
    for number in 0..50 {
        let dir = tempfile::tempdir()?;
        let script = json!({"prompts": [{"do": [{"mcp": {"server": "toolway", "tool": "one__echo"}}, {"say": "called"}]}]});
        let servers = one("echo", "text from one")?;
        let agent = agent(dir.path(), &script, |options, _| options.mcp_servers = servers)?;
        let run = agent.send("go", SendOptions::default()).await?;
        assert_eq!(run.wait().await?.result.as_deref(), Some("called"));
        if number % 2 == 0 {
            agent.dispose().await;
        } else {
            drop((run, agent));
        }
        for line in journal(dir.path())?.into_iter().filter(|line| line["event"] == "start") {
            let pid = u32::try_from(line["pid"].as_u64().context("no pid")?)?;
            // What is dropped ends in the background.
            let waits = move || toolway_testkit::wait_for_end(pid, Duration::from_mins(1));
            ensure!(tokio::task::spawn_blocking(waits).await??, "{pid} of {number} is there");
        }
        if number == 4 {
            files = toolway_testkit::open_files(mine).len();
        }
    }
    let left = async {
        while toolway_testkit::open_files(mine).len() > files + 20 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), left)
        .await
        .with_context(|| format!("{files} files before, {:?} after", toolway_testkit::open_files(mine)))?;
    Ok(())
}
