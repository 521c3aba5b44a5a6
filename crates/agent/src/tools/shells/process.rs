//! Owns one command as a process: a thread starts it, in its box, waits for it and ends what it left; a task reads what it
//! writes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use toolway_transport::{Child, ChildConfig, Exit, GRACE};

use super::kept::{Kept, Look};
use super::pipes::{self, Input, Piece};
use crate::engine::RunSink;
use crate::event::Delta;
use crate::sandbox::Sandbox;
use crate::tools::outputs::Outputs;

/// The variable that marks everything that came of a command.
pub(super) const MARK: &str = "TOOLWAY_COMMAND";
/// How long what a command left behind may take to end when it is asked to.
const LEFTOVERS: Duration = Duration::from_millis(500);
/// How long the pipes may stay open when everything has ended.
const DRAIN: Duration = Duration::from_secs(1);
/// How much longer than its grace a supervisor may take.
const MARGIN: Duration = Duration::from_millis(700);

/// What is started, and how.
pub(crate) struct CommandSpec {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) variables: BTreeMap<OsString, OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) supervise: Option<PathBuf>,
    pub(crate) sandbox: Sandbox,
    /// Its input stays open.
    pub(crate) stdin: bool,
    /// Where long output goes.
    pub(crate) outputs: Arc<Outputs>,
    /// Who is told of output while it comes.
    pub(crate) listener: Listener,
    /// The command line, for people.
    pub(crate) line: String,
}

/// How far a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Progress {
    /// Bytes that came.
    pub(crate) bytes: u64,
    /// How it ended; everything that it wrote is there.
    pub(crate) exit: Option<Exit>,
    /// When.
    pub(crate) ended: Option<Instant>,
}

/// Whoever listens to a command while it runs.
pub(crate) type Listener = Option<(Arc<dyn RunSink>, String)>;

/// What the thread and the tasks share.
struct Shared {
    kept: Mutex<Kept>,
    listener: Mutex<Listener>,
    left: AtomicUsize,
}

/// A command that was started.
pub(crate) struct RunningCommand {
    owned: Owned,
    input: tokio::sync::Mutex<Option<Input>>,
    shared: Arc<Shared>,
    progress: watch::Receiver<Progress>,
    line: String,
    started: Instant,
    _tasks: JoinSet<()>,
}

impl std::fmt::Debug for RunningCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningCommand").field("progress", &*self.progress.borrow()).finish_non_exhaustive()
    }
}

/// Whoever has it has the process: when it goes, that is ended by force.
struct Owned {
    child: Arc<Child>,
    mark: String,
}

impl Drop for Owned {
    fn drop(&mut self) {
        kill(&self.child, &self.mark);
    }
}

struct Started {
    owned: Owned,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl RunningCommand {
    /// Starts it. The error is a fragment for the model.
    pub(super) async fn start(spec: CommandSpec) -> Result<Self, String> {
        let mark = uuid::Uuid::new_v4().simple().to_string();
        let shared = Arc::new(Shared {
            kept: Mutex::new(Kept::new(Arc::clone(&spec.outputs))),
            listener: Mutex::new(spec.listener.clone()),
            left: AtomicUsize::new(0),
        });
        let (started, is_started) = oneshot::channel();
        let (ended, is_ended) = oneshot::channel();
        let (keep_input, line) = (spec.stdin, spec.line.clone());
        let thread = {
            let shared = Arc::clone(&shared);
            move || run(spec, &mark, &shared, started, ended)
        };
        std::thread::Builder::new()
            .name("command".to_owned())
            .spawn(thread)
            .map_err(|error| format!("no thread could be started for it: {error}"))?;
        let Started { owned, stdin, stdout, stderr } =
            is_started.await.map_err(|_| "the thread that starts it broke off".to_owned())??;
        let input =
            stdin.filter(|_| keep_input).map(Input::new).transpose().map_err(|error| error.to_string())?;
        let (pieces, mut tasks) = pipes::read(stdout, stderr).map_err(|error| error.to_string())?;
        let (tell, progress) = watch::channel(Progress::default());
        tasks.spawn(collect(pieces, is_ended, Arc::clone(&shared), tell));
        let input = tokio::sync::Mutex::new(input);
        Ok(Self { owned, input, shared, progress, line, started: Instant::now(), _tasks: tasks })
    }

    /// How it ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.progress.borrow().exit
    }

    /// The command line.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// How long it runs, or ran.
    pub(crate) fn took(&self) -> Duration {
        self.progress.borrow().ended.unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    /// Processes that it left behind and that were ended.
    pub(crate) fn left(&self) -> usize {
        self.shared.left.load(Ordering::Relaxed)
    }

    /// What is new.
    pub(crate) fn look(&self) -> Look {
        lock(&self.shared.kept).look()
    }

    /// From now on `listener` is told of output while it comes, and nobody else.
    pub(crate) fn listen(&self, listener: Listener) {
        *lock(&self.shared.listener) = listener;
    }

    /// Returns when it has ended.
    pub(crate) async fn ended(&self) -> Exit {
        let mut progress = self.progress.clone();
        let ended = progress.wait_for(|progress| progress.exit.is_some()).await;
        ended.ok().and_then(|progress| progress.exit).unwrap_or(Exit::Unknown)
    }

    /// Returns when something new has come and then nothing for `quiet`, or when it has ended.
    pub(crate) async fn settled(&self, quiet: Duration) {
        let mut progress = self.progress.clone();
        let before = progress.borrow_and_update().bytes;
        if progress.wait_for(|now| now.bytes > before || now.exit.is_some()).await.is_err() {
            return;
        }
        while self.exit().is_none() {
            progress.borrow_and_update();
            if !matches!(timeout(quiet, progress.changed()).await, Ok(Ok(()))) {
                return;
            }
        }
    }

    /// Writes to its input. The error is a fragment for the model.
    pub(crate) async fn write(&self, text: &str) -> Result<(), String> {
        let mut input = self.input.lock().await;
        let Some(open) = input.as_mut() else { return Err("its input is closed".to_owned()) };
        let written = open.write(text.as_bytes()).await;
        written.map_err(|error| {
            *input = None;
            format!("it does not read its input any more: {error}")
        })
    }

    /// Closes its input.
    pub(crate) async fn close_input(&self) {
        *self.input.lock().await = None;
    }

    /// Ends it and all that came of it: asks, waits, ends by force. The second time nothing.
    pub(crate) async fn end(&self) {
        if self.exit().is_some() {
            return;
        }
        self.owned.child.terminate();
        if timeout(GRACE + MARGIN, self.ended()).await.is_ok() {
            return;
        }
        let (child, mark) = (Arc::clone(&self.owned.child), self.owned.mark.clone());
        let killing = tokio::task::spawn_blocking(move || kill(&child, &mark));
        // Also where it cannot be ended, which only the kernel can be the reason for, this ends.
        timeout(GRACE, killing).await.ok();
        timeout(GRACE, self.ended()).await.ok();
    }

    /// Ends it and all that came of it by force, at once.
    pub(crate) fn kill_now(&self) {
        if self.exit().is_none() {
            kill(&self.owned.child, &self.owned.mark);
        }
    }
}

fn kill(child: &Child, mark: &str) {
    if child.try_wait().is_some() {
        return;
    }
    child.kill_all();
    #[cfg(target_os = "linux")]
    super::leftovers::end(mark, Duration::ZERO);
    #[cfg(not(target_os = "linux"))]
    let _ = mark;
}

/// The thread's work. The box is the thread's, and what is started from it inherits it.
fn run(
    spec: CommandSpec,
    mark: &str,
    shared: &Shared,
    started: oneshot::Sender<Result<Started, String>>,
    ended: oneshot::Sender<Exit>,
) {
    let supervised = spec.supervise.is_some();
    let child = match start(spec, mark) {
        Ok(start) => {
            let child = Arc::clone(&start.owned.child);
            // Nobody waits for it any more: it is dropped, and so ended.
            if started.send(Ok(start)).is_err() {
                return;
            }
            child
        }
        Err(reason) => {
            // Nobody to tell.
            started.send(Err(reason)).ok();
            return;
        }
    };
    if !supervised {
        shared.left.store(wait_and_end_leftovers(&child, mark), Ordering::Relaxed);
    }
    let exit = child.wait();
    // Nobody waits for it any more.
    ended.send(exit).ok();
}

fn start(spec: CommandSpec, mark: &str) -> Result<Started, String> {
    let (program, args) = spec.sandbox.wrap(spec.program, spec.args, &spec.cwd);
    spec.sandbox.restrict_this_thread()?;
    let mut env = spec.variables;
    env.insert(MARK.into(), mark.into());
    let config = ChildConfig { program, args, env, cwd: Some(spec.cwd), supervise: spec.supervise };
    let mut child = Child::spawn(&config).map_err(|error| error.to_string())?;
    let (stdin, stdout, stderr) = (child.take_stdin(), child.take_stdout(), child.take_stderr());
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else { return Err("it has no output".to_owned()) };
    let owned = Owned { child: Arc::new(child), mark: mark.to_owned() };
    Ok(Started { owned, stdin, stdout, stderr })
}

/// Waits until it has ended without collecting it, so that its number is still its group's, and ends that group.
#[cfg(unix)]
fn wait_and_end_leftovers(child: &Child, mark: &str) -> usize {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return 0 };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let waited = loop {
        match waitid(WaitId::Pid(process), options) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other,
        }
    };
    #[cfg(target_os = "linux")]
    let left = super::leftovers::end(mark, LEFTOVERS);
    #[cfg(not(target_os = "linux"))]
    let left = {
        let _ = (mark, LEFTOVERS);
        0
    };
    // Otherwise somebody else has collected it: then it was ended by force, and its group with it.
    if waited.is_ok() {
        kill_process_group(process, Signal::KILL).ok();
    }
    left
}

#[cfg(not(unix))]
fn wait_and_end_leftovers(_child: &Child, _mark: &str) -> usize {
    let _ = LEFTOVERS;
    0
}

/// Takes in what comes, until all is over.
async fn collect(
    mut pieces: mpsc::Receiver<Piece>,
    mut ended: oneshot::Receiver<Exit>,
    shared: Arc<Shared>,
    tell: watch::Sender<Progress>,
) {
    let mut exit = None;
    let mut open = true;
    let mut deadline = Instant::now();
    let mut characters = Characters::default();
    while open || exit.is_none() {
        tokio::select! {
            biased;
            piece = pieces.recv(), if open => match piece {
                None => open = false,
                Some(piece) => {
                    lock(&shared.kept).push(&piece.bytes);
                    tell.send_modify(|progress| progress.bytes += piece.bytes.len() as u64);
                    let listener = lock(&shared.listener).clone();
                    if let Some((sink, call_id)) = listener {
                        let text = characters.text(&piece);
                        sink.delta(Delta::ShellOutput { call_id, stream: piece.stream, text }).await;
                    }
                }
            },
            end = &mut ended, if exit.is_none() => {
                exit = Some(end.unwrap_or(Exit::Unknown));
                deadline = Instant::now() + DRAIN;
            }
            () = sleep_until(deadline), if exit.is_some() => open = false,
        }
    }
    tell.send_modify(|progress| {
        progress.exit = exit;
        progress.ended = Some(Instant::now());
    });
}

/// Characters that came in two pieces, for each stream.
#[derive(Debug, Default)]
struct Characters {
    rest: BTreeMap<&'static str, Vec<u8>>,
}

impl Characters {
    fn text(&mut self, piece: &Piece) -> String {
        let mut bytes = self.rest.remove(piece.stream).unwrap_or_default();
        bytes.extend_from_slice(&piece.bytes);
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            self.rest.insert(piece.stream, bytes.split_off(error.valid_up_to()));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The state behind these locks is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
