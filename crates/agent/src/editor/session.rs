//! Owns one session of an editor: its agent, the prompt that is on its way, and that the editor is told what comes of it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::greeting::Client;
use super::showing::{self, Showing, Update};
use super::{INVALID_REQUEST, Outcome, Shared, fault, lock};
use crate::acp::frame::{INTERNAL, RpcError};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::event::{Delta, EventKind, RunStatus};
use crate::options::{AgentOptions, LocalSend, Mode, ModelChoice, Prompt, SendOptions, SendPlace};
use crate::run::{EventStream, Run, RunState};

/// What happened and was not told yet.
const WAITING: usize = 256;
/// The most characters of a session's title.
const TITLE: usize = 80;

/// A session that is open.
#[derive(Debug)]
pub(super) struct EditorSession {
    pub(super) agent: Agent,
    id: String,
    options: AgentOptions,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    mode: Mode,
    model: Option<ModelChoice>,
    /// The prompt that is on its way.
    turn: Option<CancellationToken>,
    /// What was told of servers and files.
    problems: Vec<String>,
    /// It has no title yet.
    is_new: bool,
}

/// A prompt that is on its way. Dropped, there may be another one.
#[derive(Debug)]
pub(super) struct Turn {
    session: Arc<EditorSession>,
    cancel: CancellationToken,
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.session.state).turn = None;
    }
}

impl EditorSession {
    pub(super) fn new(agent: Agent, options: AgentOptions, is_new: bool) -> Self {
        let state = State {
            mode: options.mode,
            model: options.model.clone(),
            turn: None,
            problems: Vec::new(),
            is_new,
        };
        let id = agent.id().to_string();
        Self { agent, id, options, state: Mutex::new(state) }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn mode(&self) -> Mode {
        lock(&self.state).mode
    }

    pub(super) fn set_mode(&self, mode: Mode) {
        lock(&self.state).mode = mode;
    }

    pub(super) fn model(&self) -> Option<String> {
        lock(&self.state).model.as_ref().map(|model| model.id.clone())
    }

    /// Another model, with the parameters of the first.
    pub(super) fn set_model(&self, id: &str) {
        if let Some(model) = &mut lock(&self.state).model {
            id.clone_into(&mut model.id);
        }
    }

    /// Cancels the prompt that is on its way, if there is one.
    pub(super) fn cancel(&self) {
        if let Some(turn) = &lock(&self.state).turn {
            turn.cancel();
        }
    }

    /// Begins a prompt. There is one at a time.
    pub(super) fn begin(session: &Arc<Self>) -> Result<Turn, RpcError> {
        let cancel = CancellationToken::new();
        let mut state = lock(&session.state);
        if state.turn.is_some() {
            let text = "a prompt of this session is on its way: wait for its end, or cancel it";
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        state.turn = Some(cancel.clone());
        Ok(Turn { session: Arc::clone(session), cancel })
    }

    /// Executes a prompt and tells what happens; the answer is why it ended.
    pub(super) async fn prompt(
        &self,
        prompt: Prompt,
        turn: Turn,
        client: Client,
        shared: &Shared,
    ) -> Outcome {
        let title = title(&prompt.text);
        let (sender, deltas) = mpsc::channel(WAITING);
        let run = self.send(prompt, sender).await.map_err(|error| fault(&error))?;
        if std::mem::take(&mut lock(&self.state).is_new) {
            self.entitle(&title, shared).await;
        }
        let events = run.stream().map_err(|error| fault(&error))?;
        let mut showing = Showing::new(self.options.work_machine().cwd().to_owned());
        self.tell(&run, events, deltas, &mut showing, &turn.cancel, client, shared).await;
        let state = run.wait().await.map_err(|error| fault(&error))?;
        let why = match state.status {
            RunStatus::Cancelled => "it was cancelled",
            _ => "the run ended before it",
        };
        self.updates(showing.finish(why), shared).await;
        self.ended(&state, shared).await
    }

    /// Sends the prompt. A run that a process left behind when it died is given up.
    async fn send(&self, prompt: Prompt, deltas: mpsc::Sender<Delta>) -> Result<Run, AgentError> {
        let (mode, model) = {
            let state = lock(&self.state);
            (state.mode, state.model.clone())
        };
        let options = |force: bool| SendOptions {
            model: model.clone(),
            mode: Some(mode),
            deltas: Some(deltas.clone()),
            place: SendPlace::Local(LocalSend { force, ..LocalSend::default() }),
            ..SendOptions::default()
        };
        match self.agent.send(prompt.clone(), options(false)).await {
            Err(AgentError::AgentBusy { is_alive: false, .. }) => {
                self.agent.send(prompt, options(true)).await
            }
            other => other,
        }
    }

    /// Tells everything that happens, to the end.
    #[expect(clippy::too_many_arguments, reason = "the ends of one pipe, named once")]
    async fn tell(
        &self,
        run: &Run,
        mut events: EventStream,
        mut deltas: mpsc::Receiver<Delta>,
        showing: &mut Showing,
        cancel: &CancellationToken,
        client: Client,
        shared: &Shared,
    ) {
        let mut cancelling: JoinSet<()> = JoinSet::new();
        let (mut has_events, mut has_deltas) = (true, true);
        while has_events || has_deltas {
            let due = showing.due();
            let updates = tokio::select! {
                biased;
                () = cancel.cancelled(), if cancelling.is_empty() => {
                    let run = run.clone();
                    cancelling.spawn(async move {
                        if let Err(error) = run.cancel().await {
                            tracing::warn!(%error, "a run could not be cancelled");
                        }
                        std::future::pending::<()>().await;
                    });
                    Vec::new()
                }
                event = events.next(), if has_events => if let Some(Ok(event)) = event {
                    self.event(event.kind, client)
                } else {
                    // The end, or too many wait to be read: the deltas say the same.
                    has_events = false;
                    Vec::new()
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => showing.output(),
                delta = deltas.recv(), if has_deltas => if let Some(delta) = delta {
                    showing.delta(delta, Instant::now())
                } else {
                    has_deltas = false;
                    Vec::new()
                },
            };
            self.updates(updates, shared).await;
        }
    }

    /// What is wrong with servers and files is told where it was not told before; notes about the work, each time.
    fn event(&self, event: EventKind, client: Client) -> Vec<Update> {
        let init = match event {
            EventKind::System(init) => init,
            EventKind::Task { status, text } => {
                return showing::task(status.as_deref(), text, client.notices);
            }
            _ => return Vec::new(),
        };
        let problems = showing::problems(&init);
        let news = {
            let mut state = lock(&self.state);
            let news: Vec<String> =
                problems.iter().filter(|problem| !state.problems.contains(problem)).cloned().collect();
            state.problems = problems;
            news
        };
        if news.is_empty() {
            return Vec::new();
        }
        vec![showing::aside("something is not as configured", &news.join("\n"), client.notices)]
    }

    async fn updates(&self, updates: Vec<Update>, shared: &Shared) {
        for update in updates {
            shared.outlet.update(&self.id, &update).await;
        }
    }

    /// Names a new session after its first prompt.
    async fn entitle(&self, title: &str, shared: &Shared) {
        if title.is_empty() {
            return;
        }
        let named = Agent::rename(self.agent.id(), Some(title.to_owned()), &self.options).await;
        if let Err(error) = named {
            tracing::debug!(%error, "a session has no title");
            return;
        }
        let update = json!({"sessionUpdate": "session_info_update", "title": title});
        shared.outlet.update(&self.id, &update).await;
    }

    /// Why it ended, for the editor.
    async fn ended(&self, state: &RunState, shared: &Shared) -> Outcome {
        let reason = match (state.status, &state.error) {
            (RunStatus::Finished, _) => "end_turn",
            (RunStatus::Cancelled, _) => "cancelled",
            (_, Some(error)) if error.code == "limit_reached" || error.code == "refused" => {
                let text = format!("\n\n({})", error.message);
                shared.outlet.update(&self.id, &showing::message(&text)).await;
                match error.code.as_str() {
                    "refused" => "refusal",
                    _ if error.message.contains("token") => "max_tokens",
                    _ => "max_turn_requests",
                }
            }
            (_, Some(error)) => return Err(RpcError::new(INTERNAL, error.message.clone())),
            (status, None) => return Err(RpcError::new(INTERNAL, format!("the run ended as {status:?}"))),
        };
        let mut answer = json!({"stopReason": reason});
        if let (Some(usage), Some(answer)) = (state.usage, answer.as_object_mut()) {
            let mut told = json!({
                "totalTokens": usage.total(),
                "inputTokens": usage.input,
                "outputTokens": usage.output,
                "cachedReadTokens": usage.cache_read,
                "cachedWriteTokens": usage.cache_write,
            });
            if let (Some(reasoning), Some(told)) = (usage.reasoning, told.as_object_mut()) {
                told.insert("thoughtTokens".to_owned(), Value::from(reasoning));
            }
            answer.insert("usage".to_owned(), told);
        }
        Ok(answer)
    }
}

fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).take(TITLE).collect()
}
