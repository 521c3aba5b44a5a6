//! Statements about what one prompt, a resume, a subagent and a policy change; about what is told, and how names go.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolway_agent::{
    AgentDefinition, CustomOutput, CustomTool, DirectServer, GuardOptions, InlineRecord, LocalOptions,
    LocalSend, McpCall, McpServer, McpServers, RecordKey, SendOptions, SendPlace, ServerChange,
    SubagentServers, ToolPair,
};
use toolway_bridge::RawJson;
use toolway_config::SettingSource::Project;
use toolway_secret::Secret;

use super::support::{Bench, DEADLINE, call, generations, names, report, run, run_with, text, tool};

fn with(change: ServerChange) -> SendOptions {
    SendOptions { mcp_servers: change, ..SendOptions::default() }
}

#[tokio::test]
async fn statement_a37_one_prompt_has_other_servers_and_the_next_the_first_again() -> Result<()> {
    let bench = Bench::new()?;
    bench.servers("project/.cursor/mcp.json", &[("ambient", bench.entry("")?)])?;
    let local = LocalOptions { setting_sources: vec![Project], ..LocalOptions::default() };
    let own = McpServers::new().with("own", bench.scripted("")?);
    let agent = generations(&bench.options(own, local))?;
    let first = run(&agent).await?;
    tool(&first, "own__echo").await?;
    let other = McpServers::new().with("other", bench.scripted("")?);
    let replaced = run_with(&agent, &with(ServerChange::Replace(other))).await?;
    for exposed in ["other__echo", "ambient__echo"] {
        tool(&replaced, exposed).await?;
    }
    assert!(!names(&replaced).contains(&"own__echo".to_owned()));
    let told = report(&replaced, "own", "shadowed").await?.reason.unwrap_or_default();
    assert!(told.contains("this prompt"), "{told}");
    let with_override = bench.leaks().processes().len();
    replaced.shutdown().await;
    drop(replaced);
    assert_eq!((with_override, bench.leaks().processes().len()), (4, 2));
    let none = run_with(&agent, &with(ServerChange::None)).await?;
    assert!(none.tools().is_empty() && none.pairs().is_empty());
    let next = run(&agent).await?;
    assert!(Arc::ptr_eq(&first, &next));
    let empty = run_with(&agent, &with(ServerChange::Replace(McpServers::new()))).await?;
    tool(&empty, "ambient__echo").await?;
    assert_eq!(names(&empty), ["ambient__echo"]);
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a38_names_alone_are_kept_and_what_is_not_given_again_is_missing() -> Result<()> {
    let bench = Bench::new()?;
    let servers = McpServers::new()
        .with("db", bench.scripted("")?.env("PW", "s3cr3t"))
        .with("web", McpServer::url("https://h.example/mcp").header("Authorization", "Bearer s3cr3t"));
    let key = RecordKey::new([3; 32]);
    let records = InlineRecord::of(&servers, &key);
    let kept = serde_json::to_string(&records)?;
    for secret in ["s3cr3t", "h.example", "Authorization", "PW", "fakemcp"] {
        assert!(!kept.contains(secret), "{kept}");
    }
    let none = McpServers::new();
    let missing = InlineRecord::compare(&records, &none, &key).missing;
    let agent = generations(&bench.options(none, LocalOptions::default()))?;
    agent.set_missing(missing);
    let generation = run(&agent).await?;
    assert!(generation.tools().is_empty());
    for (name, transport) in [("db", "stdio"), ("web", "http")] {
        let report = report(&generation, name, "missing").await?;
        assert_eq!((report.transport.as_deref(), report.tools), (Some(transport), 0));
        assert!(report.reason.is_some());
    }
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a43_a_subagent_has_what_it_names_and_its_own() -> Result<()> {
    let bench = Bench::new()?;
    let servers = McpServers::new().with("one", bench.scripted("")?).with("two", bench.scripted("")?);
    let definition = |servers: Option<Vec<SubagentServers>>| AgentDefinition {
        description: "d".to_owned(),
        prompt: "p".to_owned(),
        model: None,
        mcp_servers: servers,
    };
    let mut options = bench.options(servers, LocalOptions::default());
    let named = || vec![SubagentServers::Named("one".to_owned())];
    options.agents.insert("sub".to_owned(), definition(Some(named())));
    let agent = generations(&options)?;
    let parent = run(&agent).await?;
    for exposed in ["one__echo", "two__echo"] {
        tool(&parent, exposed).await?;
    }
    let all = parent.for_subagent("sub", &definition(None)).await?;
    assert_eq!(names(&all).len(), 2);
    let sub = parent.for_subagent("sub", &options.agents["sub"]).await?;
    assert_eq!(names(&sub), ["one__echo"]);
    assert!(!call(&sub, "one__echo", json!({})).await?.is_error);
    let refused = call(&sub, "two__echo", json!({})).await?;
    assert!(refused.is_error && text(&refused).contains("one__echo"), "{}", text(&refused));
    assert_eq!(sub.reports().len(), 1);

    let mut more = named();
    more.push(SubagentServers::Inline(McpServers::new().with("own", bench.scripted("")?)));
    let sub = parent.for_subagent("sub", &definition(Some(more))).await?;
    sub.ready().await;
    tool(&sub, "own__echo").await?;
    assert!(!call(&sub, "own__echo", json!({})).await?.is_error);
    assert_eq!(bench.leaks().processes().len(), 3);
    sub.shutdown().await;
    assert_eq!(bench.leaks().processes().len(), 2);
    assert!(!call(&parent, "one__echo", json!({})).await?.is_error, "its parent's servers go on");

    let unknown = definition(Some(vec![SubagentServers::Named("three".to_owned())]));
    let error = parent.for_subagent("sub", &unknown).await.err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.contains("\"three\"") && error.contains("one, two")));
    options.agents.insert("bad".to_owned(), unknown);
    assert!(options.check().is_err_and(|error| error.to_string().contains("agents.bad.mcpServers.0")));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a44_an_administrators_rule_binds_inline_servers_too() -> Result<()> {
    let mut bench = Bench::new()?;
    bench.write("managed/mcp.json", r#"{"policy": {"deny": [{"command": "*fakemcp* --evil *"}]}}"#)?;
    let mut evil = bench.scripted("")?;
    let mut args = vec![json!("--evil")];
    args.extend(evil.members()["args"].as_array().cloned().unwrap_or_default());
    evil = evil.with("args", args.into());
    let agent = generations(&bench.options(McpServers::new().with("evil", evil), LocalOptions::default()))?;
    let generation = run(&agent).await?;
    let report = report(&generation, "evil", "blocked").await?;
    assert!(report.reason.is_some_and(|reason| reason.contains("mcp.json")));
    assert!(!bench.hub.has_arrived("server"));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a45_every_server_is_told_with_source_transport_state_and_reason() -> Result<()> {
    let bench = Bench::new()?;
    let mut off = bench.entry("")?;
    off["enabled"] = false.into();
    bench.servers(
        "project/.cursor/mcp.json",
        &[
            ("good", bench.entry("")?),
            ("off", off),
            ("same", bench.entry("")?),
            ("gone", json!({"command": "no-such-binary-xyz"})),
            ("login", json!({"url": "http://127.0.0.1:9/mcp"})),
        ],
    )?;
    let local = LocalOptions { setting_sources: vec![Project], ..LocalOptions::default() };
    let agent = generations(&bench.options(McpServers::new().with("same", bench.scripted("")?), local))?;
    let generation = run(&agent).await?;
    for exposed in ["good__echo", "same__echo"] {
        tool(&generation, exposed).await?;
    }
    for (name, state, transport) in [
        ("good", "connected", "stdio"),
        ("same", "connected", "stdio"),
        ("same", "shadowed", "stdio"),
        ("off", "disabled", "stdio"),
        ("gone", "failed", "stdio"),
        ("login", "failed", "http"),
    ] {
        let report = report(&generation, name, state).await?;
        assert_eq!(report.transport.as_deref(), Some(transport), "{name}");
        assert_eq!(report.reason.is_some(), state != "connected", "{report:?}");
        assert_eq!(report.tools, usize::from(state == "connected"), "{report:?}");
    }
    let pair = |server: &str| ToolPair { server: server.to_owned(), tool: "echo".to_owned() };
    let mut pairs = generation.pairs();
    pairs.sort();
    assert_eq!(pairs, [pair("good"), pair("same")]);
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a47_names_that_look_alike_go_to_their_own_server() -> Result<()> {
    let bench = Bench::new()?;
    let servers = McpServers::new()
        .with("a-b", bench.scripted("on tools/call/c -> text first")?)
        .with("a", bench.scripted("on tools/call/b-c -> text second")?)
        .with("x", bench.scripted("on tools/call/y__z -> text third")?)
        .with("x__y", bench.scripted("on tools/call/z -> text fourth")?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    for (server, tool_name, answer) in
        [("a-b", "c", "first"), ("a", "b-c", "second"), ("x", "y__z", "third"), ("x__y", "z", "fourth")]
    {
        report(&generation, server, "connected").await?;
        let tools = generation.tools();
        let found = tools.iter().find(|tool| &*tool.server == server && tool.tool == tool_name);
        let exposed = found.map(|tool| tool.exposed.clone()).unwrap_or_default();
        assert_eq!(text(&call(&generation, &exposed, json!({})).await?), answer, "{exposed}");
        let target = generation.target(&McpCall { exposed: &exposed, arguments: RawJson::empty_object() });
        assert_eq!(
            target.map(|target| (target.server, target.tool)),
            Some((server.to_owned(), tool_name.to_owned()))
        );
    }
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn functions_of_the_program_are_tools_and_their_failures_are_results() -> Result<()> {
    let bench = Bench::new()?;
    let tool_of = |name: &str, output: fn(String) -> Result<CustomOutput, String>| {
        CustomTool::new(name, "d", move |call| async move { output(call.arguments.text().to_owned()) })
    };
    let custom = vec![
        tool_of("say", |arguments| Ok(CustomOutput::Text(arguments))),
        tool_of("value", |_| Ok(CustomOutput::Json(json!({"n": 1})))),
        tool_of("fails", |_| Err("no luck".to_owned())),
        tool_of("panics", |_| std::panic::panic_any("oh")),
        tool_of("large", |_| Ok(CustomOutput::Text("x".repeat(100_000)))),
    ];
    let local = LocalOptions { custom_tools: custom, ..LocalOptions::default() };
    let agent = generations(&bench.options(McpServers::new(), local))?;
    let generation = run(&agent).await?;
    assert_eq!(names(&generation).len(), 5);
    let exposed = |name: &str| format!("custom-user-tools__{name}");
    let arguments = RawJson::new(r#"{"big":12345678901234567890.10}"#)?;
    let say = McpCall { exposed: &exposed("say"), arguments };
    let said = generation.call(say, |_| {}, &CancellationToken::new()).await;
    assert_eq!(text(&said), r#"{"big":12345678901234567890.10}"#);
    let value = call(&generation, &exposed("value"), json!({})).await?;
    assert_eq!(value.content.tree()["structuredContent"], json!({"n": 1}));
    for (name, told) in [("fails", "no luck"), ("panics", "panicked")] {
        let result = call(&generation, &exposed(name), json!({})).await?;
        assert!(result.is_error && text(&result).contains(told), "{}", text(&result));
    }
    let large = call(&generation, &exposed("large"), json!({})).await?;
    assert!(text(&large).len() < 41_000 && text(&large).contains("toolway_saved"), "{}", text(&large).len());
    assert_eq!(report(&generation, "custom-user-tools", "connected").await?.source, "custom");
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn a_large_result_is_saved_and_read_back_by_the_agents_own_limit() -> Result<()> {
    let bench = Bench::new()?;
    let script = "on tools/call/big -> text HEAD {x*60000} TAIL\non tools/call/fits -> text {y*30000}\n";
    let guard = GuardOptions { output_dir: Some(bench.path("saved")), ..GuardOptions::default() };
    let local = LocalOptions { guard, ..LocalOptions::default() };
    let agent = generations(&bench.options(McpServers::new().with("a", bench.scripted(script)?), local))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__big").await?;
    assert_eq!(text(&call(&generation, "a__fits", json!({})).await?).len(), 30_000);
    let big = text(&call(&generation, "a__big", json!({})).await?);
    assert!(big.len() < 40_000 && big.contains("HEAD") && big.contains("toolway_saved"), "{big}");
    let tools = generation.tools();
    assert!(tools.iter().any(|tool| tool.exposed == "toolway_saved" && tool.server.is_empty()));
    let id = big.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or(&big);
    let page = call(&generation, "toolway_saved", json!({"id": id, "search": "TAIL"})).await?;
    assert!(!page.is_error && text(&page).contains("TAIL"), "{id}: {}", text(&page));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn a_direct_server_keeps_its_names_and_comes_and_goes_without_the_others() -> Result<()> {
    let mut bench = Bench::new()?;
    let web = bench.web("on tools/call/pi__x -> text {x*50000}", "http")?;
    let direct =
        vec![DirectServer { name: "pi_tools".to_owned(), url: Secret::new(&web.url), headers: vec![] }];
    let agent = generations(
        &bench.options(McpServers::new().with("a", bench.scripted("")?), LocalOptions::default()),
    )?;
    let local = LocalSend { direct_servers: Some(direct), ..LocalSend::default() };
    let send = SendOptions { place: SendPlace::Local(local), ..SendOptions::default() };
    let generation = run_with(&agent, &send).await?;
    for exposed in ["a__echo", "pi__x"] {
        tool(&generation, exposed).await?;
    }
    assert_eq!(text(&call(&generation, "pi__x", json!({})).await?).len(), 50_000);
    assert_eq!((generation.direct().len(), bench.leaks().processes().len()), (1, 2));
    drop(generation);
    let next = run(&agent).await?;
    tool(&next, "a__echo").await?;
    assert_eq!(names(&next), ["a__echo"]);
    let mut peer = bench.peer()?;
    assert!(peer.events("line").len() > 2, "it was not started anew");
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn many_tools_are_searched_and_calls_say_what_they_are_really_for() -> Result<()> {
    let bench = Bench::new()?;
    let script: Vec<_> = (0..30).map(|n| format!("on tools/call/t{n} -> text answer {n}\n")).collect();
    let local = LocalOptions { search_above: Some(20), ..LocalOptions::default() };
    let agent =
        generations(&bench.options(McpServers::new().with("a", bench.scripted(&script.concat())?), local))?;
    let generation = run(&agent).await?;
    report(&generation, "a", "connected").await?;
    let shown: Vec<String> = generation.tools().iter().map(|tool| tool.exposed.clone()).collect();
    assert_eq!(shown, ["toolway_search", "toolway_call", "toolway_saved"]);
    assert_eq!(generation.pairs().len(), 31);
    let arguments = RawJson::of(&json!({"name": "a__t7", "arguments": {"k": 1}}));
    let through = McpCall { exposed: "toolway_call", arguments };
    let target = generation.target(&through);
    let told = target.map(|target| (target.server, target.tool, target.arguments.text().to_owned()));
    assert_eq!(told, Some(("a".to_owned(), "t7".to_owned(), r#"{"k":1}"#.to_owned())));
    let result = generation.call(through, |_| {}, &CancellationToken::new()).await;
    assert_eq!(text(&result), "answer 7");
    let wrong = call(&generation, "toolway_call", json!({"name": "a__none"})).await?;
    assert!(wrong.is_error && text(&wrong).contains("a__none"), "{}", text(&wrong));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn what_does_not_exist_is_told_with_what_does() -> Result<()> {
    let bench = Bench::new()?;
    let agent = generations(
        &bench.options(McpServers::new().with("a", bench.scripted("")?), LocalOptions::default()),
    )?;
    let generation = run(&agent).await?;
    tool(&generation, "a__echo").await?;
    for exposed in ["nonsense", "a__none", ""] {
        let result = call(&generation, exposed, json!({})).await?;
        assert!(result.is_error, "{exposed}");
    }
    assert!(text(&call(&generation, "nonsense", json!({})).await?).contains("a__echo"));
    let list = McpCall { exposed: "a__echo", arguments: RawJson::of(&json!([1])) };
    assert!(generation.call(list, |_| {}, &CancellationToken::new()).await.is_error);
    agent.close().await;
    let late = call(&generation, "a__echo", json!({})).await?;
    assert!(late.is_error, "{}", text(&late));
    Ok(())
}
