//! Owns one provider turn: what it was asked, the message that it builds, what waits to be read by the host. It knows no
//! agent.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::gate::Gate;
use crate::agent_port::Usage;
use crate::host_port::{AssistantBlock, AssistantMessage, StopReason, ToolCall, TurnEvent, TurnRequest};

/// How many events of a turn may wait for a host that does not read.
const UNREAD: usize = 64;

/// A turn, as the host sees it: a stream of events that ends with [`TurnEvent::End`]. Dropping it gives the turn up.
#[derive(Debug)]
pub struct Turn {
    events: mpsc::Receiver<TurnEvent>,
    ended: bool,
}

impl Turn {
    /// The next event; `None` after the end.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        if self.ended {
            return None;
        }
        let event = self.events.recv().await.unwrap_or_else(|| {
            TurnEvent::End(AssistantMessage {
                content: Vec::new(),
                stop: StopReason::Aborted("the session is closed".to_owned()),
                usage: Usage::default(),
            })
        });
        self.ended = matches!(event, TurnEvent::End(_));
        Some(event)
    }

    /// Reads on to the end, for hosts that show only whole messages.
    pub async fn message(mut self) -> AssistantMessage {
        loop {
            if let Some(TurnEvent::End(message)) = self.next().await {
                return message;
            }
        }
    }
}

/// A turn, as the coordinator sees it.
#[derive(Debug)]
pub(super) struct OpenTurn {
    pub(super) request: TurnRequest,
    sender: mpsc::Sender<TurnEvent>,
    /// A place for the last event, which a host gets whatever it did not read in time.
    last: Option<mpsc::OwnedPermit<TurnEvent>>,
    unsent: VecDeque<TurnEvent>,
    message: AssistantMessage,
    ended: bool,
    abort: Watch,
    gate: Arc<Gate>,
}

/// A turn and its stream.
pub(super) fn open(request: TurnRequest, gate: Arc<Gate>) -> (OpenTurn, Turn) {
    gate.turn_asked();
    let (sender, events) = mpsc::channel(UNREAD + 1);
    let last = sender.clone().try_reserve_owned().ok();
    let abort = Watch::new(&request.abort);
    let message = AssistantMessage { content: Vec::new(), stop: StopReason::Stop, usage: Usage::default() };
    let open =
        OpenTurn { request, sender, last, unsent: VecDeque::new(), message, ended: false, abort, gate };
    (open, Turn { events, ended: false })
}

impl OpenTurn {
    /// More text.
    pub(super) fn text(&mut self, text: String) {
        if let Some(AssistantBlock::Text(last)) = self.message.content.last_mut() {
            last.push_str(&text);
        } else {
            self.message.content.push(AssistantBlock::Text(text.clone()));
        }
        self.unsent.push_back(TurnEvent::Text(text));
    }

    /// More thinking.
    pub(super) fn thinking(&mut self, text: String) {
        if let Some(AssistantBlock::Thinking(last)) = self.message.content.last_mut() {
            last.push_str(&text);
        } else {
            self.message.content.push(AssistantBlock::Thinking(text.clone()));
        }
        self.unsent.push_back(TurnEvent::Thinking(text));
    }

    /// The calls with which the turn ends: stop reason tool use.
    pub(super) fn calls(&mut self, calls: Vec<ToolCall>) {
        for call in calls {
            let index = self.message.content.len();
            self.unsent.extend([
                TurnEvent::ToolCallStart { index, id: call.id.clone(), name: call.name.clone() },
                TurnEvent::ToolCallDelta { index, json: call.arguments.text().to_owned() },
                TurnEvent::ToolCallEnd { index, call: call.clone() },
            ]);
            self.message.content.push(AssistantBlock::ToolCall(call));
        }
        self.end(StopReason::ToolUse);
    }

    /// What the agent says that it used.
    pub(super) fn used(&mut self, usage: Usage) {
        self.message.usage += usage;
    }

    /// Ends it, once.
    pub(super) fn end(&mut self, stop: StopReason) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.gate.turn_ended();
        self.message.stop = stop;
        let message = AssistantMessage {
            content: std::mem::take(&mut self.message.content),
            stop: self.message.stop.clone(),
            usage: self.message.usage,
        };
        self.unsent.push_back(TurnEvent::End(message));
    }

    /// It ended; what it said may not all be read yet.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The host gave up its request, or reads no more.
    pub(super) fn is_given_up(&self) -> bool {
        self.request.abort.is_cancelled() || self.sender.is_closed()
    }

    /// Something is to be sent to the host.
    pub(super) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The way to the host.
    pub(super) fn sender(&self) -> mpsc::Sender<TurnEvent> {
        self.sender.clone()
    }

    /// Sends as much as there is room for. What is over then is told by [`Self::has_unsent`].
    pub(super) fn flush(&mut self) {
        while let Some(event) = self.unsent.pop_front() {
            if matches!(event, TurnEvent::End(_))
                && let Some(last) = self.last.take()
            {
                last.send(event);
                return;
            }
            match self.sender.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event)) => {
                    self.unsent.push_front(event);
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => {
                    self.unsent.clear();
                    return;
                }
            }
        }
    }

    /// Ready when the host gave its request up.
    pub(super) fn poll_abort(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.abort.poll(cx)
    }
}

impl Drop for OpenTurn {
    fn drop(&mut self) {
        if !self.ended {
            self.gate.turn_ended();
        }
        // What there was no room for is whole in the message of the end.
        if let (Some(end), Some(last)) = (self.unsent.pop_back(), self.last.take())
            && matches!(end, TurnEvent::End(_))
        {
            last.send(end);
        }
    }
}

/// Waits for a signal of the host. Asked again after it fired, it says so again.
pub(super) struct Watch(Option<Pin<Box<WaitForCancellationFutureOwned>>>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

impl Watch {
    pub(super) fn new(token: &CancellationToken) -> Self {
        Self(Some(Box::pin(token.clone().cancelled_owned())))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(waiting) = &mut self.0 else { return Poll::Ready(()) };
        if waiting.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.0 = None;
        Poll::Ready(())
    }
}
