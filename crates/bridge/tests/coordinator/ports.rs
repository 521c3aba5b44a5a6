//! A host and an agent that do what a test tells them.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolway_bridge::{
    Agent, AgentEnd, AgentEvent, AgentFailure, AgentMode, AgentOptions, AgentPort, AgentPrompt, CallId,
    Digest, HostPort, HostSystem, HostTool, HostTools, Message, NoticeLevel, Provenance, RawJson, SkillList,
    TurnRequest,
};

/// A host that keeps what it is told.
#[derive(Debug, Default)]
pub(crate) struct Host {
    tools: HostTools,
    aborted: Mutex<Vec<(String, String)>>,
}

impl Host {
    pub(crate) fn with(names: &[&str]) -> Self {
        let tool = |name: &&str| HostTool {
            name: (*name).to_owned(),
            description: format!("does {name}"),
            guidelines: Vec::new(),
            parameters: RawJson::of(&serde_json::json!({"type": "object"})),
            provenance: Provenance::default(),
        };
        let active = names.iter().map(|name| (*name).to_owned()).collect();
        Self { tools: HostTools { all: names.iter().map(tool).collect(), active }, aborted: Mutex::default() }
    }

    pub(crate) fn aborted(&self) -> Vec<(String, String)> {
        self.aborted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl HostPort for Host {
    fn tools(&self) -> HostTools {
        self.tools.clone()
    }

    fn set_active(&self, _names: &[String], _active: bool) {}

    fn abort_call(&self, id: &CallId, reason: &str) {
        let mut aborted = self.aborted.lock().unwrap_or_else(PoisonError::into_inner);
        aborted.push((id.to_string(), reason.to_owned()));
    }

    fn append_entry(&self, _kind: &str, _data: RawJson) {}

    fn notify(&self, _level: NoticeLevel, _text: &str) {}
}

/// A turn of that conversation.
pub(crate) fn request(messages: &[Message], abort: &CancellationToken) -> TurnRequest {
    TurnRequest {
        messages: messages.to_vec(),
        system: HostSystem::Text("be good".to_owned()),
        instruction_files: Vec::new(),
        skills: SkillList::default(),
        context_tools: Vec::new(),
        wrappers: Vec::new(),
        mode: AgentMode::Agent,
        model: "auto".to_owned(),
        cwd: "/".into(),
        setting_sources: None,
        budget_tokens: None,
        abort: abort.clone(),
    }
}

/// Makes agents that a test holds by their strings.
#[derive(Debug)]
pub(crate) struct Port(mpsc::Sender<Puppet>);

/// The strings of an agent.
#[derive(Debug)]
pub(crate) struct Puppet {
    pub(crate) options: AgentOptions,
    pub(crate) prompts: mpsc::Receiver<AgentPrompt>,
    events: mpsc::Sender<AgentEvent>,
    pub(crate) disposed: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Doll {
    prompts: mpsc::Sender<AgentPrompt>,
    events: tokio::sync::Mutex<mpsc::Receiver<AgentEvent>>,
    disposed: CancellationToken,
}

impl Port {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Puppet>) {
        let (made, agents) = mpsc::channel(16);
        (Self(made), agents)
    }
}

impl Puppet {
    pub(crate) async fn prompt(&mut self) -> Result<AgentPrompt> {
        self.prompts.recv().await.context("the agent is gone")
    }

    pub(crate) async fn finish(&self, text: &str) -> Result<()> {
        self.events.send(AgentEvent::Text(text.to_owned())).await?;
        Ok(self.events.send(AgentEvent::Ended(AgentEnd::Finished(None))).await?)
    }
}

impl AgentPort for Port {
    type Agent = Doll;

    async fn create(&self, options: AgentOptions) -> Result<Doll, AgentFailure> {
        let (prompts, prompted) = mpsc::channel(4);
        let (events, told) = mpsc::channel(64);
        let disposed = CancellationToken::new();
        let puppet = Puppet { options, prompts: prompted, events, disposed: disposed.clone() };
        self.0.send(puppet).await.map_err(|_| AgentFailure::new("the test is over"))?;
        Ok(Doll { prompts, events: tokio::sync::Mutex::new(told), disposed })
    }

    fn identity(&self) -> Option<Digest> {
        None
    }
}

impl Agent for Doll {
    async fn send(&self, prompt: AgentPrompt) -> Result<(), AgentFailure> {
        self.prompts.send(prompt).await.map_err(|_| AgentFailure::new("nobody holds the strings"))
    }

    async fn next(&self) -> Option<AgentEvent> {
        self.events.lock().await.recv().await
    }

    async fn cancel(&self) {}

    async fn dispose(self) {
        self.disposed.cancel();
    }
}
