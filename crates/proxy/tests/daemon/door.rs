//! Who may connect to the daemon, and what first lines it takes.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use crate::support::Rig;

#[tokio::test]
async fn another_user_is_turned_away_without_a_word() -> Result<()> {
    let rig = Rig::with(Duration::from_mins(10), |_| Ok(4_000_000))?;
    ensure!(rig.raw(b"{\"toolway\":\"0.1.0\",\"want\":\"status\"}\n").await?.is_empty());
    let unknown = Rig::with(Duration::from_mins(10), |_| Err(std::io::Error::other("no credentials")))?;
    ensure!(unknown.raw(b"{\"toolway\":\"0.1.0\",\"want\":\"stop\"}\n").await?.is_empty());
    unknown.end(false).await?;
    rig.end(false).await
}

#[tokio::test]
async fn the_socket_belongs_to_its_user_alone() -> Result<()> {
    let rig = Rig::new()?;
    let mode = std::fs::metadata(&rig.socket)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{mode:o}");
    // Whoever else listens there never sees a definition.
    let mut client = std::sync::Arc::into_inner(rig.client()).expect("one handle");
    client.user += 1;
    let config = rig.server("", "secret")?;
    let shared = std::sync::Arc::new(client).share(&config).expect("it can be shared");
    let opened = toolway_proxy::gateway::Client::open(&shared, &rig.shared).await;
    let error = opened.err().map(|error| error.state().to_string()).unwrap_or_default();
    ensure!(error.contains("another user"), "{error}");
    ensure!(rig.status().await?.servers.is_empty());
    rig.end(false).await
}

#[tokio::test]
async fn first_lines_that_make_no_sense_cost_their_connection_only() -> Result<()> {
    let rig = Rig::new()?;
    let version = toolway_proxy::daemon::VERSION;
    for (line, told) in [
        ("nonsense\n".to_owned(), "not understood"),
        ("{}\n".to_owned(), "not understood"),
        ("\n".to_owned(), "not understood"),
        (format!("{{\"toolway\":\"{version}\",\"want\":\"steal\"}}\n"), "not understood"),
        ("{\"toolway\":\"9.9.9\",\"want\":\"status\"}\n".to_owned(), "daemon of toolway"),
        ("{\"toolway\":\"9.9.9\",\"want\":\"stop\"}\n".to_owned(), "daemon of toolway"),
        (format!("{{\"toolway\":\"{version}\",\"want\":{{\"attach\":{{}}}}}}\n"), "not understood"),
        // More than the line, and an end within it.
        (format!("{{\"toolway\":\"{version}\",\"want\":\"status\"}}\n{{\"jsonrpc\""), ""),
    ] {
        let answer = rig.raw(line.as_bytes()).await?;
        ensure!(answer.contains(told) && answer.is_empty() == told.is_empty(), "{line:?}: {answer:?}");
    }
    rig.raw(&vec![b'x'; 6 << 20]).await?;
    ensure!(rig.status().await?.servers.is_empty());
    rig.end(false).await
}

#[tokio::test]
async fn a_flood_of_silent_connections_keeps_nobody_out_for_long() -> Result<()> {
    let rig = Rig::new()?;
    let mut silent = Vec::new();
    for _ in 0..520 {
        match UnixStream::connect(&rig.socket).await {
            Ok(mut stream) => {
                stream.write_all(b"{").await.ok();
                silent.push(stream);
            }
            // The system's own queue is full.
            Err(_) => break,
        }
    }
    // They are given up after some seconds, and then others come in.
    rig.status().await?;
    drop(silent);
    rig.end(false).await
}
