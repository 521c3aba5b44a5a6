//! The supervisor's work on Unix. It must stay small: no runtime, no threads, no argument parser.

use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitStatus, getppid, setrlimit};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{CANNOT_START, EXIT_CANNOT_START, SUPERVISE};
use crate::platform::{self, Tree};
use crate::process_group::{GRACE, StopSequence, StopStep};

/// The name in the process table: not ours, so that `killall -9 toolway` leaves this process to clean up.
const NAME: &CStr = c"supervisor";
/// How often the parent is looked for where the kernel does not tell of its death.
const PARENT_INTERVAL: Duration = Duration::from_millis(250);
/// How often to look for processes that were born while their parents were being killed.
const KILL_INTERVAL: Duration = Duration::from_millis(50);

/// See [`super::run`]; the arguments without the program's name.
pub(super) fn run(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.next()? != SUPERVISE {
        return None;
    }
    let parent = arguments.next().and_then(|text| text.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let separator = arguments.next();
    let (Some(parent), Some(program), true) =
        (parent, arguments.next(), separator.is_some_and(|s| s == "--"))
    else {
        return Some(refuse(OsStr::new("the server"), "a supervisor is started by toolway only"));
    };
    let mut command = Command::new(&program);
    command.args(arguments);
    let result = supervise(parent, &mut command);
    Some(result.unwrap_or_else(|error| refuse(&program, &error.to_string())))
}

fn refuse(program: &OsStr, reason: &str) -> ExitCode {
    let line = format!("{CANNOT_START}{}: {reason}\n", program.to_string_lossy());
    // Nobody is left to be told if stderr is gone.
    drop(io::stderr().write_all(line.as_bytes()));
    ExitCode::from(EXIT_CANNOT_START)
}

fn supervise(parent: Pid, command: &mut Command) -> io::Result<ExitCode> {
    let wake = Wake::register()?;
    platform::name_process(NAME);
    platform::adopt_orphans()?;
    let told = platform::signal_when_parent_ends(platform::PARENT_ENDED).is_ok();
    if getppid() != Some(parent) {
        return Err(io::Error::other("the relay has ended"));
    }
    let main = command.process_group(0).spawn()?;
    let main = i32::try_from(main.id()).ok().and_then(Pid::from_raw);
    let main = main.ok_or_else(|| io::Error::other("the system gave no process number"))?;
    let_go_of_stdio()?;
    let status = Supervision { parent, told, wake, tree: Tree::new(main) }.run();
    Ok(status.map_or(ExitCode::SUCCESS, end_like))
}

/// Lets go of the upstream's pipes, so that the relay sees their end as soon as the upstream closes them.
fn let_go_of_stdio() -> io::Result<()> {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        return replace_stdio(null.as_fd(), null.as_fd());
    }
    let (read, write) = io::pipe()?;
    replace_stdio(read.as_fd(), write.as_fd())
}

fn replace_stdio(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    rustix::stdio::dup2_stdin(input)?;
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(output)?;
    Ok(())
}

/// Ends this process as the upstream ended: by its exit code or by its signal.
fn end_like(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal() {
        // One core file is enough: the upstream's.
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
        drop(signal_hook::low_level::emulate_default_handler(signal));
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    ExitCode::from(status.exit_status().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

/// Signals turned into something to wait for.
struct Wake {
    socket: UnixStream,
    asked: Arc<AtomicBool>,
}

impl Wake {
    fn register() -> io::Result<Self> {
        let (socket, writer) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(platform::PARENT_ENDED.as_raw(), writer.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGCHLD, writer)?;
        Ok(Self { socket, asked })
    }

    /// Waits for a signal, at most until `timeout` is over.
    fn wait(&mut self, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        // An interruption is what is waited for.
        poll(&mut ready, timeout.as_ref()).ok();
        let mut drained = [0; 64];
        while matches!(self.socket.read(&mut drained), Ok(read) if read == drained.len()) {}
    }
}

struct Supervision {
    parent: Pid,
    /// Whether the kernel tells of the parent's death.
    told: bool,
    wake: Wake,
    tree: Tree,
}

impl Supervision {
    /// Returns how the main process ended, when nothing of the tree is left.
    fn run(mut self) -> Option<WaitStatus> {
        let mut sequence = StopSequence::new(StopStep::Terminate, GRACE);
        let mut deadline: Option<Instant> = None;
        let mut killing = false;
        loop {
            self.tree.collect();
            if self.tree.is_empty() {
                return self.tree.status();
            }
            let due = match deadline {
                None => self.must_end(),
                Some(deadline) => Instant::now() >= deadline,
            };
            if due
                && !killing
                && let Some((step, wait)) = sequence.advance()
            {
                killing = step == StopStep::Kill;
                deadline = Some(Instant::now() + wait);
                if !killing {
                    self.tree.signal(Signal::TERM);
                    // A stopped process takes no TERM before it goes on.
                    self.tree.signal(Signal::CONT);
                }
            }
            if killing {
                self.tree.signal(Signal::KILL);
            }
            self.wake.wait(self.patience(deadline.filter(|_| !killing), killing));
        }
    }

    fn must_end(&self) -> bool {
        self.wake.asked.load(Ordering::SeqCst)
            || self.tree.status().is_some()
            || getppid() != Some(self.parent)
    }

    /// How long to wait for a signal before looking again.
    fn patience(&self, deadline: Option<Instant>, killing: bool) -> Option<Duration> {
        let until_deadline = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let look_again = if killing {
            Some(KILL_INTERVAL)
        } else if deadline.is_some() {
            Tree::interval()
        } else {
            (!self.told).then_some(PARENT_INTERVAL)
        };
        [until_deadline, look_again].into_iter().flatten().min()
    }
}
