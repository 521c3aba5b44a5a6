//! The user's side in the tests: sends texts, and puts together what comes.

use std::collections::HashMap;
use std::io;

use toolway_secret::Secret;
use toolway_transport::{
    HttpConfig, HttpTransport, Inbound, Members, Outbound, Payload, SseTransport, StreamId, Transport,
};
use toolway_wire::{Scanner, Verdict};

use crate::server::Server;

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
pub(crate) const TOKEN: &str = "tok-s3cret-0123456789";

/// What the user gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Message(String),
    Failed { ids: Vec<String>, code: i64, text: String, data: Option<String> },
    Aborted,
    Ready,
    Closed,
}

pub(crate) struct Client<T> {
    pub(crate) transport: T,
    unfinished: HashMap<StreamId, Vec<u8>>,
}

/// A configuration for the path `/mcp` of the server.
pub(crate) fn config(server: &Server) -> io::Result<HttpConfig> {
    let url = format!("{}/mcp?key=hidden", server.origin);
    let mut config = HttpConfig::new(&url).map_err(io::Error::other)?;
    config.connector = server.connector.clone();
    config.headers = vec![
        ("Authorization".to_owned(), Secret::new(format!("Bearer {TOKEN}"))),
        ("X-Team".to_owned(), Secret::new("blue")),
    ];
    Ok(config)
}

pub(crate) fn outbound(text: &str) -> io::Result<Outbound> {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    let members = match scanner.finish() {
        Verdict::Message(envelope) => Members::One(envelope.clone()),
        Verdict::Batch { members, .. } => Members::Batch(members.to_vec()),
        other => return Err(io::Error::other(format!("{other:?}"))),
    };
    Ok(Outbound { payload: Payload::Bytes(text.to_owned().into()), members })
}

impl Client<HttpTransport> {
    pub(crate) fn http(server: &Server) -> io::Result<Self> {
        Self::with(&config(server)?)
    }

    pub(crate) fn with(config: &HttpConfig) -> io::Result<Self> {
        Ok(Self::over(HttpTransport::new(config).map_err(io::Error::other)?))
    }

    /// Through the handshake: session `S1`, no stream of the server's own.
    pub(crate) async fn started(server: &mut Server) -> io::Result<Self> {
        let mut client = Self::http(server)?;
        client.start(server, "S1").await?;
        Ok(client)
    }

    pub(crate) async fn start(&mut self, server: &mut Server, session: &str) -> io::Result<()> {
        self.send(INITIALIZE)?;
        let request = server.next().await;
        answer_initialize(&request, session).await;
        self.next().await;
        self.send(INITIALIZED)?;
        server.next().await.accepted().await;
        server.next().await.answer("405 Method Not Allowed", "", "").await;
        Ok(())
    }
}

pub(crate) async fn answer_initialize(request: &crate::server::Request, session: &str) {
    let headers = format!("content-type: application/json\r\nmcp-session-id: {session}\r\n");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"protocolVersion":"2025-06-18","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#,
        request.id()
    );
    request.answer("200 OK", &headers, &body).await;
}

impl Client<SseTransport> {
    pub(crate) fn sse(config: &HttpConfig) -> io::Result<Self> {
        Ok(Self::over(SseTransport::new(config).map_err(io::Error::other)?))
    }
}

impl<T: Transport> Client<T> {
    pub(crate) fn over(transport: T) -> Self {
        Self { transport, unfinished: HashMap::new() }
    }

    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.transport.send(outbound(text)?).map_err(io::Error::other)
    }

    pub(crate) fn call(&mut self, id: u32) -> io::Result<()> {
        self.send(&call(id))
    }

    /// The next whole message or other event.
    pub(crate) async fn next(&mut self) -> Got {
        loop {
            let Some(event) = self.transport.receive().await else { return Got::Closed };
            match event {
                Inbound::Data { stream, bytes } => {
                    assert!(!bytes.is_empty(), "pieces are never empty");
                    self.unfinished.entry(stream).or_default().extend_from_slice(&bytes);
                }
                Inbound::End { stream } => {
                    let bytes = self.unfinished.remove(&stream).unwrap_or_default();
                    return Got::Message(String::from_utf8_lossy(&bytes).into_owned());
                }
                Inbound::Abort { stream } => {
                    self.unfinished.remove(&stream);
                    return Got::Aborted;
                }
                Inbound::Failed { ids, failure } => {
                    let ids = ids.iter().map(|id| String::from_utf8_lossy(id.raw()).into_owned()).collect();
                    return Got::Failed {
                        ids,
                        code: failure.code,
                        text: failure.message,
                        data: failure.data,
                    };
                }
                Inbound::Ready => return Got::Ready,
                Inbound::Closed { .. } => return Got::Closed,
            }
        }
    }

    /// The text of a failure for exactly these requests; anything else is given back as an error.
    pub(crate) async fn failure(&mut self, expected: &[&str]) -> io::Result<String> {
        match self.next().await {
            Got::Failed { ids, code: -32000, text, data } if ids == expected => {
                let shown = format!("{text} {data:?}");
                assert!(!shown.contains("hidden") && !shown.contains(TOKEN), "leaks: {shown}");
                Ok(text)
            }
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }
}

pub(crate) fn call(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{}}}}}}"#)
}

pub(crate) fn result(id: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#)
}

pub(crate) fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}
