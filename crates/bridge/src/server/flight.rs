//! Owns requests that wait for their answers: each gives notifications, then one answer. What a client that leaves means
//! for its call is decided here.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use toolway_wire::{Id, UPSTREAM_ERROR};

use super::message::{self, Pieces};
use crate::run::{Update, Waiter};

/// What goes to the client.
#[derive(Debug)]
pub(super) enum Item {
    /// A notification that belongs to a request.
    Note(Bytes),
    /// The answer to a request.
    Answer(Pieces),
    /// The request is over, and its client wants no answer.
    Nothing,
}

type Step = dyn Future<Output = (Item, Option<Flight>)> + Send;

/// A request on its way: the next thing that it gives, and what it becomes then.
pub(super) struct Flight(Pin<Box<Step>>);

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Flight")
    }
}

impl Flight {
    pub(super) fn new(step: impl Future<Output = (Item, Option<Self>)> + Send + 'static) -> Self {
        Self(Box::pin(step))
    }

    /// A call of the legacy generation: it goes on when its client leaves.
    pub(super) fn legacy(id: Id, waiter: Waiter) -> Self {
        Self::new(Call { id, waiter, modern: None, landed: false }.step())
    }

    /// A call of the modern generation: closing the answer gives it up. The result has the server's identity.
    pub(super) fn modern(id: Id, waiter: Waiter, identity: Bytes) -> Self {
        Self::new(Call { id, waiter, modern: Some(identity), landed: false }.step())
    }
}

/// A call that waits for the host.
struct Call {
    id: Id,
    waiter: Waiter,
    /// The server's identity, in the modern generation.
    modern: Option<Bytes>,
    landed: bool,
}

impl Call {
    async fn step(mut self) -> (Item, Option<Flight>) {
        let item = match self.waiter.next().await {
            Update::Progress(params) => {
                let note = [
                    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":".as_slice(),
                    &params,
                    b"}",
                ];
                return (Item::Note(note.concat().into()), Some(Flight::new(self.next())));
            }
            Update::Result(ready) => Item::Answer(call_result(&self.id, &ready, self.modern.as_ref())),
            Update::GivenUp => Item::Nothing,
            Update::Rejected(rejection) => {
                Item::Answer(message::error(&self.id, UPSTREAM_ERROR, &rejection.reason))
            }
        };
        self.landed = true;
        (item, None)
    }

    /// The same, with a type that can be named.
    fn next(self) -> Pin<Box<Step>> {
        Box::pin(self.step())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.modern.is_some() && !self.landed {
            self.waiter.cancel("the client closed the answer");
        }
    }
}

/// The answer to `tools/call`; `modern` is the server's identity in that generation.
pub(super) fn call_result(id: &Id, ready: &Bytes, modern: Option<&Bytes>) -> Pieces {
    match modern {
        Some(identity) if ready.first() == Some(&b'{') => message::complete(id, identity, ready),
        _ => message::result(id, b"", ready, b""),
    }
}

/// The requests of one POST that wait.
#[derive(Debug, Default)]
pub(super) struct Flights(Vec<Flight>);

impl Flights {
    pub(super) fn push(&mut self, flight: Flight) {
        self.0.push(flight);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What comes next; `None`: all requests are answered.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        for at in 0..self.0.len() {
            let Some(flight) = self.0.get_mut(at) else { break };
            if let Poll::Ready((item, next)) = flight.0.as_mut().poll(cx) {
                match next {
                    Some(next) => *flight = next,
                    None => drop(self.0.swap_remove(at)),
                }
                return Poll::Ready(Some(item));
            }
        }
        if self.0.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}
