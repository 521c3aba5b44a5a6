//! A child process on Unix: started under a supervisor or in a process group of its own, waited for without
//! reaping races, ended with everything below it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait, waitpid};

use super::{ChildConfig, Exit, Pipes, StartError, command};
use crate::platform;
use crate::process_group::GRACE;
use crate::supervisor::SUPERVISE;

/// How long a supervisor gets, once its tree is dead, to end by itself and say how the upstream ended.
const SUPERVISOR_END: Duration = Duration::from_millis(500);
/// Fewer changes between the upstream and us with large results. Not more: the system grants each user 64 MiB of
/// pipes and gives all of that user's programs smaller ones beyond.
#[cfg(target_os = "linux")]
const STDOUT_PIPE_BYTES: usize = 256 * 1024;
/// How often to look where no event tells of the end.
const INTERVAL: Duration = Duration::from_millis(10);
/// How often to look whether killed orphans have ended: they do within microseconds.
const ORPHAN_INTERVAL: Duration = Duration::from_millis(1);

/// The direct children that are being run, so that they are not taken for orphans when another one's orphans
/// are ended. Held while a child is started.
static RUNNING: Mutex<Vec<i32>> = Mutex::new(Vec::new());

#[derive(Debug)]
pub(super) struct Process {
    pid: Pid,
    supervised: bool,
    state: Mutex<State>,
    /// Readable once the process has ended; it stays a name for this process only (Linux).
    #[cfg(target_os = "linux")]
    handle: Option<std::os::fd::OwnedFd>,
}

#[derive(Debug)]
struct State {
    child: std::process::Child,
    /// Set when the process has been collected: from then on its number means nothing.
    exit: Option<Exit>,
}

impl Process {
    /// The command to start, still without environment, pipes and directory.
    #[expect(clippy::unnecessary_wraps, reason = "on Windows it can fail")]
    pub(super) fn command(config: &ChildConfig) -> Result<Command, StartError> {
        let mut command = match &config.supervise {
            None => command(&config.program, &config.args),
            Some(supervisor) => {
                let mut args: Vec<OsString> = Vec::with_capacity(config.args.len() + 4);
                args.extend([SUPERVISE.into(), std::process::id().to_string().into(), "--".into()]);
                args.push(config.program.clone().into());
                args.extend(config.args.iter().cloned());
                command(supervisor, &args)
            }
        };
        // A group of its own: signals to ours, Ctrl-C among them, are ours to answer, in order.
        command.process_group(0);
        Ok(command)
    }

    pub(super) fn spawn(mut command: Command, config: &ChildConfig) -> io::Result<(Self, Pipes)> {
        let mut running = lock(&RUNNING);
        let mut child = command.spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the system gave no process number"))?;
        running.push(pid.as_raw_nonzero().get());
        drop(running);
        #[cfg(target_os = "linux")]
        if let Some(stdout) = &child.stdout {
            // Only a matter of speed; a user with very many pipes may not have larger ones.
            rustix::pipe::fcntl_setpipe_size(stdout, STDOUT_PIPE_BYTES).ok();
        }
        let pipes =
            Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        let process = Self {
            pid,
            supervised: config.supervise.is_some(),
            state: Mutex::new(State { child, exit: None }),
            #[cfg(target_os = "linux")]
            handle: rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok(),
        };
        Ok((process, pipes))
    }

    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    /// Waits at most for `timeout`; `None`: without end.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> Option<Exit> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if let Some(exit) = self.collect() {
                return Some(exit);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            self.wait_for_event(left);
        }
    }

    /// Whether it has ended. Does not collect it.
    pub(super) fn has_ended(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let state = lock(&self.state);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        state.exit.is_some() || !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Waits for that, at most for `timeout`.
    pub(super) fn wait_ended(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.has_ended() || left.is_zero() {
                return self.has_ended();
            }
            self.wait_for_event(Some(left));
        }
    }

    #[cfg(target_os = "linux")]
    pub(super) fn handle_number(&self) -> Option<std::os::fd::RawFd> {
        use std::os::fd::AsRawFd as _;
        self.handle.as_ref().map(std::os::fd::OwnedFd::as_raw_fd)
    }

    pub(super) fn terminate(&self) {
        let state = lock(&self.state);
        if state.exit.is_none() {
            let result = if self.supervised {
                rustix::process::kill_process(self.pid, Signal::TERM)
            } else {
                kill_process_group(self.pid, Signal::TERM)
            };
            // It may have ended this instant: what was wanted.
            result.ok();
        }
    }

    /// The supervisor itself waits for the grace period and then ends the tree by force: let it.
    pub(super) fn terminate_margin(&self) -> Duration {
        if self.supervised { SUPERVISOR_END } else { Duration::ZERO }
    }

    pub(super) fn kill_all(&self) {
        // Before it is collected: afterwards its number is no longer that of its group, in which others may be left.
        self.kill_group();
        if self.collect().is_some() {
            return;
        }
        let own = self.pid.as_raw_nonzero().get();
        let deadline = Instant::now() + SUPERVISOR_END;
        loop {
            self.kill_group();
            for process in platform::descendants(own, &[]) {
                platform::signal(&process, Signal::KILL);
            }
            let ended = self.wait(Some(INTERVAL)).is_some();
            if ended || Instant::now() >= deadline {
                break;
            }
        }
        let mut state = lock(&self.state);
        if state.exit.is_none() {
            // Nothing but the supervisor is left, and it does not end: stopped, most likely.
            drop(state.child.kill());
            state.exit = Some(state.child.wait().map_or(Exit::Unknown, Exit::from_status));
            drop(state);
            self.forget();
        }
    }

    fn kill_group(&self) {
        let state = lock(&self.state);
        if !self.supervised && state.exit.is_none() {
            kill_process_group(self.pid, Signal::KILL).ok();
        }
    }

    /// How it ended, if it has. Collects it then.
    fn collect(&self) -> Option<Exit> {
        let mut state = lock(&self.state);
        if state.exit.is_none() {
            state.exit = Some(match state.child.try_wait() {
                Ok(None) => return None,
                Ok(Some(status)) => Exit::from_status(status),
                Err(_) => Exit::Unknown,
            });
            drop(state);
            self.forget();
            return lock(&self.state).exit;
        }
        state.exit
    }

    /// After the process was collected: it is no longer running, and what it left behind is ended.
    fn forget(&self) {
        let own = self.pid.as_raw_nonzero().get();
        let mut running = lock(&RUNNING);
        running.retain(|&pid| pid != own);
        if self.supervised && platform::adopts_orphans() {
            end_orphans(&running);
        }
    }

    #[cfg(target_os = "linux")]
    fn wait_for_event(&self, timeout: Option<Duration>) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Some(handle) = &self.handle else {
            return std::thread::park_timeout(timeout.unwrap_or(INTERVAL).min(INTERVAL));
        };
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        // The caller looks again after an interruption.
        poll(&mut [PollFd::new(handle, PollFlags::IN)], timeout.as_ref()).ok();
    }

    #[cfg(not(target_os = "linux"))]
    fn wait_for_event(&self, timeout: Option<Duration>) {
        std::thread::park_timeout(timeout.unwrap_or(INTERVAL).min(INTERVAL));
    }
}

/// Ends what was left to us by a supervisor that was killed itself. A supervisor that ended in order left
/// nothing, which costs one system call to know. Bounded: a process that the kernel cannot end is given up.
fn end_orphans(running: &[i32]) {
    if running.is_empty() && matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
        return;
    }
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let deadline = Instant::now() + GRACE;
    loop {
        let orphans = platform::descendants(own, running);
        for orphan in &orphans {
            platform::signal(orphan, Signal::KILL);
        }
        for orphan in orphans.iter().filter(|orphan| orphan.parent == own) {
            waitpid(Pid::from_raw(orphan.pid), WaitOptions::NOHANG).ok();
        }
        if orphans.is_empty() || Instant::now() >= deadline {
            return;
        }
        std::thread::park_timeout(ORPHAN_INTERVAL);
    }
}

/// The state behind these locks is whole between any two statements: a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
