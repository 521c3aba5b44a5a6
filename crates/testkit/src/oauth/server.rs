//! The listeners: each request is routed, held at gates, struck by faults, answered and kept in the journal.

use std::collections::HashMap;
use std::io::{self, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::call::{Call, State};
use super::faults::Fault;
use super::gates::{Held, Stage};
use super::http::{Answer, Way};
use super::journal::{Endpoint, Outcome, Site};
use super::{authorize, clients, metadata, resource, token};
use crate::fake::request::Request;
use crate::journal::Journal;

/// How often it is looked whether a client is still there that waits.
const LOOK: Duration = Duration::from_millis(10);
/// Below this path stands everything once more, for redirects.
const MOVED: &str = "/moved";

/// What the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    journal: Journal,
    connections: Mutex<(u64, HashMap<u64, TcpStream>)>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(state: State, journal: Journal) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            journal,
            connections: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Changes something, and wakes whoever waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changed.notify_all();
        result
    }

    /// Waits until the state gives something.
    pub(super) fn wait<T>(&self, within: Duration, mut look: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let until = Instant::now() + within;
        let mut state = self.state();
        loop {
            if let Some(found) = look(&state) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn listen(self: &Arc<Self>, listener: TcpListener, site: Site) {
        let shared = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if shared.state().over {
                    break;
                }
                if let Ok(connection) = connection {
                    shared.serve(connection, site);
                }
            }
        });
        locked(&self.threads).push(thread);
    }

    fn serve(self: &Arc<Self>, connection: TcpStream, site: Site) {
        let Ok(kept) = connection.try_clone() else {
            return;
        };
        let number = {
            let mut connections = locked(&self.connections);
            connections.0 += 1;
            let number = connections.0;
            connections.1.insert(number, kept);
            number
        };
        let shared = Arc::clone(self);
        let thread = std::thread::spawn(move || {
            // A connection that breaks is the client's affair, or the script's.
            shared.converse(&connection, site).unwrap_or_default();
            connection.shutdown(Shutdown::Both).unwrap_or_default();
            locked(&shared.connections).1.remove(&number);
        });
        let mut threads = locked(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Ends all connections, the listeners at these addresses and their threads.
    pub(super) fn end(&self, listeners: &[SocketAddr]) {
        self.change(|state| state.over = true);
        for address in listeners {
            // Wakes the thread that waits for connections.
            drop(TcpStream::connect(address));
        }
        loop {
            for connection in locked(&self.connections).1.values() {
                // One that is gone already is as good as closed.
                connection.shutdown(Shutdown::Both).unwrap_or_default();
            }
            let threads = std::mem::take(&mut *locked(&self.threads));
            if threads.is_empty() {
                return;
            }
            for thread in threads {
                // What it had to say it has said on its standard error.
                drop(thread.join());
            }
        }
    }

    fn converse(&self, connection: &TcpStream, site: Site) -> io::Result<()> {
        connection.set_nodelay(true)?;
        let mut input = BufReader::new(connection.try_clone()?);
        while let Some(request) = Request::read(&mut input)? {
            let last = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            if !self.handle(&request, site, connection)? || last || self.state().over {
                break;
            }
        }
        Ok(())
    }

    /// Answers one request; false when the connection is done with.
    fn handle(&self, request: &Request, site: Site, connection: &TcpStream) -> io::Result<bool> {
        let (path, moved) = match request.path().0.strip_prefix(MOVED) {
            Some(path) if path.starts_with('/') => (path, true),
            _ => (request.path().0, false),
        };
        let mut state = self.state();
        let endpoint = metadata::endpoint(&state.options, (!moved).then_some(site), path);
        let mut call = Call::new(request, site, endpoint.unwrap_or(Endpoint::Elsewhere));
        if let Some(url) = clients::wanted_document(&call, &state) {
            let known = state.options.known_documents.get(&url).cloned();
            drop(state);
            let document = known.or_else(|| clients::fetch_document(&url));
            state = self.state();
            clients::take_document(&mut state, &url, &document.unwrap_or_default());
        }
        call.label(&state.vault);
        let number = call.exchange.grant.map(|grant| state.gates.count(grant)).unwrap_or_default();
        drop(state);
        if !self.pass(&call, number, Stage::BeforeProcessing, connection) {
            call.exchange.outcome = Outcome::Dropped;
            self.keep(&mut self.state(), &call);
            return Ok(false);
        }
        let mut state = self.state();
        let faults = strikes(&mut state, call.exchange.endpoint, moved);
        let mut mute = false;
        let answer = if let Some(fault) = faults.iter().find(|fault| fault.is_instead()) {
            call.exchange.outcome = Outcome::Fault(fault.name());
            mute = *fault == Fault::Mute;
            instead(fault, &state, &request.target)
        } else {
            let mut answer = process(&mut call, &mut state, path);
            for fault in &faults {
                call.exchange.spoiled.push(fault.name());
                spoil(fault, &state, &mut answer);
            }
            answer
        };
        let lost = mute || faults.contains(&Fault::Lost);
        call.exchange.status = if lost { 0 } else { answer.status };
        let skew = state.options.clock_skew_seconds;
        self.keep(&mut state, &call);
        drop(state);
        if mute {
            self.stay(connection, None, |_| true);
            return Ok(false);
        }
        if !self.pass(&call, number, Stage::BeforeAnswer, connection) || lost {
            return Ok(false);
        }
        self.send(&answer, skew, &faults, connection)
    }

    /// Sends an answer as the faults let it go; false when the connection is done with.
    fn send(&self, answer: &Answer, skew: i64, faults: &[Fault], connection: &TcpStream) -> io::Result<bool> {
        let mut way = Way::Whole;
        for fault in faults {
            match fault {
                Fault::Slow(by) => drop(self.stay(connection, Some(*by), |_| true)),
                Fault::Cut => way = Way::Cut,
                Fault::Endless => way = Way::Endless,
                Fault::Drip(apart) => {
                    answer.write(connection, skew, Way::Head)?;
                    for byte in &answer.body {
                        if !self.stay(connection, Some(*apart), |_| true) {
                            return Ok(false);
                        }
                        (&*connection).write_all(&[*byte])?;
                    }
                    return Ok(true);
                }
                _ => {}
            }
        }
        answer.write(connection, skew, way)?;
        Ok(way == Way::Whole)
    }

    fn keep(&self, state: &mut State, call: &Call) {
        self.journal.event("exchange", call.exchange.told());
        state.journal.exchanges.push(call.exchange.clone());
        self.changed.notify_all();
    }

    /// Holds the request if a gate wants that; false when its connection went away meanwhile.
    fn pass(&self, call: &Call, number: u32, stage: Stage, connection: &TcpStream) -> bool {
        let Some(grant) = call.exchange.grant else {
            return true;
        };
        let presented = call.exchange.presented.clone();
        let held = Held { number, grant, stage, presented };
        let Some(ticket) = self.change(|state| state.gates.stop(held)) else {
            return true;
        };
        let there = self.stay(connection, None, |state| state.gates.is_held(ticket));
        self.change(|state| state.gates.forget(ticket));
        there
    }

    /// Waits while that is so, for so long; false when the client went away, or all is over.
    fn stay(&self, connection: &TcpStream, long: Option<Duration>, so: impl Fn(&State) -> bool) -> bool {
        let until = long.map(|long| Instant::now() + long);
        let mut state = self.state();
        while so(&state) && until.is_none_or(|until| Instant::now() < until) {
            if state.over || is_gone(connection) {
                return false;
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        !state.over && !is_gone(connection)
    }
}

/// Whether the client has closed the connection.
fn is_gone(connection: &TcpStream) -> bool {
    if connection.set_nonblocking(true).is_err() {
        return true;
    }
    let peeked = connection.peek(&mut [0]);
    let gone = match peeked {
        Ok(count) => count == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    };
    connection.set_nonblocking(false).is_err() || gone
}

/// The faults that strike now.
fn strikes(state: &mut State, endpoint: Endpoint, moved: bool) -> Vec<Fault> {
    let rules = state.options.faults.iter_mut();
    // Where a redirect leads to there is none.
    let rules = rules.filter(|rule| {
        !moved || !matches!(rule.fault, Fault::Moved | Fault::MovedElsewhere | Fault::Redirect(_))
    });
    rules.filter_map(|rule| rule.strikes(endpoint).then(|| rule.fault.clone())).collect()
}

fn process(call: &mut Call, state: &mut State, path: &str) -> Answer {
    match call.exchange.endpoint {
        Endpoint::ResourceMetadata => {
            Answer::json(200, &metadata::of_resource(&state.options, &state.places))
        }
        Endpoint::IssuerMetadata => {
            Answer::json(200, &metadata::of_issuer(&state.options, &state.places, false))
        }
        Endpoint::OpenIdMetadata => {
            Answer::json(200, &metadata::of_issuer(&state.options, &state.places, true))
        }
        Endpoint::Authorization => authorize::authorize(call, state),
        Endpoint::Consent => authorize::consent(call, state),
        Endpoint::Token => token::token(call, state),
        Endpoint::Registration => clients::register(call, state),
        Endpoint::Revocation => token::revoke(call, state),
        Endpoint::Mcp => resource::serve(call, state),
        Endpoint::Elsewhere => {
            let hosted = state.hosted.iter().rev().find(|(known, _)| known == path);
            match hosted.filter(|_| call.exchange.site == Site::Elsewhere) {
                Some((_, document)) => Answer::json(200, document),
                None => call.refuse_page(404, "not_found", "There is nothing at this path."),
            }
        }
    }
}

/// What is answered without processing.
fn instead(fault: &Fault, state: &State, target: &str) -> Answer {
    match fault {
        Fault::Status { status, error, retry_after } => {
            let body = error.as_ref().map_or(Value::Null, |error| json!({ "error": error }));
            let answer = Answer::json(*status, &body);
            retry_after.iter().fold(answer, |answer, after| answer.with("Retry-After", after))
        }
        Fault::Html(status) => Answer::html(*status, "Nothing to see", "<h1>A page for people</h1>"),
        Fault::Moved => Answer::redirect(307, &format!("{MOVED}{target}")),
        Fault::MovedElsewhere => Answer::redirect(307, &format!("{}{MOVED}{target}", state.places.elsewhere)),
        Fault::Redirect(url) => Answer::redirect(302, &state.places.filled(url)),
        _ => Answer::empty(500),
    }
}

fn spoil(fault: &Fault, state: &State, answer: &mut Answer) {
    match fault {
        Fault::NotJson => answer.body = b"{\"oops".to_vec(),
        Fault::Huge(bytes) => {
            let mut body = vec![b' '; *bytes];
            body.append(&mut answer.body);
            answer.body = body;
        }
        Fault::Edit(members) => {
            let (Ok(Value::Object(mut body)), Value::Object(members)) =
                (serde_json::from_slice(&answer.body), members.clone())
            else {
                return;
            };
            for (name, mut value) in members {
                state.places.filled_value(&mut value);
                if value.is_null() {
                    body.remove(&name);
                } else {
                    body.insert(name, value);
                }
            }
            answer.body = Value::Object(body).to_string().into_bytes();
        }
        _ => {}
    }
}
