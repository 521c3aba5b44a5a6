//! A thousand tools over twenty servers: how long a list and a search take, how large the list is, and how soon it is
//! there at the next start, when no server runs yet.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{ANSWER, Config, UP, by_server, list, options, started};
use crate::front::{Member, Running, Spec, StartOptions};
use crate::json as raw;
use crate::sys::{self, float, ms, percentile};
use crate::table::Row;

/// Tools of each server, `echo` among them.
const EACH: usize = 50;

/// Words of a search, and the tool that must be in its answer.
const QUERIES: [(&str, &str); 6] = [
    ("approve an invoice", "approve_invoice"),
    ("which calendar events are there", "calendar_event"),
    ("archive customer", "archive_customer"),
    ("share spreadsheet with somebody", "share_spreadsheet"),
    ("compare database rows", "compare_database_row"),
    ("delete feature flag", "delete_feature_flag"),
];

fn members(n: usize, lazy: bool) -> Vec<Member> {
    let one = |i: usize| {
        let (name, more) = (format!("s{i}"), (EACH - 1).to_string());
        Member { lazy, ..Member::upstream(&name, &["--tools", &more, "--name", &name]) }
    };
    (0..n).map(one).collect()
}

pub(super) fn measure(spec: &Spec, config: &Config, row: &mut Row) -> Result<(), String> {
    let n = config.servers.unwrap_or(20);
    if let Some(tool) = &spec.search {
        let mut run = Running::start(spec, &options(spec, config, members(n, false)))?;
        return searches(&mut run, config, tool, row);
    }
    let folder = config.tmp.join(format!("toolway-bench-catalogue-{}", std::process::id()));
    let mut first = options(spec, config, members(n, spec.is_lazy));
    first.folder = spec.is_lazy.then(|| folder.clone());
    let begin = Instant::now();
    let (mut run, answer) = started(spec, &first)?;
    row.insert("all_ms".into(), json!(ms(begin.elapsed())));
    let tools: usize = by_server(&answer, &run.prefixes).values().sum();
    row.insert("tools".into(), json!(tools));
    row.insert("list_bytes".into(), json!(answer.len()));
    let mut times = vec![];
    for _ in 0..config.asks {
        let begin = Instant::now();
        let again = list(&mut run).map_err(|miss| format!("tools/list: {miss}"))?;
        times.push(ms(begin.elapsed()));
        if again.len() + 8 < answer.len() {
            return Err("the list has become shorter".into());
        }
    }
    row.insert("list_ms".into(), json!(percentile(&mut times, 50)));
    row.insert("list_p99_ms".into(), json!(percentile(&mut times, 99)));
    drop(run);
    let kept = if spec.is_lazy { from_disk(spec, &first, tools, row) } else { Ok(()) };
    std::fs::remove_dir_all(folder).ok();
    kept
}

/// The second start in the same folder: the first list comes out of the catalogue that the first one kept.
fn from_disk(spec: &Spec, options: &StartOptions, tools: usize, row: &mut Row) -> Result<(), String> {
    let mut run = Running::start(spec, options)?;
    let begin = Instant::now();
    let answer = list(&mut run).map_err(|miss| format!("tools/list at the second start: {miss}"))?;
    row.insert("disk_list_ms".into(), json!(ms(begin.elapsed())));
    row.insert("disk_init_ms".into(), json!(run.start_ms));
    let kept: usize = by_server(&answer, &run.prefixes).values().sum();
    if kept == tools { Ok(()) } else { Err(format!("{kept} of {tools} tools at the second start")) }
}

fn ask(run: &mut Running, tool: &str, query: &str) -> Result<String, String> {
    let arguments = format!(r#"{{"query":{}}}"#, raw::quote(query));
    let id = run.id();
    // A tool of the front's own: no server's name is before it.
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let answer = run.call_raw(message.as_bytes(), id.as_bytes(), Instant::now() + ANSWER);
    answer.map(|a| String::from_utf8_lossy(&a).into_owned()).map_err(|miss| format!("{tool}: {miss}"))
}

/// Waits until the tools of every server can be found, then asks in turn.
fn searches(run: &mut Running, config: &Config, tool: &str, row: &mut Row) -> Result<(), String> {
    let (deadline, prefixes) = (Instant::now() + UP, run.prefixes.clone());
    for prefix in &prefixes {
        let server = prefix.trim_end_matches('_');
        while !ask(run, tool, &format!("tools of {server}"))?.contains(prefix.as_str()) {
            if Instant::now() > deadline {
                return Err(format!("the tools of {server} are not found"));
            }
            sys::pause(Duration::from_millis(20));
        }
    }
    let (mut times, mut found) = (vec![], 0);
    for (query, wanted) in QUERIES.iter().cycle().take(config.asks) {
        let begin = Instant::now();
        let answer = ask(run, tool, query)?;
        times.push(ms(begin.elapsed()));
        found += u64::from(answer.contains(wanted));
    }
    row.insert("search_ms".into(), json!(percentile(&mut times, 50)));
    row.insert("search_p99_ms".into(), json!(percentile(&mut times, 99)));
    row.insert("search_found_percent".into(), json!(100.0 * float(found) / float(config.asks as u64)));
    let answer = list(run).map_err(|miss| format!("tools/list: {miss}"))?;
    row.insert("list_bytes".into(), json!(answer.len()));
    Ok(())
}
