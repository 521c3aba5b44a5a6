//! Owns what an agent says of its own tools, in one shape for every kind of agent. Knows nothing of cards.

use crate::json::RawJson;

/// How far a tool of the agent has come, as the agent says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolStatus {
    /// It runs.
    #[default]
    Running,
    /// It is over; whether well is in its result.
    Completed,
    /// The agent says that it failed.
    Failed,
}

/// One call of a tool that the agent has itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolActivity {
    /// The agent's id of the call; may be empty. It is never shown or recorded.
    pub id: String,
    /// The agent's name of the tool, as it came; empty in an update that leaves it out.
    pub kind: String,
    /// The arguments as far as they are known.
    pub args: RawJson,
    /// The result, once there is one.
    pub result: Option<RawJson>,
    /// How far it has come.
    pub status: ToolStatus,
}

impl ToolActivity {
    /// The invocation alone, in the shape in which own activity is recognised: the result is not in it.
    pub fn invocation(&self) -> RawJson {
        let id = serde_json::Value::from(self.id.as_str());
        let kind = serde_json::Value::from(self.kind.as_str());
        let text = format!("{{\"type\":{kind},\"callId\":{id},\"args\":{}}}", self.args.text());
        RawJson::new(text).unwrap_or_else(|_| RawJson::empty_object())
    }

    /// Takes over what a later event says.
    pub(super) fn update(&mut self, later: &Self) {
        if !later.kind.is_empty() {
            self.kind.clone_from(&later.kind);
        }
        if later.args != RawJson::empty_object() {
            self.args = later.args.clone();
        }
        if later.result.is_some() {
            self.result.clone_from(&later.result);
        }
        self.status = later.status;
    }
}

/// Where a running command wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What an agent reports of its own tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentToolEvent {
    /// A tool was started.
    Started(ToolActivity),
    /// More of a running call is known.
    Partial(ToolActivity),
    /// A tool is over.
    Completed(ToolActivity),
    /// A running command wrote something.
    Output {
        /// The call, where the agent names it.
        id: Option<String>,
        /// Where to.
        stream: OutputStream,
        /// What.
        text: String,
    },
}

impl AgentToolEvent {
    /// Reads an event: an interaction update or message of the SDK, a line of the command line tool's `stream-json`, or
    /// a `session/update` of the Agent Client Protocol. `None` for everything that is not about a tool.
    pub fn read(event: &RawJson) -> Option<Self> {
        super::reader::read(event)
    }

    /// The call that it is about, with its name and arguments.
    pub fn activity(&self) -> Option<&ToolActivity> {
        match self {
            Self::Started(call) | Self::Partial(call) | Self::Completed(call) => Some(call),
            Self::Output { .. } => None,
        }
    }
}
