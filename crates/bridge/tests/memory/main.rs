//! What the loopback server holds in memory, in a process of its own: nothing of a body that is refused, and little of
//! calls that wait. The client's side of every connection is in the same process and counts too.

#[expect(dead_code, reason = "shared with the other tests of the server, which use more of it")]
#[path = "../transport/rig.rs"]
mod rig;
#[expect(dead_code, reason = "shared with the other tests of the server, which use more of it")]
#[path = "../transport/wire.rs"]
mod wire;

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_bridge::HostResult;

use rig::{Rig, call};
use wire::Wire;

const MIB: u64 = 1 << 20;

/// One test, since memory is the process's: one after the other.
#[tokio::test]
async fn memory_does_not_grow_with_what_clients_send() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;

    let before = peak();
    let (path, port) = (&rig.path, rig.port);
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n");
    let piece = vec![b' '; 1 << 20];
    let mut wire = Wire::open(port).await?;
    wire.send(format!("{head}Content-Length: {}\r\n\r\n", 100 * MIB).as_bytes()).await?;
    for _ in 0..100 {
        wire.send(&piece).await?;
    }
    assert_eq!(wire.answer().await?.status(), 413);
    grown_less_than(before, 8, "an announced body of 100 MiB");

    // Calls that wait, each on a connection of its own.
    let mut wires = Vec::new();
    for id in 0..1000 {
        let mut wire = Wire::open(rig.port).await.context("this test needs 2,100 open files")?;
        wire.send(&session.post(&rig, &call(id, "pi__slow", &json!({"path": "/some/where"})))).await?;
        wires.push((wire, rig.started().await?));
    }
    grown_less_than(before, 64, "a thousand calls in flight");
    for (wire, started) in &mut wires {
        rig.run.settle(&started.id, HostResult::text("done"));
        assert_eq!(wire.answer().await?.status(), 200);
    }
    drop(wires);

    // Chunked: at most what is allowed is held before it is known to be too much.
    let before = peak();
    let mut wire = Wire::open(rig.port).await?;
    wire.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await?;
    for _ in 0..100 {
        wire.send(format!("{MIB:x}\r\n").as_bytes()).await?;
        wire.send(&piece).await?;
        wire.send(b"\r\n").await?;
    }
    wire.send(b"0\r\n\r\n").await?;
    assert_eq!(wire.answer().await?.status(), 413);
    grown_less_than(before, 48, "a chunked body of 100 MiB");

    // Many large bodies that do not end take their turns.
    let before = peak();
    let mut wires = Vec::new();
    for _ in 0..40 {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(format!("{head}Content-Length: {}\r\n\r\n", 12 * MIB).as_bytes()).await?;
        wires.push(wire);
    }
    let begun = std::time::Instant::now();
    for wire in &mut wires {
        for _ in 0..11 {
            let sent = tokio::time::timeout(std::time::Duration::from_millis(20), wire.send(&piece)).await;
            if sent.is_err() {
                break;
            }
        }
    }
    grown_less_than(before, 160, "forty large bodies at once");
    assert!(begun.elapsed().as_secs() < 20);
    Ok(())
}

fn grown_less_than(before: Option<u64>, mib: u64, what: &str) {
    if let (Some(before), Some(after)) = (before, peak()) {
        let grown = after.saturating_sub(before);
        assert!(grown < mib * MIB, "{what}: {} MiB", grown >> 20);
    }
}

/// The most memory that this process has held, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
