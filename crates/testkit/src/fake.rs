//! A fake MCP server: which rule answers a message, and the actions that no transport is needed for.

mod exchange;
mod http;
pub(crate) mod request;
mod sse;
mod stdio;

use std::collections::HashSet;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use crate::journal::Journal;
use crate::message::Message;
use crate::script::{Script, Step, Template, Values};
use http::Peers;

/// How a fake server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeTransport {
    /// stdin and stdout.
    Stdio,
    /// Streamable HTTP on 127.0.0.1.
    Http,
    /// Legacy HTTP+SSE on 127.0.0.1.
    Sse,
}

/// Where a fake server runs.
#[derive(Debug, Clone)]
pub struct FakeConfig {
    /// How it is reached.
    pub transport: FakeTransport,
    /// The port to listen on; 0: any.
    pub port: u16,
    /// The test that listens to its journal and arms its faults.
    pub test: Option<SocketAddr>,
    /// A word for the argument list of what it spawns, by which a leak is found.
    pub mark: String,
    /// The binary that it spawns for processes that stay.
    pub program: PathBuf,
}

/// What an action of a transport does.
pub(crate) trait Port: Send {
    /// Does one step that only a transport can do.
    fn step(&mut self, step: &Step, values: &Values) -> io::Result<()>;
    /// The steps have all been done.
    fn finish(&mut self, values: &Values) -> io::Result<()>;
    /// The flag that says that the peer has gone, if that can be seen.
    fn gone(&mut self) -> Option<String> {
        None
    }
}

/// A running fake server.
#[derive(Debug)]
pub struct Fake {
    pub(crate) script: Script,
    pub(crate) config: FakeConfig,
    pub(crate) journal: Journal,
    pub(crate) peers: Peers,
    counts: Mutex<Vec<u64>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    flags: HashSet<String>,
    running: usize,
}

/// What is done about one message.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) count: u64,
}

impl Fake {
    /// Serves until the end: the client's, the test's, or that of its time.
    pub fn serve(script: Script, config: FakeConfig, journal: Journal) -> Result<()> {
        let counts = Mutex::new(vec![0; script.rules.len()]);
        let fake = Arc::new(Self {
            script,
            config,
            journal,
            peers: Peers::default(),
            counts,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        fake.end_after(fake.script.settings.life);
        if fake.script.settings.ignore_term {
            ignore_signals()?;
        }
        match fake.config.transport {
            FakeTransport::Stdio => stdio::serve(&fake),
            FakeTransport::Http | FakeTransport::Sse => http::serve(&fake),
        }
    }

    fn end_after(self: &Arc<Self>, life: Duration) {
        let fake = Arc::clone(self);
        std::thread::spawn(move || {
            fake.pause(life);
            fake.exit(9);
        });
    }

    /// Ends the process, as a script or the end of its time wants.
    pub(crate) fn exit(&self, code: i32) -> ! {
        self.journal.event("exit", json!({ "code": code }));
        std::process::exit(code)
    }

    /// Does what the test says, one command a line; the test's end is the end.
    pub(crate) fn obey(self: &Arc<Self>, test: TcpStream, port: Box<dyn Port>) {
        let fake = Arc::clone(self);
        let mut port = port;
        std::thread::spawn(move || {
            for line in BufReader::new(test).lines() {
                let Ok(line) = line else { break };
                let done = Step::parse(&line)
                    .and_then(|step| Ok(fake.run(&[step], &Values::default(), port.as_mut())?));
                let failure = done.err().map(|error| format!("{error:#}"));
                fake.journal.event("done", json!({ "command": line, "error": failure }));
            }
            fake.exit(9);
        });
    }

    /// Which rule answers; `names` are what the message goes by, the most exact first.
    pub(crate) fn plan(&self, names: &[String]) -> Option<Plan> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for (rule, count) in self.script.rules.iter().zip(counts.iter_mut()) {
            if !names.contains(&rule.what) {
                continue;
            }
            *count += 1;
            let nth = rule.nth.is_none_or(|(n, later)| *count == n || (later && *count > n));
            let armed = rule.when.as_ref().is_none_or(|flag| self.armed(flag));
            if nth && armed && found.is_none() {
                found = Some(Plan { steps: rule.steps.clone(), count: *count });
            }
        }
        found
    }

    /// What is done about a message of the client.
    pub(crate) fn plan_message(&self, message: &Message<'_>) -> Plan {
        if let Some(flag) = flag_of(message) {
            self.arm(&flag);
        }
        let method = message.method();
        let mut names = Vec::new();
        match method.as_deref() {
            Some("tools/call") => {
                let tool = message.string(&["params", "name"]).unwrap_or_default();
                names.push(format!("tools/call/{tool}"));
                names.push("tools/call".to_owned());
            }
            Some(method) => names.push(method.to_owned()),
            None => names.push("response".to_owned()),
        }
        if method.is_some() {
            names.push("*".to_owned());
        }
        self.plan(&names)
            .unwrap_or_else(|| Plan { steps: self.default_answer(message).into_iter().collect(), count: 1 })
    }

    fn default_answer(&self, message: &Message<'_>) -> Option<Step> {
        let settings = &self.script.settings;
        if !settings.defaults || !message.is_request() {
            return None;
        }
        let action = match message.method().as_deref() {
            Some("initialize") => {
                let asked = message.string(&["params", "protocolVersion"]);
                let version = settings.version.clone().or(asked).unwrap_or_else(|| "2025-11-25".to_owned());
                let capabilities = &settings.capabilities;
                let version = Value::from(version);
                format!(
                    r#"answer {{"protocolVersion":{version},"capabilities":{capabilities},"serverInfo":{{"name":"fake","version":"1"}}}}"#
                )
            }
            Some("ping") => "answer {}".to_owned(),
            Some("tools/list") => {
                format!(r#"answer {{"tools":[{}]}}"#, settings.tools.join(","))
            }
            Some("tools/call") => match message.string(&["params", "name"]).as_deref() {
                Some("echo") => r#"answer {"content":[{"type":"text","text":{arg:text}}]}"#.to_owned(),
                tool => format!("error -32602 Unknown tool: {}", tool.unwrap_or_default()),
            },
            method => format!("error -32601 Method not found: {}", method.unwrap_or_default()),
        };
        Step::parse(&action).ok()
    }

    /// Does the steps of a plan, in order; a broken connection ends it.
    pub(crate) fn run(&self, steps: &[Step], values: &Values, port: &mut dyn Port) -> io::Result<()> {
        let done = self.run_steps(steps, values, port);
        if let Err(error) = &done {
            self.journal.event("broken", json!({ "error": error.to_string() }));
        }
        done
    }

    fn run_steps(&self, steps: &[Step], values: &Values, port: &mut dyn Port) -> io::Result<()> {
        for step in steps {
            match step {
                Step::Delay(time) => self.pause(*time),
                Step::Wait(flag) => {
                    let gone = port.gone();
                    if !self.wait(flag, gone.as_deref()) {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    }
                }
                Step::Arm(flag) => self.arm(flag),
                Step::Disarm(flag) => {
                    self.lock().flags.remove(flag);
                }
                Step::Exit(code) => self.exit(*code),
                Step::Stderr(text) => {
                    let mut err = io::stderr().lock();
                    text.write(values, &mut err)?;
                    err.write_all(b"\n")?;
                }
                Step::Spawn(words) => self.spawn(words)?,
                Step::Reset => self.peers.reset(),
                Step::Forget => self.peers.forget(),
                other => port.step(other, values)?,
            }
        }
        port.finish(values)
    }

    /// Does a plan: here, or in a thread of its own when it has to wait.
    pub(crate) fn start(self: &Arc<Self>, plan: Plan, values: Values, mut port: Box<dyn Port>) {
        if !plan.steps.iter().any(Step::blocks) {
            // What broke is in the journal.
            self.run(&plan.steps, &values, port.as_mut()).unwrap_or_default();
            return;
        }
        self.lock().running += 1;
        let fake = Arc::clone(self);
        std::thread::spawn(move || {
            fake.run(&plan.steps, &values, port.as_mut()).unwrap_or_default();
            fake.lock().running -= 1;
            fake.changed.notify_all();
        });
    }

    /// Waits until no plan is running any more.
    pub(crate) fn drain(&self) {
        let mut state = self.lock();
        while state.running > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn arm(&self, flag: &str) {
        self.lock().flags.insert(flag.to_owned());
        self.changed.notify_all();
    }

    fn armed(&self, flag: &str) -> bool {
        self.lock().flags.contains(flag)
    }

    /// Waits for a flag; false when the other one came first.
    fn wait(&self, flag: &str, gone: Option<&str>) -> bool {
        let mut state = self.lock();
        loop {
            if state.flags.contains(flag) {
                return true;
            }
            if gone.is_some_and(|gone| state.flags.contains(gone)) {
                return false;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = self.lock();
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, words: &[String]) -> io::Result<()> {
        let mut command = Command::new(&self.config.program);
        command.arg("--linger").args(words);
        command.args(["--mark", &self.config.mark]);
        if let Some(test) = self.config.test {
            command.args(["--test", &test.to_string()]);
        }
        command.stdin(Stdio::null());
        if !words.iter().any(|word| word == "--keep-stdout") {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.spawn().map(drop)
    }
}

/// TERM, INT and HUP do nothing from now on.
pub fn ignore_signals() -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

fn flag_of(message: &Message<'_>) -> Option<String> {
    match message.method().as_deref() {
        Some("notifications/cancelled") => {
            Some(format!("cancelled:{}", message.path(&["params", "requestId"])?))
        }
        Some(method) => Some(format!("seen:{method}")),
        None => Some(format!("response:{}", message.id()?)),
    }
}

/// The text of a message that says why the fake server refuses a request.
pub(crate) fn refusal(values: &Values, code: i64, message: &str) -> Vec<u8> {
    let text = format!("error {code} {message}");
    match Step::parse(&text) {
        Ok(Step::Send(template)) => template.render(values),
        _ => Template::default().render(values),
    }
}
