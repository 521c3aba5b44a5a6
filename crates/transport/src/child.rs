//! One upstream as a child process: blocking pipes, its whole process tree, and how it ended. Blocking on purpose:
//! the relay's pumps are plain threads. Knows no messages.

mod exit;
mod failure;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

pub use exit::Exit;
pub use failure::StartError;

#[cfg(unix)]
use unix::Process;
#[cfg(windows)]
use windows::Process;

use crate::process_group::{GRACE, StopSequence, StopStep};
use crate::stderr_tail::StderrTail;

/// What to start and how. All values are final: nothing is looked up or added. [`fmt::Debug`] shows neither
/// arguments nor values of variables: they may be secrets.
#[derive(Clone, Default)]
pub struct ChildConfig {
    /// The program's path, see [`command::resolve`](crate::command::resolve).
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its whole environment, see [`environment`](crate::environment).
    pub env: BTreeMap<OsString, OsString>,
    /// Its working directory; `None`: ours.
    pub cwd: Option<PathBuf>,
    /// Our own binary, whose `main` begins with [`supervisor::run`](crate::supervisor::run): it is started
    /// between us and the program and ends the whole process tree whatever happens to us. `None`: the program
    /// is our direct child. Not used on Windows, where a job object does this.
    pub supervise: Option<PathBuf>,
}

impl fmt::Debug for ChildConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, args, env, cwd, supervise } = self;
        f.debug_struct("ChildConfig")
            .field("program", program)
            .field("args", &args.len())
            .field("env", &env.keys())
            .field("cwd", cwd)
            .field("supervise", supervise)
            .finish()
    }
}

/// A running upstream. Dropping it ends by force whatever still runs.
#[derive(Debug)]
pub struct Child {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    process: Process,
}

impl Child {
    /// Starts the program. With a supervisor this returns before the program has been found to be startable: a
    /// failure shows as an [`Exit`] for which [`Child::start_failure`] gives the reason.
    ///
    /// # Errors
    /// [`StartError`] when the working directory does not exist or the process cannot be started.
    pub fn spawn(config: &ChildConfig) -> Result<Self, StartError> {
        if let Some(cwd) = config.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(StartError::WorkingDirectory { path: cwd.clone() });
        }
        let mut command = Process::command(config)?;
        command.env_clear().envs(&config.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        let (process, pipes) = Process::spawn(command, config)
            .map_err(|source| StartError::Spawn { program: config.program.clone(), source })?;
        Ok(Self { stdin: pipes.stdin, stdout: pipes.stdout, stderr: pipes.stderr, process })
    }

    /// Its standard input, once. Dropping it closes the pipe.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Its standard output, once.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Its standard error, once. It must be read all the time, see
    /// [`StderrTail`](crate::StderrTail).
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// The number of our direct child: the supervisor's if there is one.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// How it ended, if it has and nothing of its tree is left. Never waits.
    pub fn try_wait(&self) -> Option<Exit> {
        self.process.wait(Some(Duration::ZERO))
    }

    /// Waits until it has ended, at most for `timeout`.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.process.wait(Some(timeout))
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Exit {
        self.process.wait(None).unwrap_or(Exit::Unknown)
    }

    /// Waits until it has ended itself, at most for `timeout`, without collecting it: what it left behind in its group
    /// can still be ended by [`Child::kill_all`], which collects it.
    pub fn wait_ended(&self, timeout: Duration) -> bool {
        self.process.wait_ended(timeout)
    }

    /// Asks the whole tree to end. The supervisor ends by force what is left after [`GRACE`].
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Ends the whole tree by force and collects it. Returns when nothing is left that could be found.
    pub fn kill_all(&self) {
        self.process.kill_all();
    }

    /// Whether it has ended, without collecting it or what it left behind: never takes long.
    pub(crate) fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    /// How much longer than its grace a request to end may take.
    pub(crate) fn terminate_margin(&self) -> Duration {
        self.process.terminate_margin()
    }

    /// The number of a descriptor that is readable once it has ended, valid as long as this value is.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle_number(&self) -> Option<std::os::fd::RawFd> {
        self.process.handle_number()
    }

    /// Stops it: `close_input` is called first and closes its standard input if that is still open, then comes
    /// [`StopSequence`], until it has ended.
    pub fn stop(&self, close_input: impl FnOnce()) -> Exit {
        let mut close_input = Some(close_input);
        let mut sequence = StopSequence::new(StopStep::CloseInput, GRACE);
        while let Some((step, wait)) = sequence.advance() {
            let wait = match step {
                StopStep::CloseInput => {
                    if let Some(close_input) = close_input.take() {
                        close_input();
                    }
                    wait
                }
                StopStep::Terminate => {
                    self.terminate();
                    wait + self.terminate_margin()
                }
                StopStep::Kill => {
                    self.kill_all();
                    wait
                }
            };
            if let Some(exit) = self.wait_timeout(wait) {
                return exit;
            }
        }
        Exit::Unknown
    }

    /// The reason, if this exit means that the supervisor could not start the program at all. To be asked when
    /// stderr has ended, see [`StderrTail::wait_end`].
    pub fn start_failure(exit: Exit, stderr: &StderrTail) -> Option<StartError> {
        failure::from_supervisor(exit, &stderr.text())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.try_wait().is_none() {
            self.kill_all();
        }
    }
}

/// The pipes of a started process.
struct Pipes {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// A command with these arguments and nothing else set.
fn command(program: &std::path::Path, args: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(args);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_values_are_not_printed() {
        let config = ChildConfig {
            args: vec!["--token=hunter2".into()],
            env: BTreeMap::from([("TOKEN".into(), "hunter2".into())]),
            ..ChildConfig::default()
        };
        let text = format!("{config:?}");
        assert!(!text.contains("hunter2") && text.contains("TOKEN"), "{text}");
    }
}
