//! Owns the state of one host's connection: sessions, runs, what waits to be written, what is being worked on. Handlers
//! are synchronous; what takes time becomes work that ends in a [`Done`]. It does no I/O with the host.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;
use toolway_guard::Guard;
use toolway_wire::Id;

use super::agents::Agents;
use super::answers::{Closing, Ended};
use super::display::{Display, SeenTool};
use super::fault::Fault;
use super::inbox::Inbox;
use super::lines::{HostLine, LINE_BYTES, LongLine};
use super::message::{answer, notification, read_line};
use super::opening::Opening;
use super::outbox::Outbox;
use super::session::{LoadedSkills, Session};
use super::turns::Turns;
use crate::call::CallId;
use crate::diagnostics::Diagnostics;
use crate::live::LiveQueue;
use crate::profile::Profile;
use crate::run::{Binding, Run};

/// Requests that are being worked on at once; more wait to be read.
const MOST_WORK: usize = 64;
/// Sessions that are open at once.
pub(super) const MOST_SESSIONS: usize = 64;
/// Runs that are open at once.
pub(super) const MOST_RUNS: usize = 256;

/// What a connection with a host is made of. Plain values.
#[derive(Clone)]
pub struct HostProtocolConfig {
    /// The profile that the user asked for; none: `pi`, or what the host asks for.
    pub profile: Option<Profile>,
    /// The user's settings file of each profile.
    pub settings: Vec<(Profile, PathBuf)>,
    /// Saves results that are too large for the agent's client.
    pub guard: Option<Arc<Guard>>,
    /// The program's version.
    pub version: String,
    /// Where lines of diagnostics go that the settings want on stderr.
    pub stderr: fn(&[u8]),
}

impl std::fmt::Debug for HostProtocolConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostProtocolConfig").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// What `initialize` has settled.
#[derive(Debug, Clone)]
pub(super) struct Spoken {
    pub(super) profile: Profile,
    pub(super) ui: bool,
    pub(super) diagnostics: Diagnostics,
    pub(super) settings_file: Option<PathBuf>,
}

/// A run that the host has opened.
#[derive(Debug)]
pub(super) struct LiveRun {
    pub(super) session: String,
    pub(super) run: Run,
    pub(super) queue: LiveQueue<()>,
    /// What the host takes calls by, while it does.
    pub(super) binding: Option<Binding>,
    /// Calls that the host was told of and that are not over.
    pub(super) told: HashSet<CallId>,
}

/// The answer to a request: now, or when some work has ended.
pub(super) enum Reply {
    Now(Box<dyn Answer>),
    Later,
}

/// A result of any type.
pub(super) trait Answer: Send {
    /// The response with that id.
    fn line(&self, id: &Id) -> Bytes;
}

impl<T: Serialize + Send> Answer for T {
    fn line(&self, id: &Id) -> Bytes {
        answer(id, self)
    }
}

impl Reply {
    #[expect(clippy::unnecessary_wraps, reason = "it is the last word of every handler, and these can fail")]
    pub(super) fn now<T: Serialize + Send + 'static>(result: T) -> Result<Self, Fault> {
        Ok(Self::Now(Box::new(result)))
    }
}

/// Work that has ended.
pub(super) struct Done {
    /// Whose answer it is.
    pub(super) id: Option<Id>,
    pub(super) outcome: Outcome,
}

/// What work came to.
pub(super) enum Outcome {
    /// An answer, or an error.
    Answer(Result<Box<dyn Answer>, Fault>),
    /// A run is open, or not.
    Opened(Box<Opening>),
    /// Runs are closed.
    Closed { runs: Vec<String>, rejected_calls: usize },
    /// The settings of a session are to be shown, after they were written.
    Written { session: String, written: Result<(), Fault> },
    /// A file was looked at that a card shows: the host's next line has waited for it.
    Seen(Box<SeenTool>),
    /// The folders of skills were looked at; the host's next line has waited for it, too.
    Skills(Box<LoadedSkills>),
    /// A skill was activated: what the host is told.
    Activated(Box<super::answers::SkillActivated>),
    /// Everything is closed: the last answer goes out.
    Shutdown,
}

/// The state of the connection with one host.
pub(super) struct Connection {
    pub(super) config: HostProtocolConfig,
    pub(super) spoken: Option<Spoken>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) runs: HashMap<String, LiveRun>,
    /// Runs that are being opened.
    pub(super) opening: usize,
    pub(super) inbox: Arc<Inbox>,
    pub(super) outbox: Outbox,
    pub(super) work: JoinSet<Done>,
    pub(super) display: Display,
    pub(super) turns: Turns,
    /// Work that the host's next line waits for.
    pub(super) held: usize,
    /// Calls whose ends were too long for a line, and when they are given up.
    pub(super) doomed: VecDeque<(Instant, CallId)>,
    /// `shutdown` has come.
    pub(super) shutdown: bool,
    /// Whose answer waits for the end.
    pub(super) asked_shutdown: Option<Id>,
}

impl Connection {
    pub(super) fn new(config: HostProtocolConfig, agents: Option<Arc<dyn Agents>>) -> Self {
        Self {
            config,
            spoken: None,
            sessions: BTreeMap::new(),
            runs: HashMap::new(),
            opening: 0,
            inbox: Arc::new(Inbox::default()),
            outbox: Outbox::default(),
            work: JoinSet::new(),
            display: Display::default(),
            turns: Turns::new(agents),
            doomed: VecDeque::new(),
            held: 0,
            shutdown: false,
            asked_shutdown: None,
        }
    }

    /// The host's next line is wanted.
    pub(super) fn takes_lines(&self) -> bool {
        self.held == 0 && self.work.len() < MOST_WORK && !self.outbox.is_full() && !self.shutdown
    }

    /// A line of the host.
    pub(super) fn on_line(&mut self, line: HostLine, now: Instant) {
        let line = match line {
            HostLine::Whole(line) => line,
            HostLine::TooLong(LongLine { id, call }) => {
                self.doom(call, now);
                let fault = Fault::new(
                    Fault::INVALID_REQUEST,
                    format!("the line is too long: at most {LINE_BYTES} bytes"),
                );
                let fault = fault.with(serde_json::json!({ "limit": "line", "most": LINE_BYTES }));
                return self.fail(id.as_ref().map_or(&b"null"[..], Id::raw), &fault);
            }
        };
        let incoming = match read_line(&line) {
            Ok(incoming) => incoming,
            Err(bad) => return self.fail(bad.id.raw(), &bad.fault),
        };
        let id = incoming.id;
        match self.dispatch(&incoming.method, id.clone(), incoming.params.as_ref(), now) {
            Ok(Reply::Now(result)) => self.respond(id.as_ref(), Ok(result)),
            Ok(Reply::Later) => {}
            Err(fault) => self.respond(id.as_ref(), Err(fault)),
        }
    }

    /// Work has ended.
    pub(super) fn on_done(&mut self, done: Done) {
        let Done { id, outcome } = done;
        let result = match outcome {
            Outcome::Answer(result) => result,
            Outcome::Opened(opening) => self.opened(*opening),
            Outcome::Written { session, written } => written
                .and_then(|()| self.settings_shown(&session))
                .map(|shown| Box::new(shown) as Box<dyn Answer>),
            Outcome::Closed { runs, rejected_calls } => {
                // What their end has told comes before it.
                self.on_arrivals(Instant::now());
                self.runs.retain(|id, _| !runs.contains(id));
                Ok(Box::new(Ended { rejected_calls }) as Box<dyn Answer>)
            }
            Outcome::Seen(seen) => {
                self.held -= 1;
                self.show_seen(*seen)
            }
            Outcome::Skills(loaded) => {
                self.held -= 1;
                self.skills_loaded(*loaded)
            }
            // An agent activates as often as it likes: a host that does not read is told no more of it.
            Outcome::Activated(_) if self.outbox.is_full() => return,
            Outcome::Activated(activated) => return self.notify("skill/activated", &*activated),
            Outcome::Shutdown => return,
        };
        self.respond(id.as_ref(), result);
    }

    /// Answers a request; a notification has no answer.
    fn respond(&mut self, id: Option<&Id>, result: Result<Box<dyn Answer>, Fault>) {
        match (id, result) {
            (Some(id), Ok(result)) => self.outbox.push(result.line(id)),
            (Some(id), Err(fault)) => self.fail(id.raw(), &fault),
            (None, Ok(_)) => {}
            // Its text may have a value that the host sent.
            (None, Err(fault)) => tracing::debug!(code = fault.code(), "a notification of the host failed"),
        }
    }

    fn fail(&mut self, id: &[u8], fault: &Fault) {
        self.outbox.push(fault.line(id).into());
    }

    pub(super) fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.outbox.push(notification(method, params));
    }

    /// `shutdown` is answered when everything has ended.
    pub(super) fn answer_shutdown(&mut self) {
        if let Some(id) = self.asked_shutdown.take() {
            self.respond(Some(&id), Ok(Box::new(super::answers::Done {})));
        }
    }

    /// The last words.
    pub(super) fn say_closing(&mut self, reason: &str) {
        if self.spoken.is_some() {
            self.notify("bridge/closing", &Closing { reason: reason.to_owned() });
        }
    }

    pub(super) fn spoken(&self) -> Result<&Spoken, Fault> {
        self.spoken.as_ref().ok_or_else(|| {
            Fault::new(Fault::VERSION, "initialize comes first")
                .with(serde_json::json!({ "spoken": [super::PROTOCOL_VERSION] }))
        })
    }

    pub(super) fn session(&self, name: &str) -> Result<&Session, Fault> {
        self.sessions.get(name).ok_or_else(|| Fault::unknown("session", name))
    }

    pub(super) fn session_mut(&mut self, name: &str) -> Result<&mut Session, Fault> {
        self.sessions.get_mut(name).ok_or_else(|| Fault::unknown("session", name))
    }

    pub(super) fn run(&self, id: &str) -> Result<&LiveRun, Fault> {
        self.runs.get(id).ok_or_else(|| Fault::unknown("run", id))
    }

    pub(super) fn run_mut(&mut self, id: &str) -> Result<&mut LiveRun, Fault> {
        self.runs.get_mut(id).ok_or_else(|| Fault::unknown("run", id))
    }
}

impl Connection {
    /// The run, if it is of this session.
    pub(super) fn run_of(&self, session: &str, id: &str) -> Result<&LiveRun, Fault> {
        let live = self.run(id)?;
        if live.session == session { Ok(live) } else { Err(Fault::unknown("run", id)) }
    }
}
