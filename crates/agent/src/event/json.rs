//! Owns the JSON form of events, in both directions. Arguments and results keep their bytes.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolway_bridge::RawJson;

use super::{
    AssistantBlock, Event, EventKind, RunStatus, ServerReport, SystemInit, ToolCallEvent, ToolCallStatus,
    ToolPair, Truncated, Usage,
};
use crate::id::{AgentId, RunId};

impl Event {
    /// In JSON, one line. The name of the kind is its `type`.
    pub fn to_json(&self) -> String {
        // Every part is a text, a number or JSON that was checked: nothing can fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From JSON.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl EventKind {
    /// The name of the kind, as it stands in `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::System(_) => "system",
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::Thinking { .. } => "thinking",
            Self::ToolCall(_) => "tool_call",
            Self::Status { .. } => "status",
            Self::Request { .. } => "request",
            Self::Task { .. } => "task",
            Self::Usage(_) => "usage",
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.name())?;
        if matches!(self.kind, EventKind::System(_)) {
            map.serialize_entry("subtype", "init")?;
        }
        map.serialize_entry("agent_id", &self.agent_id)?;
        map.serialize_entry("run_id", &self.run_id)?;
        match &self.kind {
            EventKind::System(init) => write_init(&mut map, init)?,
            EventKind::User { text } => map.serialize_entry(
                "message",
                &Message { role: "user".into(), content: vec![Block::Text { text: text.clone() }] },
            )?,
            EventKind::Assistant { content } => map.serialize_entry(
                "message",
                &Message {
                    role: "assistant".into(),
                    content: content.iter().cloned().map(Block::from).collect(),
                },
            )?,
            EventKind::Thinking { text, thinking_duration_ms } => {
                map.serialize_entry("text", text)?;
                some(&mut map, "thinking_duration_ms", thinking_duration_ms.as_ref())?;
            }
            EventKind::ToolCall(call) => write_call(&mut map, call)?,
            EventKind::Status { status, message } => {
                map.serialize_entry("status", status)?;
                some(&mut map, "message", message.as_ref())?;
            }
            EventKind::Request { request_id } => map.serialize_entry("request_id", request_id)?,
            EventKind::Task { status, text } => {
                some(&mut map, "status", status.as_ref())?;
                some(&mut map, "text", text.as_ref())?;
            }
            EventKind::Usage(usage) => {
                map.serialize_entry("usage", usage)?;
                map.serialize_entry("total", &usage.total())?;
            }
        }
        map.end()
    }
}

fn write_init<M: SerializeMap>(map: &mut M, init: &SystemInit) -> Result<(), M::Error> {
    let SystemInit { model, runtime, cwd, tools, mcp_tools, mcp_servers, diagnostics } = init;
    some(map, "model", model.as_ref())?;
    map.serialize_entry("runtime", runtime)?;
    some(map, "cwd", cwd.as_ref())?;
    map.serialize_entry("tools", tools)?;
    map.serialize_entry("mcp_tools", mcp_tools)?;
    map.serialize_entry("mcp_servers", mcp_servers)?;
    map.serialize_entry("diagnostics", diagnostics)
}

fn write_call<M: SerializeMap>(map: &mut M, call: &ToolCallEvent) -> Result<(), M::Error> {
    let ToolCallEvent { call_id, name, status, args, result, truncated } = call;
    map.serialize_entry("call_id", call_id)?;
    map.serialize_entry("name", name)?;
    map.serialize_entry("status", status)?;
    some(map, "args", args.as_ref())?;
    some(map, "result", result.as_ref())?;
    some(map, "truncated", (*truncated != Truncated::default()).then_some(truncated))
}

fn some<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<&T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

#[derive(Serialize, Deserialize)]
struct Message {
    role: String,
    content: Vec<Block>,
}

/// A block by its members: a tagged enumeration would take the bytes of `input` apart.
#[derive(Deserialize)]
#[serde(from = "Members")]
enum Block {
    Text { text: String },
    ToolUse { id: String, name: String, input: RawJson },
}

#[derive(Deserialize)]
struct Members {
    #[serde(default)]
    text: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    input: Option<RawJson>,
}

impl From<Members> for Block {
    fn from(members: Members) -> Self {
        match members.input {
            Some(input) => Self::ToolUse { id: members.id, name: members.name, input },
            None => Self::Text { text: members.text },
        }
    }
}

impl From<AssistantBlock> for Block {
    fn from(block: AssistantBlock) -> Self {
        match block {
            AssistantBlock::Text(text) => Self::Text { text },
            AssistantBlock::ToolUse { id, name, input } => Self::ToolUse { id, name, input },
        }
    }
}

impl From<Block> for AssistantBlock {
    fn from(block: Block) -> Self {
        match block {
            Block::Text { text } => Self::Text(text),
            Block::ToolUse { id, name, input } => Self::ToolUse { id, name, input },
        }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Text { text } => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Self::ToolUse { id, name, input } => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)?;
            }
        }
        map.end()
    }
}

/// The members of all kinds as they come; each kind has some of them.
#[derive(Deserialize)]
struct Flat {
    r#type: String,
    agent_id: AgentId,
    run_id: RunId,
    model: Option<String>,
    #[serde(default)]
    runtime: String,
    cwd: Option<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    mcp_tools: Vec<ToolPair>,
    #[serde(default)]
    mcp_servers: Vec<ServerReport>,
    #[serde(default)]
    diagnostics: Vec<String>,
    /// What was said, or why a status is what it is.
    message: Option<RawJson>,
    text: Option<String>,
    thinking_duration_ms: Option<u64>,
    call_id: Option<String>,
    name: Option<String>,
    /// Of a run, a call or a task.
    status: Option<String>,
    args: Option<RawJson>,
    result: Option<RawJson>,
    #[serde(default)]
    truncated: Truncated,
    request_id: Option<String>,
    usage: Option<Usage>,
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flat = Flat::deserialize(deserializer)?;
        let (agent_id, run_id) = (flat.agent_id.clone(), flat.run_id.clone());
        let kind = flat.kind().map_err(D::Error::custom)?;
        Ok(Self { agent_id, run_id, kind })
    }
}

impl Flat {
    fn kind(self) -> Result<EventKind, serde_json::Error> {
        let missing = |name: &str| serde_json::Error::custom(format!("missing field `{name}`"));
        Ok(match self.r#type.as_str() {
            "system" => EventKind::System(Box::new(SystemInit {
                model: self.model,
                runtime: self.runtime,
                cwd: self.cwd,
                tools: self.tools,
                mcp_tools: self.mcp_tools,
                mcp_servers: self.mcp_servers,
                diagnostics: self.diagnostics,
            })),
            "user" => {
                let texts = self.blocks()?.into_iter().filter_map(|block| match block {
                    Block::Text { text } => Some(text),
                    Block::ToolUse { .. } => None,
                });
                EventKind::User { text: texts.collect::<Vec<_>>().join("\n") }
            }
            "assistant" => EventKind::Assistant {
                content: self.blocks()?.into_iter().map(AssistantBlock::from).collect(),
            },
            "thinking" => EventKind::Thinking {
                text: self.text.ok_or_else(|| missing("text"))?,
                thinking_duration_ms: self.thinking_duration_ms,
            },
            "tool_call" => EventKind::ToolCall(ToolCallEvent {
                call_id: self.call_id.ok_or_else(|| missing("call_id"))?,
                name: self.name.ok_or_else(|| missing("name"))?,
                status: word::<ToolCallStatus>(self.status.ok_or_else(|| missing("status"))?)?,
                args: self.args,
                result: self.result,
                truncated: self.truncated,
            }),
            "status" => EventKind::Status {
                status: word::<RunStatus>(self.status.ok_or_else(|| missing("status"))?)?,
                message: self
                    .message
                    .map(|message| serde_json::from_slice(message.bytes()))
                    .transpose()?
                    .flatten(),
            },
            "request" => {
                EventKind::Request { request_id: self.request_id.ok_or_else(|| missing("request_id"))? }
            }
            "task" => EventKind::Task { status: self.status, text: self.text },
            "usage" => EventKind::Usage(self.usage.ok_or_else(|| missing("usage"))?),
            other => return Err(serde_json::Error::custom(format!("unknown type of event {other:?}"))),
        })
    }

    fn blocks(&self) -> Result<Vec<Block>, serde_json::Error> {
        let message = self.message.as_ref().map_or(&b"{}"[..], |message| message.bytes());
        Ok(serde_json::from_slice::<Message>(message)?.content)
    }
}

fn word<T: for<'de> Deserialize<'de>>(word: String) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::Value::String(word))
}
