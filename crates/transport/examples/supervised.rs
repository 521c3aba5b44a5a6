//! A relay in small, for tests and measurements: carries stdin to a supervised program and its stdout back.
//! `supervised [--bare] [--adopt] [--time N | --leaks N] -- COMMAND [ARGS...]`; it is its own supervisor.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use toolway_transport::{Child, ChildConfig, StderrTail, supervisor};

fn main() -> ExitCode {
    if let Some(code) = supervisor::run(std::env::args_os()) {
        return code;
    }
    match relay() {
        Ok(code) => code,
        Err(error) => {
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::from(4)
        }
    }
}

fn relay() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut config = ChildConfig { supervise: Some(supervisor::own_binary()?), ..ChildConfig::default() };
    let (mut rounds, mut leaks) = (None, None);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--bare") => config.supervise = None,
            Some("--adopt") => supervisor::adopt_orphans()?,
            Some("--time") => rounds = number(arguments.next()),
            Some("--leaks") => leaks = number(arguments.next()),
            _ => break,
        }
    }
    config.program = arguments.next().map(PathBuf::from).ok_or("no command")?;
    config.args = arguments.collect();
    config.env = std::env::vars_os().collect();
    match (rounds, leaks) {
        (Some(rounds), _) => time(&config, rounds),
        (_, Some(rounds)) => count_leaks(&config, rounds),
        _ => carry(&config),
    }
}

fn number(argument: Option<OsString>) -> Option<usize> {
    argument?.to_str()?.parse().ok()
}

/// Runs until the program has ended; says how on stderr and which process was our child.
fn carry(config: &ChildConfig) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut child = Child::spawn(config)?;
    writeln!(io::stderr(), "child {}", child.id())?;
    let (stdin, stdout) = (child.take_stdin(), child.take_stdout());
    let stderr = child.take_stderr().ok_or("no stderr")?;
    std::thread::spawn(move || stdin.map(|mut stdin| io::copy(&mut io::stdin(), &mut stdin)));
    let tail = StderrTail::new();
    let drained = tail.clone();
    std::thread::spawn(move || drained.drain(stderr, |_| {}));
    let carried =
        std::thread::spawn(move || stdout.map(|mut stdout| io::copy(&mut stdout, &mut io::stdout())));
    let exit = child.wait();
    // Nothing of the tree is left, so its output ends here.
    drop(carried.join());
    writeln!(io::stderr(), "the program {exit}")?;
    Ok(ExitCode::from(u8::from(!exit.is_success())))
}

/// Prints the median time from spawn to the first byte of the program's output, in microseconds.
fn time(config: &ChildConfig, rounds: usize) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut times: Vec<Duration> = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let begin = Instant::now();
        let mut child = Child::spawn(config)?;
        let mut stdout = child.take_stdout().ok_or("no stdout")?;
        io::Read::read(&mut stdout, &mut [0])?;
        times.push(begin.elapsed());
        drop(child.take_stdin());
        child.wait();
    }
    times.sort_unstable();
    writeln!(io::stdout(), "{}", times.get(rounds / 2).ok_or("no rounds")?.as_micros())?;
    Ok(ExitCode::SUCCESS)
}

/// Starts and ends the program again and again; prints how many more descriptors and children there are after.
#[cfg(unix)]
fn count_leaks(config: &ChildConfig, rounds: usize) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let descriptors = || std::fs::read_dir("/dev/fd").map(Iterator::count);
    let before = descriptors()?;
    for round in 0..rounds {
        let child = Child::spawn(config)?;
        if round % 2 == 0 {
            child.wait();
        }
    }
    let more = descriptors()?.saturating_sub(before);
    let left = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
    let children = u8::from(left.is_ok());
    writeln!(io::stdout(), "descriptors {more} children {children}")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(windows)]
fn count_leaks(_config: &ChildConfig, _rounds: usize) -> Result<ExitCode, Box<dyn std::error::Error>> {
    Err("only on Unix".into())
}
