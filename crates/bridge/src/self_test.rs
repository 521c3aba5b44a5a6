//! Owns the self-test of a bridge: an MCP client of our own goes the whole way over a real socket, to a probe tool and
//! back. It tells four facts apart, since one does not prove the next: exposed, connected, listed, called.
//!
//! It has a run of its own beside those of agents, so that what it does is not taken for what an agent did; what an agent
//! did is in [`crate::Run::facts`].

mod client;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;
use toolway_wire::find::{Step, elements, find, string};

use crate::call::{CallId, HostCall, HostResult};
use crate::json::RawJson;
use crate::registry::Bridge;
use crate::run::{CallSink, Run};
use crate::snapshot::{Snapshot, SurfaceOptions};
use crate::tool::{HostTool, HostTools, Provenance};
use client::Client;

/// What the probe is called in the test's own surface.
const PROBE: &str = "toolway_self_test";

/// One fact: it holds or not, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// It holds.
    pub holds: bool,
    /// What was seen, or why it does not hold. No endpoint is in it.
    pub seen: String,
}

impl Finding {
    fn yes(seen: String) -> Self {
        Self { holds: true, seen }
    }

    fn no(seen: impl Into<String>) -> Self {
        Self { holds: false, seen: seen.into() }
    }

    fn not_tried() -> Self {
        Self::no("not tried, since the step before failed")
    }
}

/// What a self-test saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// The host's tools are offered.
    pub exposed: Finding,
    /// A client reaches the server and introduces itself.
    pub connected: Finding,
    /// The client is given exactly the tools that are offered.
    pub listed: Finding,
    /// A call goes to the host, and its result comes back.
    pub called: Finding,
}

impl SelfTest {
    /// All four hold.
    pub fn passed(&self) -> bool {
        [&self.exposed, &self.connected, &self.listed, &self.called].iter().all(|finding| finding.holds)
    }
}

impl fmt::Display for SelfTest {
    /// Four lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [
            ("exposed", &self.exposed),
            ("connected", &self.connected),
            ("listed", &self.listed),
            ("called", &self.called),
        ];
        for (number, (name, finding)) in facts.into_iter().enumerate() {
            let line_break = if number == 0 { "" } else { "\n" };
            let holds = if finding.holds { "yes" } else { "no" };
            write!(f, "{line_break}{name}: {holds} ({})", finding.seen)?;
        }
        Ok(())
    }
}

/// Offers what the host's tools come to under these options, and a probe beside them, in a run of its own; then goes the
/// way of a client to the probe. No tool of the host is called. Takes no longer than four times the connect deadline.
pub async fn self_test(bridge: &Bridge, options: &SurfaceOptions, tools: &HostTools) -> SelfTest {
    let profile = bridge.config().profile;
    let own = Snapshot::take(&profile, options, tools);
    let mut test = SelfTest {
        exposed: exposed(&own),
        connected: Finding::not_tried(),
        listed: Finding::not_tried(),
        called: Finding::not_tried(),
    };
    if !options.enabled {
        test.connected = Finding::no("not tried, since the bridge is off");
        return test;
    }
    let probe = probe(tools);
    let mut with_probe = tools.clone();
    with_probe.active.push(probe.name.clone());
    with_probe.all.push(probe.clone());
    let snapshot = Arc::new(Snapshot::take(&profile, options, &with_probe));
    let Some(exposed_probe) = snapshot.exposed().iter().find(|tool| tool.tool.name == probe.name) else {
        test.connected = Finding::no("not tried, since the probe cannot be exposed");
        return test;
    };
    let mcp_name = exposed_probe.mcp_name.clone();
    match bridge.open(Arc::clone(&snapshot)).await {
        Ok(Some(run)) => {
            run.bind(Box::new(Probe { name: probe.name, run: run.clone() }));
            walk(&run, &mcp_name, &mut test).await;
            run.dispose("the self-test is over").await;
        }
        Ok(None) => test.connected = Finding::no("there is no server: nothing is exposed"),
        Err(error) => test.connected = Finding::no(format!("there is no server: {error}")),
    }
    test
}

fn exposed(snapshot: &Snapshot) -> Finding {
    let (exposed, hidden) = (snapshot.exposed().len(), snapshot.hidden().len());
    match exposed {
        0 if !snapshot.is_enabled() => Finding::no("the bridge is off"),
        0 if hidden == 0 => Finding::no("the host has no tools"),
        0 => Finding::no(format!("all {hidden} tools of the host are hidden")),
        _ => Finding::yes(format!("{exposed} of {} tools of the host", exposed + hidden)),
    }
}

/// A tool that the host does not have.
fn probe(tools: &HostTools) -> HostTool {
    let mut name = PROBE.to_owned();
    while tools.all.iter().any(|tool| tool.name == name) || tools.active.contains(&name) {
        name.push_str("_again");
    }
    HostTool {
        name,
        description: "Gives back what it is given: the bridge tests itself.".to_owned(),
        guidelines: Vec::new(),
        parameters: RawJson::empty_object(),
        provenance: Provenance { source: "self-test".to_owned(), ..Provenance::default() },
    }
}

/// The host's part: the probe gives back its arguments, everything else is refused.
struct Probe {
    name: String,
    run: Run,
}

impl CallSink for Probe {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        if call.tool != self.name {
            return Err("only the probe is called in a self-test".to_owned());
        }
        self.run.settle(&call.id, HostResult::text(call.arguments.text()));
        Ok(())
    }

    fn cancelled(&mut self, _id: &CallId, _reason: &str) {}
}

/// The client's part.
async fn walk(run: &Run, probe: &str, test: &mut SelfTest) {
    let begun = Instant::now();
    let mut client = match Client::connect(run).await {
        Ok((client, server)) => {
            test.connected = Finding::yes(format!("{server} answered within {}", took(begun)));
            client
        }
        Err(why) => {
            test.connected = Finding::no(why);
            return;
        }
    };
    test.listed = listed(run, &mut client).await;
    test.called = if test.listed.holds { called(&mut client, probe).await } else { Finding::not_tried() };
    client.close().await;
}

async fn listed(run: &Run, client: &mut Client) -> Finding {
    let answer = match client.ask("tools/list", "{}").await {
        Ok(answer) => answer,
        Err(why) => return Finding::no(why),
    };
    let Some(tools) = find(&answer, &[Step::Key("result"), Step::Key("tools")]) else {
        return Finding::no("the answer to tools/list has no tools");
    };
    let name = |tool: std::ops::Range<usize>| {
        let tool = answer.get(tool)?;
        string(tool, find(tool, &[Step::Key("name")])?)
    };
    let listed: BTreeSet<String> = elements(&answer, tools).filter_map(name).collect();
    let offered: BTreeSet<String> =
        run.snapshot().exposed().iter().map(|tool| tool.mcp_name.clone()).collect();
    if listed == offered {
        return Finding::yes(format!("{} tools, the probe among them", listed.len()));
    }
    let differing: Vec<&str> = listed.symmetric_difference(&offered).take(5).map(String::as_str).collect();
    Finding::no(format!("the list differs from what is offered: {}", differing.join(", ")))
}

async fn called(client: &mut Client, probe: &str) -> Finding {
    let Ok(nonce) = crate::calls::random_uuid() else { return Finding::no("the system has no randomness") };
    let begun = Instant::now();
    let params = format!("{{\"name\":\"{probe}\",\"arguments\":{{\"nonce\":\"{nonce}\"}}}}");
    let answer = match client.ask("tools/call", &params).await {
        Ok(answer) => answer,
        Err(why) => return Finding::no(why),
    };
    let text = [Step::Key("result"), Step::Key("content"), Step::Index(0), Step::Key("text")];
    let text = find(&answer, &text).and_then(|at| string(&answer, at)).unwrap_or_default();
    if text == format!("{{\"nonce\":\"{nonce}\"}}") {
        return Finding::yes(format!("{probe} gave back what it was given, within {}", took(begun)));
    }
    Finding::no(format!("{probe} gave back something else than it was given"))
}

fn took(begun: Instant) -> String {
    format!("{} ms", begun.elapsed().as_millis())
}
