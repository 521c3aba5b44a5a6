//! Capabilities, subagents, rules, hooks, secrets of files: on the native runtime, as a program sets them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use toolway_agent::{
    Agent, AgentDefinition, CustomOutput, CustomTool, Delta, EventKind, GuardOptions, LocalOptions,
    McpServers, PermissionOptions, RunStatus, SendOptions, ServerChange, SubagentServers, ToolCallEvent,
    ToolCallStatus,
};
use toolway_config::SettingSource;

use super::bench::{Bench, DEADLINE, ended, script, soon, told};

fn custom() -> CustomTool {
    CustomTool::new("mine", "a function", |_| async { Ok(CustomOutput::Text("mine".to_owned())) })
}

#[tokio::test]
async fn statement_a42_who_has_no_mcp_starts_no_server_and_offers_no_tool_of_one() -> Result<()> {
    for (tools, denied) in [
        (None, vec!["mcp".to_owned()]),
        (Some(Vec::new()), Vec::new()),
        (Some(vec!["read".to_owned()]), Vec::new()),
        (Some(vec!["mcp".to_owned(), "read".to_owned()]), vec!["mcp".to_owned()]),
    ] {
        let mut bench = Bench::new()?;
        let model = script(&json!({"replies": [{"text": "done"}]}))?;
        let local = LocalOptions {
            tools: tools.clone(),
            disallowed_tools: denied,
            custom_tools: vec![custom()],
            ..LocalOptions::default()
        };
        let servers = McpServers::new().with("one", bench.server("")?);
        let told = told(bench.options(&model, servers, local), "go").await?;
        ensure!(told.state.status == RunStatus::Finished, "{:?}", told.state);
        ensure!(!bench.hub.has_arrived("server"), "{tools:?}");
        let offered = model.requests().first().context("no request")?.tools();
        ensure!(!offered.iter().any(|name| name.contains("echo") || name.contains("mine")), "{offered:?}");
        if tools == Some(Vec::new()) {
            ensure!(offered.is_empty(), "{offered:?}");
        }
        let init = told.init()?;
        ensure!(init.mcp_tools.is_empty() && init.mcp_servers[0].state == "disabled", "{init:?}");
    }
    let (bench, model) = (Bench::new()?, script(&json!({"replies": [{"text": "done"}]}))?);
    let local = LocalOptions { tools: Some(vec!["reed".to_owned()]), ..LocalOptions::default() };
    let error = Agent::create(bench.options(&model, McpServers::new(), local)).err().context("created")?;
    ensure!(error.to_string().contains("reed") && error.to_string().contains("read"), "{error}");
    Ok(())
}

#[tokio::test]
async fn statement_a43_a_subagent_uses_what_it_names_and_its_own_servers_end_with_it() -> Result<()> {
    let bench = Bench::new()?;
    let task = |agent: &str| json!({"calls": [{"name": "task", "arguments": {"agent": agent, "prompt": format!("for {agent}")}}]});
    let model = script(&json!({"rules": [
        {"when": {"user": "for narrow"}, "reply": {"calls": [{"name": "b__echo", "arguments": {}}, {"name": "a__echo", "arguments": {}}]}},
        {"when": {"user": "for own"}, "reply": {"calls": [{"name": "c__echo", "arguments": {}}, {"name": "a__echo", "arguments": {}}]}},
        {"when": {"user": "narrow"}, "reply": task("narrow")},
        {"when": {"user": "own"}, "reply": task("own")},
    ], "otherwise": {"text": "done"}}))?;
    let own = McpServers::new().with("c", bench.server("on tools/call/echo -> text c ran")?);
    let agent = |servers| AgentDefinition {
        description: "d".to_owned(),
        prompt: "p".to_owned(),
        mcp_servers: Some(servers),
        ..AgentDefinition::default()
    };
    let servers = McpServers::new()
        .with("a", bench.server("on tools/call/echo -> text a ran")?)
        .with("b", bench.server("on tools/call/echo -> text b ran")?);
    let mut options = bench.options(&model, servers, LocalOptions::default());
    let named = |name: &str| vec![SubagentServers::Named(name.to_owned())];
    options.agents = BTreeMap::from([
        ("narrow".to_owned(), agent(named("a"))),
        ("own".to_owned(), agent(vec![SubagentServers::Inline(own)])),
    ]);
    let mut wrong = options.clone();
    wrong.agents.insert("wrong".to_owned(), agent(named("nope")));
    let error = Agent::create(wrong).err().context("created")?;
    ensure!(error.to_string().contains("nope"), "{error}");
    let agent = Agent::create(options)?;
    let run = agent.send("narrow", SendOptions::default()).await?;
    ensure!(ended(&run).await?.state.status == RunStatus::Finished);
    let asked: Vec<_> = model.requests().into_iter().filter(|one| one.text.contains("for narrow")).collect();
    let inner = asked.iter().find(|one| !one.tools().contains(&"task".to_owned())).context("no subagent")?;
    ensure!(
        inner.tools().contains(&"a__echo".to_owned()) && !inner.tools().contains(&"b__echo".to_owned()),
        "{:?}",
        inner.tools()
    );
    let results: Vec<String> = asked.iter().flat_map(toolway_testkit::ModelExchange::results).collect();
    ensure!(results.iter().any(|text| text.contains("a ran")), "{results:?}");
    ensure!(!results.iter().any(|text| text.contains("b ran")), "{results:?}");
    let before = bench.leaks().processes().len();
    let run = agent.send("own", SendOptions::default()).await?;
    ensure!(ended(&run).await?.state.status == RunStatus::Finished);
    ensure!(bench.leaks().processes().len() == before, "its own servers are left");
    let asked = model.requests();
    let inner =
        asked.iter().rfind(|one| one.text.contains("for own") && !one.tools().contains(&"task".to_owned()));
    let inner = inner.context("no subagent")?;
    ensure!(
        inner.tools().contains(&"c__echo".to_owned()) && !inner.tools().contains(&"a__echo".to_owned()),
        "{:?}",
        inner.tools()
    );
    ensure!(inner.results().iter().any(|text| text.contains("c ran")), "{:?}", inner.results());
    soon(agent.dispose()).await?;
    bench.leaks().check(DEADLINE)
}

/// Where files may bring servers, names are looked at when these were read: before the model is asked anything.
#[tokio::test]
async fn statement_a43_a_server_that_no_file_brings_either_is_an_error_of_the_run() -> Result<()> {
    let bench = Bench::new()?;
    let model = script(&json!({"rules": [], "otherwise": {"text": "done"}}))?;
    let entry = bench.entry("on tools/call/echo -> text it ran")?;
    bench.write("home/project/.cursor/mcp.json", &json!({"mcpServers": {"there": entry}}).to_string())?;
    let given = |server: &str| {
        let definition = AgentDefinition {
            description: "d".to_owned(),
            prompt: "p".to_owned(),
            mcp_servers: Some(vec![SubagentServers::Named(server.to_owned())]),
            ..AgentDefinition::default()
        };
        let mut options = bench.options(&model, McpServers::new(), project());
        options.agents = BTreeMap::from([("helper".to_owned(), definition)]);
        options
    };
    let agent = Agent::create(given("nowhere"))?;
    let run = agent.send("go", SendOptions::default()).await?;
    let told = ended(&run).await?;
    let error = told.state.error.clone().context("no error")?;
    ensure!(error.code == "validation_error", "{error}");
    ensure!(error.message.contains("nowhere") && error.message.contains("there is there"), "{error}");
    ensure!(told.init()?.mcp_servers.iter().any(|server| server.name == "there"), "{:?}", told.init()?);
    ensure!(model.requests().is_empty(), "the model was asked");
    // A run without servers has no use for any.
    let none = SendOptions { mcp_servers: ServerChange::None, ..SendOptions::default() };
    let run = agent.send("go", none).await?;
    ensure!(ended(&run).await?.state.status == RunStatus::Finished);
    soon(agent.dispose()).await?;
    let agent = Agent::create(given("there"))?;
    let run = agent.send("go", SendOptions::default()).await?;
    ensure!(ended(&run).await?.state.status == RunStatus::Finished);
    soon(agent.dispose()).await?;
    bench.leaks().check(DEADLINE)
}

fn project() -> LocalOptions {
    LocalOptions { setting_sources: vec![SettingSource::Project], ..LocalOptions::default() }
}

#[tokio::test]
async fn statement_a44_a_hook_that_denies_reaches_the_model_and_no_server() -> Result<()> {
    let mut bench = Bench::new()?;
    let seen = bench.path("seen");
    let before = format!(
        "cat >> {} ; echo '{{\"permission\":\"deny\",\"agent_message\":\"not this\"}}'",
        seen.display()
    );
    let after = format!("cat >> {}", bench.path("after").display());
    let hooks = json!({"version": 1, "hooks": {
        "beforeMCPExecution": [{"command": before, "matcher": "echo"}],
        "afterMCPExecution": [{"command": after}],
    }});
    bench.write("home/project/.cursor/hooks.json", &hooks.to_string())?;
    let model = script(&json!({"replies": [
        {"calls": [{"name": "one__echo", "arguments": {"n": 7}}]},
        {"calls": [{"name": "one__other", "arguments": {"n": 8}}]}, {"text": "done"},
    ]}))?;
    let other = "tool {\"name\":\"other\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/other -> text other ran";
    let servers = McpServers::new().with("one", bench.server(other)?.env("PW", "s3cr3t"));
    let told = told(bench.options(&model, servers, project()), "go").await?;
    ensure!(told.state.status == RunStatus::Finished, "{:?}", told.state);
    let requests = model.requests();
    let second = requests.get(1).context("no request")?.last();
    ensure!(second.contains("permission denied") && second.contains("not this"), "{second}");
    let mut peer = bench.hub.arrival("server", DEADLINE)?;
    let got = String::from_utf8_lossy(&peer.received()).into_owned();
    ensure!(!got.contains("\"n\":7") && got.contains("\"n\":8"), "{got}");
    // A hook knows the server by its command line, and no secret of it.
    let seen = std::fs::read_to_string(seen)?;
    ensure!(seen.contains("\"command\":\"") && seen.contains("fakemcp"), "{seen}");
    ensure!(!seen.contains("s3cr3t"), "{seen}");
    let after = std::fs::read_to_string(bench.path("after"))?;
    ensure!(after.contains("other ran") && after.contains("\"n\\\":8"), "{after}");
    Ok(())
}

/// The message leaves a large result out, of whatever tool; the model has the way to it, and who listens a part.
#[tokio::test]
async fn statement_a46_a_result_that_was_saved_is_left_out_of_its_message() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("home/project/long.txt", &"a line of a long file\n".repeat(4000))?;
    let model = script(&json!({"replies": [
        {"calls": [
            {"name": "one__echo", "arguments": {"n": 1}},
            {"name": "grep", "arguments": {"pattern": "line", "limit": 2000}},
            {"name": "shell", "arguments": {"command": "echo short"}},
        ]}, {"text": "done"},
    ]}))?;
    let server = bench.server("on tools/call/echo -> text {x*200000}")?;
    let guard = GuardOptions { max_response_chars: 5000, preview_chars: 1000, ..GuardOptions::default() };
    let local = LocalOptions { guard, ..LocalOptions::default() };
    let agent = Agent::create(bench.options(&model, McpServers::new().with("one", server), local))?;
    let (deltas, mut heard) = tokio::sync::mpsc::channel(1024);
    let send = SendOptions { deltas: Some(deltas), ..SendOptions::default() };
    let run = agent.send("go", send).await?;
    let told = ended(&run).await?;
    ensure!(told.state.status == RunStatus::Finished, "{:?}", told.state);
    let ended = |call: &&ToolCallEvent| call.status == ToolCallStatus::Completed;
    let calls = told.events.iter().filter_map(|kind| match kind {
        EventKind::ToolCall(call) => Some(call),
        _ => None,
    });
    let calls: Vec<_> =
        calls.filter(ended).map(|call| (call.truncated.result, call.result.is_some())).collect();
    ensure!(calls == [(true, false), (true, false), (false, true)], "{calls:?}");
    let mut parts = 0;
    while let Some(delta) = soon(heard.recv()).await? {
        if let Delta::ToolCallCompleted(call) = delta {
            parts += usize::from(call.result.is_some_and(|result| result.bytes().len() < 20_000));
        }
    }
    ensure!(parts == 3, "{parts} of 3 were shown");
    let results = model.requests().last().context("no request")?.results();
    ensure!(results.iter().filter(|text| text.contains("toolway_saved")).count() == 2, "{results:?}");
    soon(agent.dispose()).await?;
    Ok(())
}

/// A relative folder begins where the agent works, whatever the folder of this process.
#[tokio::test]
async fn further_folders_are_within_reach_however_they_are_named() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("home/other/note.txt", "the note")?;
    let model = script(&json!({"replies": [
        {"calls": [{"name": "read", "arguments": {"path": "../other/note.txt"}}]}, {"text": "done"},
    ]}))?;
    let local = LocalOptions { dirs: vec!["../other".into()], auto_review: true, ..LocalOptions::default() };
    let told = told(bench.options(&model, McpServers::new(), local), "go").await?;
    let calls = told.calls();
    let [(true, text)] = calls.as_slice() else { bail!("{calls:?}") };
    ensure!(text.contains("the note"), "{text}");
    Ok(())
}

/// A subagent is a tool, too.
#[tokio::test]
async fn hooks_see_tasks_before_and_after() -> Result<()> {
    let bench = Bench::new()?;
    let after = bench.path("after");
    let hooks = json!({"version": 1, "hooks": {
        "preToolUse": [{"command": "grep -q forbidden && { echo not that task >&2; exit 2; }; exit 0", "matcher": "Task"}],
        "postToolUse": [{"command": format!("cat >> {}", after.display()), "matcher": "^Task$"}],
    }});
    bench.write("home/project/.cursor/hooks.json", &hooks.to_string())?;
    let task = |prompt: &str| json!({"calls": [{"name": "task", "arguments": {"prompt": prompt}}]});
    let model = script(&json!({"replies": [
        task("the forbidden one"), task("the other one"), {"text": "I am the subagent"}, {"text": "done"},
    ]}))?;
    let told = told(bench.options(&model, McpServers::new(), project()), "go").await?;
    ensure!(told.state.status == RunStatus::Finished, "{:?}", told.state);
    let calls = told.calls();
    let [(false, refused), (true, done)] = calls.as_slice() else { bail!("{calls:?}") };
    ensure!(refused.contains("permission denied") && refused.contains("not that task"), "{refused}");
    ensure!(done.contains("I am the subagent"), "{done}");
    let after = std::fs::read_to_string(after)?;
    ensure!(after.contains("the other one") && after.contains("I am the subagent"), "{after}");
    ensure!(!after.contains("forbidden"), "{after}");
    Ok(())
}

#[tokio::test]
async fn statement_a44_a_servers_command_that_is_denied_is_not_started() -> Result<()> {
    let mut bench = Bench::new()?;
    let rules = json!({"policy": {"deny": [{"command": "*fakemcp*"}]}});
    bench.write("managed/mcp.json", &rules.to_string())?;
    let model = script(&json!({"replies": [{"text": "done"}]}))?;
    let servers = McpServers::new().with("one", bench.server("")?);
    let told = told(bench.options(&model, servers, LocalOptions::default()), "go").await?;
    let init = told.init()?;
    ensure!(init.mcp_servers[0].state == "blocked", "{init:?}");
    ensure!(!bench.hub.has_arrived("server"));
    Ok(())
}

#[tokio::test]
async fn files_that_are_denied_are_in_no_search() -> Result<()> {
    let bench = Bench::new()?;
    bench.write("home/project/secret/key.txt", "needle in secret")?;
    bench.write("home/project/open.txt", "needle in open")?;
    let model = script(&json!({"replies": [
        {"calls": [
            {"name": "grep", "arguments": {"pattern": "needle"}},
            {"name": "glob", "arguments": {"pattern": "**/*.txt"}},
            {"name": "read", "arguments": {"path": "secret/key.txt"}},
        ]}, {"text": "done"},
    ]}))?;
    let permissions =
        PermissionOptions { deny: vec!["Read(secret/**)".to_owned()], ..PermissionOptions::default() };
    let local = LocalOptions { permissions, ..LocalOptions::default() };
    let told = told(bench.options(&model, McpServers::new(), local), "go").await?;
    ensure!(told.state.status == RunStatus::Finished, "{:?}", told.state);
    let requests = model.requests();
    let results = requests.get(1).context("no request")?.results();
    ensure!(results.len() == 3, "{results:?}");
    ensure!(
        results[..2].iter().all(|text| text.contains("open.txt") && !text.contains("key.txt")),
        "{results:?}"
    );
    ensure!(results[2].contains("permission denied"), "{results:?}");
    Ok(())
}

#[tokio::test]
async fn the_list_of_what_is_to_do_is_there_after_a_resume() -> Result<()> {
    let bench = Bench::new()?;
    let todos = json!({"todos": [{"id": "a", "content": "sweep the yard", "status": "in_progress"}]});
    let model = script(&json!({"replies": [
        {"calls": [{"name": "updateTodos", "arguments": todos}]}, {"text": "noted"},
        {"calls": [{"name": "readTodos", "arguments": {}}]}, {"text": "read"},
    ]}))?;
    let options = || bench.options(&model, McpServers::new(), LocalOptions::default());
    let agent = Agent::create(options())?;
    let run = agent.send("note it", SendOptions::default()).await?;
    ended(&run).await?;
    let id = agent.id().clone();
    soon(agent.dispose()).await?;
    let agent = Agent::resume(&id, options()).await?;
    let run = agent.send("read it", SendOptions::default()).await?;
    let told = ended(&run).await?;
    ensure!(told.calls().iter().any(|(_, text)| text.contains("sweep the yard")), "{:?}", told.calls());
    soon(agent.dispose()).await
}

#[tokio::test]
async fn secrets_of_a_files_entries_are_in_no_event_and_not_on_disk() -> Result<()> {
    let bench = Bench::new()?;
    let mut entry = bench
        .entry("on tools/call/echo -> text the token is t0ken-of-a-file and p4ss-in-the-file, you see")?;
    entry["env"] = json!({"API_TOKEN": "${env:FILE_TOKEN}", "DB_PASSWORD": "p4ss-in-the-file"});
    bench.write("home/project/.cursor/mcp.json", &json!({"mcpServers": {"db": entry}}).to_string())?;
    let model = script(&json!({"replies": [
        {"calls": [{"name": "db__echo", "arguments": {}}]}, {"text": "It said p4ss-in-the-file and t0ken-of-a-file."},
    ]}))?;
    let told = told(bench.options(&model, McpServers::new(), project()), "go").await?;
    ensure!(told.state.status == RunStatus::Finished, "{:?}", told.state);
    ensure!(told.calls().iter().any(|(ok, text)| *ok && text.contains("the token is")), "{:?}", told.calls());
    let events = format!("{:?} {:?}", told.events, told.state);
    for secret in ["t0ken-of-a-file", "p4ss-in-the-file"] {
        ensure!(!events.contains(secret), "{secret}: {events}");
        let mut store = String::new();
        for file in toolway_testkit::files(&bench.path("home/store")) {
            store.push_str(&String::from_utf8_lossy(&std::fs::read(file)?));
        }
        ensure!(!store.contains(secret), "{secret} is kept");
    }
    ensure!(bench.kept()?.contains("the token is"));
    Ok(())
}
