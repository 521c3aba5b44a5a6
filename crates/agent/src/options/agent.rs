//! Owns what an agent is made with and sent. It starts nothing.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use toolway_secret::Secret;

use super::{AgentDefinition, CloudOptions, Limits, LocalOptions, Machine, ModelChoice};
use crate::custom_tools::CustomTool;
use crate::event::Delta;
use crate::id::AgentId;
use crate::inline::{DirectServer, McpServers};

/// What an agent is made with.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The machine and the user.
    pub machine: Machine,
    /// Its id; without it, a new one.
    pub agent_id: Option<AgentId>,
    /// What people call it.
    pub name: Option<String>,
    /// The key of the model's service. `None`: that of the environment. An empty one is a refusal of all others.
    pub api_key: Option<Secret>,
    /// The model.
    pub model: Option<ModelChoice>,
    /// How it answers.
    pub mode: Mode,
    /// Servers that it has beside those of files. They are not kept: a resume gives them again.
    pub mcp_servers: McpServers,
    /// Subagents by name.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// When a run stops by itself.
    pub limits: Limits,
    /// What makes a second try of the same creation harmless: it gives the agent of the first.
    pub idempotency_key: Option<String>,
    /// Where it runs, and what belongs to that place alone.
    pub place: Place,
}

/// Where an agent runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// On this machine.
    Local(Box<LocalOptions>),
    /// In the cloud.
    Cloud(Box<CloudOptions>),
}

impl From<LocalOptions> for Place {
    fn from(options: LocalOptions) -> Self {
        Self::Local(Box::new(options))
    }
}

impl From<CloudOptions> for Place {
    fn from(options: CloudOptions) -> Self {
        Self::Cloud(Box::new(options))
    }
}

/// How an agent answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It does the work.
    #[default]
    Agent,
    /// It makes a plan.
    Plan,
}

/// What goes with one prompt.
#[derive(Debug, Clone, Default)]
pub struct SendOptions {
    /// Another model, from now on.
    pub model: Option<ModelChoice>,
    /// The servers of this run.
    pub mcp_servers: ServerChange,
    /// How it answers, for this run.
    pub mode: Option<Mode>,
    /// Other bounds for this run.
    pub limits: Option<Limits>,
    /// What makes a second try of the same prompt harmless: it gives the run of the first.
    pub idempotency_key: Option<String>,
    /// Who listens to what happens between events. The run waits for it: what it does not take, the run does not go on
    /// with.
    pub deltas: Option<mpsc::Sender<Delta>>,
    /// What belongs to the place where the agent runs.
    pub place: SendPlace,
}

/// The servers of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ServerChange {
    /// Those of the agent.
    #[default]
    Inherit,
    /// Those of files, and these in place of those that the agent was made with.
    Replace(McpServers),
    /// None at all.
    None,
}

/// What belongs to the place where the agent runs.
#[derive(Debug, Clone, Default)]
pub enum SendPlace {
    /// Nothing.
    #[default]
    Any,
    /// An agent on this machine.
    Local(LocalSend),
    /// An agent in the cloud.
    Cloud(CloudSend),
}

/// What goes with a prompt to an agent on this machine.
#[derive(Debug, Clone, Default)]
pub struct LocalSend {
    /// A run that is still there is given up.
    pub force: bool,
    /// In place of the functions that the agent was made with.
    pub custom_tools: Option<Vec<CustomTool>>,
    /// In place of the loopback servers that the agent was made with.
    pub direct_servers: Option<Vec<DirectServer>>,
}

/// What goes with a prompt to an agent in the cloud.
#[derive(Debug, Clone, Default)]
pub struct CloudSend {
    /// Variables of the shell, for this run.
    pub env_vars: Vec<(String, Secret)>,
}

impl AgentOptions {
    /// An agent on this machine with nothing but the defaults.
    pub fn local(machine: Machine) -> Self {
        Self::at(machine, Place::Local(Box::default()))
    }

    /// An agent in the cloud with nothing but the defaults.
    pub fn cloud(machine: Machine) -> Self {
        Self::at(machine, Place::Cloud(Box::default()))
    }

    fn at(machine: Machine, place: Place) -> Self {
        Self {
            machine,
            agent_id: None,
            name: None,
            api_key: None,
            model: None,
            mode: Mode::default(),
            mcp_servers: McpServers::new(),
            agents: BTreeMap::new(),
            limits: Limits::default(),
            idempotency_key: None,
            place,
        }
    }

    /// What belongs to this machine alone, where it runs here.
    pub fn local_options(&self) -> Option<&LocalOptions> {
        match &self.place {
            Place::Local(local) => Some(local),
            Place::Cloud(_) => None,
        }
    }

    /// The machine, standing where the agent works.
    pub fn work_machine(&self) -> Machine {
        match self.local_options().and_then(|local| local.cwd.as_deref()) {
            Some(cwd) => self.machine.at(cwd),
            None => self.machine.clone(),
        }
    }
}

impl SendOptions {
    /// What belongs to this machine alone.
    pub fn local(&self) -> Option<&LocalSend> {
        match &self.place {
            SendPlace::Local(local) => Some(local),
            SendPlace::Any | SendPlace::Cloud(_) => None,
        }
    }
}
