//! A host and an agent that do what a test tells them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolway_wire::Id;

use super::faults::{At, Faults};
use crate::agent_port::{
    Agent, AgentEnd, AgentEvent, AgentFailure, AgentMode, AgentOptions, AgentPort, AgentPrompt,
};
use crate::call::{CallId, HostResult, Rejection};
use crate::calls::Origin;
use crate::coordinator::{Coordinator, Session, SessionOptions, Turn};
use crate::host_port::{AssistantBlock, AssistantMessage, HostPort, NoticeLevel, ToolCall, TurnRequest};
use crate::json::RawJson;
use crate::profile::Profile;
use crate::prompt::{Block, Digest, HostSystem, Message, MessageBody};
use crate::run::{Began, Update, Waiter};
use crate::settings::Settings;
use crate::skills::SkillList;
use crate::tool::{HostTool, HostTools, Provenance};

/// A host that keeps what it is told.
#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) tools: Mutex<HostTools>,
    pub(super) aborted: Mutex<Vec<(CallId, String)>>,
    pub(super) panics: AtomicBool,
    pub(super) tools_panic: AtomicBool,
    pub(super) notices: Mutex<Vec<String>>,
}

impl HostPort for Host {
    fn tools(&self) -> HostTools {
        assert!(!self.tools_panic.load(Ordering::SeqCst), "the host's registry fails");
        self.tools.lock().unwrap().clone()
    }

    fn set_active(&self, _names: &[String], _active: bool) {}

    fn abort_call(&self, id: &CallId, reason: &str) {
        self.aborted.lock().unwrap().push((id.clone(), reason.to_owned()));
        assert!(!self.panics.load(Ordering::SeqCst), "the host's abort fails");
    }

    fn append_entry(&self, _kind: &str, _data: RawJson) {}

    fn notify(&self, _level: NoticeLevel, text: &str) {
        self.notices.lock().unwrap().push(text.to_owned());
        assert!(!self.panics.load(Ordering::SeqCst), "the host's notice fails");
    }
}

impl Host {
    pub(super) fn add(&self, name: &str) {
        let mut tools = self.tools.lock().unwrap();
        tools.active.push(name.to_owned());
        tools.all.push(HostTool {
            name: name.to_owned(),
            description: format!("does {name}"),
            guidelines: Vec::new(),
            parameters: RawJson::new(&br#"{"type":"object"}"#[..]).unwrap(),
            provenance: Provenance::default(),
        });
    }

    pub(super) fn aborted(&self) -> Vec<(String, String)> {
        let aborted = self.aborted.lock().unwrap();
        aborted.iter().map(|(id, reason)| (id.to_string(), reason.clone())).collect()
    }
}

/// Makes agents that a test holds by their strings.
#[derive(Debug)]
pub(super) struct Port {
    made: mpsc::Sender<Puppet>,
    pub(super) count: Arc<AtomicUsize>,
    pub(super) refuses: Arc<AtomicBool>,
    pub(super) hangs: Arc<AtomicBool>,
    faults: Arc<Faults>,
}

/// The strings of an agent.
#[derive(Debug)]
pub(super) struct Puppet {
    pub(super) options: AgentOptions,
    pub(super) prompts: mpsc::Receiver<AgentPrompt>,
    events: Option<mpsc::Sender<AgentEvent>>,
    pub(super) cancelled: Arc<AtomicUsize>,
    pub(super) disposed: CancellationToken,
}

impl Puppet {
    pub(super) async fn prompt(&mut self) -> AgentPrompt {
        self.prompts.recv().await.unwrap()
    }

    pub(super) async fn tell(&self, event: AgentEvent) {
        self.events.as_ref().unwrap().send(event).await.unwrap();
    }

    pub(super) async fn text(&self, text: &str) {
        self.tell(AgentEvent::Text(text.to_owned())).await;
    }

    pub(super) async fn finish(&self) {
        self.tell(AgentEvent::Ended(AgentEnd::Finished(None))).await;
    }

    /// Its connection breaks.
    pub(super) fn die(&mut self) {
        self.events = None;
    }

    pub(super) fn is_gone(&self) -> bool {
        self.disposed.is_cancelled()
    }
}

#[derive(Debug)]
pub(super) struct Doll {
    prompts: mpsc::Sender<AgentPrompt>,
    events: tokio::sync::Mutex<mpsc::Receiver<AgentEvent>>,
    cancelled: Arc<AtomicUsize>,
    disposed: CancellationToken,
    refuses: Arc<AtomicBool>,
    faults: Arc<Faults>,
}

impl AgentPort for Port {
    type Agent = Doll;

    async fn create(&self, options: AgentOptions) -> Result<Doll, AgentFailure> {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.faults.meet(At::Create).await;
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let (prompts, prompted) = mpsc::channel(4);
        let (events, told) = mpsc::channel(64);
        let (cancelled, disposed) = (Arc::default(), CancellationToken::new());
        let puppet = Puppet {
            options,
            prompts: prompted,
            events: Some(events),
            cancelled: Arc::clone(&cancelled),
            disposed: disposed.clone(),
        };
        self.made.send(puppet).await.ok();
        let refuses = Arc::clone(&self.refuses);
        let faults = Arc::clone(&self.faults);
        Ok(Doll { prompts, events: tokio::sync::Mutex::new(told), cancelled, disposed, refuses, faults })
    }

    fn secrets(&self) -> Vec<toolway_secret::Secret> {
        vec![toolway_secret::Secret::new("the key in use")]
    }

    fn identity(&self) -> Option<Digest> {
        None
    }
}

impl Agent for Doll {
    async fn send(&self, prompt: AgentPrompt) -> Result<(), AgentFailure> {
        self.faults.meet(At::Send).await;
        if self.refuses.load(Ordering::SeqCst) {
            return Err(AgentFailure::new("not now"));
        }
        self.prompts.send(prompt).await.map_err(|_| AgentFailure::new("nobody holds the strings"))
    }

    async fn next(&self) -> Option<AgentEvent> {
        let event = self.events.lock().await.recv().await;
        self.faults.meet(At::Next).await;
        event
    }

    async fn cancel(&self) {
        self.cancelled.fetch_add(1, Ordering::SeqCst);
        self.faults.meet(At::Cancel).await;
    }

    async fn reload(&self) -> Result<(), AgentFailure> {
        self.faults.reloads.fetch_add(1, Ordering::SeqCst);
        self.faults.meet(At::Reload).await;
        self.faults.reload_fails.lock().unwrap().clone().map_or(Ok(()), |why| Err(AgentFailure::new(why)))
    }

    async fn dispose(self) {
        self.faults.meet(At::Dispose).await;
        self.disposed.cancel();
    }
}

/// A session between the two.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) coordinator: Coordinator<Port>,
    pub(super) session: Session,
    pub(super) host: Arc<Host>,
    pub(super) agents: mpsc::Receiver<Puppet>,
    pub(super) count: Arc<AtomicUsize>,
    pub(super) refuses: Arc<AtomicBool>,
    pub(super) hangs: Arc<AtomicBool>,
    pub(super) faults: Arc<Faults>,
    pub(super) abort: CancellationToken,
    pub(super) messages: Vec<Message>,
    pub(super) system: String,
    ids: AtomicU64,
}

pub(super) fn options() -> SessionOptions {
    SessionOptions::new("parent", Profile::PI)
}

impl Rig {
    /// Host tools `todo` and `sem`.
    pub(super) fn new() -> Self {
        Self::of(options())
    }

    pub(super) fn with(settings: Settings) -> Self {
        Self::of(SessionOptions { settings: Arc::new(settings), ..options() })
    }

    pub(super) fn of(options: SessionOptions) -> Self {
        let host = Arc::new(Host::default());
        host.add("todo");
        host.add("sem");
        let (made, agents) = mpsc::channel(16);
        let (count, refuses, hangs): (Arc<AtomicUsize>, Arc<AtomicBool>, Arc<AtomicBool>) =
            Default::default();
        let faults = Arc::new(Faults::default());
        let port = Port {
            made,
            count: Arc::clone(&count),
            refuses: Arc::clone(&refuses),
            hangs: Arc::clone(&hangs),
            faults: Arc::clone(&faults),
        };
        let coordinator = Coordinator::new(port);
        let session = coordinator.open(Arc::clone(&host) as Arc<dyn HostPort>, options).unwrap();
        Self {
            coordinator,
            session,
            host,
            agents,
            count,
            refuses,
            hangs,
            faults,
            abort: CancellationToken::new(),
            messages: Vec::new(),
            system: "be good".to_owned(),
            ids: AtomicU64::new(1),
        }
    }

    pub(super) fn request(&self) -> TurnRequest {
        TurnRequest {
            system: HostSystem::Text(self.system.clone()),
            ..request_of(self.messages.clone(), self.abort.clone())
        }
    }

    /// The user says something.
    pub(super) async fn say(&mut self, text: &str) -> Turn {
        self.messages.push(Message::user(text));
        self.session.turn(self.request()).await
    }

    /// The host goes on after it noted the message and the results of its calls.
    pub(super) async fn go_on(&mut self, message: &AssistantMessage) -> Turn {
        self.note(message);
        self.session.turn(self.request()).await
    }

    /// The host notes a message and runs its calls: each gives its name and arguments.
    pub(super) fn note(&mut self, message: &AssistantMessage) {
        let block = |block: &AssistantBlock| match block {
            AssistantBlock::Text(text) => Block::Text(text.clone()),
            AssistantBlock::Thinking(text) => Block::Thinking(text.clone()),
            AssistantBlock::ToolCall(ToolCall { id, name, arguments }) => {
                Block::ToolCall { id: id.to_string(), name: name.clone(), arguments: arguments.clone() }
            }
        };
        let content = message.content.iter().map(block).collect();
        self.messages.push(Message::new(MessageBody::Assistant { content }));
        for call in calls(message) {
            self.messages.push(result(&call.id, &format!("{} {}", call.name, call.arguments.text())));
        }
    }

    pub(super) async fn agent(&mut self) -> Puppet {
        self.agents.recv().await.unwrap()
    }

    /// The agent calls a tool of the host.
    pub(super) fn call(&self, name: &str) -> Waiter {
        self.call_in(&self.session, name)
    }

    pub(super) fn call_in(&self, session: &Session, name: &str) -> Waiter {
        match self.begin(session, name) {
            Began::Waiting(waiter) => waiter,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn begin(&self, session: &Session, name: &str) -> Began {
        let request =
            Id::from_json(&self.ids.fetch_add(1, Ordering::SeqCst).to_string().into_bytes()).unwrap();
        let arguments = RawJson::new(&br#"{"n":9007199254740993}"#[..]).unwrap();
        session.run().unwrap().begin(Origin { session: 1, request }, name, Some(arguments), None)
    }

    /// A user's question whose answer waits for one call of `todo`; the agent's and the call's end.
    pub(super) async fn at_work(&mut self) -> (Puppet, Waiter, AssistantMessage) {
        let turn = self.say("do it").await;
        let mut agent = self.agent().await;
        agent.prompt().await;
        let waiter = self.call("pi__todo");
        let message = turn.message().await;
        (agent, waiter, message)
    }

    pub(super) fn made(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

pub(super) fn request_of(messages: Vec<Message>, abort: CancellationToken) -> TurnRequest {
    TurnRequest {
        messages,
        system: HostSystem::Text("be good".to_owned()),
        instruction_files: Vec::new(),
        skills: SkillList::default(),
        context_tools: Vec::new(),
        wrappers: Vec::new(),
        mode: AgentMode::Agent,
        model: "auto".to_owned(),
        cwd: PathBuf::from("/project"),
        setting_sources: None,
        budget_tokens: None,
        abort,
    }
}

pub(super) fn result(id: &CallId, text: &str) -> Message {
    Message::new(MessageBody::ToolResult {
        tool_call_id: id.to_string(),
        tool_name: "todo".to_owned(),
        content: vec![Block::Text(text.to_owned())],
        is_error: false,
    })
}

pub(super) fn calls(message: &AssistantMessage) -> Vec<ToolCall> {
    let call = |block: &AssistantBlock| match block {
        AssistantBlock::ToolCall(call) => Some(call.clone()),
        _ => None,
    };
    message.content.iter().filter_map(call).collect()
}

pub(super) fn text(message: &AssistantMessage) -> String {
    let text = |block: &AssistantBlock| match block {
        AssistantBlock::Text(text) => Some(text.clone()),
        _ => None,
    };
    message.content.iter().filter_map(text).collect()
}

/// What an agent gets for its call.
pub(super) async fn answer(waiter: &mut Waiter) -> Result<String, Rejection> {
    loop {
        match waiter.next().await {
            Update::Progress(_) => {}
            Update::Result(result) => return Ok(String::from_utf8(result.to_vec()).unwrap()),
            Update::Rejected(rejection) => return Err(rejection),
            Update::GivenUp => panic!("the client gave the call up"),
        }
    }
}

pub(super) fn expected(text: &str) -> String {
    format!("{{\"content\":{}}}", HostResult::text(text).content.text())
}

/// Long enough for everything that needs no time.
pub(super) async fn settled() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}
