//! Which servers have one copy, and when copies and the daemon end.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use toolway_proxy::gateway::{Alone, Share};
use toolway_transport::Payload;

use crate::support::{DEADLINE, Rig};

const SCRIPT: &str = r#"tool {"name":"echo","inputSchema":{"type":"object"}}"#;

#[tokio::test]
async fn equal_servers_have_one_copy_and_others_have_their_own() -> Result<()> {
    let rig = Rig::new()?;
    let one = rig.server(SCRIPT, "a")?;
    let first = rig.attach(&one).await?;
    let second = rig.attach(&one).await?;
    let other = rig.attach(&rig.server(SCRIPT, "b")?).await?;
    let status = rig.status().await?;
    let found: Vec<_> = status.servers.iter().map(|copy| (copy.clients, copy.instances)).collect();
    ensure!(found.len() == 2 && found.contains(&(2, 1)) && found.contains(&(1, 1)), "{status:?}");
    // Each client has its own ids, and its own answers.
    for mut client in [first, second, other] {
        let lists = client.lists().await?;
        ensure!(!lists.tools.is_empty());
        let answer = client.call("echo", r#"{"text":"mine"}"#, &mut Alone).await?;
        let Payload::Bytes(answer) = answer else { bail!("a file") };
        ensure!(String::from_utf8_lossy(&answer).contains("mine"));
        client.close().await;
    }
    rig.end(false).await
}

#[tokio::test]
async fn a_server_that_does_not_start_is_told_with_its_reason_and_tried_again() -> Result<()> {
    let rig = Rig::new()?;
    let mut gone = rig.server(SCRIPT, "a")?;
    let toolway_proxy::gateway::Target::Child(target) = &mut gone.target else { unreachable!() };
    target.command = "no-such-command-at-all".to_owned();
    for _ in 0..2 {
        let error = rig.attach(&gone).await.err().map(|error| error.to_string()).unwrap_or_default();
        ensure!(error.contains("no-such-command-at-all"), "{error}");
        ensure!(rig.status().await?.servers.is_empty());
    }
    rig.end(false).await
}

#[tokio::test]
async fn what_is_not_to_be_shared_is_not() -> Result<()> {
    let rig = Rig::new()?;
    let mut config = rig.server(SCRIPT, "a")?;
    config.share = Share::Never;
    ensure!(rig.client().share(&config).is_none());
    rig.end(false).await
}

#[tokio::test]
async fn servers_and_the_daemon_end_when_nobody_needs_them() -> Result<()> {
    let rig = Rig::with(Duration::from_millis(300), toolway_proxy::daemon::peer_user)?;
    let used = rig.attach(&rig.server(SCRIPT, "a")?).await?;
    let brief = rig.attach(&rig.server(SCRIPT, "b")?).await?;
    brief.close().await;
    let waiting = async {
        while rig.status().await?.servers.len() > 1 {
            tokio::task::yield_now().await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(DEADLINE, waiting).await??;
    used.close().await;
    rig.end(true).await
}

#[tokio::test]
async fn a_second_daemon_is_refused_and_a_dead_ones_socket_is_taken_over() -> Result<()> {
    let rig = Rig::new()?;
    ensure!(rig.client().stop().await?);
    ensure!(!rig.client().stop().await?, "none runs");
    ensure!(rig.client().status().await?.is_none());
    std::os::unix::net::UnixListener::bind(&rig.socket)?;
    ensure!(rig.client().status().await?.is_none(), "nobody listens at a file that is left");
    std::fs::remove_file(&rig.socket)?;
    rig.end(true).await
}
