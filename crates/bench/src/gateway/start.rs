//! Fifty servers, one that never answers and one whose program is not there: how soon the front answers `initialize`,
//! and how long after each server's own first answer to `tools/list` the client has its tools.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::{Config, options, until};
use crate::front::{Member, Running, Spec};
use crate::server::wall_clock;
use crate::sys::{float, percentile};
use crate::table::Row;

const LIMIT: Duration = Duration::from_secs(30);
/// Below the run's own folder.
const STAMPS: &str = "stamps";

fn members(n: usize) -> Vec<Member> {
    let stamps = format!("{{tmp}}/{STAMPS}");
    let good = (2..n).map(|i| {
        let name = format!("s{i}");
        Member::upstream(&name, &["--tools", "2", "--name", &name, "--stamps", &stamps])
    });
    let mut all: Vec<Member> = good.collect();
    // Neither may be the last: a front that goes through its servers in order must not get away with it.
    all.insert(0, Member::absent("absent"));
    all.insert(0, Member::upstream("mute", &["--init-delay", "60000"]));
    all
}

pub(super) fn measure(spec: &Spec, config: &Config, row: &mut Row) -> Result<(), String> {
    let n = config.servers.unwrap_or(50).max(3);
    let members = members(n);
    let names: Vec<String> = members.iter().map(|m| m.name.clone()).collect();
    let mut run = Running::start(spec, &options(spec, config, members))?;
    row.insert("init_ms".into(), json!(run.start_ms));
    let mut seen: BTreeMap<usize, u128> = BTreeMap::new();
    let came = until(&mut run, LIMIT, |counts| {
        let now = wall_clock();
        for server in counts.keys() {
            seen.entry(*server).or_insert(now);
        }
        seen.len() >= n - 2
    });
    row.insert("servers_seen".into(), json!(seen.len()));
    if let Err(error) = came {
        row.insert("list_error".into(), json!(error));
    }
    let mut late = lateness(&run, &names, &seen);
    if !late.is_empty() {
        row.insert("late_p50_ms".into(), json!(percentile(&mut late, 50)));
        row.insert("late_max_ms".into(), json!(percentile(&mut late, 100)));
    }
    Ok(())
}

/// Milliseconds from each server's own answer to the client's list with its tools.
fn lateness(run: &Running, names: &[String], seen: &BTreeMap<usize, u128>) -> Vec<f64> {
    let answered = |server: &usize| -> Option<u128> {
        std::fs::read_to_string(run.tmp.join(STAMPS).join(names.get(*server)?)).ok()?.parse().ok()
    };
    let pairs = seen.iter().filter_map(|(server, at)| Some(at.saturating_sub(answered(server)?)));
    pairs.filter_map(|nanos| u64::try_from(nanos).ok()).map(|nanos| float(nanos) / 1e6).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn one_is_mute_one_absent_and_the_names_differ() {
        let all = members(50);
        let names: BTreeSet<&str> = all.iter().map(|m| m.name.as_str()).collect();
        assert_eq!((all.len(), names.len()), (50, 50));
        assert_eq!(all.iter().filter(|m| m.program.is_some()).count(), 1);
    }
}
