//! Owns the client of a self-test: a legacy session over a real socket, one request at a time, each with a deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use toolway_transport::{
    HttpConfig, HttpTransport, Inbound, Members, Outbound, Payload, StreamId, Transport as _,
};
use toolway_wire::find::{Step, find, string};
use toolway_wire::{Id, Kind, Scanner, Verdict};

use crate::run::Run;

/// A session with a run's server.
#[derive(Debug)]
pub(super) struct Client {
    transport: HttpTransport,
    scanner: Scanner,
    partial: BTreeMap<StreamId, Vec<u8>>,
    deadline: Duration,
    last: u64,
}

impl Client {
    /// Introduces itself; gives the server's name as well. Errors are fragments without the endpoint.
    pub(super) async fn connect(run: &Run) -> Result<(Self, String), String> {
        let hidden = |_| "the endpoint is no URL".to_owned();
        let deadline = run.deadlines().connect;
        let mut config = HttpConfig::new(run.server().url.expose()).map_err(hidden)?;
        config.timeout = deadline;
        config.advice = false;
        config.secret = true;
        let transport = HttpTransport::new(&config).map_err(hidden)?;
        let mut client =
            Self { transport, scanner: Scanner::new(), partial: BTreeMap::new(), deadline, last: 0 };
        let params = concat!(
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"toolway-self-test","version":""#,
            env!("CARGO_PKG_VERSION"),
            r#""}}"#
        );
        let answer = client.ask("initialize", params).await?;
        let name = find(&answer, &[Step::Key("result"), Step::Key("serverInfo"), Step::Key("name")]);
        let name = name.and_then(|at| string(&answer, at)).ok_or("the server does not say its name")?;
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned())?;
        Ok((client, name))
    }

    /// One request, one answer with a result.
    pub(super) async fn ask(&mut self, method: &str, params: &str) -> Result<Bytes, String> {
        self.last += 1;
        let id = Id::from_number(self.last);
        self.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"{method}\",\"params\":{params}}}",
            self.last
        ))?;
        let until = Instant::now() + self.deadline;
        loop {
            let Ok(inbound) = timeout_at(until, self.transport.receive()).await else {
                return Err(format!("no answer to {method} within {} ms", self.deadline.as_millis()));
            };
            match inbound {
                Some(Inbound::Data { stream, bytes }) => {
                    self.partial.entry(stream).or_default().extend_from_slice(&bytes);
                }
                Some(Inbound::Abort { stream }) => drop(self.partial.remove(&stream)),
                Some(Inbound::Failed { ids, failure }) if ids.contains(&id) => {
                    return Err(format!("{method} failed with code {}", failure.code));
                }
                Some(Inbound::End { stream }) => {
                    let message = Bytes::from(self.partial.remove(&stream).unwrap_or_default());
                    if let Some(answer) = self.answer(&id, method, message) {
                        return answer;
                    }
                }
                Some(Inbound::Failed { .. } | Inbound::Ready) => {}
                Some(Inbound::Closed { .. }) | None => {
                    return Err(format!("the connection was lost before {method} was answered"));
                }
            }
        }
    }

    /// The answer to that request, if the message is it.
    fn answer(&mut self, id: &Id, method: &str, message: Bytes) -> Option<Result<Bytes, String>> {
        let Verdict::Message(envelope) = self.scanner.whole(&message) else { return None };
        if envelope.id() != Some(id) {
            return None;
        }
        match envelope.kind() {
            Kind::Response => Some(Ok(message)),
            Kind::ErrorResponse => {
                let code = find(&message, &[Step::Key("error"), Step::Key("code")]);
                let code = code.and_then(|at| std::str::from_utf8(message.get(at)?).ok()).unwrap_or("?");
                Some(Err(format!("{method} was answered with the error {code}")))
            }
            _ => None,
        }
    }

    fn send(&mut self, message: String) -> Result<(), String> {
        let Verdict::Message(envelope) = self.scanner.whole(message.as_bytes()) else {
            return Err("a message of the self-test is none".to_owned());
        };
        let members = Members::One(envelope.clone());
        let outbound = Outbound { payload: Payload::Bytes(message.into()), members };
        self.transport.send(outbound).map_err(|error| error.to_string())
    }

    /// Ends the session in good order.
    pub(super) async fn close(mut self) {
        self.transport.close().await;
    }
}
