//! Statements about servers on this machine: how they are found and started, what they get, and how they end.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolway_agent::{LocalOptions, McpCall, McpServer, McpServers, ServerTimeouts};
use toolway_bridge::RawJson;
use toolway_testkit::Peer;

use super::support::{Bench, DEADLINE, call, generations, names, report, run, text, tool};

#[cfg(unix)]
#[tokio::test]
async fn statement_a13_a_command_is_found_by_the_entrys_path_and_a_missing_one_is_told() -> Result<()> {
    let bench = Bench::new()?;
    let bin = bench.path("bin");
    std::fs::create_dir_all(&bin)?;
    let program = toolway_testkit::fakemcp()?;
    std::os::unix::fs::symlink(&program, bin.join("only-here"))?;
    let scripted = bench.scripted("")?;
    let args = scripted.members()["args"].clone();
    let by_path =
        McpServer::command("only-here").with("args", args).env("PATH", bin.to_string_lossy().into_owned());
    let servers = McpServers::new()
        .with("path", by_path)
        .with("absolute", scripted)
        .with("gone", McpServer::command("no-such-binary-xyz"));
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    for name in ["path", "absolute"] {
        report(&generation, name, "connected").await?;
    }
    let gone = report(&generation, "gone", "failed").await?.reason.unwrap_or_default();
    for part in ["resolve", "no-such-binary-xyz", "/usr/bin"] {
        assert!(gone.contains(part), "{gone}");
    }
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a14_a_child_gets_the_base_list_and_its_own() -> Result<()> {
    let mut bench = Bench::new()?;
    let server = bench.scripted("")?.env("NODE_OPTIONS", "--trace-warnings");
    let agent = generations(&bench.options(McpServers::new().with("a", server), LocalOptions::default()))?;
    let _generation = run(&agent).await?;
    let peer = bench.peer()?;
    let env = &peer.start["env"];
    assert_eq!(env["NODE_OPTIONS"], "--trace-warnings");
    assert_eq!(env["HOME"], json!(bench.home()));
    assert!(env["PATH"].is_string() && env.get("OUTSIDE").is_none() && env.get("CARGO").is_none(), "{env}");
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a15_a_child_works_where_the_agent_works() -> Result<()> {
    let mut bench = Bench::new()?;
    let nested = bench.project().join("nested");
    std::fs::create_dir_all(&nested)?;
    let local = LocalOptions { cwd: Some(nested.clone()), ..LocalOptions::default() };
    let agent = generations(&bench.options(McpServers::new().with("a", bench.scripted("")?), local))?;
    let _generation = run(&agent).await?;
    assert_eq!(bench.peer()?.start["cwd"], json!(nested.canonicalize()?));
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a16_a_stubborn_server_and_what_it_started_are_gone_in_time() -> Result<()> {
    let mut bench = Bench::new()?;
    let script = "set term ignore\nset eof ignore\non start\n    spawn stubborn\n";
    let servers = McpServers::new().with("a", bench.scripted(script)?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    report(&generation, "a", "connected").await?;
    let (_server, _grandchild) = (bench.peer()?, bench.hub.arrival("linger", DEADLINE)?);
    assert_eq!(bench.leaks().processes().len(), 2);
    tokio::time::timeout(DEADLINE, agent.close()).await?;
    bench.leaks().check(Duration::from_secs(1))?;
    agent.close().await;
    assert!(agent.for_run(&toolway_agent::SendOptions::default()).await.is_err());
    Ok(())
}

#[tokio::test]
async fn statement_a17_agents_that_come_and_go_leave_nothing() -> Result<()> {
    let mut bench = Bench::new()?;
    let web = bench.web("", "http")?;
    let own = std::process::id();
    let mut before = None;
    for n in 0..50 {
        let servers = McpServers::new().with("a", bench.scripted("")?).with("w", McpServer::url(&web.url));
        let agent = generations(&bench.options(servers, LocalOptions::default()))?;
        let generation = agent.for_run(&toolway_agent::SendOptions::default()).await?;
        if n % 3 != 0 {
            // The others end half-way.
            generation.ready().await;
        }
        if n % 5 == 4 {
            // Nobody says that it ends.
            drop((agent, generation));
        } else {
            agent.close().await;
        }
        if n == 4 {
            bench_settles(&bench, &web).await?;
            before = Some(toolway_testkit::open_files(own).len());
        }
    }
    bench_settles(&bench, &web).await?;
    let after = toolway_testkit::open_files(own).len();
    // Others of these tests run beside it.
    assert!(before.is_some_and(|before| after < before + 150), "{before:?} -> {after}");
    Ok(())
}

/// Waits until only the server that listens is left.
async fn bench_settles(bench: &Bench, web: &super::support::Web) -> Result<()> {
    let end = Instant::now() + DEADLINE;
    loop {
        let left = bench.leaks().processes();
        if left.iter().all(|(pid, _)| *pid == web.peer.pid()) {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < end, "left behind: {left:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn statement_a18_a_crash_tells_its_code_and_last_words_without_secrets() -> Result<()> {
    let bench = Bench::new()?;
    let script = "on start\n    stderr {x*9000}\\n\n    stderr the token is s3cr3t-value and that is it\\n\n    exit 7\n";
    let server = bench.scripted(script)?.env("TOKEN", "s3cr3t-value");
    let agent = generations(&bench.options(McpServers::new().with("a", server), LocalOptions::default()))?;
    let generation = run(&agent).await?;
    let report = report(&generation, "a", "failed").await?;
    let reason = report.reason.clone().unwrap_or_default();
    assert!(reason.contains('7') && reason.contains("the token is"), "{reason}");
    assert!(!reason.contains("s3cr3t-value") && reason.len() < 8192 + 1024, "{reason}");
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a19_a_mute_server_is_given_up_and_holds_nobody_up() -> Result<()> {
    let bench = Bench::new()?;
    let mute = |seconds: u32| -> Result<McpServer> {
        Ok(bench.scripted("set defaults off")?.with("startupTimeoutSec", json!(seconds)))
    };
    let servers =
        McpServers::new().with("mute", mute(2)?).with("waited", mute(300)?).with("ok", bench.scripted("")?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "ok__echo").await?;
    assert!(!call(&generation, "ok__echo", json!({})).await?.is_error);
    let waited = generation.reports().into_iter().find(|report| report.name == "waited");
    assert!(waited.is_some_and(|report| report.state == "starting"), "{:?}", generation.reports());
    let reason = report(&generation, "mute", "failed").await?.reason.unwrap_or_default();
    assert!(reason.contains("initialize") && reason.contains('2'), "{reason}");
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn statement_a20_progress_keeps_a_call_alive_and_silence_ends_it() -> Result<()> {
    // The 60 and 90 s of the statement, thirty times faster.
    let mut script = String::from(
        "on notifications/cancelled\n    arm heard\non tools/call/silent\n    never\non tools/call/slow\n",
    );
    for n in 0..30 {
        writeln!(
            script,
            "    delay 200ms\n    send {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{{token}},\"progress\":{n},\"message\":\"step {n}\"}}}}"
        )?;
    }
    script.push_str("    text done\n");
    let mut bench = Bench::new()?;
    let local = LocalOptions {
        timeouts: ServerTimeouts { call: Some(Duration::from_secs(4)), ..ServerTimeouts::default() },
        ..LocalOptions::default()
    };
    let agent = generations(&bench.options(McpServers::new().with("a", bench.scripted(&script)?), local))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__slow").await?;
    let mut steps = Vec::new();
    let slow = McpCall { exposed: "a__slow", arguments: RawJson::empty_object() };
    let result = generation.call(slow, |step| steps.push(step), &CancellationToken::new()).await;
    assert_eq!((text(&result).as_str(), result.is_error, steps.len()), ("done", false, 30));
    assert_eq!(steps[3].message.as_deref(), Some("step 3"));
    let begun = Instant::now();
    let silent = call(&generation, "a__silent", json!({})).await?;
    assert!(silent.is_error && text(&silent).contains("timed out"), "{}", text(&silent));
    assert!(begun.elapsed() >= Duration::from_millis(3900), "{:?}", begun.elapsed());
    heard_of(bench.peer()?, "notifications/cancelled").await?;
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_cancelled_at_its_server() -> Result<()> {
    let mut bench = Bench::new()?;
    let servers = McpServers::new().with("a", bench.scripted("on tools/call/hang\n    never\n")?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__hang").await?;
    let hang = || McpCall { exposed: "a__hang", arguments: RawJson::empty_object() };
    let cancel = CancellationToken::new();
    let peer = bench.peer()?;
    let heard = async {
        let peer = heard_of(peer, "tools/call").await;
        cancel.cancel();
        peer
    };
    let (result, peer) = tokio::join!(generation.call(hang(), |_| {}, &cancel), heard);
    assert!(result.is_error && text(&result).contains("cancelled"), "{}", text(&result));
    let peer = heard_of(peer?, "notifications/cancelled").await?;
    let never = CancellationToken::new();
    let peer = tokio::select! {
        result = generation.call(hang(), |_| {}, &never) => anyhow::bail!("answered: {}", text(&result)),
        peer = heard_of(peer, "tools/call") => peer?,
    };
    heard_of(peer, "notifications/cancelled").await?;
    assert_eq!(names(&generation).len(), 2);
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn where_a_sandbox_is_asked_for_and_there_is_none_no_server_starts() -> Result<()> {
    let mut bench = Bench::new()?;
    let empty = bench.path("empty");
    std::fs::create_dir_all(&empty)?;
    // No bubblewrap, and no binary that could close another box.
    bench.variable("PATH", &empty.to_string_lossy());
    let sandbox = toolway_agent::SandboxOptions { enabled: true };
    let local = LocalOptions { sandbox, ..LocalOptions::default() };
    let agent = generations(&bench.options(McpServers::new().with("a", bench.scripted("")?), local))?;
    let generation = run(&agent).await?;
    let reason = report(&generation, "a", "failed").await?.reason.unwrap_or_default();
    assert!(reason.contains("sandbox"), "{reason}");
    assert!(!bench.hub.has_arrived("server"));
    agent.close().await;
    Ok(())
}

/// Waits, beside everything else, until a server has received that.
async fn heard_of(mut peer: Peer, text: &'static str) -> Result<Peer> {
    tokio::task::spawn_blocking(move || peer.wait_for(text, DEADLINE).map(|()| peer)).await?
}
