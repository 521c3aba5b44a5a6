//! A child process as a message transport: one line is one message, both ways. Owns the pipes' buffers and the order of
//! the end; it must not know what the messages are.
//!
//! Specification 2025-11-25 and 2026-07-28, "Transports", "stdio".

mod end;
mod lines;
mod outbox;
mod pipes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use self::end::ExitWatch;
pub(crate) use self::lines::Lines;
pub(crate) use self::outbox::Outbox;
use self::pipes::{Sink, Source};
use crate::child::{Child, ChildConfig, Exit, StartError};
use crate::process_group::{GRACE, StopSequence, StopStep};
use crate::stderr_tail::StderrTail;
use crate::transport::{Closed, Inbound, Life, Outbound, Transport, TransportError};

/// When so much waits for the server's stdin, requests have to wait.
const HIGH: usize = 256 * 1024;
/// Once one of its pipes is closed, how long its end is waited for, to say how it ended.
const END_TIME: Duration = Duration::from_secs(1);

/// A server that runs as a child process, as upstream.
///
/// Bytes move while [`Transport::receive`] is awaited; stderr is read all the time. Dropping it ends the whole process
/// tree by force, which may take a moment; [`Transport::close`] ends it in good order. Must be used within a tokio
/// runtime with time and I/O.
#[derive(Debug)]
pub struct ChildTransport {
    /// `None` once closed.
    stdin: Option<Sink>,
    stdout: Source,
    lines: Lines,
    outbox: Outbox,
    /// [`Transport::ready`] said no.
    asked: AtomicBool,
    tail: StderrTail,
    /// Reads stderr.
    tasks: JoinSet<()>,
    watch: ExitWatch,
    /// The process has ended; what it wrote before may still be in the pipe.
    exited: bool,
    /// A pipe was closed: what is left comes until then.
    ending: Option<Instant>,
    /// How it ended, once that is known.
    exit: Option<Exit>,
    life: Life,
    lost: bool,
    child: Arc<Child>,
}

impl ChildTransport {
    /// Starts the program. Blocks for about a millisecond: a runtime with other work does it on a thread for blocking
    /// work, and then makes the transport by [`ChildTransport::over`].
    ///
    /// # Errors
    /// As [`Child::spawn`].
    pub fn spawn(config: &ChildConfig) -> Result<Self, StartError> {
        Self::over(Child::spawn(config)?)
    }

    /// A transport over a process whose pipes nobody has taken.
    ///
    /// # Errors
    /// When the pipes cannot be watched.
    pub fn over(mut child: Child) -> Result<Self, StartError> {
        let pipes = (child.take_stdin(), child.take_stdout(), child.take_stderr());
        let child = Arc::new(child);
        let failed = |source| StartError::Spawn { program: "its pipes".into(), source };
        let missing = || failed(std::io::Error::other("already taken"));
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err(missing()) };
        let tail = StderrTail::new();
        let mut tasks = JoinSet::new();
        pipes::drain(stderr, tail.clone(), &mut tasks).map_err(failed)?;
        Ok(Self {
            stdin: Some(Sink::new(stdin).map_err(failed)?),
            stdout: Source::new(stdout).map_err(failed)?,
            lines: Lines::default(),
            outbox: Outbox::default(),
            asked: AtomicBool::new(false),
            tail,
            tasks,
            watch: ExitWatch::new(&child),
            exited: false,
            ending: None,
            exit: None,
            life: Life::Open,
            lost: false,
            child,
        })
    }

    /// What it last wrote to stderr.
    pub fn stderr(&self) -> &StderrTail {
        &self.tail
    }

    /// How it ended: known after [`Inbound::Closed`] or [`Transport::close`], unless it goes on running.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// The reason, if it ended because the supervisor could not start the program at all.
    pub fn start_failure(&self) -> Option<StartError> {
        Child::start_failure(self.exit?, &self.tail)
    }

    /// The number of our direct child: the supervisor's if there is one.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes what the pipe takes without waiting.
    fn write_now(&mut self) {
        while let Some(sink) = self.stdin.as_mut().filter(|_| !self.outbox.is_empty()) {
            match sink.try_write(self.outbox.front()) {
                Ok(written) => self.outbox.advance(written),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.input_broken(),
            }
        }
    }

    /// It reads no more: as a rule it has ended, which will be seen in a moment.
    fn input_broken(&mut self) {
        self.stdin = None;
        self.outbox.clear();
        self.begin_end();
    }

    fn begin_end(&mut self) {
        self.ending = self.ending.or_else(|| Some(Instant::now() + END_TIME));
    }

    /// There is room again, and somebody was told that there was none.
    fn room_again(&self) -> bool {
        self.outbox.len() < HIGH / 2 && self.asked.swap(false, Ordering::Relaxed)
    }

    fn read(&mut self, count: usize) {
        if count == 0 {
            self.lines.end();
            self.begin_end();
        } else {
            self.lines.filled(count);
        }
    }

    /// Waits for the next thing to happen; the end of the time counts as one.
    async fn turn(&mut self) {
        enum Turn {
            Written(std::io::Result<usize>),
            Read(std::io::Result<usize>),
            Exited,
            TimeOver,
        }
        let open = !self.lines.at_end();
        let ending = self.ending;
        let writes = !self.outbox.is_empty();
        let turn = {
            let (stdin, outbox, watch) = (&mut self.stdin, &self.outbox, &mut self.watch);
            let (stdout, buffer) = (&mut self.stdout, self.lines.buffer());
            let writing = async {
                match stdin {
                    Some(sink) if writes => sink.write(outbox.front()).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                written = writing => Turn::Written(written),
                read = stdout.read(buffer), if open => Turn::Read(read),
                () = watch.ended(), if !self.exited => Turn::Exited,
                () = until(ending), if ending.is_some() => Turn::TimeOver,
            }
        };
        match turn {
            Turn::Written(Ok(written)) => self.outbox.advance(written),
            Turn::Written(Err(_)) => self.input_broken(),
            Turn::Read(Ok(count)) => self.read(count),
            Turn::Read(Err(error)) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Turn::Read(Err(_)) => self.read(0),
            Turn::Exited => self.exited = true,
            Turn::TimeOver => self.lost = true,
        }
    }

    /// The process has ended, or will not be waited for any longer: how, for people.
    async fn conclude(&mut self) -> Inbound {
        let patience = self.ending.unwrap_or_else(|| Instant::now() + END_TIME);
        if !self.exited {
            self.exited = timeout_at(patience, self.watch.ended()).await.is_ok();
        }
        if self.exited {
            self.collect().await;
            // What it wrote last is in the pipe now, and only a process of its own that stays can hold it open.
            timeout(END_TIME / 4, self.tasks.join_next()).await.ok();
        }
        self.life = Life::Told;
        let reason = match self.exit {
            Some(exit) => format!("the server {exit}"),
            None if self.stdin.is_none() => "the server closed its standard input".to_owned(),
            None => "the server closed its standard output".to_owned(),
        };
        Inbound::Closed { reason: Closed::Lost(reason) }
    }

    /// Collects the process on another thread: ending what it has left behind may take a moment.
    async fn collect(&mut self) {
        if self.exit.is_none() {
            let child = Arc::clone(&self.child);
            let collected = tokio::task::spawn_blocking(move || child.wait_timeout(END_TIME)).await;
            self.exit = collected.ok().flatten();
        }
    }

    /// Reads and forgets what the server still writes, so that nothing keeps it from ending, until it has ended.
    async fn drained(&mut self) {
        while !self.exited {
            let open = !self.lines.at_end();
            let (stdout, watch, buffer) = (&mut self.stdout, &mut self.watch, self.lines.buffer());
            tokio::select! {
                () = watch.ended() => self.exited = true,
                read = stdout.read(buffer), if open => match read {
                    Ok(1..) => {}
                    _ => self.lines.end(),
                },
            }
        }
    }
}

/// Waits until then; for ever where there is no time.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Transport for ChildTransport {
    fn ready(&self) -> bool {
        let ready = self.life == Life::Open && self.outbox.len() < HIGH;
        if !ready {
            self.asked.store(true, Ordering::Relaxed);
        }
        ready
    }

    fn ready_for_note(&self) -> bool {
        self.life == Life::Open && (self.outbox.len() < 2 * HIGH || self.ready())
    }

    fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        if self.life != Life::Open {
            return Err(TransportError::Closed);
        }
        if self.stdin.is_some() {
            self.outbox.push(message.payload);
        }
        Ok(())
    }

    async fn receive(&mut self) -> Option<Inbound> {
        loop {
            self.write_now();
            if let Some(event) = self.try_receive() {
                return Some(event);
            }
            match self.life {
                Life::Open => {}
                Life::Closed | Life::Told => return self.life.end(),
            }
            if self.lost || self.lines.at_end() {
                return Some(self.conclude().await);
            }
            if self.exited {
                // It has ended and nothing is left in its pipe: who still holds that open is not the server.
                match self.stdout.try_read(self.lines.buffer()) {
                    Ok(count) => self.read(count),
                    Err(_) => return Some(self.conclude().await),
                }
                continue;
            }
            self.turn().await;
        }
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        if self.life != Life::Open {
            return None;
        }
        if let Some(event) = self.lines.next() {
            return Some(event);
        }
        if self.room_again() {
            return Some(Inbound::Ready);
        }
        if self.lines.at_end() {
            return None;
        }
        match self.stdout.try_read(self.lines.buffer()) {
            Ok(count) => self.read(count),
            Err(_) => return None,
        }
        self.lines.next()
    }

    async fn close(&mut self) {
        if self.life == Life::Open {
            self.write_now();
            self.life = Life::Closed;
        }
        self.outbox.clear();
        let mut sequence = StopSequence::new(StopStep::CloseInput, GRACE);
        while let Some((step, wait)) = sequence.advance().filter(|_| self.exit.is_none()) {
            let mut wait = wait;
            match step {
                StopStep::CloseInput => self.stdin = None,
                StopStep::Terminate => {
                    self.child.terminate();
                    wait += self.child.terminate_margin();
                }
                StopStep::Kill => {
                    let child = Arc::clone(&self.child);
                    tokio::task::spawn_blocking(move || child.kill_all()).await.ok();
                }
            }
            timeout(wait, self.drained()).await.ok();
            if self.exited {
                self.collect().await;
            }
        }
        timeout(END_TIME / 4, self.tasks.join_next()).await.ok();
        self.tasks.shutdown().await;
    }
}
