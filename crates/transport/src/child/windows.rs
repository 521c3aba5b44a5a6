//! A child process on Windows: in a job object of its own, which ends everything below it when it is closed,
//! by us or by our death. Batch files are started by the standard library, which quotes for `cmd.exe`.

use std::io;
use std::os::windows::io::AsRawHandle;
use std::os::windows::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use win32job::Job;

use super::{ChildConfig, Exit, Pipes, StartError, command};
use crate::command::{batch_arguments_fault, is_batch_file};
use crate::platform::{self, Platform};

/// No console window for a program that a desktop program starts through us.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;
/// How often to look whether it has ended.
const INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(super) struct Process {
    id: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    child: std::process::Child,
    /// Closing it ends every process in it.
    job: Option<Job>,
    exit: Option<Exit>,
}

impl Process {
    pub(super) fn command(config: &ChildConfig) -> Result<Command, StartError> {
        if is_batch_file(&config.program, Platform::CURRENT)
            && let Some(reason) = batch_arguments_fault(&config.args)
        {
            return Err(StartError::Arguments { program: config.program.clone(), reason });
        }
        let mut command = command(&config.program, &config.args);
        command.creation_flags(CREATE_NO_WINDOW);
        Ok(command)
    }

    pub(super) fn spawn(mut command: Command, _config: &ChildConfig) -> io::Result<(Self, Pipes)> {
        let job = platform::job()?;
        let mut child = command.spawn()?;
        let handle = child.as_raw_handle() as isize;
        if let Err(error) = job.assign_process(handle)
            && child.try_wait()?.is_none()
        {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other(error));
        }
        let pipes =
            Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() };
        let process = Self { id: child.id(), state: Mutex::new(State { child, job: Some(job), exit: None }) };
        Ok((process, pipes))
    }

    pub(super) fn id(&self) -> u32 {
        self.id
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
            std::thread::park_timeout(left.unwrap_or(INTERVAL).min(INTERVAL));
        }
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.collect().is_some()
    }

    /// Waits for that, at most for `timeout`.
    pub(super) fn wait_ended(&self, timeout: Duration) -> bool {
        self.wait(Some(timeout)).is_some()
    }

    /// Windows knows no polite request to a process without a window.
    pub(super) fn terminate(&self) {
        self.kill_all();
    }

    pub(super) fn terminate_margin(&self) -> Duration {
        Duration::ZERO
    }

    pub(super) fn kill_all(&self) {
        let mut state = self.lock();
        drop(state.job.take());
        if state.exit.is_none() {
            // Already ended by the job, as a rule; then this fails, which is what was wanted.
            drop(state.child.kill());
            state.exit = Some(state.child.wait().map_or(Exit::Unknown, Exit::from_status));
        }
    }

    /// How it ended, if it has. What it left behind is ended with it.
    fn collect(&self) -> Option<Exit> {
        let mut state = self.lock();
        if state.exit.is_none() {
            state.exit = match state.child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(Exit::from_status(status)),
                Err(_) => Some(Exit::Unknown),
            };
            if state.exit.is_some() {
                drop(state.job.take());
            }
        }
        state.exit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
