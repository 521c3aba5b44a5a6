//! The fake server on 127.0.0.1: Streamable HTTP (MCP 2025-11-25, basic/transports) and legacy HTTP+SSE (2024-11-05).

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufReader};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use serde_json::json;

use super::exchange::{Exchange, wait_for_close};
use super::request::Request;
use super::sse::{SsePort, SseStream};
use super::{Fake, FakeTransport, Plan, Port, refusal};
use crate::message::Message;
use crate::script::{Step, Template, Values};

/// Who is connected, and what is remembered of them.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    opened: u64,
    sessions: BTreeSet<String>,
    streams: HashMap<String, SseStream>,
    connections: HashMap<u64, TcpStream>,
    resumable: HashMap<String, Vec<u8>>,
}

impl Peers {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self) {
        self.lock().sessions.clear();
    }

    pub(super) fn reset(&self) {
        for connection in self.lock().connections.values() {
            // One that is gone already is as good as reset.
            connection.shutdown(Shutdown::Both).unwrap_or_default();
        }
    }

    pub(super) fn keep(&self, event: &str, text: Vec<u8>) {
        self.lock().resumable.insert(event.to_owned(), text);
    }

    fn open_session(&self) -> String {
        let mut known = self.lock();
        known.opened += 1;
        let session = format!("S{}", known.opened);
        known.sessions.insert(session.clone());
        session
    }
}

pub(super) fn serve(fake: &Arc<Fake>) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", fake.config.port))?;
    let port = listener.local_addr()?.port();
    if let Some(test) = fake.config.test {
        let test = TcpStream::connect(test)?;
        fake.journal.start(&test, json!({ "role": "server", "port": port }))?;
        fake.obey(test, Box::new(Everyone(Arc::clone(fake))));
    }
    io::Write::write_all(&mut io::stderr(), format!("LISTEN {port}\n").as_bytes())?;
    for (number, connection) in (0..).zip(listener.incoming()) {
        let connection = connection?;
        connection.set_nodelay(true)?;
        let kept = connection.try_clone()?;
        fake.peers.lock().connections.insert(number, kept);
        let fake = Arc::clone(fake);
        std::thread::spawn(move || {
            // A connection that breaks is the client's affair, or the script's.
            converse(&fake, &connection).unwrap_or_default();
            fake.peers.lock().connections.remove(&number);
        });
    }
    Ok(())
}

fn converse(fake: &Arc<Fake>, connection: &TcpStream) -> io::Result<()> {
    let mut input = BufReader::new(connection.try_clone()?);
    while let Some(request) = Request::read(&mut input)? {
        let members = json!({ "verb": request.verb, "path": request.target, "headers": request.headers });
        fake.journal.bytes("request", &request.body, members);
        let mut exchange = Exchange::new(fake, connection.try_clone()?);
        if let Some(plan) = fake.plan(std::slice::from_ref(&request.verb)) {
            exchange.owed = true;
            let values = values(&request, plan.count);
            fake.run(&plan.steps, &values, &mut exchange)?;
            continue;
        }
        let legacy = fake.config.transport == FakeTransport::Sse;
        match (request.verb.as_str(), legacy) {
            ("GET", false) => get(fake, &request, exchange, connection)?,
            ("POST", false) => post(fake, &request, exchange)?,
            ("DELETE", false) => delete(fake, &request, exchange)?,
            ("GET", true) => legacy_get(fake, &request, exchange, connection)?,
            ("POST", true) => legacy_post(fake, &request, exchange)?,
            _ => exchange.plain(405, "text/plain", b"")?,
        }
    }
    Ok(())
}

fn values(request: &Request, count: u64) -> Values {
    Values {
        line: request.body.clone(),
        session: request.header("mcp-session-id").unwrap_or_default().to_owned(),
        count,
    }
}

fn post(fake: &Arc<Fake>, request: &Request, mut exchange: Exchange) -> io::Result<()> {
    if request.path().0 != fake.script.settings.path {
        return exchange.plain(404, "text/plain", b"no such path");
    }
    let text = request.body.trim_ascii();
    if text.starts_with(b"[") {
        return post_batch(fake, request, exchange);
    }
    let Ok(message) = Message::parse(text) else {
        let body = refusal(&Values::default(), -32700, "Parse error");
        return exchange.plain(400, "application/json", &body);
    };
    let settings = &fake.script.settings;
    let mut values = values(request, 1);
    if settings.session && message.method().as_deref() == Some("initialize") {
        values.session = fake.peers.open_session();
        let header = ("Mcp-Session-Id".to_owned(), values.session.clone().into());
        exchange.headers.push(header);
    } else if settings.session && !fake.peers.lock().sessions.contains(&values.session) {
        let status = if values.session.is_empty() { 400 } else { 404 };
        let body = refusal(&values, -32001, "Session not found");
        return exchange.plain(status, "application/json", &body);
    }
    let plan = fake.plan_message(&message);
    values.count = plan.count;
    exchange.owed = message.is_request();
    fake.run(&plan.steps, &values, &mut exchange)
}

fn post_batch(fake: &Arc<Fake>, request: &Request, mut exchange: Exchange) -> io::Result<()> {
    let items: Vec<&serde_json::value::RawValue> = serde_json::from_slice(&request.body)?;
    let mut answers = Vec::new();
    for item in items {
        let Ok(message) = Message::parse(item.get().as_bytes()) else {
            continue;
        };
        let Plan { steps, count } = fake.plan_message(&message);
        let mut values = values(request, count);
        values.line = item.get().as_bytes().to_vec();
        for step in steps {
            if let Step::Send(text) = step {
                answers.push(text.render(&values));
            }
        }
    }
    if answers.is_empty() {
        return exchange.finish(&Values::default());
    }
    let body = [b"[".as_slice(), &answers.join(&b','), b"]"].concat();
    exchange.plain(200, "application/json", &body)
}

fn get(
    fake: &Arc<Fake>,
    request: &Request,
    mut exchange: Exchange,
    connection: &TcpStream,
) -> io::Result<()> {
    let settings = &fake.script.settings;
    let session = values(request, 1).session;
    if !settings.get || request.path().0 != settings.path {
        return exchange.plain(405, "text/plain", b"");
    }
    if settings.session && !fake.peers.lock().sessions.contains(&session) {
        let status = if session.is_empty() { 400 } else { 404 };
        return exchange.plain(status, "text/plain", b"no such session");
    }
    let kept = request.header("last-event-id").and_then(|id| fake.peers.lock().resumable.remove(id));
    let stream = SseStream::open(connection.try_clone()?, "")?;
    if let Some(text) = kept {
        SsePort::new(stream.clone()).event("message", &Template::exact(text), &Values::default())?;
        return stream.end();
    }
    hold(fake, &session, stream, connection)
}

/// Keeps a stream open until the client closes it.
fn hold(fake: &Arc<Fake>, session: &str, stream: SseStream, connection: &TcpStream) -> io::Result<()> {
    let opened = Template::exact(b": open\n\n".as_slice());
    stream.raw(&opened, &Values::default(), 0)?;
    fake.peers.lock().streams.insert(session.to_owned(), stream);
    fake.journal.event("stream", json!({ "session": session }));
    fake.arm("stream");
    wait_for_close(connection)?;
    fake.peers.lock().streams.remove(session);
    fake.journal.event("closed", json!({ "session": session }));
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn delete(fake: &Arc<Fake>, request: &Request, mut exchange: Exchange) -> io::Result<()> {
    let session = values(request, 1).session;
    let stream = {
        let mut known = fake.peers.lock();
        known.sessions.remove(&session);
        known.streams.remove(&session)
    };
    if let Some(stream) = stream {
        stream.cut();
    }
    exchange.plain(200, "text/plain", b"")
}

fn legacy_get(
    fake: &Arc<Fake>,
    request: &Request,
    mut exchange: Exchange,
    connection: &TcpStream,
) -> io::Result<()> {
    if request.path().0 != "/sse" {
        return exchange.plain(404, "text/plain", b"no such path");
    }
    let session = fake.peers.open_session();
    let stream = SseStream::open(connection.try_clone()?, "")?;
    let usual = Template::parse("/message?sessionId={session}", false).unwrap_or_default();
    let endpoint = fake.script.settings.endpoint.as_ref().unwrap_or(&usual);
    let values = Values { session: session.clone(), ..Values::default() };
    fake.peers.lock().streams.insert(session.clone(), stream.clone());
    SsePort::new(stream.clone()).event("endpoint", endpoint, &values)?;
    hold(fake, &session, stream, connection)
}

fn legacy_post(fake: &Arc<Fake>, request: &Request, mut exchange: Exchange) -> io::Result<()> {
    let query = request.path().1;
    let mut parts = query.split('&');
    let session = parts.find_map(|part| part.strip_prefix("sessionId=")).unwrap_or_default();
    let stream = fake.peers.lock().streams.get(session).cloned();
    let Some(stream) = stream else {
        return exchange.plain(404, "text/plain", b"no such session");
    };
    let Ok(message) = Message::parse(&request.body) else {
        return exchange.plain(400, "text/plain", b"no message");
    };
    let plan = fake.plan_message(&message);
    let mut values = values(request, plan.count);
    session.clone_into(&mut values.session);
    if plan.steps.iter().any(|step| matches!(step, Step::Status(..))) {
        return fake.run(&plan.steps, &values, &mut exchange);
    }
    exchange.plain(202, "text/plain", b"Accepted")?;
    fake.start(plan, values, Box::new(SsePort::new(stream)));
    Ok(())
}

/// Writes to every open stream, as a server that speaks first does.
struct Everyone(Arc<Fake>);

impl Port for Everyone {
    fn step(&mut self, step: &Step, values: &Values) -> io::Result<()> {
        let streams: Vec<SseStream> = self.0.peers.lock().streams.values().cloned().collect();
        for stream in streams {
            SsePort::new(stream).step(step, values)?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &Values) -> io::Result<()> {
        Ok(())
    }
}
