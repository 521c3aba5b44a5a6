//! Upstreams written as shell scripts, and waiting for what must come, with deadlines instead of sleeps.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use toolway_transport::{Child, ChildConfig, StderrTail};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Ten times what the slowest of these needs.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40);

/// The example program, which is a supervisor and a relay in small.
pub(crate) fn supervised() -> Outcome<PathBuf> {
    let test = std::env::current_exe()?;
    let directory = test.parent().and_then(|deps| deps.parent()).ok_or("no target directory")?;
    let program = directory.join("examples").join("supervised");
    let built = program.is_file();
    built
        .then_some(program)
        .ok_or_else(|| "run the whole of `cargo test -p toolway-transport`, which builds the example".into())
}

/// A supervised program with a small environment.
pub(crate) fn config(program: &str, args: &[&str]) -> Outcome<ChildConfig> {
    Ok(ChildConfig {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        env: BTreeMap::from([("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]),
        cwd: None,
        supervise: Some(supervised()?),
    })
}

/// A supervised shell script.
pub(crate) fn script(text: &str) -> Outcome<ChildConfig> {
    config("/bin/sh", &["-c", text])
}

/// Starts it, drains its stderr and gives the lines of its stdout.
pub(crate) fn start(config: &ChildConfig) -> Outcome<(Child, BufReader<ChildStdout>, StderrTail)> {
    let mut child = Child::spawn(config)?;
    let stdout = child.take_stdout().ok_or("no stdout")?;
    let stderr = child.take_stderr().ok_or("no stderr")?;
    let tail = StderrTail::new();
    let drained = tail.clone();
    std::thread::spawn(move || drained.drain(stderr, |_| {}));
    Ok((child, BufReader::new(stdout), tail))
}

/// The next line, without its ending.
pub(crate) fn line(reader: &mut impl BufRead) -> Outcome<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// The next line as process numbers.
pub(crate) fn numbers(reader: &mut impl BufRead) -> Outcome<Vec<i32>> {
    line(reader)?.split_whitespace().map(|number| Ok(number.parse()?)).collect()
}

/// Everything to the end.
pub(crate) fn rest(reader: &mut impl Read) -> Outcome<String> {
    let mut text = String::new();
    reader.read_to_string(&mut text)?;
    Ok(text)
}

/// Waits until `done`, looking again and again.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) -> Outcome {
    let deadline = Instant::now() + DEADLINE;
    while !done() {
        if Instant::now() > deadline {
            return Err(format!("in vain waited for: {what}").into());
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Ok(())
}

/// Whether a process is there and not only waiting to be collected.
pub(crate) fn runs(pid: i32) -> bool {
    let state = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .stderr(Stdio::null())
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    state.is_ok_and(|state| !state.is_empty() && !state.starts_with('Z'))
}

/// Waits until none of these runs.
pub(crate) fn all_end(pids: &[i32]) -> Outcome {
    until(&format!("the end of {pids:?}"), || !pids.iter().any(|&pid| runs(pid)))
}

pub(crate) fn send(pid: i32, signal: Signal) -> Outcome {
    Ok(kill_process(Pid::from_raw(pid).ok_or("no such process")?, signal)?)
}
