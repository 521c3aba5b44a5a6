//! Owns questions in the middle of a call whose two sides are of different eras: a legacy server's question becomes an
//! answer `input_required` and is held open, a modern server's `input_required` becomes questions to a legacy client.
//! Specification 2026-07-28, "Multi Round-Trip Requests".

use toolway_transport::Payload;
use toolway_wire::{INVALID_PARAMS, Id, Kind, METHOD_NOT_FOUND, UPSTREAM_ERROR, error_response};

use super::call::{Flight, Origin, Question, Replies, Round, method_name};
use super::flight::FlightId;
use super::questions::OPEN_EACH;
use super::session::Asker;
use super::splice::{self, Digits};
use super::{Effect, HELD_FOR, Hub, requests::rescan};
use crate::gateway::message::{ClientMessage, Message};
use crate::gateway::translate::{self, Asked};
use crate::gateway::upstream::UpstreamId;

/// Rounds that one call may have.
const ROUNDS: u8 = 32;

impl Hub {
    /// A legacy server asks in the middle of a modern client's call: the call is answered with the question, and stays
    /// open until the client calls again.
    pub(super) fn hold(&mut self, instance: UpstreamId, id: FlightId, server_id: Id, message: &Message) {
        let method = message.envelope.method().unwrap_or_default().to_owned();
        let bytes = message.content.bytes().cloned().unwrap_or_default();
        let params = [toolway_wire::find::Step::Key("params")];
        let asked = Asked {
            key: "toolway-1".to_owned(),
            params: splice::value(&bytes, &params).map(<[u8]>::to_vec),
            method,
        };
        let Some(flight) = self.flights.get_mut(id) else { return };
        if let (Origin::Parked(_), Some(round)) = (&flight.origin, flight.round.as_deref_mut())
            && let Round::Held { more, .. } = round
        {
            if more.len() < OPEN_EACH {
                more.push((server_id, asked));
            } else {
                let text = "too many open requests to clients";
                self.note(instance, error_response(server_id.raw(), UPSTREAM_ERROR, text, None));
            }
            return;
        }
        self.put_question(instance, id, vec![(server_id, asked)]);
    }

    /// Answers a modern client's call with questions.
    fn put_question(&mut self, instance: UpstreamId, id: FlightId, questions: Vec<(Id, Asked)>) {
        let rounds = match self.flights.get(id).and_then(|flight| flight.round.as_deref()) {
            Some(Round::Held { rounds, .. }) => *rounds,
            _ => 0,
        };
        let refused = if rounds >= ROUNDS { None } else { self.held.park(id, self.now).ok() };
        let Some(state) = refused else {
            for (server_id, _) in questions {
                let text = "too many questions to the client, or too many calls that wait for their clients";
                self.note(instance, error_response(server_id.raw(), UPSTREAM_ERROR, text, None));
            }
            return;
        };
        let mut asked = Vec::new();
        let mut shown = Vec::new();
        for (index, (server_id, mut question)) in questions.into_iter().enumerate() {
            question.key = format!("toolway-{}", index + 1);
            asked.push((question.key.clone(), server_id));
            shown.push(question);
        }
        let until = self.now + HELD_FOR;
        let Some(flight) = self.flights.get_mut(id) else { return };
        let session = match &flight.origin {
            Origin::Client(asker) => asker.session,
            Origin::Parked(session) => *session,
            Origin::Hub => return,
        };
        flight.round =
            Some(Box::new(Round::Held { asked, more: Vec::new(), answer: None, rounds: rounds + 1 }));
        // The time is the client's now, and bounded by the place where the call waits.
        (flight.deadline.moved, flight.deadline.began) = (until, until);
        let before = std::mem::replace(&mut flight.origin, Origin::Parked(session));
        if let Origin::Client(asker) = before {
            let bytes = translate::input_required(asker.id.raw(), &shown, &state);
            self.answer(&asker, bytes);
        }
    }

    /// A modern client calls again with its answers; true: the call was one that is held open.
    pub(super) fn call_again(&mut self, asker: &Asker, message: &Message) -> bool {
        let Some(bytes) = message.content.bytes() else { return false };
        let Some(retry) = translate::read_retry(bytes) else { return false };
        let Some(state) = retry.request_state.as_deref() else { return false };
        let Some(id) = self.held.get(state).copied() else { return false };
        let same =
            self.flights.get(id).is_some_and(|flight| Some(&*flight.method) == message.envelope.method());
        if !same {
            self.fail(asker, INVALID_PARAMS, "invalid params: requestState belongs to another request");
            return true;
        }
        self.held.take(state);
        let now = self.now;
        let Some(flight) = self.flights.get_mut(id) else { return false };
        flight.origin = Origin::Client(asker.clone());
        (flight.deadline.moved, flight.deadline.began) = (now, now);
        let end = flight.deadline.end();
        let (Some(instance), Some(round)) = (flight.instance, flight.round.take()) else { return false };
        self.sweep_by(end);
        let Round::Held { asked, more, answer, rounds, .. } = *round else { return false };
        // An error of ours from meanwhile: the server that asked is gone.
        let gone = answer.as_ref().is_some_and(|answer| answer.envelope.id().is_none_or(Id::is_null));
        for (key, server_id) in asked.into_iter().filter(|_| !gone) {
            let response = retry.responses.iter().find(|(name, _)| *name == key).map(|(_, result)| result);
            let bytes = match response {
                Some(result) => translate::result_response(server_id.raw(), &legacy_result(result)),
                None => {
                    error_response(server_id.raw(), UPSTREAM_ERROR, "the client did not answer this", None)
                }
            };
            self.note(instance, bytes);
        }
        if let Some(flight) = self.flights.get_mut(id) {
            flight.round =
                Some(Box::new(Round::Held { asked: Vec::new(), more: Vec::new(), answer: None, rounds }));
        }
        if let Some(answer) = answer {
            if gone {
                self.fail_with_bytes(id, &answer);
            } else {
                self.pass(instance, id, answer);
            }
        } else if !more.is_empty() {
            self.put_question(instance, id, more);
        }
        true
    }

    fn fail_with_bytes(&mut self, id: FlightId, answer: &Message) {
        let Some(flight) = self.land(id) else { return };
        if let (Origin::Client(asker), Some(bytes)) = (&flight.origin, answer.content.bytes())
            && let Some(bytes) = splice::with_id(bytes, &answer.envelope, asker.id.raw())
        {
            self.answer(asker, bytes);
        }
    }

    /// The server's answer came while the client was being asked: it waits.
    pub(super) fn keep_answer(&mut self, id: FlightId, message: Message) {
        if let Some(Round::Held { answer, .. }) =
            self.flights.get_mut(id).and_then(|flight| flight.round.as_deref_mut())
        {
            *answer = Some(message);
        }
    }

    /// A client never called again.
    pub(super) fn give_up_held(&mut self, id: FlightId) {
        let Some(flight) = self.flights.get_mut(id) else { return };
        let Some(instance) = flight.instance else { return };
        if let Some(Round::Held { asked, more, .. }) = flight.round.take().map(|round| *round) {
            let asked = asked.into_iter().map(|(_, id)| id).chain(more.into_iter().map(|(id, _)| id));
            for server_id in asked {
                let text = "the client did not call again in time";
                self.note(instance, error_response(server_id.raw(), UPSTREAM_ERROR, text, None));
            }
        }
        self.tell_cancelled(instance, id, Some("the client did not call again in time"));
        self.land(id);
    }

    /// An error -32042 of a legacy server becomes questions to a modern client; true: it did. The server keeps nothing
    /// open for it: the second call is a new one.
    pub(super) fn url_round(&mut self, id: FlightId, message: &Message) -> bool {
        let Some(asked) = message.content.bytes().and_then(|bytes| translate::url_elicitations(bytes)) else {
            return false;
        };
        let able = self.flights.get(id).and_then(Flight::asker).and_then(|asker| asker.modern.as_ref());
        if !able.is_some_and(|facts| translate::declares(&facts.client.capabilities, "elicitation")) {
            return false;
        }
        let Some(flight) = self.land(id) else { return true };
        if let Origin::Client(asker) = &flight.origin {
            let bytes = translate::input_required(asker.id.raw(), &asked, "");
            self.answer(asker, bytes);
        }
        true
    }

    /// A modern server asks a legacy client: each question is a request of its own, and then the call is sent again.
    pub(super) fn ask_again(&mut self, instance: UpstreamId, id: FlightId, message: &Message) {
        let name = self.name_of(instance);
        let Some(required) = message.content.bytes().and_then(|bytes| translate::read_input_required(bytes))
        else {
            let text = format!("server {name:?} broke the protocol: input_required without anything to do");
            self.fail_flight(id, UPSTREAM_ERROR, &text);
            return;
        };
        let Some(flight) = self.flights.get_mut(id) else { return };
        let session = match &flight.origin {
            Origin::Client(asker) => asker.session,
            Origin::Parked(_) | Origin::Hub => return,
        };
        let Some(Round::Again { times, state, open, responses, .. }) = flight.round.as_deref_mut() else {
            self.fail_flight(
                id,
                UPSTREAM_ERROR,
                "the server asks in answer to a request that takes no questions",
            );
            return;
        };
        *times += 1;
        if required.asked.len() > OPEN_EACH {
            let text = format!("server {name:?} asks more than {OPEN_EACH} questions at once");
            self.fail_flight(id, UPSTREAM_ERROR, &text);
            return;
        }
        if *times > ROUNDS {
            let text = format!("server {name:?} asked {ROUNDS} times and does not come to an end");
            self.fail_flight(id, UPSTREAM_ERROR, &text);
            return;
        }
        *state = required.request_state;
        *open = required.asked.len();
        responses.clear();
        let lacking = required.asked.iter().find_map(|question| {
            let capability = translate::capability_for(&question.method);
            let able = capability.is_some_and(|capability| {
                self.sessions.get(&session).is_some_and(|state| state.declares(capability))
            });
            (!able).then(|| question.method.clone())
        });
        if let Some(method) = lacking {
            let text = format!("server {name:?} needs an answer to {method}, which this client cannot give");
            self.fail_flight(id, METHOD_NOT_FOUND, &text);
            return;
        }
        if required.asked.is_empty() {
            self.call_once_more(id);
            return;
        }
        self.pause(id);
        let about = self.client_id(id);
        for question in required.asked {
            let replies = Replies::Round { flight: id, key: question.key };
            let method = method_name(&question.method);
            let entry = Question { session, method, replies, about: Some(id) };
            let Some(ours) = self.questions.insert(entry) else { continue };
            let bytes = translate::server_request(
                Digits::of(ours.0).as_bytes(),
                &question.method,
                question.params.as_deref(),
            );
            let payload = Payload::Bytes(bytes.into());
            self.ask_client(session, ClientMessage { about: about.clone(), is_answer: false, payload });
        }
    }

    /// A legacy client has answered one of the questions of a round.
    pub(super) fn round_answer(&mut self, id: FlightId, key: &str, method: &str, message: &Message) {
        let result = [toolway_wire::find::Step::Key("result")];
        let answer =
            message.content.bytes().and_then(|bytes| splice::value(bytes, &result)).map(<[u8]>::to_vec);
        let answer = match (message.envelope.kind(), answer) {
            (Kind::Response, Some(answer)) => answer,
            // A person who refuses is an answer; a client that cannot do it ends the call.
            _ if method == "elicitation/create" => b"{\"action\":\"cancel\"}".to_vec(),
            _ => {
                let text =
                    format!("the client did not answer {method}, which the server needs for this call");
                self.withdraw_about(id);
                self.fail_flight(id, UPSTREAM_ERROR, &text);
                return;
            }
        };
        let Some(Round::Again { open, responses, .. }) =
            self.flights.get_mut(id).and_then(|flight| flight.round.as_deref_mut())
        else {
            return;
        };
        responses.push((key.to_owned(), answer));
        *open = open.saturating_sub(1);
        if *open == 0 {
            self.call_once_more(id);
        } else {
            self.pause(id);
        }
    }

    /// Sends a call again with the client's answers, under a new id.
    fn call_once_more(&mut self, id: FlightId) {
        // It stays counted in: a copy that was retired meanwhile goes on for it.
        let Some(mut flight) = self.flights.remove(id) else { return };
        let Some(instance) = flight.instance else { return };
        let Some(Round::Again { request, state, responses, .. }) = flight.round.as_deref_mut() else {
            return;
        };
        let answers: Vec<(&str, &[u8])> =
            responses.iter().map(|(key, result)| (key.as_str(), result.as_slice())).collect();
        let bytes = translate::retry(request, &answers, state.as_deref());
        flight.deadline.moved = self.now;
        let is_up = self.era(instance).is_some();
        self.sweep_by(flight.deadline.end());
        let Some(again) = self.flights.insert(flight) else { return };
        if !is_up {
            let name = self.name_of(instance);
            self.fail_flight(again, UPSTREAM_ERROR, &format!("server {name:?} is gone"));
            return;
        }
        let made = rescan(bytes.into()).and_then(|message| super::send::outbound(message, again, None, true));
        match made {
            // The token in it is the one of the first call, and not the client's.
            Some((outbound, _)) => self.effects.push(Effect::ToServer(instance, outbound)),
            None => self.fail_flight(again, UPSTREAM_ERROR, "the call could not be repeated"),
        }
    }
}

/// A modern client's answer for a legacy server: `resultType` is not known there.
fn legacy_result(result: &[u8]) -> Vec<u8> {
    translate::without_members(result, &["resultType"])
}
