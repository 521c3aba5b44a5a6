//! Owns the one task that talks to a host: one event at a time, from its lines, its runs, its own work, the clock and
//! the signals of the process. All state is in [`Connection`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use toolway_transport::{AsyncInput, AsyncOutput};

use super::agents::Agents;
use super::connection::{Connection, Done, HostProtocolConfig};
use super::lines::{HostLine, LINE_BYTES, Lines};
use super::turns::Told;
use crate::agent_port::AgentPort;
use crate::coordinator::Coordinator;

/// Batches of lines that are ready to be written. Few: what is in them counts in no other bound.
pub(super) const READY: usize = 1;
/// How much of a host's output is read at once.
const CHUNK: usize = 64 << 10;
/// What the whole end gets: calls rejected, ports closed, the last words written.
const END: Duration = Duration::from_secs(2);
/// Written at once, but for a line that is longer.
const WRITE: usize = 256 << 10;

/// How a connection with a host ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostEnding {
    /// The host asked for it, or closed its end.
    Closed,
    /// What was written could not reach the host: it is gone.
    HostGone,
    /// A signal ended the process.
    Signal(i32),
}

/// What the task wakes up for.
enum Event {
    /// The host has sent a line; nothing more comes after `None`.
    Line(Option<HostLine>),
    /// Runs have something to tell.
    Arrivals,
    /// A turn has said something.
    Turn(Told),
    /// Work has ended.
    Done(Done),
    /// There is room for a line.
    Room,
    /// Something has waited long enough.
    Time,
    /// The host does not take anything any more.
    HostGone,
    /// The process is to end.
    Signal(i32),
}

/// Serves a host over standard input and output, until it closes or a signal comes.
pub async fn serve_host(
    config: HostProtocolConfig,
    input: AsyncInput,
    output: AsyncOutput,
    signal: impl Future<Output = i32>,
) -> HostEnding {
    serve_lines(config, None, input, output, signal).await
}

/// The same, with agents: a host may leave turns to the bridge. It may drive an agent of its own as well.
pub async fn serve_host_with<P: AgentPort>(
    config: HostProtocolConfig,
    agents: P,
    input: AsyncInput,
    output: AsyncOutput,
    signal: impl Future<Output = i32>,
) -> HostEnding {
    let agents = Arc::new(Coordinator::new(agents)) as Arc<dyn Agents>;
    serve_lines(config, Some(agents), input, output, signal).await
}

async fn serve_lines(
    config: HostProtocolConfig,
    agents: Option<Arc<dyn Agents>>,
    input: AsyncInput,
    output: AsyncOutput,
    signal: impl Future<Output = i32>,
) -> HostEnding {
    let (lines_in, lines) = mpsc::channel(1);
    let (out, lines_out) = mpsc::channel(READY);
    let mut pumps = JoinSet::new();
    pumps.spawn(read_lines(input, lines_in));
    let mut writer = JoinSet::new();
    writer.spawn(write_lines(output, lines_out));
    let (ending, deadline) = serve(Connection::new(config, agents), lines, out, signal).await;
    // What is still to be written has its time; a reader of stdin that waits for the host does not.
    timeout_at(deadline, writer.join_next()).await.ok();
    pumps.shutdown().await;
    ending
}

/// The same over lines. `out` gets batches of lines, the last one of each without its ending. What is in it when this
/// ends has until the time that comes with the ending.
pub(super) async fn serve(
    mut connection: Connection,
    mut lines: mpsc::Receiver<HostLine>,
    out: mpsc::Sender<Bytes>,
    signal: impl Future<Output = i32>,
) -> (HostEnding, Instant) {
    let mut signal = std::pin::pin!(signal);
    let ending = loop {
        match next(&mut connection, &mut lines, &out, signal.as_mut()).await {
            Event::Line(Some(line)) => connection.on_line(line, Instant::now()),
            Event::Line(None) => break HostEnding::Closed,
            Event::Arrivals => connection.on_arrivals(Instant::now()),
            Event::Turn(told) => connection.turn_told(told),
            Event::Done(done) => connection.on_done(done),
            Event::Room => write_some(&mut connection, &out),
            Event::Time => connection.on_time(Instant::now()),
            Event::HostGone => break HostEnding::HostGone,
            Event::Signal(number) => break HostEnding::Signal(number),
        }
        if connection.shutdown {
            break HostEnding::Closed;
        }
    };
    let deadline = Instant::now() + END;
    end(connection, &out, ending, deadline).await;
    (ending, deadline)
}

async fn next(
    connection: &mut Connection,
    lines: &mut mpsc::Receiver<HostLine>,
    out: &mpsc::Sender<Bytes>,
    signal: std::pin::Pin<&mut impl Future<Output = i32>>,
) -> Event {
    let time = connection.next_time(Instant::now());
    let takes_lines = connection.takes_lines();
    let Connection { inbox, outbox, work, turns, .. } = connection;
    // What a host does not read stays with the agent.
    let takes_turns = !outbox.is_full();
    tokio::select! {
        biased;
        number = signal => Event::Signal(number),
        () = out.closed() => Event::HostGone,
        () = inbox.changed() => Event::Arrivals,
        Some(Ok(done)) = work.join_next(), if !work.is_empty() => Event::Done(done),
        room = out.reserve(), if !outbox.is_empty() => {
            if room.is_ok() { Event::Room } else { Event::HostGone }
        }
        () = sleep_until(time.unwrap_or_else(Instant::now)), if time.is_some() => Event::Time,
        line = lines.recv(), if takes_lines => Event::Line(line),
        // After the host's lines: an agent that talks on and on can be stopped.
        Some(told) = turns.told(), if takes_turns => Event::Turn(told),
    }
}

/// As many lines as there is room for.
pub(super) fn write_some(connection: &mut Connection, out: &mpsc::Sender<Bytes>) {
    while let Ok(room) = out.try_reserve() {
        match next_batch(connection) {
            Some(batch) => room.send(batch),
            None => return,
        }
    }
}

/// The next lines, as many as are written at once.
fn next_batch(connection: &mut Connection) -> Option<Bytes> {
    let first = connection.next_line()?;
    if first.len() >= WRITE {
        return Some(first);
    }
    let Some(second) = connection.next_line() else { return Some(first) };
    let mut batch = first.to_vec();
    let mut next = Some(second);
    while let Some(line) = next {
        batch.push(b'\n');
        batch.extend_from_slice(&line);
        next = if batch.len() < WRITE { connection.next_line() } else { None };
    }
    Some(batch.into())
}

/// The end: every call is rejected, the host is told so where it still reads, every port is closed.
async fn end(mut connection: Connection, out: &mpsc::Sender<Bytes>, ending: HostEnding, deadline: Instant) {
    let reason = match ending {
        HostEnding::Closed if connection.shutdown => "the host has asked for it",
        HostEnding::Closed => "the host has closed its end",
        HostEnding::HostGone => "the host is gone",
        HostEnding::Signal(1) => "SIGHUP",
        HostEnding::Signal(2) => "SIGINT",
        HostEnding::Signal(15) => "SIGTERM",
        HostEnding::Signal(_) => "a signal",
    };
    let reason = format!("the bridge ends: {reason}");
    connection.give_up(&reason);
    connection.shut(&reason);
    let work = async {
        loop {
            let Connection { work, turns, .. } = &mut connection;
            tokio::select! {
                biased;
                Some(told) = turns.told() => connection.turn_told(told),
                done = work.join_next() => match done {
                    Some(Ok(done)) => connection.on_done(done),
                    Some(Err(_)) => {}
                    None => break,
                },
            }
            connection.on_arrivals(Instant::now());
        }
        // The readers of turns that have ended need to be looked at once more.
        tokio::task::yield_now().await;
        while let Some(told) = connection.turns.told_now() {
            connection.turn_told(told);
        }
    };
    if timeout_at(deadline - END / 2, work).await.is_err() {
        tracing::warn!("not everything has ended in time");
    }
    connection.on_arrivals(Instant::now());
    connection.answer_shutdown();
    connection.say_closing(&reason);
    let write = async {
        while let Some(batch) = next_batch(&mut connection) {
            if out.send(batch).await.is_err() {
                return;
            }
        }
    };
    timeout_at(deadline - END / 4, write).await.ok();
    let diagnostics = connection.spoken.as_ref().map(|spoken| spoken.diagnostics.clone());
    if let Some(diagnostics) = diagnostics {
        diagnostics.flush(END / 8).await;
    }
    connection.work.shutdown().await;
}

async fn read_lines(mut input: AsyncInput, lines: mpsc::Sender<HostLine>) {
    let mut reader = Lines::new(LINE_BYTES);
    let mut chunk = BytesMut::zeroed(CHUNK);
    loop {
        let mut ready = Vec::new();
        let read = input.read(&mut chunk).await;
        let at_end = !matches!(read, Ok(1..));
        match read {
            Ok(count) => reader.feed(chunk.get(..count).unwrap_or_default(), |line| ready.push(line)),
            Err(error) => tracing::debug!(%error, "stdin cannot be read any more"),
        }
        if at_end {
            ready.extend(reader.end());
        }
        for line in ready {
            if lines.send(line).await.is_err() {
                return;
            }
        }
        if at_end {
            return;
        }
    }
}

async fn write_lines(mut output: AsyncOutput, mut batches: mpsc::Receiver<Bytes>) {
    while let Some(batch) = batches.recv().await {
        // In one piece, so that a short line is one write.
        let written = if batch.len() < WRITE {
            output.write_all(&[&batch[..], b"\n"].concat()).await
        } else {
            match output.write_all(&batch).await {
                Ok(()) => output.write_all(b"\n").await,
                failed => failed,
            }
        };
        if let Err(error) = written {
            // Dropping the receiver tells the task that the host is gone.
            tracing::debug!(%error, "stdout cannot be written any more");
            return;
        }
    }
    output.flush().await.ok();
}
