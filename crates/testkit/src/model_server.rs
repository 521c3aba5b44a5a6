//! A scripted model on 127.0.0.1, for agents of any kind. It speaks, by the path of the request, `OpenAI`'s chat
//! completions (`/v1/chat/completions`) and responses (`/v1/responses`), Anthropic's messages (`/v1/messages`), Gemini
//! (`/v1beta/models/NAME:streamGenerateContent`) and Ollama (`/api/chat`), as a stream and, where the request wants it,
//! in one piece; and it lists one model under `/v1/models`. It judges nothing: it answers as the script says and keeps
//! what it was asked. The form of a script is told at [`ModelScript`].

mod asked;
mod script;
mod wire;

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use self::asked::Asked;
use self::script::{Chosen, Script};
pub use self::script::{ModelReply, ModelScript};
use self::wire::{Protocol, Sent, answer};
use crate::fake::request::Request;
use crate::journal::Journal;

/// A request that the model got.
#[derive(Debug, Clone)]
pub struct ModelExchange {
    /// `POST`.
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; null when it is no JSON.
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl ModelExchange {
    /// A header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Names of the tools that it offers.
    pub fn tools(&self) -> Vec<String> {
        Asked::of(&self.body).tools
    }

    /// What stands at its end: texts of the user and results of tools since the model last spoke.
    pub fn last(&self) -> String {
        Asked::of(&self.body).last()
    }

    /// The results of tools since the model last spoke.
    pub fn results(&self) -> Vec<String> {
        Asked::of(&self.body).results
    }

    /// The instructions before the conversation.
    pub fn system(&self) -> String {
        Asked::of(&self.body).system
    }
}

/// The server. Dropped, it closes its port and every connection.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    journal: Journal,
    asked: Mutex<Vec<ModelExchange>>,
    more: Condvar,
    connections: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelServer {
    /// Starts it on a free port.
    pub fn start(script: ModelScript) -> Result<Self> {
        Self::start_at(script, 0, Journal::default())
    }

    /// Starts it on a port (0: a free one), with a journal of its requests.
    pub fn start_at(script: ModelScript, port: u16, journal: Journal) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).context("the port cannot be had")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Mutex::new(Script::new(script)),
            journal,
            asked: Mutex::default(),
            more: Condvar::new(),
            connections: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if serving.over.load(Ordering::Acquire) {
                    break;
                }
                if let Ok(connection) = connection {
                    serve(&serving, connection);
                }
            }
        });
        Ok(Self { address, shared })
    }

    /// One that gives these replies, one after another.
    pub fn replies(replies: impl IntoIterator<Item = ModelReply>) -> Result<Self> {
        Self::start(ModelScript::replies(replies))
    }

    /// `http://127.0.0.1:PORT`.
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL as clients of `OpenAI` and Anthropic take it: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.root())
    }

    /// All requests so far but those for the list of models.
    pub fn requests(&self) -> Vec<ModelExchange> {
        lock(&self.shared.asked).clone()
    }

    /// Waits until it has had that many requests.
    pub fn wait_for_requests(&self, count: usize, within: Duration) -> Result<Vec<ModelExchange>> {
        let until = Instant::now() + within;
        let mut asked = lock(&self.shared.asked);
        while asked.len() < count {
            let left = until.saturating_duration_since(Instant::now());
            ensure!(!left.is_zero(), "the model got {} requests of {count}", asked.len());
            asked = self.shared.more.wait_timeout(asked, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(asked.clone())
    }

    /// Adds a reply to those that are given one after another.
    pub fn then(&self, reply: ModelReply) {
        lock(&self.shared.script).then(reply);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        for connection in lock(&self.shared.connections).drain(..) {
            // One that is gone already is as good as closed.
            connection.shutdown(Shutdown::Both).unwrap_or_default();
        }
        // Wakes the thread that waits for connections.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(shared: &Arc<Shared>, connection: TcpStream) {
    let Ok(kept) = connection.try_clone() else {
        return;
    };
    lock(&shared.connections).push(kept);
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        // A connection that breaks is the client's affair, or the script's.
        converse(&shared, &connection).unwrap_or_default();
        connection.shutdown(Shutdown::Both).unwrap_or_default();
        let gone = connection.peer_addr().ok();
        lock(&shared.connections)
            .retain(|known| known.peer_addr().ok().is_some_and(|peer| Some(peer) != gone));
    });
}

fn converse(shared: &Shared, connection: &TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let mut input = BufReader::new(connection.try_clone()?);
    while let Some(request) = Request::read(&mut input)? {
        let path = request.path().0.to_owned();
        if request.verb == "GET" && path.ends_with("/models") {
            let list = json!({ "object": "list", "data": [{ "id": "scripted", "object": "model", "owned_by": "test" }] });
            plain(connection, 200, &[], &list)?;
            continue;
        }
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let exchange = ModelExchange { method: request.verb, path, headers: request.headers, body, text };
        shared.journal.event(
            "request",
            json!({ "method": exchange.method, "path": exchange.path, "headers": exchange.headers, "body": exchange.body }),
        );
        let Some(protocol) = Protocol::of(&exchange.path) else {
            let error =
                json!({ "error": { "message": "there is nothing at this path", "type": "not_found" } });
            plain(connection, 404, &[], &error)?;
            continue;
        };
        let asked = Asked::of(&exchange.body);
        let streams = protocol.streams(&exchange.path, &exchange.body);
        let model = protocol.model(&exchange.path, &exchange.body);
        lock(&shared.asked).push(exchange);
        shared.more.notify_all();
        let Chosen { reply, number } = lock(&shared.script).choose(&asked);
        if let Some(delay) = reply.wait {
            std::thread::park_timeout(delay);
        }
        if reply.status != 200 {
            let error = protocol.error(&reply);
            plain(connection, reply.status, &reply.headers, &error)?;
        } else if streams {
            stream(connection, protocol, &reply, &answer(protocol, &reply, number, &model))?;
        } else {
            plain(connection, 200, &reply.headers, &answer(protocol, &reply, number, &model).whole)?;
        }
    }
    Ok(())
}

fn plain(
    mut connection: &TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    let mut head = format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    head.push_str(&written(headers));
    connection.write_all(format!("{head}\r\n{body}").as_bytes())
}

fn written(headers: &[(String, String)]) -> String {
    headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect()
}

/// The events in chunks (RFC 9112), as far as the script lets them come.
fn stream(
    mut connection: &TcpStream,
    protocol: Protocol,
    reply: &ModelReply,
    answer: &Sent,
) -> io::Result<()> {
    let kind = if protocol == Protocol::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    let mut head = format!("HTTP/1.1 200 Scripted\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n");
    head.push_str(&written(&reply.headers));
    connection.write_all(format!("{head}\r\n").as_bytes())?;
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let at = |place: &Option<script::Place>| {
        place.as_ref().map(|place| place.among(answer.events.len(), answer.tail))
    };
    let (cut, stall, malformed) = (at(&reply.cut), at(&reply.stall), at(&reply.malformed));
    let piece = reply.text.last().map(|piece| Value::from(piece.as_str()).to_string()).unwrap_or_default();
    let repeated = answer.events.iter().position(|event| event.contains(&piece)).unwrap_or_default();
    let endless = reply.endless.then_some(repeated);
    for place in 0..=answer.events.len() {
        if malformed == Some(place) {
            connection.write_all(chunk("data: {\"choices\": [oops\n\n").as_bytes())?;
        }
        if cut == Some(place) {
            if reply.clean {
                connection.write_all(b"0\r\n\r\n")?;
                return Ok(());
            }
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if stall == Some(place) {
            let mut rest = Vec::new();
            connection.read_to_end(&mut rest)?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if endless == Some(place) {
            let event = answer.events.get(place).cloned().unwrap_or_default();
            loop {
                connection.write_all(chunk(&event).as_bytes())?;
                std::thread::park_timeout(Duration::from_millis(1));
            }
        }
        if let Some(event) = answer.events.get(place) {
            if let Some(pause) = reply.pause {
                std::thread::park_timeout(pause);
            }
            connection.write_all(chunk(event).as_bytes())?;
        }
    }
    connection.write_all(b"0\r\n\r\n")
}

#[cfg(test)]
mod tests;
