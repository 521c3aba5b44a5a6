//! Owns what an agent asks of us while it works: permissions, files, terminals. Each request is a task that is bounded and
//! answered once; what was refused is told. It reads no messages from the agent and writes none.

mod files;
mod terminals;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use super::calls::{Calls, OfServer};
use super::frame::{INTERNAL, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use super::options::AcpSurroundings;
use super::permission::{self, Question};
use super::process::Teller;
use super::terminal::{Terminals, Written};
use super::workspace::Workspace;
use crate::policy::{Action, USER_REFUSED};

/// Requests that are served at a time.
const AT_ONCE: usize = 64;

type Outcome = Result<Value, RpcError>;

/// A request that was served.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) id: RawJson,
    pub(super) outcome: Outcome,
    /// What the user is told about it.
    pub(super) note: Option<String>,
}

/// What happens at the desk.
#[derive(Debug)]
pub(super) enum Work {
    /// A request was served.
    Served(Served),
    /// A terminal wrote something.
    Written(Written),
}

/// Serves one session.
#[derive(Debug)]
pub(super) struct Desk {
    work: Arc<Shared>,
    running: JoinSet<Served>,
    written: mpsc::Receiver<Written>,
    /// The prompt that is being executed.
    prompt: CancellationToken,
}

/// What requests share.
struct Shared {
    session: String,
    agent: String,
    workspace: Workspace,
    terminals: Terminals,
    surroundings: AcpSurroundings,
    teller: Teller,
    /// What was allowed for this prompt by the agent's own question; it is not asked about again.
    granted: Mutex<BTreeSet<Action>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Desk {
    pub(super) fn new(
        session: &str,
        surroundings: &AcpSurroundings,
        cwd: &std::path::Path,
        teller: &Teller,
        agent: &str,
    ) -> Self {
        let (terminals, written) = Terminals::new();
        let work = Shared {
            session: session.to_owned(),
            agent: agent.to_owned(),
            workspace: Workspace::new(cwd, &surroundings.roots),
            terminals,
            surroundings: surroundings.clone(),
            teller: teller.clone(),
            granted: Mutex::default(),
        };
        Self { work: Arc::new(work), running: JoinSet::new(), written, prompt: CancellationToken::new() }
    }

    /// A prompt begins. Until it ends, questions may be asked.
    pub(super) fn begin(&mut self) {
        self.prompt = CancellationToken::new();
        self.work.granted.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The prompt is cancelled or over: questions that are open are answered so.
    pub(super) fn end_prompt(&self) {
        self.prompt.cancel();
    }

    /// Takes a request. `calls`: what is known of the calls that it may be about.
    pub(super) fn serve(&mut self, id: RawJson, method: &str, params: &RawJson, calls: Option<&Calls>) {
        let (work, prompt) = (Arc::clone(&self.work), self.prompt.clone());
        if self.running.len() >= AT_ONCE {
            let error = RpcError::new(
                INTERNAL,
                format!("{AT_ONCE} requests are being served: wait for some of them"),
            );
            self.running.spawn(async move { Served { id, outcome: Err(error), note: None } });
            return;
        }
        let about = (method == "session/request_permission").then(|| About::read(params, calls));
        let (method, params) = (method.to_owned(), params.clone());
        self.running.spawn(async move {
            let (outcome, note) = work.serve(&method, &params, about, &prompt).await;
            Served { id, outcome, note }
        });
    }

    /// So many requests wait that an agent which does not read its answers would fill the memory.
    pub(super) fn is_flooded(&self) -> bool {
        self.running.len() >= 4 * AT_ONCE
    }

    /// The next request that was served. Waits for ever when there is none.
    pub(super) async fn served(&mut self) -> Served {
        loop {
            match self.running.join_next().await {
                Some(Ok(served)) => return served,
                // A task of ours does not panic, and nobody aborts it but our own end.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// What happens next at it; requests that were served are held back while there is no room for their answers.
    pub(super) async fn next(&mut self, has_room: bool) -> Work {
        loop {
            tokio::select! {
                biased;
                Some(served) = self.running.join_next(), if has_room && !self.running.is_empty() => {
                    // A task of ours does not panic, and nobody aborts it but our own end.
                    if let Ok(served) = served {
                        return Work::Served(served);
                    }
                }
                Some(written) = self.written.recv() => return Work::Written(written),
            }
        }
    }

    /// What a terminal wrote so far.
    pub(super) fn output_of(&self, terminal: &str) -> Option<String> {
        self.work.terminals.output_of(terminal)
    }

    /// Ends all that it does.
    pub(super) async fn end(&mut self) {
        self.prompt.cancel();
        self.running.shutdown().await;
        self.work.terminals.end().await;
    }
}

/// What a question for permission is about.
struct About {
    question: Result<Question, serde_json::Error>,
    call: RawJson,
    /// It is a call of a server's tool.
    of_server: Option<OfServer>,
}

impl About {
    fn read(params: &RawJson, calls: Option<&Calls>) -> Self {
        let question: Result<Question, _> = serde_json::from_slice(params.bytes());
        let said = question.as_ref().map(|question| question.tool_call.clone());
        let said = said.unwrap_or_else(|_| RawJson::empty_object());
        let of_server = calls.and_then(|calls| calls.of_server(&said));
        let call = calls.map_or(said.clone(), |calls| calls.merged(&said));
        Self { question, call, of_server }
    }
}

fn read<T: DeserializeOwned>(params: &RawJson) -> Result<T, RpcError> {
    serde_json::from_slice(params.bytes())
        .map_err(|error| RpcError::new(INVALID_PARAMS, format!("the parameters cannot be read: {error}")))
}

impl Shared {
    async fn serve(
        &self,
        method: &str,
        params: &RawJson,
        about: Option<About>,
        prompt: &CancellationToken,
    ) -> (Outcome, Option<String>) {
        let session = params.tree().get("sessionId").and_then(Value::as_str).map(str::to_owned);
        if session.as_deref() != Some(&self.session) {
            let named = session.unwrap_or_default();
            return (Err(RpcError::new(INVALID_PARAMS, format!("there is no session {named:?} here"))), None);
        }
        let served = match (method, about) {
            ("session/request_permission", Some(about)) => match self.permit(about, prompt).await {
                Ok((answer, note)) => return (Ok(answer), note),
                Err(error) => Err(Refusal::plain(error)),
            },
            ("fs/read_text_file", _) => self.read_file(params, prompt).await,
            ("fs/write_text_file", _) => self.write_file(params, prompt).await,
            ("terminal/create", _) => self.create_terminal(params, prompt).await,
            ("terminal/output", _) => self.terminal_output(params),
            ("terminal/wait_for_exit", _) => self.wait_for_exit(params).await,
            ("terminal/kill", _) => self.kill_terminal(params).await,
            ("terminal/release", _) => self.release_terminal(params).await,
            _ => {
                Err(Refusal::plain(RpcError::new(METHOD_NOT_FOUND, format!("{method} is not offered here"))))
            }
        };
        match served {
            Ok(value) => (Ok(value), None),
            Err(refusal) => (Err(refusal.error), refusal.note),
        }
    }

    /// The answer to a question for permission, and what the user is told about it: of a refusal an agent says what it
    /// likes, and seldom why.
    async fn permit(
        &self,
        about: About,
        prompt: &CancellationToken,
    ) -> Result<(Value, Option<String>), RpcError> {
        let question = about.question.map_err(|error| {
            RpcError::new(INVALID_PARAMS, format!("the question cannot be read: {error}"))
        })?;
        let actions = match about.of_server {
            None => permission::actions(&about.call, &self.agent),
            // A program gives these itself, so that a rule has to deny what is not allowed.
            Some(OfServer::Direct { server, tool }) => vec![Action::Mcp { server, tool, explicit: true }],
            // Rules and hooks are asked where the call arrives.
            Some(OfServer::Front) => Vec::new(),
        };
        let Some(allowed) = permission::allow(&question.options) else {
            let what = described(&actions);
            let note = format!(
                "it asked to {what} and would not take a permission for one time only, so it was refused: let it ask \
                 each time in its own settings, or allow it there"
            );
            return Ok((permission::refuse(&question.options), Some(self.teller.say(&note))));
        };
        if actions.is_empty() {
            return Ok((allowed, None));
        }
        let call = about.call.tree();
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match self.ask(&text("toolCallId"), &text("kind"), &actions, prompt).await {
            None => Ok((permission::cancelled(), None)),
            Some(Ok(())) => {
                self.granted.lock().unwrap_or_else(PoisonError::into_inner).extend(actions);
                Ok((allowed, None))
            }
            Some(Err(why)) => Ok((permission::refuse(&question.options), self.refused(&actions, &why))),
        }
    }

    /// `None`: the prompt is over before there was an answer.
    async fn ask(
        &self,
        id: &str,
        tool: &str,
        actions: &[Action],
        prompt: &CancellationToken,
    ) -> Option<Result<(), String>> {
        tokio::select! {
            biased;
            () = prompt.cancelled() => None,
            verdict = self.surroundings.gate.permit(id, tool, actions, prompt) => Some(verdict),
        }
    }

    /// An action that a request itself is. It was granted by the agent's own question, or it is judged now.
    async fn judge(&self, tool: &str, action: Action, prompt: &CancellationToken) -> Result<(), Refusal> {
        let same = |granted: &Action| match (granted, &action) {
            (Action::Shell { command: one, .. }, Action::Shell { command: other, .. }) => one == other,
            (one, other) => one == other,
        };
        if self.granted.lock().unwrap_or_else(PoisonError::into_inner).iter().any(same) {
            return Ok(());
        }
        match self.ask("", tool, std::slice::from_ref(&action), prompt).await {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => {
                let note = self.refused(std::slice::from_ref(&action), &why);
                Err(Refusal { error: RpcError::new(INVALID_PARAMS, why), note })
            }
            None => Err(Refusal::plain(RpcError::new(INTERNAL, "the prompt is over"))),
        }
    }

    /// What the user is told of a refusal, unless it was their own.
    fn refused(&self, actions: &[Action], why: &str) -> Option<String> {
        let is_theirs = why.starts_with(USER_REFUSED);
        (!is_theirs).then(|| self.teller.say(&format!("it was not let {}: {why}", described(actions))))
    }

    fn path(&self, path: PathBuf) -> PathBuf {
        self.workspace.cwd().join(path)
    }
}

/// What actions do, for people.
fn described(actions: &[Action]) -> String {
    match actions {
        [] => "call a tool of a server".to_owned(),
        _ => actions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Why a request was not served, for the agent and, where it matters to them, for the user.
struct Refusal {
    error: RpcError,
    note: Option<String>,
}

impl Refusal {
    fn plain(error: RpcError) -> Self {
        Self { error, note: None }
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::plain(error)
    }
}
