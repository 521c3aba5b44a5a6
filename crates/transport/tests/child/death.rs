//! Sudden death of the relay, of the supervisor, of both: nothing below them survives (Linux; elsewhere what can
//! be found).

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Outcome, all_end, numbers, rest, runs, send, supervised, until};

/// A relay in a process of its own over an upstream with a stubborn grandchild and a stubborn daemon.
struct Relay {
    process: Child,
    _stdin: Option<ChildStdin>,
    _stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    supervisor: i32,
    /// The upstream's main process first.
    upstream: Vec<i32>,
}

const UPSTREAM: &str = "trap '' TERM; \
     sh -c 'trap \"\" TERM; exec sleep 1000' </dev/null >/dev/null 2>&1 & a=$!; \
     setsid sh -c 'trap \"\" TERM; exec sleep 1000' </dev/null >/dev/null 2>&1 & b=$!; \
     echo $$ $a $b; while :; do sleep 1000; done";

impl Relay {
    fn start(options: &[&str]) -> Outcome<Self> {
        let mut process = Command::new(supervised()?)
            .args(options)
            .args(["--", "/bin/sh", "-c", UPSTREAM])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdout = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        let mut stderr = BufReader::new(process.stderr.take().ok_or("no stderr")?);
        let mut line = String::new();
        stderr.read_line(&mut line)?;
        let supervisor = line.trim().strip_prefix("child ").ok_or("no child")?.parse()?;
        let upstream = numbers(&mut stdout)?;
        assert_eq!(upstream.len(), 3);
        assert!(upstream.iter().all(|&pid| runs(pid)));
        let stdin = process.stdin.take();
        Ok(Self { process, _stdin: stdin, _stdout: stdout, stderr, supervisor, upstream })
    }

    fn pid(&self) -> Outcome<i32> {
        Ok(i32::try_from(self.process.id())?)
    }
}

#[test]
fn nothing_survives_a_killed_relay() -> Outcome {
    for options in [&[][..], &["--adopt"]] {
        let mut relay = Relay::start(options)?;
        send(relay.pid()?, Signal::KILL)?;
        relay.process.wait()?;
        all_end(&relay.upstream)?;
        all_end(&[relay.supervisor])?;
    }
    Ok(())
}

#[test]
fn nothing_survives_a_relay_whose_whole_group_is_killed() -> Outcome {
    // The supervisor is in a group of its own, so what hits the relay's group leaves it to clean up.
    let mut relay = Relay::start(&[])?;
    let group = |pid: i32| rustix::process::getpgid(rustix::process::Pid::from_raw(pid));
    let (own, supervisor) = (group(relay.pid()?)?, group(relay.supervisor)?);
    assert_ne!(own, supervisor);
    assert_ne!(supervisor, group(relay.upstream[0])?);
    send(relay.pid()?, Signal::KILL)?;
    relay.process.wait()?;
    all_end(&relay.upstream)
}

#[cfg(target_os = "linux")]
#[test]
fn a_relay_that_adopts_ends_what_a_killed_supervisor_leaves() -> Outcome {
    let mut relay = Relay::start(&["--adopt"])?;
    send(relay.supervisor, Signal::KILL)?;
    // The upstream still holds the relay's pipe, as the relay waits for: end of the supervisor, not of stdout.
    until("the end of the tree", || !relay.upstream.iter().any(|&pid| runs(pid)))?;
    relay.process.wait()?;
    assert!(rest(&mut relay.stderr)?.contains("the program was ended by SIGKILL"));
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn the_supervisor_does_not_bear_our_name() -> Outcome {
    let mut relay = Relay::start(&[])?;
    let name = std::fs::read_to_string(format!("/proc/{}/comm", relay.supervisor))?;
    assert_eq!(name, "supervisor\n", "killall by our name leaves it to clean up");
    send(relay.pid()?, Signal::KILL)?;
    relay.process.wait()?;
    all_end(&relay.upstream)
}

#[test]
fn a_supervisor_that_was_told_to_end_ends_everything() -> Outcome {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut relay = Relay::start(&[])?;
        send(relay.supervisor, signal)?;
        relay.process.wait()?;
        all_end(&relay.upstream)?;
    }
    Ok(())
}

#[test]
fn a_relay_killed_while_it_starts_leaves_nothing() -> Outcome {
    let marker = format!("1000.{}", std::process::id());
    for round in 0..40 {
        let mut relay = Command::new(supervised()?)
            .args(["--", "/bin/sh", "-c", &format!("trap '' TERM; sleep {marker} & sleep {marker}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // At another moment of the start each time.
        std::thread::park_timeout(Duration::from_micros(100 * round));
        relay.kill()?;
        relay.wait()?;
    }
    until("the end of every tree", || {
        let listed = Command::new("ps").args(["-eo", "stat=,args="]).output();
        let listed =
            listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        !listed.is_empty() && !listed.lines().any(|line| line.contains(&marker) && !line.starts_with('Z'))
    })
}

#[cfg(target_os = "linux")]
#[test]
fn a_binary_that_was_removed_while_it_runs_still_supervises() -> Outcome {
    let program = supervised()?;
    let directory = tempfile::tempdir_in(program.parent().ok_or("no directory")?)?;
    let link = directory.path().join("relay");
    // Not a copy: a file that another thread's child still holds open for writing cannot be executed.
    std::fs::hard_link(&program, &link)?;
    // The shell holds the file open, removes it and becomes it.
    let mut relay = Command::new("/bin/sh")
        .args(["-c", "exec 9<\"$0\"; rm \"$0\"; exec /proc/self/fd/9 -- /bin/echo supervised"])
        .arg(&link)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdout = relay.stdout.take().ok_or("no stdout")?;
    let output = rest(&mut stdout)?;
    let ended = relay.wait_with_output()?;
    assert_eq!(output, "supervised\n", "{ended:?}");
    assert!(ended.status.success());
    Ok(())
}
