//! What a front does when something breaks. Every scenario has a fresh front, a bound, and its own clean-up. What is
//! right is `judge`'s to say.

mod judge;
mod network;
mod shutdown;
mod traffic;

use std::time::{Duration, Instant};

use serde_json::json;

use crate::front::{self, Got, INIT, Miss, Running, Spec, StartOptions};
use crate::json as raw;
use crate::table::Row;
use crate::{proc, sys};

pub(crate) use judge::{is_right, summary};

/// Each scenario, and the kinds of upstream that it is for.
const SCENARIOS: &[(&str, &str)] = &[
    ("crash", "stdio http sse"),
    ("crash_partial", "stdio http"),
    ("garbage", "stdio"),
    ("stderr_flood", "stdio"),
    ("never", "stdio http sse"),
    ("stdin_close_inflight", "stdio http sse"),
    ("stdin_close_stubborn", "stdio"),
    ("stdin_close_shell", "stdio"),
    ("sigterm_inflight", "stdio http"),
    ("sigterm_ignores_eof", "stdio"),
    ("sigkill", "stdio"),
    ("sigkill_ignores_eof", "stdio"),
    ("invalid_json", "stdio http"),
    ("batch", "stdio http"),
    ("blob_100M", "stdio http sse"),
    ("deep_answer_10k", "stdio http"),
    ("deep_request_10k", "stdio http"),
    ("unauth_start", "http sse"),
    ("unauth_later", "http sse"),
    ("session_404", "http"),
    ("restart", "http sse"),
    ("status_500", "http"),
    ("hang", "http"),
    ("sse_cut", "http"),
    ("sse_cut_resumable", "http"),
    ("refused_start", "http sse"),
];

/// The scenarios for this kind of upstream.
pub(crate) fn scenarios(upstream: &str) -> impl Iterator<Item = &'static str> {
    let kind = front::kind(upstream).to_owned();
    SCENARIOS.iter().filter(move |(_, kinds)| kinds.split(' ').any(|k| k == kind)).map(|(name, _)| *name)
}

/// A scenario under way.
struct Scene<'a> {
    name: &'a str,
    upstream: &'a str,
    spec: &'a Spec,
    run: Running,
    row: Row,
}

/// Runs one scenario: what was seen, in words.
pub(crate) fn run(spec: &Spec, upstream: &str, name: &str) -> Row {
    let mut row = Row::new();
    row.insert("front".into(), json!(spec.name));
    row.insert("upstream".into(), json!(upstream));
    row.insert("scenario".into(), json!(name));
    if spec.is_http && (name.contains("inflight") || name.starts_with("stdin_close")) {
        row.insert("skipped".into(), json!("front is HTTP"));
        return row;
    }
    let options = options(spec, upstream, name);
    if name == "unauth_start" || name == "refused_start" {
        if let Err(error) = before_initialize(spec, &options, name, &mut row) {
            row.insert("error".into(), json!(format!("{error:#}")));
        }
        return row;
    }
    let run = match Running::start(spec, &options) {
        Ok(run) => run,
        Err(error) => {
            row.insert("error".into(), json!(error));
            return row;
        }
    };
    let mut scene = Scene { name, upstream, spec, run, row };
    match name {
        "stdin_close_inflight" | "stdin_close_stubborn" | "stdin_close_shell" => scene.stdin_closes(),
        "sigterm_inflight" | "sigterm_ignores_eof" => scene.terminated(),
        "sigkill" | "sigkill_ignores_eof" => scene.killed(),
        "invalid_json" => scene.invalid_json(),
        "batch" => scene.batch(),
        "unauth_later" | "session_404" | "status_500" | "hang" => scene.refuses(),
        "restart" => scene.restarts(),
        "sse_cut" | "sse_cut_resumable" => scene.stream_breaks(),
        _ => scene.tool_misbehaves(),
    }
    scene.run.stop();
    scene.row
}

fn options(spec: &Spec, upstream: &str, name: &str) -> StartOptions {
    let mut options = StartOptions::of(spec, upstream);
    options.init_timeout = Duration::from_secs(15);
    let flags: &[&str] = match name {
        "stdin_close_stubborn" => &["--ignore-eof", "--ignore-term"],
        "sigterm_ignores_eof" | "sigkill_ignores_eof" | "stdin_close_shell" => &["--ignore-eof"],
        "stdin_close_inflight" => &["--drain"],
        _ => &[],
    };
    options.in_shell = name == "stdin_close_shell";
    options.upstream_flags.extend(flags.iter().chain(&["--max-life", "150"]).map(|s| (*s).to_owned()));
    options
}

/// The upstream refuses before the client has said anything.
fn before_initialize(spec: &Spec, options: &StartOptions, name: &str, row: &mut Row) -> anyhow::Result<()> {
    let (mut run, _) = Running::spawn(spec, options, |upstream| {
        if name == "unauth_start" { upstream.say("unauth") } else { upstream.kill() }
    })?;
    let begin = Instant::now();
    let answer = run.call_raw(INIT.as_bytes(), b"0", begin + Duration::from_secs(12));
    row.insert("initialize".into(), json!(describe(&answer, begin)));
    row.insert("front_state".into(), json!(front_state(&mut run, Duration::from_secs(2))));
    row.insert("stderr".into(), json!(last_line(&run)));
    Ok(())
}

fn short(text: &str, n: usize) -> String {
    match text.char_indices().nth(n) {
        Some(_) => format!("{}…", text.chars().take(n).collect::<String>()),
        None => text.to_owned(),
    }
}

/// An answer, or its absence, in words.
fn describe(answer: &Result<Vec<u8>, Miss>, begin: Instant) -> String {
    let time = begin.elapsed();
    let ms = time.as_millis();
    let message = match answer {
        Err(Miss::Timeout) => return format!("nothing in {:.0} s", time.as_secs_f64()),
        Err(miss) => return format!("{miss} after {ms} ms"),
        Ok(message) => message,
    };
    if let Some(error) = raw::get(message, "error") {
        let code = String::from_utf8_lossy(raw::get(error, "code").unwrap_or(b"")).into_owned();
        let why = raw::string(raw::get(error, "message")).unwrap_or_default();
        return format!("error {code} {} after {ms} ms", short(&why, 90));
    }
    if raw::truthy(raw::path(message, &["result", "isError"])) {
        let text = raw::first_text(message).unwrap_or_default();
        return format!("isError result \"{}\" after {ms} ms", short(&text, 90));
    }
    format!("result ({} bytes) after {ms} ms", message.len())
}

fn front_state(run: &mut Running, wait: Duration) -> String {
    if !run.has_process() {
        return "-".into();
    }
    match run.wait_exit(wait) {
        Some((how, time)) => format!("{how} after {:.1} s", time.as_secs_f64()),
        None => "running".into(),
    }
}

fn last_line(run: &Running) -> String {
    let text = std::fs::read_to_string(run.tmp.join("stderr.log")).unwrap_or_default();
    short(text.lines().rfind(|l| !l.trim().is_empty()).unwrap_or(""), 200)
}

impl Scene<'_> {
    fn put(&mut self, key: &str, value: impl Into<serde_json::Value>) {
        self.row.insert(key.to_owned(), value.into());
    }

    /// Calls a tool and notes what came.
    fn call(&mut self, key: &str, tool: &str, args: &str, seconds: u64) {
        let begin = Instant::now();
        let answer = self.run.tool(tool, args, Duration::from_secs(seconds));
        self.put(key, describe(&answer, begin));
    }

    /// Is the front still of use?
    fn next(&mut self, key: &str) {
        if self.run.exited().is_some() {
            self.put(key, "front gone");
        } else {
            self.call(key, "echo", r#"{"text":"next"}"#, 6);
        }
    }

    fn front_state(&mut self, key: &str, wait: Duration) {
        let state = front_state(&mut self.run, wait);
        self.put(key, state);
    }

    /// Is an upstream over stdio gone?
    fn upstream_state(&mut self, wait: Duration) {
        if self.upstream != "stdio" {
            return;
        }
        let pids = self.run.upstream_pids();
        let begin = Instant::now();
        let state = loop {
            let left = pids.iter().filter(|p| proc::is_alive(**p)).count();
            if pids.is_empty() {
                break "never started".to_owned();
            }
            if left == 0 {
                break format!("gone after {:.1} s", begin.elapsed().as_secs_f64());
            }
            if begin.elapsed() > wait {
                break format!("ORPHAN ({left} still there after {:.0} s)", wait.as_secs_f64());
            }
            sys::pause(Duration::from_millis(10));
        };
        self.put("upstream_state", state);
    }

    /// Some slow calls, sent and on their way.
    fn in_flight(&mut self, n: usize, ms: u64) -> Vec<String> {
        let ids: Vec<String> = (0..n).map(|_| self.run.id()).collect();
        for id in &ids {
            let message = self.run.tool_message(id, "sleep", &format!(r#"{{"ms":{ms}}}"#));
            self.run.send(message.as_bytes());
        }
        sys::pause(Duration::from_millis(250));
        ids
    }

    /// What became of them.
    fn collect(&mut self, ids: &[String], wait: Duration) {
        let deadline = Instant::now() + wait;
        let (mut results, mut errors, mut last) = (0, 0, String::new());
        while results + errors < ids.len() {
            let Got::Message(message) = self.run.receive(deadline) else { break };
            let id = raw::get(&message, "id").unwrap_or(b"");
            if !ids.iter().any(|x| x.as_bytes() == id) {
                continue;
            }
            match raw::get(&message, "error") {
                None => results += 1,
                Some(error) => {
                    errors += 1;
                    last = format!(" ({})", short(&String::from_utf8_lossy(error), 80));
                }
            }
        }
        let open = ids.len() - results - errors;
        let all = ids.len();
        self.put("pending", format!("{results} results, {errors} errors, {open} unanswered of {all}{last}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_described_for_the_judge() {
        let begin = Instant::now();
        let ok = |text: &str| describe(&Ok(text.as_bytes().to_vec()), begin);
        assert!(
            ok(r#"{"id":1,"error":{"code":-32000,"message":"gone"}}"#).starts_with("error -32000 gone after")
        );
        assert!(
            ok(r#"{"id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#)
                .starts_with("isError result \"no\"")
        );
        assert!(ok(r#"{"id":1,"result":{}}"#).starts_with("result (20 bytes)"));
        assert_eq!(describe(&Err(Miss::Timeout), begin), "nothing in 0 s");
        assert!(describe(&Err(Miss::Closed), begin).starts_with("closed after"));
    }

    #[test]
    fn there_are_forty_three_judged_runs() {
        let judged = |upstream| scenarios(upstream).filter(|name| judge::has_rule(name)).count();
        assert_eq!((judged("stdio"), judged("http"), judged("sse")), (17, 18, 8));
        assert_eq!(scenarios("http-sse").count(), scenarios("http").count());
    }
}
