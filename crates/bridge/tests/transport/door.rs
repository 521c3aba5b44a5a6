//! Who may call: paths, tokens, hosts, origins, methods and content types, in all variations.

use std::net::{SocketAddr, UdpSocket};

use anyhow::Result;
use serde_json::json;
use tokio::net::TcpStream;

use crate::rig::{Rig, initialize, tool};
use crate::wire::{Answer, Wire, request};
use toolway_bridge::{BridgeConfig, Profile};

/// The initialize request with exactly these headers.
async fn with(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
    rig.ask(&request(method, path, headers, initialize("2025-11-25").to_string().as_bytes())).await
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[tokio::test]
async fn statement_11_the_listener_is_on_127_0_0_1_and_the_token_has_nothing_of_the_run() -> Result<()> {
    for profile in Profile::ALL {
        let rig = Rig::of(BridgeConfig::new(profile), vec![tool("echo")]).await?;
        let url = rig.run.server().url.expose().to_owned();
        let start = format!("http://127.0.0.1:{}/{}/", rig.port, profile.path_segment);
        let token = url.strip_prefix(&start).and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
        let groups: Vec<usize> = token.split('-').map(str::len).collect();
        assert_eq!((groups, token.as_bytes()[14]), (vec![8, 4, 4, 4, 12], b'4'), "a random UUID");
        let hex: String = token.chars().filter(|c| *c != '-').collect();
        assert!(!rig.run.id().contains(token) && !rig.run.id().contains(&hex));
        assert_eq!(rig.run.server().key, profile.server_key);
        let answer = rig.ask(&rig.post(&[], initialize("2025-11-25").to_string().as_bytes())).await?;
        assert_eq!(answer.status(), 200);
    }
    Ok(())
}

#[tokio::test]
async fn statement_12_wrong_tokens_dead_runs_and_foreign_pages_are_refused() -> Result<()> {
    let rig = Rig::new().await?;
    let host = format!("127.0.0.1:{}", rig.port);
    let host = ("Host", host.as_str());
    let token = rig.path.split('/').nth(2).unwrap();
    let last = if token.ends_with('0') { "1" } else { "0" };
    let equal = format!("{}{last}", token.split_at(35).0);
    let segment = Profile::PI.path_segment;
    for path in [
        "/".to_owned(),
        "/mcp".to_owned(),
        format!("/{segment}/mcp"),
        format!("/{segment}//mcp"),
        format!("/{segment}/{equal}/mcp"),
        format!("/{segment}/{}/mcp", token.to_ascii_uppercase()),
        format!("/{segment}/{token}"),
        format!("/{segment}/{token}/"),
        format!("/{segment}/{token}/mcp/"),
        format!("/{segment}/{token}x/mcp"),
        format!("/{segment}/{}/mcp", token.split_at(8).0),
        format!("/x/{token}/mcp"),
        format!("/{segment}/../{segment}/{token}/mcp"),
        format!("/{}/{token}/mcp", Profile::HOST.path_segment),
        format!("/{segment}/{token}%2Fmcp"),
    ] {
        let answer = with(&rig, "POST", &path, &[host, JSON]).await?;
        assert_eq!(answer.status(), 404, "{path}");
        assert!(answer.reason()?.len() > 8 && !answer.reason()?.contains(token), "{path}");
    }
    // A second run keeps the listener open when the first one ends.
    let other = rig.bridge.open(rig.run.snapshot().clone()).await?.unwrap();
    rig.run.dispose("over").await;
    let gone = with(&rig, "POST", &rig.path, &[host, JSON]).await?;
    assert_eq!(gone.status(), 410);
    assert!(gone.reason()?.contains("over"));
    let (_, path) = crate::rig::address(&other)?;
    assert_eq!(with(&rig, "POST", &path, &[host, JSON]).await?.status(), 200);
    let evil = with(&rig, "POST", &path, &[("Host", "evil.example"), JSON]).await?;
    let page = with(&rig, "POST", &path, &[host, JSON, ("Origin", "http://evil.example")]).await?;
    assert_eq!((evil.status(), page.status()), (403, 403));
    Ok(())
}

#[tokio::test]
async fn trial_23_the_loopback_door() -> Result<()> {
    let rig = Rig::new().await?;
    let (host, local) = (format!("127.0.0.1:{}", rig.port), format!("localhost:{}", rig.port));
    let host = ("Host", host.as_str());
    let local = ("Host", local.as_str());
    let evil = ("Origin", "http://evil.example");
    let six = format!("[::1]:{}", rig.port);
    let bare = format!("evil.example:{}", rig.port);
    let path = rig.path.as_str();
    let same = format!("http://127.0.0.1:{}", rig.port);
    for (line, method, path, headers, status) in [
        (1, "POST", path, vec![host, JSON], 200),
        (1, "POST", path, vec![local, JSON], 200),
        (1, "POST", path, vec![host, JSON, ("Origin", same.as_str())], 200),
        (1, "POST", path, vec![host, JSON, ("Origin", "http://localhost:5173")], 200),
        (2, "POST", path, vec![("Host", "evil.example"), JSON], 403),
        (2, "POST", path, vec![("Host", bare.as_str()), JSON], 403),
        (2, "POST", path, vec![("Host", "127.0.0.1"), JSON], 403),
        (2, "POST", path, vec![("Host", "127.0.0.1:1"), JSON], 403),
        (2, "POST", path, vec![("Host", ""), JSON], 403),
        (2, "POST", path, vec![JSON], 403),
        (3, "POST", path, vec![local, JSON, evil], 403),
        (3, "POST", path, vec![host, JSON, ("Origin", "https://127.0.0.1.evil.example")], 403),
        (4, "POST", path, vec![host, JSON, ("Origin", "null")], 403),
        (4, "POST", path, vec![host, JSON, ("Origin", "")], 403),
        (4, "POST", path, vec![host, JSON, ("Origin", "http://localhost"), evil], 403),
        (5, "POST", "/mcp", vec![host, JSON], 404),
        (6, "POST", path, vec![host, ("Content-Type", "text/plain")], 415),
        (6, "POST", path, vec![host, ("Content-Type", "application/x-www-form-urlencoded")], 415),
        (6, "POST", path, vec![host, ("Content-Type", "text/plain; application/json")], 415),
        (6, "POST", path, vec![host], 415),
        (6, "POST", path, vec![host, JSON, ("Content-Encoding", "gzip")], 415),
        (7, "OPTIONS", path, vec![host, evil], 403),
        (
            7,
            "OPTIONS",
            path,
            vec![host, ("Origin", "http://localhost"), ("Access-Control-Request-Method", "POST")],
            405,
        ),
        (7, "GET", path, vec![host, ("Accept", "text/event-stream")], 405),
        (7, "PUT", path, vec![host, JSON], 405),
        (9, "POST", path, vec![("Host", six.as_str()), JSON], 403),
    ] {
        let answer = with(&rig, method, path, &headers).await?;
        assert_eq!(answer.status(), status, "line {line}: {method} {headers:?}");
        if status != 200 {
            assert!(!answer.reason()?.is_empty(), "line {line}: {headers:?}");
            let said = String::from_utf8(answer.body.clone())?;
            assert!(!said.contains(rig.path.split('/').nth(2).unwrap()), "{said}");
        }
        let cors = answer.head.headers.iter().any(|(name, _)| name.starts_with("access-control-"));
        assert!(!cors, "line {line}: {headers:?} {:?}", answer.head);
    }
    for address in addresses_of_others(rig.port) {
        assert!(TcpStream::connect(address).await.is_err(), "8 and 9: {address} is served");
    }
    Ok(())
}

/// Addresses of this machine that nothing is served on.
fn addresses_of_others(port: u16) -> Vec<SocketAddr> {
    let mut addresses = vec![SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))];
    if cfg!(target_os = "linux") {
        addresses.push(SocketAddr::from(([127, 0, 0, 2], port)));
    }
    // Which address would be used is known without a packet being sent.
    let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    });
    addresses.extend(outward.ok().map(|address| SocketAddr::new(address.ip(), port)));
    addresses
}

#[tokio::test]
async fn checks_come_before_any_parsing() -> Result<()> {
    let rig = Rig::new().await?;
    let host = format!("127.0.0.1:{}", rig.port);
    // The body never comes, and the answer does not wait for it.
    for (headers, status) in [
        (vec![("Host", "evil.example"), JSON], 403),
        (vec![("Host", host.as_str()), JSON, ("Origin", "null")], 403),
        (vec![("Host", host.as_str()), ("Content-Type", "text/plain")], 415),
        (vec![("Host", host.as_str()), JSON, ("Accept", "text/html")], 406),
    ] {
        let mut all = headers.clone();
        all.push(("Content-Length", "1000"));
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&request("POST", &rig.path, &all, b"")).await?;
        assert_eq!(wire.answer().await?.status(), status, "{headers:?}");
    }
    // Whoever is turned away learns nothing of what the path would say.
    let evil = [("Host", "evil.example"), JSON];
    let (known, unknown) =
        (with(&rig, "POST", &rig.path, &evil).await?, with(&rig, "POST", "/mcp", &evil).await?);
    assert_eq!((known.status(), known.body), (unknown.status(), unknown.body));
    Ok(())
}

#[tokio::test]
async fn bodies_that_are_no_messages_are_refused_and_harm_nothing() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let headers = [("Mcp-Session-Id", session.session.as_str())];
    let cases: [(&[u8], i64); 11] = [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":NaN}}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xc3\x28\"}}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} {}", -32700),
        (b"   ", -32700),
        (b"7", -32600),
        (b"{\"id\":1,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600),
        (b"[]", -32600),
    ];
    for (body, code) in cases {
        let answer = rig.ask(&rig.post(&headers, body)).await?;
        let shown = String::from_utf8_lossy(body);
        assert_eq!(answer.status(), 400, "{shown}");
        assert_eq!(answer.json()?["error"]["code"], code, "{shown}: {:?}", answer.reason());
    }
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    assert_eq!(session.ask(&rig, &ping).await?.json()?, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    Ok(())
}
