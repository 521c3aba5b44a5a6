//! Owns what the hub has done elsewhere because it may block: saving large results, reading saved ones. Runs on any
//! thread; knows no session.

use std::path::PathBuf;
use std::sync::Arc;

use toolway_guard::{Body, CallInfo, Guard, Shape};
use toolway_wire::{Envelope, Id, UPSTREAM_ERROR};

use super::Hub;
use super::call::Origin;
use super::flight::FlightId;
use super::remembered::{self, Recalled};
use super::requests::{in_memory, rescan};
use super::session::Asker;
use crate::gateway::catalogue::{Kept, Pins};
use crate::gateway::message::{Content, Message};
use crate::gateway::translate;

/// Something that may block.
#[derive(Debug)]
pub(in crate::gateway) enum Work {
    /// Save a large answer and make the one that goes to the client.
    Replace {
        flight: FlightId,
        guard: Arc<Guard>,
        envelope: Box<Envelope>,
        call: CallInfo,
        shape: Shape,
        limit: u64,
        content: Content,
    },
    /// Bring an answer that passes whole into memory.
    Load { flight: FlightId, body: Box<Body<'static>> },
    /// Call the read-back tool.
    ReadBack { flight: FlightId, guard: Arc<Guard>, id: Id, arguments: Vec<u8>, session: String },
    /// Read a saved result as a resource.
    ReadSaved { flight: FlightId, guard: Arc<Guard>, id: Id, uri: String, session: String },
    /// Add the saved results to a list of resources, a complete answer.
    ListSaved { flight: FlightId, guard: Arc<Guard>, answer: Vec<u8>, session: String },
    /// Put saved results in the place of what names them in a call's arguments.
    Follow { guard: Arc<Guard>, asker: Box<Asker>, message: Box<Message>, session: String },
    /// Look for what is remembered of a server.
    Recall { directory: PathBuf, server: usize, digest: String },
    /// Remember what a server has.
    Keep { directory: PathBuf, digest: String, kept: Box<Option<Kept>>, pins: Option<Pins> },
}

/// Work that was done.
#[derive(Debug)]
pub(in crate::gateway) enum Done {
    /// Of a request.
    Answer {
        flight: FlightId,
        /// As it would have come from the server, or for the client where no server has the request.
        answer: Result<Vec<u8>, String>,
    },
    /// A call with saved results in its arguments, or why there are none.
    Followed { asker: Box<Asker>, message: Result<Box<Message>, String> },
    /// What was remembered of a server.
    Recalled(Box<Recalled>),
    /// It is remembered, or a warning was logged.
    Kept,
}

impl Work {
    /// Does it.
    pub(in crate::gateway) fn run(self) -> Done {
        match self {
            Self::Replace { flight, guard, envelope, call, shape, limit, content } => {
                let answer = replace(&guard, &envelope, &call, shape, limit, content);
                Done::Answer { flight, answer }
            }
            Self::Load { flight, body } => Done::Answer { flight, answer: load(body) },
            Self::ReadBack { flight, guard, id, arguments, session } => {
                Done::Answer { flight, answer: Ok(guard.call_read_back(id.raw(), &arguments, &session)) }
            }
            Self::ReadSaved { flight, guard, id, uri, session } => {
                let answer = guard.read_saved_resource(id.raw(), &uri, &session);
                Done::Answer { flight, answer: answer.ok_or_else(|| format!("no saved result: {uri:?}")) }
            }
            Self::ListSaved { flight, guard, answer, session } => {
                let answer = guard.add_saved_resources(&answer, &session).unwrap_or(answer);
                Done::Answer { flight, answer: Ok(answer) }
            }
            Self::Follow { guard, asker, message, session } => {
                Done::Followed { asker, message: follow(&guard, message, &session) }
            }
            Self::Recall { directory, server, digest } => remembered::recall(directory, server, digest),
            Self::Keep { directory, digest, kept, pins } => {
                remembered::keep(directory, &digest, kept.as_ref().as_ref(), pins.as_ref())
            }
        }
    }
}

fn replace(
    guard: &Guard,
    envelope: &Envelope,
    call: &CallInfo,
    shape: Shape,
    limit: u64,
    content: Content,
) -> Result<Vec<u8>, String> {
    let mut body = match content {
        Content::Held(body) => *body,
        Content::Bytes(bytes) => {
            let replaced = guard.replace(envelope, Some(call), shape, limit, &mut Body::Memory(&bytes));
            return Ok(replaced.unwrap_or_else(|| bytes.to_vec()));
        }
    };
    match guard.replace(envelope, Some(call), shape, limit, &mut body) {
        Some(replaced) => Ok(replaced),
        None => load(Box::new(body)),
    }
}

/// An answer that passes whole after all.
fn load(body: Box<Body<'static>>) -> Result<Vec<u8>, String> {
    let message = Message { content: Content::Held(body), envelope: Envelope::default() };
    in_memory(message).map(|message| message.content.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default())
}

/// The call with saved results in the place of what names them.
fn follow(guard: &Guard, message: Box<Message>, session: &str) -> Result<Box<Message>, String> {
    let (Some(bytes), Some(tool)) = (message.content.bytes(), message.envelope.name()) else {
        return Ok(message);
    };
    match guard.follow_references(bytes, tool, session) {
        Ok(None) => Ok(message),
        Ok(Some(changed)) => {
            rescan(changed.into()).map(Box::new).ok_or_else(|| "the call could not be changed".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

impl Hub {
    /// Work has been done.
    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Answer { flight, answer } => self.worked(flight, answer),
            // Nothing is called for a client that is gone.
            Done::Followed { asker, .. } if !self.sessions.contains_key(&asker.session) => {}
            Done::Followed { asker, message: Ok(message) } => self.call_tool(*asker, *message),
            Done::Followed { asker, message: Err(reason) } => {
                self.fail(&asker, toolway_wire::INVALID_PARAMS, &reason);
            }
            Done::Recalled(recalled) => self.recalled(*recalled),
            Done::Kept => {}
        }
    }

    fn worked(&mut self, id: FlightId, answer: Result<Vec<u8>, String>) {
        // The client has given up meanwhile.
        let Some(flight) = self.flights.get(id) else { return };
        let answer = match answer {
            Ok(answer) => answer,
            Err(reason) => {
                self.fail_flight(id, UPSTREAM_ERROR, &reason);
                return;
            }
        };
        if let Some(instance) = flight.instance {
            match rescan(answer.into()) {
                Some(message) => self.pass(instance, id, message),
                None => self.fail_flight(id, UPSTREAM_ERROR, "the answer could not be held"),
            }
            return;
        }
        let Some(flight) = self.land(id) else { return };
        let Origin::Client(asker) = flight.origin else { return };
        let modern = asker.modern.is_some();
        let answer = if modern { translate::result_to_modern(&answer, &flight.method) } else { answer };
        self.answer(&asker, answer);
    }

    /// Starts work of ours for a client's request. `make` is given the flight and the client's name for saved results.
    pub(super) fn work_for(
        &mut self,
        asker: Asker,
        method: &'static str,
        make: impl FnOnce(FlightId, Arc<Guard>, Id, String) -> Work,
    ) {
        let session = self.sessions.get(&asker.session);
        let saved_as = session.map(|session| session.options.saved_as.clone()).unwrap_or_default();
        let day = tokio::time::Duration::from_hours(24);
        self.sequence += 1;
        let id = asker.id.clone();
        let flight = super::call::Flight {
            origin: Origin::Client(asker),
            instance: None,
            method: method.into(),
            tool: None,
            uri: None,
            token: None,
            deadline: super::flight::Deadline::new(day, day, self.now),
            sequence: self.sequence,
            round: None,
            answered: None,
            watched: None,
        };
        if let Some(flight) = self.take_off(flight) {
            let guard = Arc::clone(&self.config.guard);
            self.effects.push(super::Effect::Work(make(flight, guard, id, saved_as)));
        }
    }

    /// There is the tool that reads saved results.
    pub(super) fn reads_back(&self) -> bool {
        self.config.guard.config().read_back != toolway_guard::ReadBack::Off
    }

    /// The arguments of a call may name saved results.
    pub(super) fn follows(&self, message: &Message) -> bool {
        !self.config.guard.config().pass_saved.is_empty()
            && message.content.bytes().is_some_and(|bytes| memchr::memmem::find(bytes, b"toolway:").is_some())
    }

    /// Reads the saved results that a call's arguments name.
    pub(super) fn follow_references(&mut self, asker: Asker, message: Message) {
        let session = self.sessions.get(&asker.session);
        let session = session.map(|session| session.options.saved_as.clone()).unwrap_or_default();
        let guard = Arc::clone(&self.config.guard);
        let (asker, message) = (Box::new(asker), Box::new(message));
        self.effects.push(super::Effect::Work(Work::Follow { guard, asker, message, session }));
    }

    /// A call of the read-back tool.
    pub(super) fn read_back(&mut self, asker: Asker, message: &Message) {
        use toolway_wire::find::Step;
        let arguments = message
            .content
            .bytes()
            .and_then(|bytes| super::splice::value(bytes, &[Step::Key("params"), Step::Key("arguments")]))
            .unwrap_or(b"{}")
            .to_vec();
        self.work_for(asker, "tools/call", |flight, guard, id, session| Work::ReadBack {
            flight,
            guard,
            id,
            arguments,
            session,
        });
    }
}
