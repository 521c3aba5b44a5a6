//! A bridge that has nothing to offer opens no socket. The only test of its process, so that it can count them.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use toolway_bridge::{Bridge, BridgeConfig, HostTool, HostTools, Profile, Snapshot, SurfaceOptions};

/// TCP sockets of this process that listen.
fn listening() -> Result<usize> {
    let table = fs::read_to_string("/proc/self/net/tcp")?
        + &fs::read_to_string("/proc/self/net/tcp6").unwrap_or_default();
    let inodes: Vec<String> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|columns| columns.get(3) == Some(&"0A"))
        .filter_map(|columns| columns.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let links = fs::read_dir("/proc/self/fd")?.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    Ok(links.filter(|link| inodes.iter().any(|inode| link.as_os_str() == inode.as_str())).count())
}

fn snapshot(enabled: bool, names: &[&str], active: &[&str]) -> Result<Arc<Snapshot>> {
    let tool = |name: &&str| serde_json::from_value::<HostTool>(serde_json::json!({"name": name}));
    let tools = HostTools {
        all: names.iter().map(tool).collect::<Result<_, _>>()?,
        active: active.iter().map(|name| (*name).to_owned()).collect(),
    };
    let options = SurfaceOptions { enabled, ..SurfaceOptions::default() };
    Ok(Arc::new(Snapshot::take(&Profile::PI, &options, &tools)))
}

#[tokio::test]
async fn statement_08_nothing_exposed_means_no_listener_and_no_server_for_the_agent() -> Result<()> {
    let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
    for nothing in [
        snapshot(false, &["todo"], &["todo"])?,
        snapshot(true, &[], &[])?,
        snapshot(true, &["todo"], &[])?,
        snapshot(true, &["read", "bash"], &["read", "bash", "ghost"])?,
    ] {
        // What the agent is handed comes from a run, and there is none.
        assert!(bridge.open(nothing).await?.is_none());
        assert_eq!(bridge.runs().len(), 0);
        assert_eq!(listening()?, 0);
    }
    let run = bridge.open(snapshot(true, &["todo"], &["todo"])?).await?.context("nothing is served")?;
    assert_eq!(listening()?, 1);
    // Another one that exposes nothing changes nothing for it.
    assert!(bridge.open(snapshot(false, &["todo"], &["todo"])?).await?.is_none());
    assert_eq!(listening()?, 1);
    run.dispose("the session is over").await;
    assert_eq!(listening()?, 0);
    Ok(())
}
