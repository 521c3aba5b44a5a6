//! Owns the JSON form of messages: lenient in what is read, only the members of the role in what is written.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Block, Message, MessageBody};
use crate::json::RawJson;
use crate::prompt::digest::Digest;

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::of(&self.body).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawJson::deserialize(deserializer)?;
        let read: Read = serde_json::from_slice(raw.bytes()).map_err(|error| wrong(&error))?;
        let result = read.content.clone().filter(|_| read.role == "toolResult");
        let body = read.body().map_err(|error| wrong(&error))?;
        Ok(Self { body, digest: Digest::of(raw.bytes()), result })
    }
}

/// What is wrong with a message; where it is, the reader of the whole knows.
fn wrong<E: serde::de::Error>(error: &serde_json::Error) -> E {
    let text = error.to_string();
    E::custom(text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what))
}

/// Every member of every role, as it is read: looked into only where the role has it, because the same name may stand for
/// something else in a role that is not known here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a message")]
struct Read {
    role: String,
    content: Option<RawJson>,
    tool_call_id: Option<RawJson>,
    tool_name: Option<RawJson>,
    is_error: Option<RawJson>,
    custom_type: Option<RawJson>,
    command: Option<RawJson>,
    output: Option<RawJson>,
    exit_code: Option<RawJson>,
    exclude_from_context: Option<RawJson>,
    summary: Option<RawJson>,
}

/// A member, or nothing where it is missing or of another type.
fn member<T: DeserializeOwned>(raw: Option<&RawJson>) -> Option<T> {
    raw?.read().ok()
}

/// The text of a member: of one that is no text, its JSON.
fn text(raw: Option<&RawJson>) -> String {
    raw.map_or_else(String::new, |raw| raw.read().unwrap_or_else(|_| raw.text().trim().to_owned()))
}

impl Read {
    fn body(self) -> Result<MessageBody, serde_json::Error> {
        let content = || blocks(self.content.as_ref());
        Ok(match self.role.as_str() {
            "user" => MessageBody::User { content: content()? },
            "assistant" => MessageBody::Assistant { content: content()? },
            "toolResult" => MessageBody::ToolResult {
                content: content()?,
                tool_call_id: text(self.tool_call_id.as_ref()),
                tool_name: text(self.tool_name.as_ref()),
                is_error: member(self.is_error.as_ref()).unwrap_or_default(),
            },
            "custom" => {
                MessageBody::Custom { content: content()?, custom_type: text(self.custom_type.as_ref()) }
            }
            "bashExecution" => MessageBody::BashExecution {
                command: text(self.command.as_ref()),
                output: text(self.output.as_ref()),
                exit_code: member(self.exit_code.as_ref()),
                excluded: member(self.exclude_from_context.as_ref()).unwrap_or_default(),
            },
            "branchSummary" => MessageBody::BranchSummary { summary: text(self.summary.as_ref()) },
            "compactionSummary" => MessageBody::CompactionSummary { summary: text(self.summary.as_ref()) },
            _ => MessageBody::Other { content: content().unwrap_or_default(), role: self.role },
        })
    }
}

/// A content is one text, or a list of blocks, or absent; anything else counts as the text of its JSON.
fn blocks(content: Option<&RawJson>) -> Result<Vec<Block>, serde_json::Error> {
    let Some(content) = content else { return Ok(Vec::new()) };
    match first_byte(content) {
        b'[' => {
            let items: Vec<RawJson> = serde_json::from_slice(content.bytes())?;
            items.iter().map(block).collect()
        }
        _ => Ok(vec![block(content)?]),
    }
}

fn block(item: &RawJson) -> Result<Block, serde_json::Error> {
    match first_byte(item) {
        b'"' => Ok(Block::Text(item.read()?)),
        b'{' => {
            let read: ReadBlock = serde_json::from_slice(item.bytes())?;
            Ok(read.block(item))
        }
        _ => Ok(Block::Text(item.text().trim().to_owned())),
    }
}

fn first_byte(json: &RawJson) -> u8 {
    json.bytes().iter().copied().find(|byte| !byte.is_ascii_whitespace()).unwrap_or_default()
}

/// Every member of every block, as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a content block")]
struct ReadBlock {
    r#type: Option<String>,
    text: Option<RawJson>,
    thinking: Option<RawJson>,
    data: Option<RawJson>,
    mime_type: Option<RawJson>,
    id: Option<RawJson>,
    name: Option<RawJson>,
    arguments: Option<RawJson>,
}

impl ReadBlock {
    fn block(self, whole: &RawJson) -> Block {
        let Some(kind) = self.r#type else { return Block::Text(whole.text().to_owned()) };
        match kind.as_str() {
            "text" => Block::Text(text(self.text.as_ref())),
            "thinking" => Block::Thinking(text(self.thinking.as_ref())),
            "image" => Block::Image {
                data: member(self.data.as_ref()).unwrap_or_default(),
                mime_type: member(self.mime_type.as_ref()).unwrap_or_default(),
            },
            "toolCall" => Block::ToolCall {
                id: text(self.id.as_ref()),
                name: text(self.name.as_ref()),
                arguments: self.arguments.unwrap_or_else(RawJson::empty_object),
            },
            _ => Block::Other(kind),
        }
    }
}

/// The same members, as they are written: only those that the role has.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written<'a> {
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<WrittenBlock<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclude_from_context: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
}

impl<'a> Written<'a> {
    pub(super) fn of(body: &'a MessageBody) -> Self {
        let list = |content: &'a [Block]| Some(content.iter().map(WrittenBlock::of).collect());
        match body {
            MessageBody::User { content } => Self { role: "user", content: list(content), ..Self::default() },
            MessageBody::Assistant { content } => {
                Self { role: "assistant", content: list(content), ..Self::default() }
            }
            MessageBody::ToolResult { tool_call_id, tool_name, content, is_error } => Self {
                role: "toolResult",
                tool_call_id: Some(tool_call_id),
                tool_name: Some(tool_name),
                content: list(content),
                is_error: Some(*is_error),
                ..Self::default()
            },
            MessageBody::Custom { custom_type, content } => Self {
                role: "custom",
                custom_type: Some(custom_type),
                content: list(content),
                ..Self::default()
            },
            MessageBody::BashExecution { command, output, exit_code, excluded } => Self {
                role: "bashExecution",
                command: Some(command),
                output: Some(output),
                exit_code: *exit_code,
                exclude_from_context: Some(*excluded),
                ..Self::default()
            },
            MessageBody::BranchSummary { summary } => {
                Self { role: "branchSummary", summary: Some(summary), ..Self::default() }
            }
            MessageBody::CompactionSummary { summary } => {
                Self { role: "compactionSummary", summary: Some(summary), ..Self::default() }
            }
            MessageBody::Other { role, content } => Self { role, content: list(content), ..Self::default() },
        }
    }
}

/// The JSON form of a content.
pub(super) fn content(blocks: &[Block]) -> Option<RawJson> {
    let blocks: Vec<WrittenBlock<'_>> = blocks.iter().map(WrittenBlock::of).collect();
    RawJson::new(serde_json::to_vec(&blocks).ok()?).ok()
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenBlock<'a> {
    r#type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawJson>,
}

impl<'a> WrittenBlock<'a> {
    fn of(block: &'a Block) -> Self {
        match block {
            Block::Text(text) => Self { r#type: "text", text: Some(text), ..Self::default() },
            Block::Thinking(text) => Self { r#type: "thinking", thinking: Some(text), ..Self::default() },
            Block::Image { data, mime_type } => {
                Self { r#type: "image", data: Some(data), mime_type: Some(mime_type), ..Self::default() }
            }
            Block::ToolCall { id, name, arguments } => Self {
                r#type: "toolCall",
                id: Some(id),
                name: Some(name),
                arguments: Some(arguments),
                ..Self::default()
            },
            Block::Other(kind) => Self { r#type: kind, ..Self::default() },
        }
    }
}

impl JsonSchema for Message {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let block = json_schema!({
            "type": "object",
            "description": "A text, an image, a thought, or a tool call. Other types are kept out of prompts.",
            "properties": {
                "type": {"type": "string", "description": "text, image, thinking, toolCall, or any other"},
                "text": {"type": "string"},
                "thinking": {"type": "string"},
                "data": {"type": "string", "description": "An image in Base64."},
                "mimeType": {"type": "string"},
                "id": {"type": "string", "description": "The id of a tool call."},
                "name": {"type": "string", "description": "The name of the tool that was called."},
                "arguments": {"type": "object"}
            },
            "required": ["type"]
        });
        json_schema!({
            "type": "object",
            "description": "A message of the conversation. Members that are not named here may be present; a change of them counts as a change of the message.",
            "properties": {
                "role": {"type": "string", "description": "user, assistant, toolResult, custom, bashExecution, branchSummary, compactionSummary, or any other"},
                "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": block}, {"type": "null"}]},
                "toolCallId": {"type": ["string", "null"], "description": "role toolResult"},
                "toolName": {"type": ["string", "null"], "description": "role toolResult"},
                "isError": {"type": ["boolean", "null"], "description": "role toolResult"},
                "customType": {"type": ["string", "null"], "description": "role custom"},
                "command": {"type": ["string", "null"], "description": "role bashExecution"},
                "output": {"type": ["string", "null"], "description": "role bashExecution"},
                "exitCode": {"type": ["integer", "null"], "description": "role bashExecution"},
                "excludeFromContext": {"type": ["boolean", "null"], "description": "role bashExecution: no prompt shows it"},
                "summary": {"type": ["string", "null"], "description": "roles branchSummary and compactionSummary"}
            },
            "required": ["role"]
        })
    }
}
