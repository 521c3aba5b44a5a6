//! Owns one request from its first sending to its last event: sending it again, reading frames, noticing silence, a cut and
//! a cancellation. It must not know how frames are written.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream as _;
use genai::chat::{
    ChatFrameSink, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, FrameCtx, RawFrameRef,
};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Dispatch;

use super::fault::{Failure, of_cut, of_endless, of_flood, of_late, of_library, of_read};
use super::remote::{Patience, Remote};
use super::request::tag;
use super::wire::{Events, Reader, reader};
use super::{ModelEvent, ModelStream};
use crate::engine::BoxFuture;
use crate::error::AgentError;

/// The most that one answer may be, on the wire.
const MOST: usize = 64 << 20;

/// A request on its way.
pub(super) struct RemoteStream {
    remote: Arc<Remote>,
    request: ChatRequest,
    options: ChatOptions,
    cancel: CancellationToken,
    frames: Arc<Frames>,
    state: State,
    out: Events,
    attempt: u32,
    /// Something of the answer was told.
    told: bool,
    /// When an event was whole last.
    heard: Instant,
    /// What reading took since then: the library puts an event that does not end together anew with every piece of it.
    spent: Duration,
}

/// What came of waiting for an event.
enum Heard {
    /// What the library made of it; `None` at the end.
    Item(Option<Result<ChatStreamEvent, genai::Error>>),
    /// It is so large that putting it together takes all of the time.
    Endless,
    /// It did not become whole.
    Late,
}

enum State {
    /// It is to be sent.
    Ready,
    /// It was refused for now.
    Waiting(Instant),
    /// It is being answered.
    Open { stream: Box<ChatStream>, reader: Box<dyn Reader>, begun: bool },
    /// It failed, which is told when all that came before is.
    Failed(AgentError),
    /// Nothing follows.
    Over,
}

/// Frames as they came, until they are read. The library calls it while it is polled.
#[derive(Default)]
struct Frames(Mutex<Inbox>);

#[derive(Default)]
struct Inbox {
    waiting: VecDeque<String>,
    bytes: usize,
    /// How many came, those that say nothing too.
    count: u64,
}

impl Frames {
    fn take(&self) -> (VecDeque<String>, usize) {
        let mut inbox = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut inbox.waiting), inbox.bytes)
    }

    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Inbox::default();
    }
}

/// What the library is given, so that it owns nothing that needs to be shown.
struct Sink(Arc<Frames>);

impl ChatFrameSink for Sink {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut inbox = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.count += 1;
        inbox.bytes = inbox.bytes.saturating_add(frame.data.len());
        if inbox.bytes <= MOST && !frame.data.is_empty() {
            inbox.waiting.push_back(frame.data.to_owned());
        }
    }
}

impl RemoteStream {
    pub(super) fn new(
        remote: Arc<Remote>,
        request: ChatRequest,
        options: ChatOptions,
        cancel: CancellationToken,
    ) -> Self {
        let frames = Arc::new(Frames::default());
        let options = options.with_raw_frame_sink(Sink(Arc::clone(&frames)));
        let (state, out) = (State::Ready, Events::new());
        Self {
            remote,
            request,
            options,
            cancel,
            frames,
            state,
            out,
            attempt: 0,
            told: false,
            heard: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    async fn step(&mut self) -> Option<Result<ModelEvent, AgentError>> {
        loop {
            if let Some(event) = self.out.pop_front() {
                match event {
                    ModelEvent::Done(_) => self.state = State::Over,
                    ModelEvent::Retry { .. } => {}
                    _ => self.told = true,
                }
                return Some(Ok(event));
            }
            let done = match &self.state {
                State::Over => return None,
                State::Failed(error) => {
                    let error = error.clone();
                    self.state = State::Over;
                    return Some(Err(error));
                }
                State::Ready => self.send().await,
                State::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.state = State::Ready;
                    Ok(())
                }
                State::Open { .. } => self.read().await,
            };
            if let Err(failure) = done {
                self.again(failure);
            }
        }
    }

    async fn send(&mut self) -> Result<(), Failure> {
        let lasting = |error| Failure { error, passing: false, retry_after: None };
        let client = self.remote.client().await.map_err(lasting)?;
        self.frames.clear();
        let target = self.remote.service_target();
        let mut sending = pin!(client.exec_chat_stream(target, self.request.clone(), Some(&self.options)));
        let sent = poll_fn(|context| quietly(|| sending.as_mut().poll(context))).await;
        self.attempt += 1;
        let stream = sent.map_err(|error| of_library(&self.remote.target, &error, false))?.stream;
        let wire = self.remote.target.service.wire;
        let reader = reader(wire, tag(&self.remote.target));
        self.state = State::Open { stream: Box::new(stream), reader, begun: false };
        (self.heard, self.spent) = (Instant::now(), Duration::ZERO);
        Ok(())
    }

    /// Waits for the next event. The library bounds neither how long nor how large one becomes.
    async fn hear(&mut self) -> Heard {
        let State::Open { stream, .. } = &mut self.state else { return Heard::Item(None) };
        let Patience { silence, reading, .. } = self.remote.patience();
        let (frames, heard, spent) = (&self.frames, &mut self.heard, &mut self.spent);
        loop {
            let count = frames.count();
            let until = *heard + silence * 2;
            let polled = poll_fn(|context| {
                let begun = Instant::now();
                let polled = quietly(|| Pin::new(&mut **stream).poll_next(context));
                *spent += begun.elapsed();
                match polled {
                    Poll::Ready(item) => Poll::Ready(Some(Heard::Item(item))),
                    // A service that is silent on purpose sends events that say nothing.
                    Poll::Pending if frames.count() != count => Poll::Ready(None),
                    Poll::Pending if *spent > reading => Poll::Ready(Some(Heard::Endless)),
                    Poll::Pending => Poll::Pending,
                }
            });
            let polled = timeout_at(until, polled).await.unwrap_or(Some(Heard::Late));
            if frames.count() != count {
                (*heard, *spent) = (Instant::now(), Duration::ZERO);
            }
            if let Some(heard) = polled {
                return heard;
            }
        }
    }

    async fn read(&mut self) -> Result<(), Failure> {
        let item = match self.hear().await {
            Heard::Item(item) => item,
            Heard::Endless => return Err(of_endless(&self.remote.target)),
            Heard::Late => return Err(of_late(&self.remote.target)),
        };
        let State::Open { reader, begun, .. } = &mut self.state else {
            return Ok(());
        };
        let target = &self.remote.target;
        let (frames, bytes) = self.frames.take();
        if bytes > MOST {
            return Err(of_flood(target, MOST));
        }
        *begun |= !frames.is_empty();
        for frame in frames {
            let answer = reader.frame(&frame, &mut self.out).map_err(|fault| of_read(target, fault))?;
            if let Some(answer) = answer {
                self.out.push_back(ModelEvent::Done(answer));
                return Ok(());
            }
        }
        let answer = match item {
            Some(Ok(event)) => reader.event(event, &mut self.out).map_err(|fault| of_read(target, fault))?,
            // What comes after a marked end is missed by nobody.
            Some(Err(error)) => Some(reader.end().ok_or_else(|| of_library(target, &error, *begun))?),
            None => Some(reader.end().ok_or_else(|| of_cut(target))?),
        };
        if let Some(answer) = answer {
            self.out.push_back(ModelEvent::Done(answer));
        }
        Ok(())
    }

    /// Sends it again after a while, where that may help and nothing of an answer was told.
    fn again(&mut self, failure: Failure) {
        let patience = self.remote.patience();
        let told = self.told || !self.out.is_empty();
        let delay = failure.retry_after.unwrap_or_else(|| self.delay());
        let again =
            failure.passing && !told && self.attempt < patience.attempts && delay <= patience.longest_delay;
        if !again {
            self.state = State::Failed(failure.error);
            return;
        }
        let reason = failure.error.to_string();
        self.out.push_back(ModelEvent::Retry { attempt: self.attempt, delay, reason });
        self.state = State::Waiting(Instant::now() + delay);
    }

    /// Twice as long each time, less a random part, so that many do not come back together.
    fn delay(&self) -> Duration {
        let patience = self.remote.patience();
        let doubled = 1_u32.checked_shl(self.attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let whole = patience.first_delay.saturating_mul(doubled).min(patience.longest_delay);
        let mut random = [0_u8; 1];
        // Without randomness the wait is as long as it may be.
        let part = getrandom::fill(&mut random).map_or(0, |()| u32::from(random[0]));
        whole.saturating_sub(whole / 4 * part / 256)
    }
}

/// The library logs what services write, and warns of what is as it should be.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    tracing::dispatcher::with_default(&Dispatch::none(), work)
}

impl ModelStream for RemoteStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, AgentError>>> {
        Box::pin(async move {
            let cancel = self.cancel.clone();
            let stepped = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                stepped = self.step() => Some(stepped),
            };
            stepped.unwrap_or_else(|| {
                self.state = State::Over;
                self.out.clear();
                None
            })
        })
    }
}
