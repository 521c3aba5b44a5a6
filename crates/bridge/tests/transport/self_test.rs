//! The bridge tests itself over a real socket, and tells four facts apart.

use anyhow::Result;
use serde_json::json;
use toolway_bridge::{Bridge, BridgeConfig, HostTools, Profile, SurfaceOptions, self_test};

use crate::rig::{Rig, call, list, tool};

fn host(names: &[&str]) -> HostTools {
    HostTools {
        all: names.iter().map(|name| tool(name)).collect(),
        active: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[tokio::test]
async fn a_probe_is_called_end_to_end() -> Result<()> {
    for profile in Profile::ALL {
        let bridge = Bridge::new(BridgeConfig::new(profile));
        let tools = host(&["todo", "read", "toolway_self_test"]);
        let test = self_test(&bridge, &SurfaceOptions::default(), &tools).await;
        assert!(test.passed(), "{test}");
        assert_eq!(test.exposed.seen, "2 of 3 tools of the host");
        assert!(test.connected.seen.contains(profile.server_name), "{test}");
        assert!(test.listed.seen.starts_with("3 tools"), "{test}");
        assert!(test.called.seen.contains(&format!("{}toolway_self_test_again", profile.prefix)), "{test}");
        assert_eq!(test.to_string().lines().count(), 4);
        assert!(!test.to_string().contains("127.0.0.1") && !test.to_string().contains("/mcp"), "{test}");
        assert!(bridge.runs().is_empty(), "its run is gone");
    }
    Ok(())
}

#[tokio::test]
async fn what_fails_is_told_fact_by_fact() -> Result<()> {
    let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
    let off = SurfaceOptions { enabled: false, ..SurfaceOptions::default() };
    let test = self_test(&bridge, &off, &host(&["todo"])).await;
    assert_eq!((test.exposed.holds, test.connected.holds, test.passed()), (false, false, false));
    assert!(test.connected.seen.contains("off"), "{test}");
    // Nothing of the host is exposed, but the way is open.
    let hidden = self_test(&bridge, &SurfaceOptions::default(), &host(&["read", "bash"])).await;
    let facts = [hidden.exposed.holds, hidden.connected.holds, hidden.listed.holds, hidden.called.holds];
    assert_eq!(facts, [false, true, true, true], "{hidden}");
    assert_eq!(hidden.exposed.seen, "all 2 tools of the host are hidden");
    bridge.shutdown("over").await;
    let closed = self_test(&bridge, &SurfaceOptions::default(), &host(&["todo"])).await;
    assert_eq!((closed.exposed.holds, closed.connected.holds, closed.called.holds), (true, false, false));
    assert!(closed.connected.seen.contains("shut down"), "{closed}");
    Ok(())
}

#[tokio::test]
async fn what_the_agent_did_is_counted_apart() -> Result<()> {
    let rig = Rig::new().await?;
    let tools = host(&["echo", "slow"]);
    assert!(self_test(&rig.bridge, &SurfaceOptions::default(), &tools).await.passed());
    let facts = rig.run.facts();
    assert_eq!((facts.connected, facts.listed, facts.called), (0, 0, 0), "the test is not the agent");
    let session = rig.legacy().await?;
    session.ask(&rig, &list(1)).await?;
    session.ask(&rig, &call(2, "pi__echo", &json!({}))).await?;
    let facts = rig.run.facts();
    assert_eq!((facts.exposed, facts.connected, facts.listed, facts.called), (2, 1, 1, 1));
    Ok(())
}
