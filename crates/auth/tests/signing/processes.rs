//! Other processes of the same user: this test program, run again. Each does what it is told in its environment and says
//! a line for each thing that happens.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use toolway_auth::{Auth, AuthError, Opener, ServerAuth};
use toolway_testkit::SOON;
use toolway_testkit::oauth::Browser;
use url::Url;

use crate::desk::{Called, Desk, call, settings};

const DIRECTORY: &str = "TOOLWAY_TEST_SIGN_INS";
const SERVER: &str = "TOOLWAY_TEST_SERVER";
const DEED: &str = "TOOLWAY_TEST_DEED";
const CALLS: &str = "TOOLWAY_TEST_CALLS";
const PACE_MS: &str = "TOOLWAY_TEST_PACE_MS";

fn variable<T: FromStr>(name: &str) -> Result<T> {
    let text = std::env::var(name).with_context(|| format!("{name} is not set"))?;
    text.parse().ok().with_context(|| format!("{name}={text} makes no sense"))
}

/// Run as a process of its own by the tests of many processes.
#[tokio::test]
#[ignore = "a part of the tests of many processes"]
async fn another_process() -> Result<()> {
    let Ok(directory) = variable::<String>(DIRECTORY) else { return Ok(()) };
    let auth = Auth::new(settings(directory.into()));
    let server = ServerAuth::new(Url::parse(&variable::<String>(SERVER)?)?)?;
    let session = auth.session(server);
    let deed: String = variable(DEED)?;
    match deed.as_str() {
        "calls" => {
            let pace = Duration::from_millis(variable(PACE_MS)?);
            let start = tokio::time::Instant::now();
            for number in 0..variable::<u32>(CALLS)? {
                tokio::time::sleep_until(start + pace * number).await;
                match call(&session, "whoami").await? {
                    Called::Good(text) => say("good", &text),
                    Called::Status(status) => say("status", &status.to_string()),
                    Called::Failed(error) => say(kind(&error), &error.to_string()),
                }
            }
        }
        deed => {
            let opener = Telling { browses: deed == "login" };
            match session.login(&[], false, &opener).await {
                Ok(signed) => say("signed-in", &signed.client_id),
                Err(error) => say(kind(&error), &error.to_string()),
            }
        }
    }
    toolway_auth::settle().await;
    say("done", "");
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn say(what: &str, text: &str) {
    println!("\n> {what} {text}");
}

fn kind(error: &AuthError) -> &'static str {
    if error.wants_login() { "needs-auth" } else { "error" }
}

/// Says what is shown, and has a browser, or nobody before it.
struct Telling {
    browses: bool,
}

impl Opener for Telling {
    fn show(&self, url: &Url) {
        say("shown", url.as_str());
        let url = url.to_string();
        if self.browses {
            std::thread::spawn(move || Browser::open(&url));
        }
    }

    fn waits(&self) {
        say("waits", "");
    }
}

/// A process and what it says.
pub(crate) struct Other {
    child: Child,
    lines: Receiver<String>,
    pub(crate) said: Vec<(String, String)>,
}

impl Other {
    /// One that calls a tool so often, at this pace.
    pub(crate) fn calling(desk: &Desk, calls: u32, pace: Duration) -> Result<Self> {
        let pace = pace.as_millis().to_string();
        Self::start(desk, &[(DEED, "calls"), (CALLS, &calls.to_string()), (PACE_MS, &pace)])
    }

    /// One that calls a tool once, started by another program, which takes something from it.
    pub(crate) fn confined(desk: &Desk, by: &[&str]) -> Result<Self> {
        let mut command = Command::new(by.first().context("by what?")?);
        command.args(by.get(1..).unwrap_or_default()).arg(std::env::current_exe()?);
        Self::run(desk, command, &[(DEED, "calls"), (CALLS, "1"), (PACE_MS, "0")])
    }

    /// One that wants to sign in: with a browser (`login`), or with nobody before it (`away`).
    pub(crate) fn signing_in(desk: &Desk, deed: &str) -> Result<Self> {
        Self::start(desk, &[(DEED, deed)])
    }

    fn start(desk: &Desk, variables: &[(&str, &str)]) -> Result<Self> {
        Self::run(desk, Command::new(std::env::current_exe()?), variables)
    }

    fn run(desk: &Desk, mut command: Command, variables: &[(&str, &str)]) -> Result<Self> {
        command.args(["--ignored", "--exact", "--nocapture", "processes::another_process"]);
        command.env(DIRECTORY, desk.directory()).env(SERVER, desk.issuer.resource_url());
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.stdin(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if line.is_err() || line.is_ok_and(|line| sender.send(line).is_err()) {
                    break;
                }
            }
        });
        Ok(Self { child, lines, said: Vec::new() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says this.
    pub(crate) fn says(&mut self, what: &str) -> Result<String> {
        let end = Instant::now() + SOON * 3;
        loop {
            if let Some((_, text)) = self.said.iter().rev().find(|(known, _)| known == what) {
                return Ok(text.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.hear(&line),
                Err(_) => bail!("it does not say {what}: {:?}", self.said),
            }
        }
    }

    fn hear(&mut self, line: &str) {
        if let Some((what, text)) = line.strip_prefix("> ").and_then(|line| line.split_once(' ')) {
            self.said.push((what.to_owned(), text.to_owned()));
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Everything it says until it ends by itself, which must be soon after `within`.
    pub(crate) fn ended(mut self, within: Duration) -> Result<Vec<(String, String)>> {
        let end = Instant::now() + within + SOON * 3;
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("it does not end: {:?}", self.said),
            }
        }
        let status = self.child.wait()?;
        ensure!(
            status.success() && self.said.last().is_some_and(|(what, _)| what == "done"),
            "{:?}",
            self.said
        );
        Ok(std::mem::take(&mut self.said))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The process that holds the lock of the only sign-in, or held it last.
pub(crate) fn holder(directory: &Path) -> Result<u32> {
    for file in std::fs::read_dir(directory)? {
        let path = file?.path();
        let lock = path.extension().is_some_and(|extension| extension == "lock");
        if lock && path.file_stem().is_some_and(|stem| stem != "key") {
            let text = std::fs::read_to_string(&path)?;
            return text.strip_prefix("process ").and_then(|id| id.parse().ok()).context(text);
        }
    }
    bail!("there is no lock")
}
