//! Speed and size of fronts: one run of one front, and several side by side in interleaved rounds, so that ratios are
//! taken between neighbours in time.

mod blobs;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::front::{Running, Spec, StartOptions};
use crate::json as raw;
use crate::sys::{self, float, percentile};
use crate::table::{Row, table};

/// What is measured, and how much of it; 0 calls and no sizes leave that part out.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) upstream: String,
    pub(crate) rounds: usize,
    /// Starts beside the one that the rest is measured on.
    pub(crate) cold: usize,
    pub(crate) calls: usize,
    pub(crate) pipe: usize,
    pub(crate) window: usize,
    pub(crate) sizes: Vec<usize>,
    pub(crate) kinds: Vec<String>,
    /// The longest that a phase of small calls may take; blobs of one size twice that.
    pub(crate) budget: Duration,
    pub(crate) blob_timeout: Duration,
    pub(crate) large_request: bool,
    pub(crate) tmp: PathBuf,
}

/// The fronts in rounds, each round beginning with another one; rows as they come, then the table.
pub(crate) fn ab(specs: &[Spec], config: &Config, baseline: &str, out: Option<&Path>) -> anyhow::Result<()> {
    rounds(specs, config.rounds, baseline, out, |spec| measure(spec, config))
}

/// The same for any measurement of one front.
pub(crate) fn rounds(
    specs: &[Spec],
    rounds: usize,
    baseline: &str,
    out: Option<&Path>,
    mut measure: impl FnMut(&Spec) -> Row,
) -> anyhow::Result<()> {
    let mut file = match out {
        Some(path) => Some(std::fs::OpenOptions::new().create(true).append(true).open(path)?),
        None => None,
    };
    let mut rows: Vec<Row> = vec![];
    for round in 0..rounds {
        for k in 0..specs.len() {
            let spec = &specs[(k + round) % specs.len()];
            let begin = Instant::now();
            let mut row = measure(spec);
            row.insert("round".into(), json!(round));
            let error = row.get("error").map(Value::to_string).unwrap_or_default();
            let seconds = begin.elapsed().as_secs_f64();
            sys::note(&format!("round {round} {:<26} {seconds:6.1} s {error}", spec.name));
            let line = Value::Object(row.clone()).to_string();
            match &mut file {
                Some(file) => writeln!(file, "{line}")?,
                None => sys::say(&line),
            }
            rows.push(row);
        }
    }
    sys::say(&table(&rows, baseline));
    Ok(())
}

fn mib(kib: u64) -> f64 {
    float(kib) / 1024.0
}

/// One front, everything that is asked for.
fn measure(spec: &Spec, config: &Config) -> Row {
    let mut row = Row::new();
    row.insert("front".into(), json!(spec.name));
    row.insert("upstream".into(), json!(config.upstream));
    let mut options = StartOptions::of(spec, &config.upstream);
    options.tmp.clone_from(&config.tmp);
    let mut run = match starts(spec, &options, config.cold, &mut row) {
        Ok(run) => run,
        Err(error) => {
            row.insert("error".into(), json!(error));
            return row;
        }
    };
    idle(&mut run, &mut row);
    if small_calls(&mut run, config, &mut row) {
        blobs::measure(&mut run, config, &mut row);
        let alive = echo(&mut run, 7) == Echo::Right;
        row.insert("alive_after".into(), json!(alive));
        if alive && config.large_request {
            large_request(&mut run, &mut row);
        }
    }
    row
}

/// Cold starts, from spawn to the answer to `initialize`; the last one goes on running.
fn starts(spec: &Spec, options: &StartOptions, cold: usize, row: &mut Row) -> Result<Running, String> {
    let mut times = vec![];
    for _ in 0..cold {
        times.push(Running::start(spec, options)?.start_ms);
    }
    let run = Running::start(spec, options)?;
    times.push(run.start_ms);
    row.insert("cold_ms".into(), json!(percentile(&mut times, 50)));
    row.insert("cold_min_ms".into(), json!(times[0]));
    Ok(run)
}

fn idle(run: &mut Running, row: &mut Row) {
    let begin = Instant::now();
    match run.request("tools/list", "{}", Duration::from_secs(15)) {
        Ok(answer) if raw::get(&answer, "result").is_some() => {
            row.insert("list_ms".into(), json!(sys::ms(begin.elapsed())));
        }
        Ok(answer) => {
            let start = String::from_utf8_lossy(&answer[..answer.len().min(200)]);
            row.insert("list_error".into(), json!(start));
        }
        Err(miss) => {
            row.insert("list_error".into(), json!(miss.to_string()));
        }
    }
    sys::pause(Duration::from_millis(50));
    let usage = run.usage();
    row.insert("procs".into(), json!(usage.processes));
    row.insert("rss_idle_mb".into(), json!(mib(usage.rss_kib)));
    row.insert("pss_idle_mb".into(), json!(mib(usage.pss_kib)));
    row.insert("cpu_start_ms".into(), json!(usage.cpu_us / 1e3));
}

/// What came of one echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Right,
    Wrong,
    Missed,
}

fn echo(run: &mut Running, k: usize) -> Echo {
    let text = format!("call number {k}");
    match run.tool("echo", &format!(r#"{{"text":"{text}"}}"#), Duration::from_secs(10)) {
        Ok(answer) if raw::is_str(raw::first_text_raw(&answer), &text) => Echo::Right,
        Ok(_) => Echo::Wrong,
        Err(_) => Echo::Missed,
    }
}

/// Sequential and pipelined echo; false when the front cannot do even that.
fn small_calls(run: &mut Running, config: &Config, row: &mut Row) -> bool {
    if config.calls == 0 && config.pipe == 0 {
        return true;
    }
    let begin = Instant::now();
    for k in 0..50 {
        let got = echo(run, k);
        if got != Echo::Right {
            row.insert("echo_error".into(), json!(format!("{got:?} in the warm-up")));
            return false;
        }
        if begin.elapsed() > config.budget {
            break;
        }
    }
    let mut wrong = sequential(run, config, row);
    let before = run.usage();
    if config.pipe > 0 {
        let piped = run.pipeline(config.pipe, config.window, config.budget);
        wrong += piped.mismatches;
        let after = run.usage();
        let calls = float(piped.answered.max(1) as u64);
        row.insert("pipe_n".into(), json!(piped.answered));
        row.insert("pipe_calls_s".into(), json!(float(piped.answered as u64) / piped.seconds));
        row.insert("pipe_cpu_us_call".into(), json!((after.cpu_us - before.cpu_us) / calls));
        if piped.stray > 0 {
            row.insert("stray_lines".into(), json!(piped.stray));
        }
    }
    if wrong > 0 {
        row.insert("mismatches".into(), json!(wrong));
    }
    let usage = run.usage();
    row.insert("rss_after_small_mb".into(), json!(mib(usage.rss_kib)));
    row.insert("peak_small_mb".into(), json!(mib(usage.peak_kib)));
    true
}

/// One call after the other; gives how many answers were not right.
fn sequential(run: &mut Running, config: &Config, row: &mut Row) -> usize {
    if config.calls == 0 {
        return 0;
    }
    let (mut times, mut wrong) = (vec![], 0);
    let before = run.usage();
    let begin = Instant::now();
    for k in 0..config.calls {
        let one = Instant::now();
        let got = echo(run, k);
        wrong += usize::from(got != Echo::Right);
        if got == Echo::Missed {
            break;
        }
        times.push(one.elapsed().as_secs_f64() * 1e6);
        if begin.elapsed() > config.budget {
            break;
        }
    }
    let cpu = run.usage().cpu_us - before.cpu_us;
    row.insert("echo_n".into(), json!(times.len()));
    row.insert("echo_p50_us".into(), json!(percentile(&mut times, 50)));
    row.insert("echo_p99_us".into(), json!(percentile(&mut times, 99)));
    row.insert("cpu_us_call".into(), json!(cpu / float(times.len().max(1) as u64)));
    wrong
}

fn large_request(run: &mut Running, row: &mut Row) {
    let args = format!(r#"{{"text":"{}"}}"#, "x".repeat(1_000_000));
    let begin = Instant::now();
    let answer = run.tool("size", &args, Duration::from_secs(20));
    let time = sys::ms(begin.elapsed());
    match answer {
        Ok(answer) if raw::get(&answer, "result").is_some() => {
            row.insert("request_1M_ms".into(), json!(time));
        }
        Ok(answer) => {
            let start = String::from_utf8_lossy(&answer[..answer.len().min(160)]);
            row.insert("request_1M_error".into(), json!(start));
        }
        Err(miss) => {
            row.insert("request_1M_error".into(), json!(miss.to_string()));
        }
    }
}
