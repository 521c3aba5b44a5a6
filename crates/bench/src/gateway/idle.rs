//! What a gateway needs while nothing happens: its own processes, its supervisors among them, never the servers.

use std::time::Duration;

use serde_json::json;

use super::{Config, options, started};
use crate::front::{Member, Spec};
use crate::sys::{self, float};
use crate::table::Row;

/// So long after its last server has come up.
const SETTLED: Duration = Duration::from_secs(2);

pub(super) fn measure(spec: &Spec, config: &Config, row: &mut Row) -> Result<(), String> {
    let n = config.servers.unwrap_or(20);
    let members = (0..n).map(|i| {
        let name = format!("s{i}");
        Member::upstream(&name, &["--tools", "10", "--name", &name])
    });
    let (run, _) = started(spec, &options(spec, config, members.collect()))?;
    let busy = run.usage().cpu_us;
    sys::pause(SETTLED);
    let usage = run.usage();
    row.insert("servers".into(), json!(n));
    row.insert("procs".into(), json!(usage.processes));
    row.insert("rss_idle_mb".into(), json!(float(usage.rss_kib) / 1024.0));
    row.insert("pss_idle_mb".into(), json!(float(usage.pss_kib) / 1024.0));
    row.insert("idle_cpu_ms_s".into(), json!((usage.cpu_us - busy) / 1e3 / SETTLED.as_secs_f64()));
    Ok(())
}
