//! Owns the relay in front of a child process: two pumps on plain threads, and one owner of the session's end.
//! Blocking on purpose: a message costs one read and one write, and nothing else wakes up.

mod ends;
mod pump;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use toolway_transport::{Child, Exit, GRACE, StderrTail, wait_for_hang_up};

use super::core::Relay;
use super::{Ending, signal_text};
use ends::{ClientEnd, ServerEnd};

/// How long an answer that says why there is no upstream waits for a request.
const FIRST_REQUEST: Duration = Duration::from_secs(30);
/// How long the client is given to read what is written at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long the end of an upstream that takes no more input is awaited.
const ABOUT_TO_END: Duration = Duration::from_secs(1);
/// How long the end of the upstream's standard error is awaited.
const LAST_LINES: Duration = Duration::from_millis(200);

/// What the threads report.
#[derive(Debug)]
enum Event {
    /// The client closed its side, and all that it wrote was taken.
    ClientClosed,
    /// The client closed its side; what it wrote may still wait for an upstream that does not read.
    HungUp,
    /// The client reads no more.
    ClientGone,
    /// A request was refused because the upstream is gone.
    Refused,
    /// No request is open any more.
    Idle,
    /// The upstream takes no more input; the requests after this mark did not reach it.
    InputBroken(u64),
    /// The upstream closed its output.
    OutputClosed,
    /// The upstream ended.
    Exited(Exit),
    /// A signal came.
    Signal(i32),
}

/// Runs the relay until the client closes, the upstream ends or a signal comes, and ends the upstream. `input` and
/// `output` are the client's side; `signals` blocks until the next signal; `forward_stderr` gets what the upstream
/// writes to its standard error, and must not wait. Returns at the end although a thread may
/// still wait for the client: the process is to exit then.
pub fn run_stdio<S, F>(
    relay: &Arc<Relay>,
    child: Child,
    (input, output): (File, File),
    signals: S,
    forward_stderr: F,
) -> Ending
where
    S: IntoIterator<Item = i32> + Send + 'static,
    F: FnMut(&[u8]) + Send + 'static,
{
    let (events, inbox) = sync_channel(64);
    let mut child = child;
    let (Some(stdin), Some(stdout)) = (child.take_stdin(), child.take_stdout()) else {
        relay.set_gone("the server's pipes are not there");
        return Ending::NotStarted;
    };
    let stderr = child.take_stderr().map(|stderr| (stderr, forward_stderr));
    let session = Session {
        relay: Arc::clone(relay),
        child: Arc::new(child),
        client: Arc::new(ClientEnd::new(output)),
        server: Arc::new(ServerEnd::new(stdin)),
        tail: Arc::new(StderrTail::new()),
    };
    let started = session.start(input, stdout, stderr, signals, &events);
    if let Err(error) = started {
        relay.set_gone(&format!("a thread could not be started: {error}"));
        session.child.kill_all();
        return Ending::NotStarted;
    }
    session.run(&inbox)
}

struct Session {
    relay: Arc<Relay>,
    child: Arc<Child>,
    client: Arc<ClientEnd>,
    server: Arc<ServerEnd>,
    tail: Arc<StderrTail>,
}

impl Session {
    fn start<S, F>(
        &self,
        input: File,
        stdout: std::process::ChildStdout,
        stderr: Option<(std::process::ChildStderr, F)>,
        signals: S,
        events: &SyncSender<Event>,
    ) -> std::io::Result<()>
    where
        S: IntoIterator<Item = i32> + Send + 'static,
        F: FnMut(&[u8]) + Send + 'static,
    {
        if let Some((stderr, forward)) = stderr {
            let tail = Arc::clone(&self.tail);
            spawn("stderr", move || tail.drain(stderr, forward))?;
        }
        let (child, sender) = (Arc::clone(&self.child), events.clone());
        spawn("wait", move || report(&sender, Event::Exited(child.wait())))?;
        let sender = events.clone();
        spawn("signals", move || {
            signals.into_iter().for_each(|signal| report(&sender, Event::Signal(signal)));
        })?;
        let (watched, sender) = (input.try_clone()?, events.clone());
        spawn("hang-up", move || {
            if wait_for_hang_up(&watched).is_ok() {
                report(&sender, Event::HungUp);
            }
        })?;
        let up = pump::Up {
            relay: Arc::clone(&self.relay),
            server: Arc::clone(&self.server),
            client: Arc::clone(&self.client),
            events: events.clone(),
        };
        spawn("client", move || up.run(input))?;
        let down = pump::Down {
            relay: Arc::clone(&self.relay),
            client: Arc::clone(&self.client),
            events: events.clone(),
        };
        spawn("server", move || down.run(stdout))
    }

    fn run(&self, inbox: &Receiver<Event>) -> Ending {
        let mut drain_until: Option<Instant> = None;
        loop {
            let event = match drain_until {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => inbox.recv_timeout(until.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(Event::ClientClosed) => {
                    self.relay.draining.store(true, Ordering::SeqCst);
                    if self.relay.pending().is_empty() {
                        return self.end(Ending::ClientClosed, "");
                    }
                    drain_until = Some(Instant::now() + self.relay.config.drain);
                }
                Ok(Event::HungUp) => {
                    drain_until = drain_until.or_else(|| Some(Instant::now() + self.relay.config.drain));
                }
                Ok(Event::Idle) if drain_until.is_some() => return self.end(Ending::ClientClosed, ""),
                Ok(Event::Idle | Event::Refused) => {}
                Ok(Event::ClientGone) => return self.end(Ending::ClientClosed, ""),
                Ok(Event::Signal(signal)) => {
                    let reason = format!("the relay was ended by {}", signal_text(signal));
                    return self.end(Ending::Signal(signal), &reason);
                }
                Ok(Event::InputBroken(mark)) => {
                    // Most often it is about to end, and its end says more than a broken pipe.
                    if let Some(exit) = self.child.wait_timeout(ABOUT_TO_END) {
                        wait_for_output(inbox);
                        return self.upstream_ended(Some(exit), inbox);
                    }
                    let lines = self.relay.fail_since(mark, "the server does not read its input any more");
                    self.client.last_words(lines, LAST_WORDS);
                }
                Ok(Event::OutputClosed) => return self.upstream_ended(self.child.wait_timeout(GRACE), inbox),
                Ok(Event::Exited(exit)) => {
                    wait_for_output(inbox);
                    return self.upstream_ended(Some(exit), inbox);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let waited = self.relay.config.drain.as_secs_f64();
                    let reason = format!(
                        "the client closed and the server did not answer within {waited} s (--drain)"
                    );
                    return self.end(Ending::ClientClosed, &reason);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return self.end(Ending::ClientClosed, "the relay ended");
                }
            }
        }
    }

    /// The upstream will not answer any more: every open request is told why, or the first one that comes.
    fn upstream_ended(&self, exit: Option<Exit>, inbox: &Receiver<Event>) -> Ending {
        self.tail.wait_end(LAST_LINES);
        let not_started = exit.and_then(|exit| Child::start_failure(exit, &self.tail));
        let (ending, reason) = match (&not_started, exit) {
            (Some(error), _) => (Ending::NotStarted, format!("cannot start the server: {error}")),
            (None, Some(exit)) => (Ending::UpstreamEnded, format!("the server {exit}{}", self.last_lines())),
            (None, None) => {
                (Ending::UpstreamEnded, format!("the server closed its output{}", self.last_lines()))
            }
        };
        let reason = self.relay.redact(&reason);
        tracing::warn!(%reason, "the server is gone");
        self.relay.set_gone(&reason);
        let lines = self.relay.fail_since(0, &reason);
        let answered = !lines.is_empty();
        self.client.last_words(lines, LAST_WORDS);
        let signal = if answered || self.relay.asked.load(Ordering::Acquire) {
            None
        } else {
            await_first_request(inbox)
        };
        self.stop();
        signal.map_or(ending, Ending::Signal)
    }

    /// What the upstream wrote last to its standard error, for a message.
    fn last_lines(&self) -> String {
        let text = self.tail.text();
        let text = text.trim();
        if text.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(12);
        format!("; its last lines on stderr:\n{}", lines.get(from..).unwrap_or_default().join("\n"))
    }

    /// Ends the session in good order; requests that are still open are answered with the reason.
    fn end(&self, ending: Ending, reason: &str) -> Ending {
        if !reason.is_empty() {
            self.relay.set_gone(reason);
            let lines = self.relay.fail_since(0, reason);
            self.client.last_words(lines, LAST_WORDS);
        }
        self.stop();
        ending
    }

    fn stop(&self) {
        self.child.stop(|| self.server.close());
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work).map(drop)
}

/// A report that nobody waits for any more is no fault.
fn report(events: &SyncSender<Event>, event: Event) {
    events.send(event).ok();
}

/// The upstream has ended; what it wrote before may still be on its way.
fn wait_for_output(inbox: &Receiver<Event>) {
    let until = Instant::now() + GRACE;
    while let Ok(event) = inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if matches!(event, Event::OutputClosed | Event::ClientGone | Event::Signal(_)) {
            return;
        }
    }
}

/// No request has come yet: the first one is told why there is no upstream. A signal ends the wait.
fn await_first_request(inbox: &Receiver<Event>) -> Option<i32> {
    let until = Instant::now() + FIRST_REQUEST;
    while let Ok(event) = inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
        match event {
            Event::Refused | Event::ClientClosed | Event::ClientGone => return None,
            Event::Signal(signal) => return Some(signal),
            _ => {}
        }
    }
    None
}
