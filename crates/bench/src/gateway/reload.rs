//! The configuration changes many times while the gateway runs: how soon the client has the new tools, whether calls to
//! the other servers go on, and whether processes, descriptors and memory are afterwards what they were.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Config, options, started, until};
use crate::front::{Member, Running, Spec};
use crate::json as raw;
use crate::proc;
use crate::sys::{self, float, ms, percentile};
use crate::table::Row;

/// Reloads before the first look at what is used, so that what is only ever made once is not counted.
const WARM_UP: usize = 5;
/// The longest that one reload may take.
const LIMIT: Duration = Duration::from_secs(20);
/// What is no longer needed has this long to go.
const SETTLED: Duration = Duration::from_secs(3);

/// The last server has so many tools beside `echo`.
fn members(n: usize, tools: usize) -> Vec<Member> {
    let mut all = Member::plain(n);
    let name = format!("s{}", n - 1);
    all.pop();
    all.push(Member::upstream(&name, &["--tools", &tools.to_string(), "--name", &name]));
    all
}

const fn tools(round: usize) -> usize {
    2 + round % 2
}

pub(super) fn measure(spec: &Spec, config: &Config, row: &mut Row) -> Result<(), String> {
    let n = config.servers.unwrap_or(5).max(2);
    let (mut run, _) = started(spec, &options(spec, config, members(n, tools(0))))?;
    let mut times = vec![];
    let mut wrong = 0_usize;
    for round in 1..=WARM_UP + config.reloads {
        if round == WARM_UP + 1 {
            used(&run, "before", row);
        }
        let begin = Instant::now();
        // By turns as an editor does it, with a new file in the old one's place, and into the file that is there.
        run.rewrite(spec, &members(n, tools(round)), round % 4 < 2).map_err(|e| format!("{e:#}"))?;
        until(&mut run, LIMIT, |counts| counts.get(&(n - 1)) == Some(&(tools(round) + 1)))
            .map_err(|error| format!("reload {round}: {error}"))?;
        times.push(ms(begin.elapsed()));
        let text = format!("call number {round}");
        let echo = run.tool("echo", &format!(r#"{{"text":"{text}"}}"#), Duration::from_secs(5));
        wrong += usize::from(!echo.is_ok_and(|a| raw::is_str(raw::first_text_raw(&a), &text)));
    }
    used(&run, "after", row);
    row.insert("reloads".into(), json!(times.len() - WARM_UP));
    row.insert("reload_p50_ms".into(), json!(percentile(&mut times, 50)));
    row.insert("reload_max_ms".into(), json!(percentile(&mut times, 100)));
    row.insert("calls_lost".into(), json!(wrong));
    Ok(())
}

fn used(run: &Running, when: &str, row: &mut Row) {
    sys::pause(SETTLED);
    let usage = run.usage();
    let mut put = |what: &str, value| row.insert(format!("{what}_{when}"), value);
    put("procs", json!(proc::tree(run.pid).len()));
    put("fds", json!(proc::descriptors(run.pid)));
    put("rss_mb", json!(float(usage.rss_kib) / 1024.0));
    put("pss_mb", json!(float(usage.pss_kib) / 1024.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_changes_the_last_server_only() {
        let (one, two) = (members(3, tools(1)), members(3, tools(2)));
        assert_eq!(one[..2], two[..2]);
        assert_ne!(one[2], two[2]);
    }
}
