//! Owns the turns of hosts that leave the agent to the bridge: what they ask of it, and what they are told while it
//! answers. What a turn does is the coordinator's; no agent is known here.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolway_wire::Id;

use super::agents::Agents;
use super::answers::{ModelShown, ModelsShown, TurnAborted, TurnShown, TurnStarted, TurnTold};
use super::connection::{Connection, Done, Outcome, Reply};
use super::dispatch::done;
use super::display::host_mode;
use super::fault::Fault;
use super::host::ProtocolHost;
use super::requests::{AbortTurn, Nothing, SessionEvent, StartTurn, TellSession};
use super::session::Surface;
use crate::agent_port::AgentMode;
use crate::coordinator::{Session as AgentSession, SessionOptions, Turn};
use crate::host_port::{HostEvent, StopReason, TurnEvent, TurnRequest};
use crate::prompt::{Message, MessageBody};
use crate::settings::{HostMode, Settings};

/// Turns of one session that are asked for and have not ended.
const MOST_TURNS: usize = 32;
/// Events that wait for the task. Few: what a host does not read waits at the agent.
const WAITING: usize = 16;

/// The turns of a connection.
pub(super) struct Turns {
    /// Who has the agents; none, where the host drives its own.
    pub(super) agents: Option<Arc<dyn Agents>>,
    /// The conversations that agents have, by the name of the host's session.
    sessions: BTreeMap<String, Talk>,
    last: u64,
    opened: u64,
    told: (mpsc::Sender<Told>, mpsc::Receiver<Told>),
    readers: JoinSet<()>,
}

/// What a turn says.
pub(super) struct Told {
    session: String,
    turn: u64,
    event: TurnEvent,
}

/// A conversation of a host's session with an agent.
struct Talk {
    /// What tells it from the one that the host's session had before.
    opened: u64,
    session: AgentSession,
    host: Arc<ProtocolHost>,
    made: Made,
    /// By turn, what gives it up. The last one stays after its end while the host runs its calls.
    aborts: BTreeMap<u64, CancellationToken>,
    /// The run of the agent that said something last.
    run: Option<String>,
}

/// What a conversation is made with: with anything else it is another one.
#[derive(Debug, PartialEq)]
struct Made {
    settings: Settings,
    mode: HostMode,
    own_display_tool: bool,
}

impl Turns {
    pub(super) fn new(agents: Option<Arc<dyn Agents>>) -> Self {
        Self {
            agents,
            sessions: BTreeMap::new(),
            last: 0,
            opened: 0,
            told: mpsc::channel(WAITING),
            readers: JoinSet::new(),
        }
    }

    /// What a turn says next. Dropping it loses nothing.
    pub(super) async fn told(&mut self) -> Option<Told> {
        self.told.1.recv().await
    }

    /// What was said and not yet looked at.
    pub(super) fn told_now(&mut self) -> Option<Told> {
        self.told.1.try_recv().ok()
    }

    /// The conversation of that session, while it has one.
    pub(super) fn session(&self, name: &str) -> Option<&AgentSession> {
        self.sessions.get(name).map(|talk| &talk.session)
    }

    /// The one to which a call belongs.
    pub(super) fn owner(&self, call: &crate::call::CallId) -> Option<&AgentSession> {
        let owns = |session: &&AgentSession| session.run().is_some_and(|run| run.owns(call));
        self.sessions.values().map(|talk| &talk.session).find(owns)
    }

    /// The session to which a run belongs.
    pub(super) fn session_of_run(&self, run: &str) -> Option<String> {
        let of = |talk: &Talk| talk.session.run().is_some_and(|own| own.id() == run);
        self.sessions.iter().find(|(_, talk)| of(talk)).map(|(name, _)| name.clone())
    }

    /// The run that a call of that conversation came by, unless the conversation is over.
    pub(super) fn run_of(&self, name: &str, opened: u64) -> Option<String> {
        let talk = self.sessions.get(name).filter(|talk| talk.opened == opened)?;
        talk.session.run().map(|run| run.id().to_owned()).or_else(|| talk.run.clone())
    }

    /// A session is over. What is returned ends when nothing of it is left.
    pub(super) fn close(
        &mut self,
        name: &str,
        reason: String,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let talk = self.sessions.remove(name)?;
        Some(async move { talk.session.shutdown(&reason).await })
    }

    /// How many calls of that session wait.
    pub(super) fn pending(&self, name: &str) -> usize {
        self.session(name).and_then(AgentSession::run).map_or(0, |run| run.pending())
    }
}

impl Connection {
    fn agents(&self) -> Result<&Arc<dyn Agents>, Fault> {
        self.turns.agents.as_ref().ok_or_else(|| {
            Fault::refused("this bridge has no agent: start it with --agent, or drive one by run/open")
        })
    }

    pub(super) fn start_turn(&mut self, params: StartTurn) -> Result<Reply, Fault> {
        self.agents()?;
        let name = params.session.clone();
        self.talk(&name, host_mode(params.display), &params.messages)?;
        let skills = self.session(&name)?.skills_of_agent();
        let abort = CancellationToken::new();
        let request = request(params, skills, abort.clone());
        let Turns { sessions, last, told, readers, .. } = &mut self.turns;
        let talk = sessions.get_mut(&name).ok_or_else(|| Fault::unknown("session", &name))?;
        let limit = || Fault::limit("turns", MOST_TURNS);
        if talk.aborts.len() >= MOST_TURNS {
            return Err(limit());
        }
        let turn = talk.session.try_turn(request).ok_or_else(limit)?;
        *last += 1;
        // The host goes on: what it was asked to run before is its own business now.
        talk.aborts.retain(|_, abort| !abort.is_cancelled());
        talk.aborts.insert(*last, abort);
        readers.spawn(read(turn, name, *last, told.0.clone()));
        Reply::now(TurnStarted { turn: *last })
    }

    /// The conversation of a session, as settings and host are now.
    fn talk(&mut self, name: &str, mode: HostMode, messages: &[Message]) -> Result<(), Fault> {
        let agents = Arc::clone(self.agents()?);
        let spoken = self.spoken()?.clone();
        let session = self.session(name)?;
        let Surface { settings, tools, .. } = session.surface(&spoken);
        let made = Made { settings, mode, own_display_tool: session.has_own_display_tool() };
        let goes_on = matches!(messages.last().map(Message::body), Some(MessageBody::ToolResult { .. }));
        if let Some(talk) = self.turns.sessions.get(name)
            && !talk.session.is_over()
            // What waits for results is not given up for a setting.
            && (talk.made == made || goes_on || talk.session.is_busy())
        {
            talk.host.set_tools(tools);
            return Ok(());
        }
        if let Some(over) = self.turns.close(name, "the settings of the session changed".to_owned()) {
            self.work.spawn(async move {
                over.await;
                Done { id: None, outcome: Outcome::Shutdown }
            });
        }
        self.turns.opened += 1;
        let opened = self.turns.opened;
        let host = Arc::new(ProtocolHost::new(name, opened, &self.inbox, tools));
        let options = SessionOptions {
            settings: Arc::new(made.settings.clone()),
            host_mode: Some(mode),
            own_display_tool: made.own_display_tool,
            guard: self.config.guard.clone(),
            diagnostics: spoken.diagnostics.clone(),
            // The one that is being closed still has the name alone.
            ..SessionOptions::new(&format!("{name} {opened}"), spoken.profile)
        };
        let session = agents
            .open(Arc::clone(&host) as Arc<dyn crate::host_port::HostPort>, options)
            .map_err(|error| Fault::refused(error.to_string()))?;
        let talk = Talk { opened, session, host, made, aborts: BTreeMap::new(), run: None };
        self.turns.sessions.insert(name.to_owned(), talk);
        Ok(())
    }

    /// Tools or skills of a session are others: its next agent has them. A tool that is gone is gone for this one too.
    pub(super) fn tools_of_turns(&mut self, name: &str, removed: &[String], added: &[String]) {
        let Some(talk) = self.turns.sessions.get(name) else { return };
        let (Ok(session), Some(spoken)) = (self.session(name), &self.spoken) else { return };
        talk.host.set_tools(session.surface(spoken).tools);
        if let Some(run) = talk.session.run() {
            for tool in removed {
                run.withdraw(tool);
            }
            for tool in added {
                run.restore(tool);
            }
        }
    }

    pub(super) fn abort_turn(&mut self, params: &AbortTurn) -> Result<Reply, Fault> {
        self.session(&params.session)?;
        let talk = self.turns.sessions.get(&params.session);
        let abort = talk.and_then(|talk| talk.aborts.get(&params.turn));
        let aborted = abort.is_some_and(|abort| !abort.is_cancelled());
        if let Some(abort) = abort {
            abort.cancel();
        }
        Reply::now(TurnAborted { aborted })
    }

    pub(super) fn tell_session(&mut self, params: &TellSession, id: Option<Id>) -> Result<Reply, Fault> {
        self.session(&params.session)?;
        let event = match params.event {
            SessionEvent::Compaction => HostEvent::Compaction,
            SessionEvent::TreeNavigation => HostEvent::TreeNavigation,
            SessionEvent::AgentConfiguration => HostEvent::AgentConfiguration,
            SessionEvent::AdapterReload => HostEvent::AdapterReload,
            SessionEvent::SessionShutdown => HostEvent::SessionShutdown,
        };
        let Some(session) = self.turns.session(&params.session) else { return done() };
        let told = session.try_tell(event).ok_or_else(|| Fault::limit("turns", MOST_TURNS))?;
        if matches!(params.event, SessionEvent::AdapterReload | SessionEvent::SessionShutdown) {
            // It ends by what it was told.
            self.turns.sessions.remove(&params.session);
        }
        self.work.spawn(async move {
            told.await;
            Done { id, outcome: Outcome::Answer(Ok(Box::new(super::answers::Done {}))) }
        });
        Ok(Reply::Later)
    }

    pub(super) fn list_models(&mut self, _: &Nothing, id: Option<Id>) -> Result<Reply, Fault> {
        let agents = Arc::clone(self.agents()?);
        self.work.spawn(async move {
            let models = agents.models().await.map_err(|failure| Fault::refused(failure.message));
            let shown = models.map(|models| {
                let models = models.into_iter().map(ModelShown::from).collect();
                Box::new(ModelsShown { models }) as Box<dyn super::connection::Answer>
            });
            Done { id, outcome: Outcome::Answer(shown) }
        });
        Ok(Reply::Later)
    }

    /// A turn has said something.
    pub(super) fn turn_told(&mut self, told: Told) {
        let Told { session, turn, event } = told;
        while self.turns.readers.try_join_next().is_some() {}
        if let Some(talk) = self.turns.sessions.get_mut(&session) {
            if let Some(run) = talk.session.run() {
                talk.run = Some(run.id().to_owned());
            }
            if let TurnEvent::End(message) = &event {
                talk.aborts
                    .retain(|of, _| *of > turn || (*of == turn && message.stop == StopReason::ToolUse));
            }
        }
        self.notify("turn/event", &TurnTold { session, turn, event: TurnShown::from(event) });
    }

    /// Nothing of any turn is left when this work ends.
    pub(super) fn shut_turns(&mut self, reason: &str) {
        let Some(agents) = self.turns.agents.clone() else { return };
        let reason = reason.to_owned();
        self.work.spawn(async move {
            agents.shutdown(&reason).await;
            Done { id: None, outcome: Outcome::Shutdown }
        });
    }
}

fn request(params: StartTurn, skills: crate::skills::SkillList, abort: CancellationToken) -> TurnRequest {
    let StartTurn {
        session: _,
        messages,
        system,
        instruction_files,
        context_tools,
        wrappers,
        mode,
        model,
        cwd,
        setting_sources,
        budget_tokens,
        display: _,
    } = params;
    TurnRequest {
        messages,
        system,
        instruction_files,
        skills,
        context_tools,
        wrappers,
        mode: match mode {
            super::requests::TurnMode::Agent => AgentMode::Agent,
            super::requests::TurnMode::Plan => AgentMode::Plan,
        },
        model,
        cwd: cwd.into(),
        setting_sources,
        budget_tokens,
        abort,
    }
}

/// Reads a turn to its end, as fast as the host takes it.
async fn read(mut turn: Turn, session: String, number: u64, to: mpsc::Sender<Told>) {
    while let Some(event) = turn.next().await {
        if to.send(Told { session: session.clone(), turn: number, event }).await.is_err() {
            return;
        }
    }
}
