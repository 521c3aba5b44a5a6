//! Owns what becomes of the requests of one POST: how it is answered while they wait, and what calls a tool. JSON when all
//! answers come before anything else is to be said; events as soon as there is progress to tell, or after some patience.

use std::future::{Future as _, poll_fn};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use tokio::time::sleep;
use toolway_transport::http_server::{Accepts, Watched};
use toolway_wire::{Id, UPSTREAM_ERROR};

use super::body::Body;
use super::events::{Events, Leaving};
use super::flight::{Flight, Flights, Item, call_result};
use super::message::{self, Message, Pieces};
use super::{Server, answer};
use crate::calls::{CLIENT_CANCELLED, Origin};
use crate::run::{Began, Run};

/// Of a stream that has nothing to wait for.
const IDLE: Duration = Duration::from_secs(1);

/// What a request comes to.
#[derive(Debug)]
pub(super) enum Reply {
    /// It is answered.
    Now(Pieces),
    /// It waits.
    Later(Flight),
    /// It has no answer.
    Nothing,
}

/// Calls a tool of the run; `modern` is the server's identity in that generation.
pub(super) fn call(run: &Run, session: u64, id: &Id, message: &Message, modern: Option<&Bytes>) -> Reply {
    let Some(name) = message.envelope.name() else {
        return Reply::Now(message::error(id, toolway_wire::INVALID_PARAMS, "params.name is missing"));
    };
    let origin = Origin { session, request: id.clone() };
    match run.begin(origin, name, message.arguments(), message.progress_token()) {
        Began::Answer(ready) => Reply::Now(call_result(id, &ready, modern)),
        Began::Rejected(rejection) if rejection.reason == CLIENT_CANCELLED => Reply::Nothing,
        Began::Rejected(rejection) => Reply::Now(message::error(id, UPSTREAM_ERROR, &rejection.reason)),
        Began::Waiting(waiter) => Reply::Later(match modern {
            Some(identity) => Flight::modern(id.clone(), waiter, identity.clone()),
            None => Flight::legacy(id.clone(), waiter),
        }),
    }
}

/// What comes while requests wait.
enum Next {
    /// Something of a request.
    Item(Option<Item>),
    /// The client has waited for long enough: its answer begins.
    Stream,
    /// The client sends no more.
    Left,
}

/// The answers to one POST, as far as they are there.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) ready: Vec<Pieces>,
    pub(super) flights: Flights,
    /// They go out as an array.
    pub(super) batch: bool,
    /// The connection, where a client that leaves it gives up what waits.
    pub(super) stream: Option<Watched>,
}

impl Answers {
    /// Those of one request.
    pub(super) fn of(reply: Reply) -> Self {
        let mut answers = Self::default();
        answers.add(reply);
        answers
    }

    pub(super) fn add(&mut self, reply: Reply) {
        match reply {
            Reply::Now(answer) => self.ready.push(answer),
            Reply::Later(flight) => self.flights.push(flight),
            Reply::Nothing => {}
        }
    }

    /// The same, given up when the client leaves its connection.
    pub(super) fn while_there(mut self, stream: &Watched) -> Self {
        self.stream = (!self.flights.is_empty()).then(|| stream.clone());
        self
    }

    /// The HTTP answer. Legacy or modern, what waits goes on as its flights say when the client leaves.
    pub(super) async fn respond(mut self, server: &Server, accepts: Accepts) -> Response<Body> {
        let keep_alive = server.options.keep_alive;
        if !self.flights.is_empty() && !accepts.json {
            return self.stream(keep_alive);
        }
        let (mut waited, mut patience, mut leaving) = (false, None, None);
        while !self.flights.is_empty() {
            let (flights, stream) = (&mut self.flights, &self.stream);
            let next = poll_fn(|cx| match flights.poll(cx) {
                Poll::Ready(item) => Poll::Ready(Next::Item(item)),
                // A host in this process answers when the other tasks have had their turn: no timer is set for that.
                Poll::Pending if !waited => {
                    waited = true;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => {
                    if let Some(stream) = stream {
                        let leaving = leaving.get_or_insert_with(|| Leaving::new(stream));
                        if leaving.poll(cx).is_ready() {
                            return Poll::Ready(Next::Left);
                        }
                    }
                    if !accepts.events {
                        return Poll::Pending;
                    }
                    let patience = patience.get_or_insert_with(|| Box::pin(sleep(server.options.patience)));
                    patience.as_mut().poll(cx).map(|()| Next::Stream)
                }
            })
            .await;
            let item = match next {
                Next::Item(item) => item,
                // Nobody can tell whether it reads on: a stream finds out, and nothing else does before the answer.
                Next::Left if !accepts.events => return answer::status(StatusCode::ACCEPTED),
                Next::Left | Next::Stream => return self.stream(keep_alive),
            };
            match item {
                Some(Item::Answer(answer)) => self.ready.push(answer),
                Some(Item::Note(note)) if accepts.events => {
                    self.ready.push(vec![note]);
                    return self.stream(keep_alive);
                }
                Some(Item::Note(_) | Item::Nothing) | None => {}
            }
        }
        self.at_once(accepts)
    }

    /// The HTTP answer as events.
    fn stream(self, keep_alive: Duration) -> Response<Body> {
        answer::events(Events::new(self.ready, self.flights, keep_alive).until_left(self.stream.as_ref()))
    }

    /// The HTTP answer where nothing waits.
    pub(super) fn at_once(mut self, accepts: Accepts) -> Response<Body> {
        if self.ready.is_empty() {
            return answer::status(StatusCode::ACCEPTED);
        }
        if !accepts.json {
            return answer::events(Events::new(self.ready, Flights::default(), IDLE));
        }
        match self.ready.pop() {
            Some(only) if !self.batch => answer::message(StatusCode::OK, only),
            last => answer::batch(StatusCode::OK, self.ready.into_iter().chain(last).collect()),
        }
    }
}
