//! The example conversation of docs/host-protocol.md, replayed with the real binary and a real agent. What differs each
//! time (ids, ports, tokens, the home) is bound where it first comes, and must be the same from then on.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use toolway_testkit::SOON;

use crate::agent::{Agent, Pending};
use crate::host::{Host, home};

/// What stands in the document for something that is another one each time.
#[derive(Default)]
struct Bound(BTreeMap<String, String>);

impl Bound {
    /// The text with everything that is bound.
    fn fill(&self, text: &str) -> String {
        // The longest first: an id is part of no other one, but a run's id may begin a call's.
        let mut names: Vec<&String> = self.0.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, name| text.replace(name.as_str(), &self.0[name]))
    }

    /// Compares, and binds what differs by nature.
    fn meet(&mut self, shown: &Value, real: &Value, place: &str) -> Result<()> {
        match (shown, real) {
            (Value::Object(shown), Value::Object(real)) => {
                let names = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
                ensure!(names(shown) == names(real), "{place}: {:?}, really {:?}", names(shown), names(real));
                for (name, value) in shown {
                    self.meet(value, &real[name], &format!("{place}.{name}"))?;
                }
                Ok(())
            }
            (Value::Array(shown), Value::Array(real)) => {
                ensure!(shown.len() == real.len(), "{place}: {shown:?}, really {real:?}");
                shown.iter().zip(real).try_for_each(|(shown, real)| self.meet(shown, real, place))
            }
            (Value::String(shown), Value::String(real)) => self.meet_text(shown, real, place),
            _ => {
                ensure!(shown == real, "{place}: {shown}, really {real}");
                Ok(())
            }
        }
    }

    fn meet_text(&mut self, shown: &str, real: &str, place: &str) -> Result<()> {
        let filled = self.fill(shown);
        if filled == real {
            return Ok(());
        }
        let free = ["toolway-bridge-run-", "toolway-replay-", "http://127.0.0.1:", "bridge:on:", "/home/you"];
        let is_free = free
            .iter()
            .any(|start| shown.starts_with(start) && (real.starts_with(start) || *start == "/home/you"));
        let is_version = place.ends_with(".version");
        ensure!((is_free && filled == shown) || is_version, "{place}: {shown:?}, really {real:?}");
        self.0.insert(shown.to_owned(), real.to_owned());
        Ok(())
    }
}

#[test]
fn the_documents_conversation_is_what_happens() -> Result<()> {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/host-protocol.md");
    let document = std::fs::read_to_string(document)?;
    let (_, rest) = document.split_once("```conversation\n").context("no conversation")?;
    let (conversation, _) = rest.split_once("```").context("no end of it")?;
    let mut bound = Bound::default();
    let mut host = Host::silent(home()?)?;
    let mut agent: Option<Agent> = None;
    let mut waiting: BTreeMap<u64, Pending> = BTreeMap::new();
    let mut lines = 0;
    for line in conversation.lines() {
        lines += 1;
        let (who, text) = line.split_once(' ').with_context(|| line.to_owned())?;
        let shown: Value = serde_json::from_str(text).with_context(|| line.to_owned())?;
        match who {
            ">" => host.client.send(&bound.fill(text))?,
            "<" => {
                let real =
                    host.client.next_line(SOON)?.with_context(|| format!("stdout ended before {line}"))?;
                let real: Value = serde_json::from_slice(&real)?;
                bound.meet(&shown, &real, "").with_context(|| format!("{line}\nreally {real}"))?;
                if let Some(url) = real["result"]["server"]["url"].as_str() {
                    agent = Some(Agent::new(url));
                }
            }
            "agent>" if shown["method"] == "initialize" => {
                let agent = agent.as_mut().context("no agent yet")?;
                *agent = agent.connected()?;
            }
            "agent>" => {
                let agent = agent.as_ref().context("no agent yet")?;
                let id = shown["id"].as_u64().context("an id")?;
                waiting.insert(id, agent.post_later(&shown));
            }
            "agent<" => {
                let id = shown["id"].as_u64().context("an id")?;
                let Some(pending) = waiting.remove(&id) else { continue };
                let answer = pending.answer()?;
                bound.meet(&shown, answer.response()?, "agent")?;
            }
            _ => ensure!(false, "{line}"),
        }
    }
    ensure!(lines > 25, "{lines} lines");
    assert_eq!(host.wait_exit()?.code(), Some(0));
    Ok(())
}
