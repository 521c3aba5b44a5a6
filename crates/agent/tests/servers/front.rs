//! The same servers for agents behind a protocol: over loopback, with a token, and with somebody who is asked.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_agent::{FrontCall, FrontGate, LocalOptions, McpCall, McpServer, McpServers, McpTarget};
use toolway_bridge::RawJson;

use super::support::{Bench, DEADLINE, call, generations, report, run, text, tool};

#[tokio::test]
async fn the_same_servers_are_reached_over_loopback_with_the_token_alone() -> Result<()> {
    let bench = Bench::new()?;
    let agent = generations(
        &bench.options(McpServers::new().with("a", bench.scripted("")?), LocalOptions::default()),
    )?;
    let generation = run(&agent).await?;
    tool(&generation, "a__echo").await?;
    let front = generation.front().await?.ok_or_else(|| anyhow::anyhow!("no front"))?;
    assert!(!format!("{front:?}").contains(front.token.expose()));
    let client =
        McpServer::url(&front.url).header("Authorization", format!("Bearer {}", front.token.expose()));
    let servers = McpServers::new().with("in", client).with("out", McpServer::url(&front.url));
    let outside = generations(&bench.options(servers, LocalOptions::default()))?;
    let seen = run(&outside).await?;
    tool(&seen, "in__a__echo").await?;
    report(&seen, "in", "connected").await?;
    assert!(report(&seen, "out", "needs_auth").await.is_ok());
    outside.close().await;
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

/// Lets calls of `echo` through with other arguments, and nothing else.
#[derive(Debug)]
struct OnlyEcho;

impl FrontGate for OnlyEcho {
    fn call_id(&self, _target: &McpTarget) -> String {
        "c".to_owned()
    }

    fn before(
        &self,
        FrontCall { target, .. }: FrontCall,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<RawJson, String>> + Send + '_>> {
        Box::pin(async move {
            match (target.server.as_str(), target.tool.as_str()) {
                ("a", "echo") => Ok(RawJson::of(&json!({"put": "in place"}))),
                (server, tool) => Err(format!("{server} {tool} is not allowed")),
            }
        })
    }
}

#[tokio::test]
async fn statement_a44_what_a_gate_refuses_at_the_front_reaches_no_server() -> Result<()> {
    let mut bench = Bench::new()?;
    let servers = McpServers::new().with("a", bench.scripted("on tools/call/other -> text reached")?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__other").await?;
    let front = generation.front_through(Some(Arc::new(OnlyEcho))).await?;
    let front = front.ok_or_else(|| anyhow::anyhow!("no front"))?;
    let mut peer = bench.peer()?;
    let client =
        McpServer::url(&front.url).header("Authorization", format!("Bearer {}", front.token.expose()));
    let outside = generations(&bench.options(McpServers::new().with("in", client), LocalOptions::default()))?;
    let seen = run(&outside).await?;
    report(&seen, "in", "connected").await?;
    let of = |own: &str| {
        let tools = seen.tools();
        tools.iter().find(|tool| tool.tool == own).map(|tool| tool.exposed.clone()).unwrap_or_default()
    };
    let refused = call(&seen, &of("a__other"), json!({})).await?;
    assert!(refused.is_error && text(&refused).contains("a other is not allowed"), "{}", text(&refused));
    call(&seen, &of("a__echo"), json!({"given": 1})).await?;
    let received = String::from_utf8_lossy(&peer.received()).into_owned();
    assert!(received.contains("in place") && !received.contains("given"), "{received}");
    assert!(!received.contains("\"other\""), "{received}");
    outside.close().await;
    agent.close().await;
    Ok(())
}

/// Hears what calls gave, and puts something in its place.
#[derive(Debug, Default)]
struct Hearing(std::sync::Mutex<Vec<String>>);

impl FrontGate for Hearing {
    fn call_id(&self, target: &McpTarget) -> String {
        format!("of {}", target.tool)
    }

    fn before(
        &self,
        FrontCall { target, .. }: FrontCall,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<RawJson, String>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(target.arguments)))
    }

    fn hears(&self) -> bool {
        true
    }

    fn after(
        &self,
        FrontCall { id, target }: FrontCall,
        result: RawJson,
        _duration: Duration,
    ) -> std::pin::Pin<Box<dyn Future<Output = RawJson> + Send + '_>> {
        let told =
            format!("{id}: {} {} {} {}", target.server, target.tool, target.arguments.text(), result.text());
        if let Ok(mut heard) = self.0.lock() {
            heard.push(told);
        }
        Box::pin(std::future::ready(RawJson::of(
            &json!({"content": [{"type": "text", "text": "in its place"}]}),
        )))
    }
}

#[tokio::test]
async fn what_calls_over_the_front_gave_is_heard_and_may_be_another_thing() -> Result<()> {
    let bench = Bench::new()?;
    let servers = McpServers::new().with("a", bench.scripted("on tools/call/echo -> text it ran")?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__echo").await?;
    let hearing = Arc::new(Hearing::default());
    let front = generation.front_through(Some(Arc::<Hearing>::clone(&hearing))).await?;
    let front = front.ok_or_else(|| anyhow::anyhow!("no front"))?;
    let client =
        McpServer::url(&front.url).header("Authorization", format!("Bearer {}", front.token.expose()));
    let outside = generations(&bench.options(McpServers::new().with("in", client), LocalOptions::default()))?;
    let seen = run(&outside).await?;
    tool(&seen, "in__a__echo").await?;
    let result = call(&seen, "in__a__echo", json!({"n": 1})).await?;
    assert!(!result.is_error && text(&result) == "in its place", "{}", text(&result));
    let heard = hearing.0.lock().map_err(|_| anyhow::anyhow!("poisoned"))?.join("\n");
    assert!(heard.contains("of echo: a echo {\"n\":1}") && heard.contains("it ran"), "{heard}");
    outside.close().await;
    agent.close().await;
    bench.leaks().check(DEADLINE)
}

#[tokio::test]
async fn a_call_that_is_heard_keeps_its_progress_and_can_be_given_up() -> Result<()> {
    let mut bench = Bench::new()?;
    let script = "on tools/call/echo\n    \
        send {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":{token},\"progress\":1,\"message\":\"half\"}}\n    \
        text it ran\non tools/call/slow -> never";
    let servers = McpServers::new().with("a", bench.scripted(script)?);
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "a__slow").await?;
    let mut server = bench.peer()?;
    let front = generation.front_through(Some(Arc::new(Hearing::default()))).await?;
    let front = front.ok_or_else(|| anyhow::anyhow!("no front"))?;
    let client =
        McpServer::url(&front.url).header("Authorization", format!("Bearer {}", front.token.expose()));
    let outside = generations(&bench.options(McpServers::new().with("in", client), LocalOptions::default()))?;
    let seen = run(&outside).await?;
    tool(&seen, "in__a__slow").await?;

    let mut progress = Vec::new();
    let echo = McpCall { exposed: "in__a__echo", arguments: RawJson::empty_object() };
    let cancel = CancellationToken::new();
    let result = timeout(DEADLINE, seen.call(echo, |one| progress.push(one.message), &cancel)).await?;
    assert!(text(&result) == "in its place", "{}", text(&result));
    assert_eq!(progress, [Some("half".to_owned())]);

    let slow = McpCall { exposed: "in__a__slow", arguments: RawJson::empty_object() };
    let given_up = async {
        let server = tokio::task::spawn_blocking(move || {
            server.wait_for("\"slow\"", DEADLINE)?;
            Ok::<_, anyhow::Error>(server)
        })
        .await??;
        cancel.cancel();
        Ok::<_, anyhow::Error>(server)
    };
    let (result, server) = tokio::join!(timeout(DEADLINE, seen.call(slow, |_| {}, &cancel)), given_up);
    assert!(result?.is_error);
    // Its server hears of it, too.
    let mut server = server?;
    tokio::task::spawn_blocking(move || server.wait_for("notifications/cancelled", DEADLINE)).await??;
    outside.close().await;
    agent.close().await;
    bench.leaks().check(DEADLINE)
}
