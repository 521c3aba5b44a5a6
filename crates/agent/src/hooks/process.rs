//! Owns one run of a hook's program: its input, its bounded output, its end. Whatever happens, its whole group of
//! processes ends with it.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_transport::{Child, ChildConfig, Exit, StderrTail};

/// The most that a hook may answer.
const MOST_BYTES: u64 = 4 << 20;
/// How long its output is waited for after its end: somebody else may hold the pipe.
const PIPE_TIME: Duration = Duration::from_secs(1);

/// How a hook's program ended.
#[derive(Debug)]
pub(super) enum Ran {
    /// With this code and these outputs.
    Ended { code: i32, stdout: Vec<u8>, stderr: String },
    /// Not as it should.
    Failed(String),
    /// The run was cancelled meanwhile.
    Cancelled,
}

/// Ends the processes when the future is dropped.
struct Ending(Option<Arc<Child>>);

impl Ending {
    async fn end(mut self) {
        if let Some(child) = self.0.take() {
            let _ended = spawn_blocking(move || child.kill_all()).await;
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            // It may wait a moment, which nobody who drops a future wants to.
            let ended =
                std::thread::Builder::new().name("hook-end".to_owned()).spawn(move || child.kill_all());
            if let Err(error) = ended {
                tracing::warn!(%error, "a hook's processes are ended by its last handle");
            }
        }
    }
}

/// Runs a program to its end, at most for `most`.
pub(super) async fn run(
    config: ChildConfig,
    input: Vec<u8>,
    most: Duration,
    cancel: &CancellationToken,
) -> Ran {
    let started = spawn_blocking(move || Child::spawn(&config)).await;
    let mut child = match started {
        Ok(Ok(child)) => child,
        Ok(Err(error)) => return Ran::Failed(error.to_string()),
        Err(error) => return Ran::Failed(error.to_string()),
    };
    let (stdin, stdout, stderr) = (child.take_stdin(), child.take_stdout(), child.take_stderr());
    let child = Arc::new(child);
    let ending = Ending(Some(Arc::clone(&child)));
    let tail = StderrTail::new();
    let feed = spawn_blocking(move || {
        // A hook need not read what it is told.
        stdin.is_some_and(|mut stdin| stdin.write_all(&input).is_ok())
    });
    let output = spawn_blocking(move || {
        let mut bytes = Vec::new();
        let read = stdout.map(|stdout| stdout.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        read.unwrap_or(Ok(0)).map(|_| bytes)
    });
    let errors = spawn_blocking({
        let tail = tail.clone();
        move || {
            if let Some(stderr) = stderr {
                tail.drain(stderr, |_| {});
            }
        }
    });
    // A little longer than the wait below: it ends by itself.
    let wait = spawn_blocking({
        let child = Arc::clone(&child);
        move || child.wait_ended(most + PIPE_TIME)
    });
    let ended = tokio::select! {
        ended = wait => ended.is_ok_and(|ended| ended).then_some(()).ok_or_else(|| late(most)),
        () = cancel.cancelled() => Err(Ran::Cancelled),
        () = tokio::time::sleep(most) => Err(late(most)),
    };
    // Also what it left behind, so that nobody holds its pipes.
    ending.end().await;
    let bytes = timeout(PIPE_TIME, output).await;
    let _tail = timeout(PIPE_TIME, errors).await;
    drop(feed);
    if let Err(ran) = ended {
        return ran;
    }
    let stderr = tail.text();
    let code = match child.try_wait() {
        Some(Exit::Code(code)) => code,
        Some(exit) => return Ran::Failed(exit.to_string()),
        None => return late(most),
    };
    match bytes {
        Ok(Ok(Ok(stdout))) if stdout.len() as u64 > MOST_BYTES => {
            Ran::Failed(format!("wrote more than {MOST_BYTES} bytes"))
        }
        Ok(Ok(Ok(stdout))) => Ran::Ended { code, stdout, stderr },
        _ => Ran::Failed("its output cannot be read".to_owned()),
    }
}

fn late(most: Duration) -> Ran {
    Ran::Failed(format!("did not end within {most:?}"))
}
