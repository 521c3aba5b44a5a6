//! Owns an agent's side of the Agent Client Protocol: an editor is the client, and the agents are those of this crate,
//! on whatever runtime. Bytes come and lines go over channels; it knows no pipes and no processes.

mod asker;
mod calls;
mod greeting;
mod kept;
mod lines;
mod opening;
mod outlet;
mod prompt;
mod session;
mod settings;
mod showing;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolway_bridge::RawJson;

use self::greeting::Client;
use self::lines::{Line, Lines};
use self::outlet::Outlet;
use self::session::EditorSession;
use crate::acp::frame::{Frame, INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND, RpcError, reply};
use crate::error::AgentError;
use crate::options::AgentOptions;

/// The most sessions that are open at a time.
const SESSIONS: usize = 64;
/// The most requests that are on their way at a time.
const AT_ONCE: usize = 256;
/// How long everything has to end once the editor has gone.
const END: Duration = Duration::from_secs(6);

const PARSE: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

type Outcome = Result<Value, RpcError>;

/// What an editor is offered.
#[derive(Debug, Clone)]
pub struct EditorOptions {
    /// What agents are made with. The editor gives the folder and further servers, and is the person who is asked.
    pub agent: AgentOptions,
    /// Models that may be chosen beside the one that agents are made with.
    pub models: Vec<String>,
    /// Everything is done unasked that no rule denies.
    pub unasked: bool,
}

/// Offers agents to one editor.
#[derive(Debug)]
pub struct EditorServer {
    shared: Arc<Shared>,
    work: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    options: EditorOptions,
    client: Mutex<Client>,
    sessions: Mutex<BTreeMap<String, Arc<EditorSession>>>,
    outlet: Outlet,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EditorServer {
    /// Starts nothing. `output` takes whole lines, with their ends; once its receiver is gone, so is the editor.
    pub fn new(options: EditorOptions, output: mpsc::Sender<Bytes>) -> Self {
        let shared = Shared {
            options,
            client: Mutex::default(),
            sessions: Mutex::default(),
            outlet: Outlet::new(output),
        };
        Self { shared: Arc::new(shared), work: JoinSet::new() }
    }

    /// Serves what comes, in pieces of any size, until nothing more comes. Then what runs is cancelled, and all agents
    /// end.
    pub async fn serve(mut self, mut input: mpsc::Receiver<Bytes>) {
        let mut lines = Lines::default();
        loop {
            tokio::select! {
                biased;
                () = self.shared.outlet.closed() => break,
                Some(_) = self.work.join_next(), if !self.work.is_empty() => {}
                piece = input.recv() => match piece {
                    Some(piece) => lines.push(&piece),
                    None => break,
                },
            }
            while let Some(line) = lines.next() {
                self.line(line).await;
            }
        }
        self.end().await;
    }

    async fn end(mut self) {
        self.shared.outlet.gone();
        let sessions: Vec<_> = std::mem::take(&mut *lock(&self.shared.sessions)).into_values().collect();
        for session in &sessions {
            session.cancel();
        }
        let all = async { while self.work.join_next().await.is_some() {} };
        if timeout(END, all).await.is_err() {
            self.work.shutdown().await;
        }
        // Sessions that were being opened meanwhile, too.
        let late = std::mem::take(&mut *lock(&self.shared.sessions)).into_values();
        let mut ending: JoinSet<()> = JoinSet::new();
        for session in sessions.into_iter().chain(late) {
            ending.spawn(async move { session.agent.dispose().await });
        }
        while ending.join_next().await.is_some() {}
    }

    async fn line(&mut self, line: Line) {
        let outlet = self.shared.outlet.clone();
        let complain = async |code, text: &str| {
            let nobody = RawJson::new("null").unwrap_or_else(|_| RawJson::empty_object());
            outlet.line(reply(&nobody, Err(RpcError::new(code, text)))).await;
        };
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong => {
                let most = lines::MOST >> 20;
                return complain(INVALID_REQUEST, &format!("a message may have {most} MiB")).await;
            }
        };
        match Frame::read(&line) {
            Frame::Request { id, method, params } => self.request(id, &method, params).await,
            Frame::Notification { method, params } if method == "session/cancel" => {
                if let Ok(session) = self.shared.session(&params.tree()) {
                    session.cancel();
                }
            }
            Frame::Answer { id, outcome } => self.shared.outlet.answered(id, outcome),
            Frame::Notification { .. } => {}
            Frame::Odd => match serde_json::from_slice::<Value>(&line) {
                Err(error) => complain(PARSE, &format!("a line is no JSON: {error}")).await,
                // A complaint is not answered with another one.
                Ok(value) if value.get("error").is_some() || value.get("result").is_some() => {}
                Ok(_) => complain(INVALID_REQUEST, "a line is no message of JSON-RPC 2.0").await,
            },
        }
    }

    async fn request(&mut self, id: RawJson, method: &str, params: RawJson) {
        let shared = Arc::clone(&self.shared);
        // What the order of messages matters for is begun before the next one is read.
        let outcome = match method {
            "initialize" => {
                *lock(&shared.client) = Client::read(&params);
                Ok(greeting::answer())
            }
            "authenticate" => Ok(json!({})),
            "session/set_mode" => shared.set_mode(&params.tree()).await,
            "session/set_config_option" => shared.set_option(&params.tree()).await,
            _ if self.work.len() >= AT_ONCE => {
                Err(RpcError::new(INTERNAL, format!("{AT_ONCE} requests are on their way already")))
            }
            "session/prompt" => match shared.begin(&params) {
                Ok((session, turn, prompt)) => {
                    self.work.spawn(async move {
                        let client = *lock(&shared.client);
                        let outcome = session.prompt(prompt, turn, client, &shared).await;
                        shared.outlet.line(reply(&id, outcome)).await;
                    });
                    return;
                }
                Err(error) => Err(error),
            },
            "session/new" | "session/load" | "session/resume" | "session/list" | "session/close"
            | "session/delete" => {
                let method = method.to_owned();
                self.work.spawn(async move {
                    let outcome = shared.answer(&method, &params.tree()).await;
                    shared.outlet.line(reply(&id, outcome)).await;
                });
                return;
            }
            other => Err(RpcError::new(METHOD_NOT_FOUND, format!("{other} is not offered"))),
        };
        self.shared.outlet.line(reply(&id, outcome)).await;
    }
}

impl Shared {
    async fn answer(&self, method: &str, params: &Value) -> Outcome {
        match method {
            "session/new" => self.open(params),
            "session/load" => self.load(params, true).await,
            "session/resume" => self.load(params, false).await,
            "session/list" => kept::list(&self.options.agent, params).await,
            "session/close" => {
                let session = self.session(params)?;
                self.close(session.id()).await;
                Ok(json!({}))
            }
            _ => {
                let id = session_id(params).to_owned();
                self.close(&id).await;
                kept::delete(&self.options.agent, &id).await
            }
        }
    }

    fn session(&self, params: &Value) -> Result<Arc<EditorSession>, RpcError> {
        let id = session_id(params);
        lock(&self.sessions).get(id).cloned().ok_or_else(|| no_session(id))
    }

    fn begin(
        &self,
        params: &RawJson,
    ) -> Result<(Arc<EditorSession>, session::Turn, crate::options::Prompt), RpcError> {
        let params = params.tree();
        let session = self.session(&params)?;
        let prompt = prompt::read(&params)?;
        let turn = EditorSession::begin(&session)?;
        Ok((session, turn, prompt))
    }

    async fn close(&self, id: &str) {
        let session = lock(&self.sessions).remove(id);
        if let Some(session) = session {
            session.cancel();
            session.agent.dispose().await;
        }
    }
}

fn session_id(params: &Value) -> &str {
    params.get("sessionId").and_then(Value::as_str).unwrap_or_default()
}

fn no_session(id: &str) -> RpcError {
    RpcError::new(NOT_FOUND, format!("there is no session {id:?}"))
}

/// An error of ours, as one of the protocol. Nothing can be signed in to here, so no error asks for that: what to do is in
/// the text.
fn fault(error: &AgentError) -> RpcError {
    let code = match error {
        AgentError::Configuration(_) => INVALID_PARAMS,
        AgentError::AgentNotFound { .. } => NOT_FOUND,
        _ => INTERNAL,
    };
    RpcError::new(code, error.to_string())
}
