//! A hub that is played: it answers by the method's name, and tells the test what it saw.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolway_guard::{Guard, GuardConfig};
use toolway_transport::Payload;
use toolway_wire::{Id, Kind, error_response};

use crate::gateway::front::{HttpFront, HttpFrontConfig};
use crate::gateway::hub::ClientEvent;
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::outlet::Sink;
use crate::gateway::run::GatewayHandle;
use crate::gateway::translate::{initialize_result, negotiate, result_response};

/// Longer than anything takes that does not hang.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A running front before a played hub.
pub(super) struct Played {
    pub(super) gateway: GatewayHandle,
    pub(super) guard: Arc<Guard>,
    pub(super) port: u16,
    pub(super) end: CancellationToken,
    seen: mpsc::Receiver<String>,
    tasks: JoinSet<()>,
    _directory: tempfile::TempDir,
}

impl Played {
    /// The hub alone.
    pub(super) fn hub() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let guard = Arc::new(Guard::new(GuardConfig::new(directory.path().join("saved"))));
        let (clients, events) = mpsc::channel(16);
        let closings = Arc::new(Notify::new());
        let (tell, seen) = mpsc::channel(10_000);
        let mut tasks = JoinSet::new();
        tasks.spawn(play(events, Arc::clone(&closings), tell));
        let gateway = GatewayHandle::played(clients, closings);
        Self { gateway, guard, port: 0, end: CancellationToken::new(), seen, tasks, _directory: directory }
    }

    /// With an HTTP front on a port of its own.
    pub(super) async fn http(config: HttpFrontConfig) -> Self {
        let mut played = Self::hub();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        played.port = listener.local_addr().unwrap().port();
        let front = HttpFront::new(config, played.gateway.clone(), Arc::clone(&played.guard));
        let end = played.end.clone();
        played.tasks.spawn(async move { front.serve(listener, end).await });
        played
    }

    /// Waits until the hub has seen this.
    pub(super) async fn saw(&mut self, what: &str) {
        let waiting = async {
            while let Some(seen) = self.seen.recv().await {
                if seen == what {
                    return;
                }
            }
            panic!("the hub never saw {what}");
        };
        timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("the hub did not see {what}"));
    }

    /// Ends the front; nothing is left of it.
    pub(super) async fn stop(mut self) {
        self.end.cancel();
        let Self { gateway, mut tasks, .. } = self;
        drop(gateway);
        timeout(SOON, async { while tasks.join_next().await.is_some() {} }).await.unwrap();
        self.seen.close();
    }
}

async fn play(mut events: mpsc::Receiver<ClientEvent>, closings: Arc<Notify>, tell: mpsc::Sender<String>) {
    let mut sinks: HashMap<SessionId, Sink> = HashMap::new();
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = closings.notified() => {
                for _ in sinks.extract_if(|_, sink| sink.is_closed()) {
                    tell.send("closed".to_owned()).await.ok();
                }
                continue;
            }
        };
        match event {
            None => return,
            Some(ClientEvent::Opened { session, sink, options }) => {
                sinks.insert(session, sink);
                tell.send(format!("opened passing={}", options.passing)).await.ok();
            }
            Some(ClientEvent::Message { session, message }) => {
                let Some(sink) = sinks.get(&session) else { continue };
                let kind = message.envelope.kind();
                let name = message.envelope.method().map_or_else(|| format!("{kind:?}"), str::to_owned);
                if message.envelope.method() == Some("die") {
                    return;
                }
                if kind == Kind::Request {
                    answer(sink, &message);
                }
                tell.send(name).await.ok();
            }
            Some(ClientEvent::Batch { session, messages }) => {
                let Some(sink) = sinks.get(&session) else { continue };
                let ids: Vec<Id> =
                    messages.iter().filter_map(|message| message.envelope.id().cloned()).collect();
                let answers: Vec<String> =
                    ids.iter().map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).collect();
                if let Some(first) = ids.first() {
                    send(sink, Some(first), true, format!("[{}]", answers.join(",")));
                }
                tell.send(format!("batch of {}", messages.len())).await.ok();
            }
            Some(ClientEvent::Dropped { .. } | ClientEvent::Closed { .. }) => {}
        }
    }
}

fn send(sink: &Sink, about: Option<&Id>, is_answer: bool, text: impl Into<Vec<u8>>) {
    let payload = Payload::Bytes(text.into().into());
    sink.send(ClientMessage { about: about.cloned(), is_answer, payload });
}

/// Answers a request as its method's name says.
fn answer(sink: &Sink, message: &Message) {
    let envelope = &message.envelope;
    let (Some(id), Some(method)) = (envelope.id(), envelope.method()) else { return };
    let note = |text: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{text}"}}"#);
    let result = |result: &[u8]| result_response(id.raw(), result);
    match method {
        "initialize" if envelope.protocol_version() == Some("fail") => {
            send(sink, Some(id), true, error_response(id.raw(), -32603, "no", None));
        }
        "initialize" => {
            let version = negotiate(envelope.protocol_version());
            send(sink, Some(id), true, result(&initialize_result(version, b"{}", b"{}", None)));
        }
        "progress" => {
            send(sink, Some(id), false, note("progress/1"));
            send(sink, Some(id), false, note("progress/2"));
            send(sink, Some(id), true, result(b"{\"done\":1}"));
        }
        "begin" => send(sink, Some(id), false, note("progress/1")),
        "never" => {}
        "unknown" => send(sink, Some(id), true, error_response(id.raw(), -32601, "unknown", None)),
        "broadcast" => {
            send(sink, None, false, note("tools/list_changed"));
            send(sink, Some(id), true, result(b"{}"));
        }
        "flood" => {
            for _ in 0..5000 {
                send(sink, Some(id), false, note(&"x".repeat(2000)));
            }
            send(sink, Some(id), true, result(b"{\"after\":\"flood\"}"));
        }
        "file" => {
            let mut file = tempfile::tempfile().unwrap();
            let text = result(format!("\n{{\"text\":\"{}\"\n}}", "y".repeat(300_000)).as_bytes());
            file.write_all(&text).unwrap();
            let payload = Payload::File { file, len: text.len() as u64 };
            sink.send(ClientMessage { about: Some(id.clone()), is_answer: true, payload });
        }
        _ => {
            let len = message.content.len();
            send(
                sink,
                Some(id),
                true,
                result(format!("{{\"method\":\"{method}\",\"bytes\":{len}}}").as_bytes()),
            );
        }
    }
}
