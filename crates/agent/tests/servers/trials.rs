//! Trials: whole scenes with several servers.

use anyhow::Result;
use serde_json::json;
use toolway_agent::{
    InlineRecord, LocalOptions, McpServer, McpServers, RecordKey, SendOptions, ServerChange,
};

use super::support::{Bench, DEADLINE, call, generations, names, report, run, run_with, text, tool};

#[tokio::test]
async fn trial_15_a_resume_tells_the_truth_about_servers() -> Result<()> {
    let mut bench = Bench::new()?;
    let web = bench.web("", "http")?;
    let db = || Ok::<_, anyhow::Error>(bench.scripted("")?.env("PW", "s3cr3t"));
    let at = |url: &str| McpServer::url(url).header("Authorization", "Bearer s3cr3t");
    let key = RecordKey::new([9; 32]);
    let records = InlineRecord::of(&McpServers::new().with("db", db()?).with("web", at(&web.url)), &key);
    let moved = format!("{}?moved=1", web.url);
    for (given, missing, changed) in [
        (McpServers::new(), vec!["db", "web"], vec![]),
        (McpServers::new().with("db", db()?), vec!["web"], vec![]),
        (McpServers::new().with("db", db()?).with("web", at(&moved)), vec![], vec!["web"]),
    ] {
        let difference = InlineRecord::compare(&records, &given, &key);
        assert_eq!(difference.missing.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), missing);
        assert_eq!(difference.changed, changed);
        let agent = generations(&bench.options(given.clone(), LocalOptions::default()))?;
        agent.set_missing(difference.missing);
        agent.set_changed(difference.changed);
        let generation = run(&agent).await?;
        for name in &missing {
            report(&generation, name, "missing").await?;
        }
        for name in given.names() {
            let report = report(&generation, name, "connected").await?;
            let told = report.reason.is_some_and(|reason| reason.contains("has changed"));
            assert_eq!(told, changed.contains(&name), "{name}");
        }
        if given.get("db").is_some() {
            let replaced = McpServers::new().with("new", bench.scripted("")?);
            let send = SendOptions { mcp_servers: ServerChange::Replace(replaced), ..SendOptions::default() };
            let other = run_with(&agent, &send).await?;
            tool(&other, "new__echo").await?;
            assert_eq!(names(&other), ["new__echo"]);
            report(&other, "db", "shadowed").await?;
        }
        agent.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn trial_16_one_good_one_absent_one_mute_one_late_one_that_crashes() -> Result<()> {
    let mut bench = Bench::new()?;
    let lines: Vec<_> = (0..200).map(|n| format!("    stderr line {n}\\n\n")).collect();
    let crash = format!("on start\n{}    exit 7\n", lines.concat());
    let servers = McpServers::new()
        .with("ok", bench.scripted("")?)
        .with("gone", McpServer::command("no-such-binary-xyz"))
        .with("mute", bench.scripted("set defaults off")?.with("startupTimeoutSec", json!(3)))
        .with("late", bench.scripted("on start\n    wait open\n")?.with("startupTimeoutSec", json!(300)))
        .with("crash", bench.scripted(&crash)?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "ok__echo").await?;
    assert!(!call(&generation, "ok__echo", json!({})).await?.is_error);
    assert!(!names(&generation).contains(&"late__echo".to_owned()));
    let gone = report(&generation, "gone", "failed").await?.reason.unwrap_or_default();
    assert!(gone.contains("not found") && gone.contains("/usr/bin"), "{gone}");
    let crashed = report(&generation, "crash", "failed").await?.reason.unwrap_or_default();
    assert!(crashed.contains('7') && crashed.contains("line 199"), "{crashed}");
    let told = call(&generation, "gone__x", json!({})).await?;
    assert!(told.is_error && text(&told).contains("not found"), "{}", text(&told));
    let mute = report(&generation, "mute", "failed").await?.reason.unwrap_or_default();
    assert!(mute.contains("initialize") && mute.contains('3'), "{mute}");
    // A call of a tool that is on its way waits for it.
    let open = async {
        // All but the one that is not there.
        let mut peers = Vec::new();
        for _ in 0..4 {
            let mut peer = bench.peer()?;
            // The one that crashed hears nothing.
            let _heard = peer.tell("arm open");
            peers.push(peer);
        }
        Ok::<_, anyhow::Error>(peers)
    };
    let (late, peers) = tokio::join!(call(&generation, "late__echo", json!({})), open);
    let (late, _peers) = (late?, peers?);
    assert!(!late.is_error, "{}", text(&late));
    assert!(names(&generation).contains(&"late__echo".to_owned()));
    agent.close().await;
    bench.leaks().check(DEADLINE)
}
