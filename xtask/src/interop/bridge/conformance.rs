//! The official conformance suite before the bridge. Its tools have names of their own, so it stands before a
//! forwarder that takes the bridge's prefix from the names. Which checks the bridge cannot pass, and why, stands in
//! tables of docs/protocol.md.

use anyhow::{Result, bail};
use serde_json::json;

use super::Script;
use crate::interop::conformance::alone;
use crate::interop::cross_era::{differences, table};
use crate::interop::suite::{Revision, judge, unpassed};
use crate::interop::upstream::{Listener, Upstreams, free_port};
use crate::interop::{Stage, page};

pub(in crate::interop) fn run(
    stage: &Stage,
    upstreams: &Upstreams,
    name: &str,
    revision: Revision,
) -> Result<()> {
    let script = Script::read(stage, name, "conformance")?;
    let table = table(&page(stage)?, "bridge", revision)?;
    let alone = alone(stage, upstreams, revision, &script.folder)?;
    let port = free_port()?;
    let host = script.host(stage, &[("forward", json!(port))])?;
    let bridge = Listener::start(stage, "scripted host", &host.words(), port)?;
    let through = judge(stage, revision, &bridge.url("/mcp"), &script.file("through"))?;
    let problems = differences(&table, &alone, &through, unpassed);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}
