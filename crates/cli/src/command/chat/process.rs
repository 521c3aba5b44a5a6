//! Owns running one program to its end: its output within bounds, its time, and that nothing of it is left. No shell.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What the agent is told of a call that was stopped.
pub(super) const STOPPED: &str = "the user stopped it";
/// The most bytes that are kept of each stream.
const MOST: usize = 256 << 10;
/// How long the streams are read on after the program ended: something that it started may hold them.
const AFTER: Duration = Duration::from_millis(500);
/// How long a program has to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// What a program said and how it ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
    /// It was ended because its time was over.
    pub(super) timed_out: bool,
}

/// Runs it. The error says why it could not be started, or that it was cancelled.
pub(super) async fn run(
    command: &str,
    args: &[String],
    cwd: &Path,
    input: Option<Vec<u8>>,
    time: Duration,
    cancel: &CancellationToken,
) -> Result<Ran, String> {
    let mut process = Command::new(command);
    process.args(args).current_dir(cwd).stdout(Stdio::piped()).stderr(Stdio::piped());
    process.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    let mut child = process.spawn().map_err(|error| format!("{command} cannot be started: {error}"))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that reads nothing is its own affair.
        tokio::task::spawn_blocking(move || stdin.write_all(&input).ok());
    }
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let id = child.id();
    let mut group = Group(Some(id));
    let mut ended = tokio::task::spawn_blocking(move || child.wait());
    let mut timed_out = false;
    let status = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        status = &mut ended => Some(status),
        () = tokio::time::sleep(time) => { timed_out = true; None }
    };
    let status = if let Some(status) = status {
        status
    } else {
        stop(id, false);
        if let Ok(status) = tokio::time::timeout(GRACE, &mut ended).await {
            status
        } else {
            stop(id, true);
            ended.await
        }
    };
    // What it left in its group ends with it.
    stop(id, true);
    group.0 = None;
    if cancel.is_cancelled() {
        return Err(STOPPED.to_owned());
    }
    let status = status.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    Ok(Ran { status, out: out.text().await, err: err.text().await, timed_out })
}

/// A program and what it started. Whoever leaves it alone ends it.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            stop(id, true);
        }
    }
}

/// A stream that is read on a thread of its own.
struct Collected {
    bytes: Arc<Mutex<(Vec<u8>, usize)>>,
    done: oneshot::Receiver<()>,
}

fn collect(stream: Option<impl Read + Send + 'static>) -> Collected {
    let bytes: Arc<Mutex<(Vec<u8>, usize)>> = Arc::default();
    let (end, done) = oneshot::channel();
    if let Some(mut stream) = stream {
        let kept = Arc::clone(&bytes);
        let read = move || {
            let mut piece = [0; 8192];
            while let Ok(count) = stream.read(&mut piece) {
                let Some(piece) = piece.get(..count).filter(|piece| !piece.is_empty()) else { break };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST.saturating_sub(kept.0.len()).min(count);
                kept.0.extend_from_slice(piece.get(..room).unwrap_or_default());
                kept.1 += count - room;
            }
            end.send(()).ok();
        };
        std::thread::Builder::new().name("output".to_owned()).stack_size(128 << 10).spawn(read).ok();
    }
    Collected { bytes, done }
}

impl Collected {
    async fn text(self) -> String {
        tokio::time::timeout(AFTER, self.done).await.ok();
        let kept = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from_utf8_lossy(&kept.0).into_owned();
        if kept.1 > 0 {
            write!(text, "\n[{} more bytes were left out]", kept.1).unwrap_or_default();
        }
        text
    }
}

#[cfg(unix)]
fn stop(id: u32, at_once: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if at_once { Signal::KILL } else { Signal::TERM };
    if let Some(group) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        kill_process_group(group, signal).ok();
    }
}

#[cfg(not(unix))]
fn stop(_id: u32, _at_once: bool) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    async fn sh(code: &str, time: Duration, cancel: &CancellationToken) -> Result<Ran, String> {
        run("sh", &["-c".to_owned(), code.to_owned()], Path::new("/"), None, time, cancel).await
    }

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn both_streams_and_the_status_come_back() {
        let ran = sh("echo out; echo err >&2; exit 3", LONG, &CancellationToken::new()).await.unwrap();
        assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.status.code()), ("out\n", "err\n", Some(3)));
        let told =
            run("cat", &[], Path::new("/"), Some(b"in".to_vec()), LONG, &CancellationToken::new()).await;
        assert_eq!(told.unwrap().out, "in");
        let told = run("/no/such", &[], Path::new("/"), None, LONG, &CancellationToken::new()).await;
        assert!(told.unwrap_err().contains("cannot be started"));
    }

    #[tokio::test]
    async fn it_ends_when_its_time_is_over_and_when_it_is_cancelled() {
        let ran =
            sh("echo begun; sleep 60", Duration::from_millis(300), &CancellationToken::new()).await.unwrap();
        assert!(ran.timed_out && ran.out == "begun\n", "{ran:?}");
        let cancel = CancellationToken::new();
        let (told, ()) = tokio::join!(sh("sleep 60", LONG, &cancel), async { cancel.cancel() });
        assert_eq!(told.unwrap_err(), STOPPED);
    }

    #[tokio::test]
    async fn what_it_leaves_holds_nobody_up_and_long_output_is_cut() {
        let ran = sh("sleep 60 & echo done", LONG, &CancellationToken::new()).await.unwrap();
        assert_eq!(ran.out, "done\n");
        let ran = sh("head -c 300000 /dev/zero | tr '\\0' x", LONG, &CancellationToken::new()).await.unwrap();
        assert!(ran.out.ends_with("[37856 more bytes were left out]"), "{}", ran.out.len());
    }
}
