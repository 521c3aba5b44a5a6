//! Statements about servers at an address: which transport, which headers, and to whom they are not sent.

use anyhow::Result;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolway_agent::{LocalOptions, McpServer, McpServers};

use super::support::{Bench, call, generations, report, run, text, tool};

#[tokio::test]
async fn statement_a02_a_url_alone_is_streamable_http_from_this_process() -> Result<()> {
    let mut bench = Bench::new()?;
    let mut web = bench.web("on tools/call/x -> text from afar", "http")?;
    let servers = McpServers::new().with("w", McpServer::url(&web.url));
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "w__x").await?;
    assert_eq!(text(&call(&generation, "w__x", json!({})).await?), "from afar");
    assert_eq!(report(&generation, "w", "connected").await?.transport.as_deref(), Some("http"));
    let first = web.peer.requests().into_iter().next();
    assert!(
        first.is_some_and(
            |request| request.verb == "POST" && request.method().as_deref() == Some("initialize")
        )
    );
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a03_sse_is_sse_only_and_http_falls_back_after_a_definite_refusal() -> Result<()> {
    let mut bench = Bench::new()?;
    let mut sse = bench.web("", "sse")?;
    let servers = McpServers::new().with("s", McpServer::url(&sse.url).with("type", json!("sse")));
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    assert_eq!(report(&generation, "s", "connected").await?.transport.as_deref(), Some("sse"));
    let verbs: Vec<String> = sse.peer.requests().into_iter().take(1).map(|request| request.verb).collect();
    assert_eq!(verbs, ["GET"]);
    agent.close().await;
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        for kind in [json!("http"), json!(null)] {
            let old = bench.web(&format!("on POST 1 -> status {status}"), "sse")?;
            let mut entry = McpServer::url(&old.url);
            if kind.is_string() {
                entry = entry.with("type", kind.clone());
            } else {
                // Without a type, a path that ends in /sse begins with SSE: give it another.
                entry = McpServer::url(format!("{}?x=1", old.url));
            }
            let agent =
                generations(&bench.options(McpServers::new().with("o", entry), LocalOptions::default()))?;
            let generation = run(&agent).await?;
            let report = report(&generation, "o", "connected").await?;
            assert_eq!(report.transport.as_deref(), Some("sse"), "{status} {kind}");
            agent.close().await;
        }
    }
    let broken = bench.web("on POST -> status 500 Broken", "http")?;
    let servers = McpServers::new().with("b", McpServer::url(&broken.url));
    let agent = generations(&bench.options(servers, LocalOptions::default()))?;
    let generation = run(&agent).await?;
    let reason = report(&generation, "b", "failed").await?.reason.unwrap_or_default();
    assert!(reason.contains("500"), "{reason}");
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a21_headers_go_with_every_request_and_to_nobody_else() -> Result<()> {
    let mut bench = Bench::new()?;
    let mut web = bench.web("set get on\nset session on", "http")?;
    let server = McpServer::url(&web.url).header("Authorization", "Bearer s3cr3t").header("X-Team", "blue");
    let agent = generations(&bench.options(McpServers::new().with("w", server), LocalOptions::default()))?;
    let generation = run(&agent).await?;
    tool(&generation, "w__echo").await?;
    call(&generation, "w__echo", json!({})).await?;
    agent.close().await;
    let requests = web.peer.requests();
    for verb in ["POST", "DELETE"] {
        assert!(requests.iter().any(|request| request.verb == verb), "{verb}: {requests:?}");
    }
    for request in &requests {
        assert_eq!(request.header("authorization"), Some("Bearer s3cr3t"), "{request:?}");
        assert_eq!(request.header("x-team"), Some("blue"), "{request:?}");
    }

    let mut other = bench.web("", "http")?;
    let away = format!("on POST\n    status 307 Moved\n    header Location: {}\n    body x\n", other.url);
    let away = bench.web(&away, "http")?;
    let server = McpServer::url(&away.url).header("Authorization", "Bearer s3cr3t");
    let agent = generations(&bench.options(McpServers::new().with("r", server), LocalOptions::default()))?;
    let generation = run(&agent).await?;
    let reports = generation.reports();
    for request in other.peer.requests() {
        assert_eq!(request.header("authorization"), None, "{request:?} {reports:?}");
    }
    agent.close().await;
    Ok(())
}

#[tokio::test]
async fn statement_a22_one_authorization_and_its_name_in_title_case_where_wanted() -> Result<()> {
    let bench = Bench::new()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let server =
        McpServer::url(url).header("Authorization", "Bearer s3cr3t").with("headerCase", json!("title"));
    let agent = generations(&bench.options(McpServers::new().with("w", server), LocalOptions::default()))?;
    let run = agent.for_run(&toolway_agent::SendOptions::default()).await?;
    let (mut connection, _) = listener.accept().await?;
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 4096];
        let read = connection.read(&mut piece).await?;
        anyhow::ensure!(read > 0, "the request was cut");
        head.extend_from_slice(&piece[..read]);
    }
    connection.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
    let head = String::from_utf8_lossy(&head).into_owned();
    assert_eq!(head.matches("Authorization: Bearer s3cr3t\r\n").count(), 1, "{head}");
    assert_eq!(head.to_ascii_lowercase().matches("authorization").count(), 1, "{head}");
    drop(run);
    agent.close().await;
    Ok(())
}
