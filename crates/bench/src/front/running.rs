//! One run of a front: its process, its upstream, its folder, and the calls made through it. Ends everything that it
//! started. Knows nothing of what is measured.

mod launch;

use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use launch::Filling;

use super::http_link::HttpLink;
use super::stdio_link::StdioLink;
use super::{Got, HttpUpstream, INIT, Miss, Spec, StartOptions};
use crate::{json, proc, sys};

/// How the front is talked to.
#[derive(Debug)]
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) link: Link,
    child: Option<Child>,
    /// 0: the harness talks to the upstream directly.
    pub(crate) pid: i32,
    pub(crate) upstream: Option<HttpUpstream>,
    pub(crate) tmp: PathBuf,
    /// The folder goes with the run.
    is_own: bool,
    pidfile: PathBuf,
    filling: Filling,
    /// Messages that came beside the awaited answers.
    pub(crate) extra: Vec<Vec<u8>>,
    /// The answer to `initialize`.
    pub(crate) init: Vec<u8>,
    pub(crate) start_ms: f64,
    /// Put before tool names, one for each server; calls go to the first one's unless said otherwise.
    pub(crate) prefixes: Vec<String>,
    next: u64,
}

impl Running {
    /// Starts the front and initializes it.
    pub(crate) fn start(spec: &Spec, options: &StartOptions) -> Result<Self, String> {
        let (mut run, begin) = Self::spawn(spec, options, |_| {}).map_err(|e| format!("{e:#}"))?;
        let deadline = begin + options.init_timeout;
        let got = run.initialize(deadline);
        run.start_ms = sys::ms(begin.elapsed());
        match got {
            Ok(answer) if json::get(&answer, "result").is_some() => run.init = answer,
            Ok(answer) => {
                let start = String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
                return Err(format!("initialize: {start}"));
            }
            Err(miss) => {
                let stderr = std::fs::read_to_string(run.tmp.join("stderr.log")).unwrap_or_default();
                let skip = stderr.chars().count().saturating_sub(400);
                let tail: String = stderr.chars().skip(skip).collect();
                return Err(format!("initialize: {miss}; stderr: {tail}"));
            }
        }
        run.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        Ok(run)
    }

    fn initialize(&mut self, deadline: Instant) -> Result<Vec<u8>, Miss> {
        loop {
            let got = self.call_raw(INIT.as_bytes(), b"0", deadline);
            match got {
                // An HTTP front may not listen yet.
                Err(_) if matches!(self.link, Link::Http(_)) && Instant::now() < deadline => {
                    if let Some(how) = self.exited() {
                        return Err(Miss::Failed(format!("front ended: {how}")));
                    }
                    sys::pause(Duration::from_millis(2));
                }
                got => return got,
            }
        }
    }

    /// A new request id.
    pub(crate) fn id(&mut self) -> String {
        self.reserve_ids(1).to_string()
    }

    /// The first of `n` new request ids in a row.
    pub(super) fn reserve_ids(&mut self, n: usize) -> u64 {
        let first = self.next + 1;
        self.next += n as u64;
        first
    }

    /// Sends a message that is owed no answer, or whose answer is awaited later.
    pub(crate) fn send(&mut self, message: &[u8]) {
        match &mut self.link {
            Link::Stdio(link) => link.send(message),
            Link::Http(link) => {
                link.post(message, Duration::from_secs(5)).ok();
            }
        }
    }

    pub(crate) fn receive(&mut self, deadline: Instant) -> Got {
        match &mut self.link {
            Link::Stdio(link) => link.receive(deadline),
            Link::Http(link) => link.got.pop_front().map_or(Got::Timeout, Got::Message),
        }
    }

    /// Sends a request and waits for the answer with that raw id; answers the server's own requests on the way.
    pub(crate) fn call_raw(&mut self, message: &[u8], id: &[u8], deadline: Instant) -> Result<Vec<u8>, Miss> {
        match &mut self.link {
            Link::Stdio(link) => link.send(message),
            Link::Http(link) => {
                let status = link.post(message, deadline.saturating_duration_since(Instant::now()))?;
                if link.got.is_empty() {
                    return Err(Miss::Failed(format!("HTTP {status}, no body")));
                }
            }
        }
        self.wait(id, deadline)
    }

    /// A request of this method with these raw params, and its answer.
    pub(crate) fn request(&mut self, method: &str, params: &str, timeout: Duration) -> Result<Vec<u8>, Miss> {
        let id = self.id();
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.call_raw(message.as_bytes(), id.as_bytes(), Instant::now() + timeout)
    }

    /// A tool call with these raw arguments.
    pub(crate) fn tool_message(&self, id: &str, name: &str, args: &str) -> String {
        let prefix = self.prefixes.first().map_or("", String::as_str);
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{prefix}{name}","arguments":{args}}}}}"#
        )
    }

    /// Calls a tool.
    pub(crate) fn tool(&mut self, name: &str, args: &str, timeout: Duration) -> Result<Vec<u8>, Miss> {
        let id = self.id();
        let message = self.tool_message(&id, name, args);
        self.call_raw(message.as_bytes(), id.as_bytes(), Instant::now() + timeout)
    }

    fn wait(&mut self, id: &[u8], deadline: Instant) -> Result<Vec<u8>, Miss> {
        loop {
            let message = match self.receive(deadline) {
                Got::Message(message) => message,
                Got::Closed => return Err(Miss::Closed),
                Got::Timeout => return Err(self.unanswered()),
            };
            let (mut its_id, mut method) = (None, None);
            for (key, value) in json::fields(&message) {
                match key {
                    b"id" => its_id = Some(value),
                    b"method" => method = Some(value),
                    _ => {}
                }
            }
            match (its_id, method) {
                (Some(its_id), None) if its_id == id => return Ok(message),
                (Some(its_id), Some(method)) => {
                    let answer = client_answer(its_id, method);
                    self.extra.push(message);
                    self.send(&answer);
                }
                _ => self.extra.push(message),
            }
        }
    }

    fn unanswered(&self) -> Miss {
        let last = self.extra.last().filter(|m| json::get(m, "error").is_some());
        match (&self.link, last) {
            (Link::Http(_), Some(m)) => {
                let start = String::from_utf8_lossy(&m[..m.len().min(140)]).into_owned();
                Miss::Failed(format!("answer without the id: {start}"))
            }
            _ => Miss::Timeout,
        }
    }

    pub(crate) fn usage(&self) -> proc::Usage {
        if self.pid == 0 { proc::Usage::default() } else { proc::usage(self.pid) }
    }

    pub(crate) fn reset_peak(&self) {
        if self.pid != 0 {
            proc::reset_peak(self.pid);
        }
    }

    /// Every upstream that this run's front has started.
    pub(crate) fn upstream_pids(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(&self.pidfile).unwrap_or_default();
        text.lines().filter_map(|l| l.trim().parse().ok()).collect()
    }

    pub(crate) fn has_process(&self) -> bool {
        self.child.is_some()
    }

    /// How the front ended, if it did.
    pub(crate) fn exited(&mut self) -> Option<String> {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.child.as_mut()?.try_wait().ok()??;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "?".into(),
        })
    }

    /// Waits for the front's end: how it ended, and the wait.
    pub(crate) fn wait_exit(&mut self, limit: Duration) -> Option<(String, Duration)> {
        let begin = Instant::now();
        while begin.elapsed() < limit {
            if let Some(how) = self.exited() {
                return Some((how, begin.elapsed()));
            }
            sys::pause(Duration::from_millis(5));
        }
        None
    }

    /// Ends everything that this run started, and removes its folder.
    pub(crate) fn stop(&mut self) {
        if let Link::Stdio(link) = &mut self.link {
            link.close_stdin();
        }
        let upstreams = self.upstream_pids();
        if self.child.is_some() && self.wait_exit(Duration::from_millis(1500)).is_none() {
            proc::kill_tree(self.pid);
            if let Some(child) = &mut self.child {
                child.wait().ok();
            }
        }
        if let Some(upstream) = &mut self.upstream {
            upstream.kill();
        }
        for pid in upstreams {
            if proc::is_alive(pid) && proc::is_upstream(pid) {
                proc::signal(pid, Signal::KILL);
            }
        }
        if self.is_own {
            std::fs::remove_dir_all(&self.tmp).ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the harness's client answers to a request of the server.
fn client_answer(id: &[u8], method: &[u8]) -> Vec<u8> {
    let result = match method {
        br#""roots/list""# => r#"{"roots":[{"uri":"file:///bench","name":"bench"}]}"#,
        br#""sampling/createMessage""# => {
            r#"{"role":"assistant","content":{"type":"text","text":"sampled"},"model":"bench"}"#
        }
        br#""elicitation/create""# => r#"{"action":"accept","content":{"ok":true}}"#,
        _ => "{}",
    };
    let id = String::from_utf8_lossy(id);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes()
}
