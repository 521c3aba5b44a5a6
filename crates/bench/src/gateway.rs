//! Measures of a gateway: many servers behind one front. What a call costs is measured as for any front ([`measure`]);
//! this is what only a gateway has.

mod idle;
mod reload;
mod scale;
mod start;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::front::{Got, Link, Member, Miss, Running, Spec, StartOptions};
use crate::json as raw;
use crate::measure;
use crate::sys;
use crate::table::Row;

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) rounds: usize,
    /// Servers, where the measure does not say how many it needs.
    pub(crate) servers: Option<usize>,
    /// Lists, and searches, asked for one after the other.
    pub(crate) asks: usize,
    pub(crate) reloads: usize,
    pub(crate) tmp: PathBuf,
}

/// The longest that all servers may take to come up.
const UP: Duration = Duration::from_mins(1);
/// The longest that one answer may take.
const ANSWER: Duration = Duration::from_secs(15);

/// Runs one measure on the fronts in interleaved rounds.
pub(crate) fn run(what: &str, specs: &[Spec], config: &Config, out: Option<&Path>) -> anyhow::Result<()> {
    let measure: fn(&Spec, &Config, &mut Row) -> Result<(), String> = match what {
        "start" => start::measure,
        "scale" => scale::measure,
        "idle" => idle::measure,
        "reload" => reload::measure,
        other => anyhow::bail!("no such measure of a gateway: {other}"),
    };
    let baseline = specs.first().map(|s| s.name.clone()).unwrap_or_default();
    measure::rounds(specs, config.rounds, &baseline, out, |spec| {
        let mut row = Row::new();
        row.insert("front".into(), json!(spec.name));
        if let Err(error) = measure(spec, config, &mut row) {
            row.insert("error".into(), json!(error));
        }
        row
    })
}

fn options(spec: &Spec, config: &Config, members: Vec<Member>) -> StartOptions {
    let mut options = StartOptions::of(spec, "stdio");
    options.tmp.clone_from(&config.tmp);
    options.members = members;
    options
}

/// The list of tools, as the front answers it now.
fn list(run: &mut Running) -> Result<Vec<u8>, Miss> {
    run.request("tools/list", "{}", ANSWER)
}

/// How many tools of each server are in a list, by the prefixes of their names.
fn by_server(answer: &[u8], prefixes: &[String]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for tool in raw::path(answer, &["result", "tools"]).map(raw::items).unwrap_or_default() {
        let name = raw::get(tool, "name").map(raw::unquoted).unwrap_or_default();
        if let Some(server) = prefixes.iter().position(|prefix| name.starts_with(prefix.as_bytes())) {
            *counts.entry(server).or_default() += 1;
        }
    }
    counts
}

fn is_change(message: &[u8]) -> bool {
    raw::get(message, "method") == Some(br#""notifications/tools/list_changed""#)
}

/// Waits until the front says that its tools have changed; a front over HTTP, which the harness does not listen to, is
/// asked again soon. False when the time is over.
fn changed(run: &mut Running, deadline: Instant) -> bool {
    if matches!(run.link, Link::Http(_)) {
        sys::pause(Duration::from_millis(10));
        return Instant::now() < deadline;
    }
    loop {
        if run.extra.iter().any(|message| is_change(message)) {
            run.extra.clear();
            return true;
        }
        match run.receive(deadline) {
            Got::Message(message) => run.extra.push(message),
            Got::Timeout | Got::Closed => return false,
        }
    }
}

/// Asks for the list until `enough` says so of the counts by server; the last answer.
fn until(
    run: &mut Running,
    limit: Duration,
    mut enough: impl FnMut(&BTreeMap<usize, usize>) -> bool,
) -> Result<Vec<u8>, String> {
    let deadline = Instant::now() + limit;
    loop {
        run.extra.clear();
        let answer = list(run).map_err(|miss| format!("tools/list: {miss}"))?;
        let counts = by_server(&answer, &run.prefixes);
        if enough(&counts) {
            return Ok(answer);
        }
        if !changed(run, deadline) {
            return Err(format!("{} of {} servers after {limit:?}", counts.len(), run.prefixes.len()));
        }
    }
}

/// Starts the front and waits for the tools of all its servers.
fn started(spec: &Spec, options: &StartOptions) -> Result<(Running, Vec<u8>), String> {
    let mut run = Running::start(spec, options)?;
    let all = options.members.len();
    let answer = until(&mut run, UP, |counts| counts.len() == all)?;
    Ok((run, answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_counted_by_the_prefix_of_their_server() {
        let answer = br#"{"id":1,"result":{"tools":[{"name":"s1__a"},{"x":{"name":"s0__"},"name":"s1__b"},{"name":"other"},{"name":"s10__c"}]}}"#;
        let prefixes = ["s0__", "s1__", "s10__"].map(String::from);
        assert_eq!(by_server(answer, &prefixes), [(1, 2), (2, 1)].into());
        assert_eq!(by_server(b"{}", &prefixes), BTreeMap::new());
    }

    #[test]
    fn only_the_notification_is_a_change() {
        assert!(is_change(br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#));
        assert!(!is_change(br#"{"id":1,"result":{"method":"notifications/tools/list_changed"}}"#));
    }
}
