//! Owns an agent's running process: its greeting, its session, and questions to it with a bound of time. While an answer is
//! awaited, what the agent asks meanwhile is served. It executes no prompts.

mod sign_in;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    ContentBlock, LoadSessionRequest, McpServer, NewSessionRequest, ResumeSessionRequest,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;

use self::sign_in::is_about_signing_in;
use super::about::{About, greeting};
use super::choices::{Choices, Wish};
use super::desk::{Desk, Served};
use super::frame::{Frame, METHOD_NOT_FOUND, RpcError};
use super::options::{AcpCommand, AcpSurroundings};
use super::peer::{Happening, Peer};
use super::process::{self, Teller};
use crate::error::AgentError;
use crate::generation::Generation;

/// So many messages between two prompts are taken.
const BETWEEN: usize = 1 << 16;
/// What is said of an agent that fills the memory.
pub(super) const FLOODED: &str = "it asks more than it reads answers to";

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// The run was cancelled.
    Cancelled,
    /// The process is of no use any more.
    Dead(AgentError),
    /// The agent said no, or what was wished cannot be.
    Refused(AgentError),
}

/// A session that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: String,
    pub(super) servers: Weak<Generation>,
    pub(super) cwd: PathBuf,
    pub(super) choices: Choices,
    /// The mode that it was in before we chose one.
    pub(super) own_mode: Option<String>,
    /// What it has cost in US dollars, as far as it was told.
    pub(super) cost: Option<f64>,
    /// It was given servers, and nothing is known of its use of them: what they had been asked for before.
    pub(super) unvisited: Option<u64>,
    pub(super) desk: Desk,
}

/// An agent's process that was greeted.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) peer: Peer,
    pub(super) about: About,
    pub(super) teller: Teller,
    pub(super) open: Option<Open>,
    /// A run is at it. One that was dropped in the middle leaves this: nobody knows what the agent does now.
    pub(super) is_busy: bool,
    command: AcpCommand,
}

/// What a session is opened with.
pub(super) struct Opening<'a> {
    pub(super) cwd: &'a Path,
    pub(super) servers: &'a Arc<Generation>,
    pub(super) entries: Vec<McpServer>,
    pub(super) surroundings: &'a AcpSurroundings,
    pub(super) cancel: &'a CancellationToken,
    /// What the given servers have been asked for so far, where some are given.
    pub(super) unvisited: Option<u64>,
}

impl Live {
    /// Starts the process and greets it.
    pub(super) async fn start(
        command: &AcpCommand,
        surroundings: &AcpSurroundings,
        cwd: &Path,
        cancel: &CancellationToken,
    ) -> Result<Self, Broken> {
        let teller = Teller::new(command, &surroundings.machine);
        let peer = process::start(command, surroundings, cwd, &teller).await.map_err(Broken::Refused)?;
        let about = About::default();
        let mut live = Self { peer, about, teller, open: None, is_busy: true, command: command.clone() };
        let greeted = live.ask("initialize", &greeting(), command.timeouts.start, cancel).await;
        let about = match greeted {
            Ok(Ok(answer)) => About::read(&answer).map_err(|why| live.dead(&why)),
            Ok(Err(error)) => Err(live.dead(&format!("it refuses to be initialized: {}", error.text()))),
            Err(broken) => Err(broken),
        };
        let begun = match about {
            Ok(about) => {
                live.about = about;
                live.sign_in(cancel).await
            }
            Err(broken) => Err(broken),
        };
        if let Err(broken) = begun {
            live.end().await;
            return Err(broken);
        }
        Ok(live)
    }

    /// A failure of the process, with what it wrote last.
    pub(super) fn dead(&self, what: &str) -> Broken {
        let what =
            self.peer.start_failure().map_or(what.to_owned(), |why| format!("it cannot be started: {why}"));
        Broken::Dead(self.teller.failure_of(&what, &self.peer))
    }

    /// Asks and waits, for so long at most.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: &impl Serialize,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Result<RawJson, RpcError>, Broken> {
        let asked = self.peer.request(method, params);
        let end = Instant::now() + within;
        loop {
            let has_room = self.peer.has_room();
            let happening = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Broken::Cancelled),
                happening = self.peer.next() => happening,
                served = served(&mut self.open), if has_room => {
                    self.peer.reply(&served.id, served.outcome);
                    continue;
                }
                () = sleep_until(end) => {
                    let late = format!("it did not answer {method} within {within:?}");
                    return Err(self.dead(&self.peer.with_sample(late)));
                }
            };
            match happening {
                Happening::Frame(Frame::Answer { id, outcome }) if id == asked => return Ok(outcome),
                Happening::Frame(frame) => self.aside(frame),
                Happening::Room => {}
                Happening::Ended(why) => {
                    return Err(self.dead(&format!("{why}, while {method} was not answered")));
                }
            }
            if self.is_flooded() {
                return Err(self.dead(FLOODED));
            }
        }
    }

    /// Something that is not what is waited for, outside of a prompt.
    fn aside(&mut self, frame: Frame) {
        match frame {
            Frame::Request { id, method, params } => {
                if let Some(open) = &mut self.open {
                    open.desk.serve(id, &method, &params, None);
                } else if self.peer.has_room() {
                    let error =
                        RpcError::new(METHOD_NOT_FOUND, format!("{method} is offered within a session"));
                    self.peer.reply(&id, Err(error));
                }
            }
            Frame::Notification { params, .. } => {
                let params = params.tree();
                let update = params.get("update");
                if let (Some(open), Some(update)) = (&mut self.open, update)
                    && params.get("sessionId").and_then(Value::as_str) == Some(&open.id)
                {
                    open.noticed(update);
                }
            }
            // An answer to what nobody waits for any more, or a second one.
            Frame::Answer { .. } | Frame::Odd => {}
        }
    }

    fn is_flooded(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.desk.is_flooded())
    }

    /// Takes what came between prompts. Gives why the process is of no use any more, if it is so.
    pub(super) async fn catch_up(&mut self) -> Option<String> {
        for _ in 0..BETWEEN {
            let happening = tokio::select! {
                biased;
                // All that is there: what was left would be taken for a part of the next prompt.
                happening = tokio::task::unconstrained(self.peer.next()) => happening,
                () = std::future::ready(()) => return None,
            };
            match happening {
                Happening::Frame(frame) => self.aside(frame),
                Happening::Room => {}
                Happening::Ended(why) => return Some(why),
            }
            if self.is_flooded() {
                return Some(FLOODED.to_owned());
            }
        }
        Some("it went on sending without a prompt".to_owned())
    }

    /// Opens a new session.
    pub(super) async fn open_new(&mut self, opening: &Opening<'_>) -> Result<(), Broken> {
        let mut request = NewSessionRequest::new(opening.cwd).mcp_servers(opening.entries.clone());
        if let Some(text) = &opening.surroundings.system_prompt {
            request = request.system_prompt(self.system_prompt(text)?);
        }
        let within = self.command.timeouts.session;
        let answer = self.ask("session/new", &request, within, opening.cancel).await?;
        let answer = answer.map_err(|error| Broken::Refused(self.refusal("opens no session", &error)))?;
        let id = answer.tree().get("sessionId").and_then(Value::as_str).map(str::to_owned);
        let id = id
            .filter(|id| !id.is_empty())
            .ok_or_else(|| self.dead("its answer to session/new names no session"))?;
        self.opened(&id, opening);
        self.settle(&answer);
        Ok(())
    }

    /// Opens an earlier session, with these servers. What it repeats of what was said is not told again.
    pub(super) async fn open_again(
        &mut self,
        id: &str,
        opening: &Opening<'_>,
    ) -> Result<Result<(), String>, Broken> {
        let within = self.command.timeouts.session;
        self.opened(id, opening);
        let mut answer = Err(RpcError::new(METHOD_NOT_FOUND, "it has no such method"));
        if self.about.resumes {
            let request =
                ResumeSessionRequest::new(id.to_owned(), opening.cwd).mcp_servers(opening.entries.clone());
            answer = self.ask("session/resume", &request, within, opening.cancel).await?;
        }
        // One that says it can, and cannot, may know the other way.
        if self.about.loads && matches!(&answer, Err(error) if error.code == METHOD_NOT_FOUND) {
            let request =
                LoadSessionRequest::new(id.to_owned(), opening.cwd).mcp_servers(opening.entries.clone());
            answer = self.ask("session/load", &request, within, opening.cancel).await?;
        }
        match answer {
            Ok(answer) => {
                self.settle(&answer);
                Ok(Ok(()))
            }
            Err(error) => {
                self.leave().await;
                if is_about_signing_in(&error) {
                    return Err(Broken::Refused(self.refusal("opens no session", &error)));
                }
                Ok(Err(self.teller.scrub(&error.text())))
            }
        }
    }

    fn opened(&mut self, id: &str, opening: &Opening<'_>) {
        let title = self.command.title();
        self.open = Some(Open {
            id: id.to_owned(),
            servers: Arc::downgrade(opening.servers),
            cwd: opening.cwd.to_owned(),
            choices: Choices::default(),
            own_mode: None,
            cost: None,
            unvisited: opening.unvisited,
            desk: Desk::new(id, opening.surroundings, opening.cwd, &self.teller, title),
        });
    }

    fn settle(&mut self, answer: &RawJson) {
        if let Some(open) = &mut self.open {
            open.choices = Choices::read(answer);
            open.own_mode = open.choices.mode().map(str::to_owned);
        }
    }

    fn system_prompt(&self, text: &str) -> Result<agent_client_protocol::v1::schema::SystemPrompt, Broken> {
        use agent_client_protocol::v1::schema::{SystemPrompt, SystemPromptMode};
        if self.about.takes_system_prompt {
            return Ok(
                SystemPrompt::new(vec![ContentBlock::from(text.to_owned())]).mode(SystemPromptMode::Override)
            );
        }
        let why =
            self.teller.say("it takes no system prompt: leave it out, or write it to the agent's own rules");
        Err(Broken::Refused(AgentError::fault("local.systemPrompt", why)))
    }

    /// Makes a wish come true.
    pub(super) async fn grant(&mut self, wish: &Wish, cancel: &CancellationToken) -> Result<(), Broken> {
        let Some(open) = &self.open else { return Ok(()) };
        let mut params = wish.params.clone();
        params.insert("sessionId".to_owned(), json!(open.id));
        let answer = self.ask(wish.method, &params, self.command.timeouts.session, cancel).await?;
        let answer = answer.map_err(|error| {
            let what = format!("it does not take {}: {}", wish.what, error.text());
            Broken::Refused(AgentError::fault("model", self.teller.say(&what)))
        })?;
        if let Some(open) = &mut self.open {
            open.choices.granted(wish);
            open.choices.update(&answer);
        }
        Ok(())
    }

    /// Leaves the session, not the process.
    pub(super) async fn leave(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.desk.end().await;
        }
    }

    /// Ends it all.
    pub(super) async fn end(&mut self) {
        self.leave().await;
        self.peer.close().await;
    }
}

impl Open {
    /// An update outside of a prompt.
    fn noticed(&mut self, update: &Value) {
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("current_mode_update") => {
                if let Some(mode) = update.get("currentModeId").and_then(Value::as_str) {
                    self.choices.mode_is(mode);
                }
            }
            Some("config_option_update") => self.choices.update(&RawJson::of(update)),
            _ => {}
        }
    }
}

/// The next request that was served, if there is a session at all.
async fn served(open: &mut Option<Open>) -> Served {
    match open {
        Some(open) => open.desk.served().await,
        None => std::future::pending().await,
    }
}
