//! Owns how a neutral conversation is told to the library, and what each service wants done differently. It makes no
//! request.

use std::collections::BTreeSet;

use genai::adapter::AdapterKind;
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ContentPart, MessageContent, ReasoningEffort, Tool,
    ToolCall, ToolResponse,
};
use serde_json::{Value, json};

use super::message::{AnswerPart, Message, ModelCall, Seal, ToolAnswer, UserPart};
use super::schema::{arguments, schema};
use super::service::{Target, Wire, reasons};
use super::{ModelRequest, ToolSpec};

/// What stands for the result of a call that never got one.
const NO_RESULT: &str = "This call was interrupted. Whether it did anything is not known.";
const UNSEEN: &str = "[a picture, which this model cannot see]";

/// The request as the library takes it.
pub(super) fn request(target: &Target, request: &ModelRequest<'_>, images: bool) -> ChatRequest {
    let mut writer = Writer {
        wire: target.service.wire,
        echoes: target.service.echoes_thinking,
        single: target.service.kind == AdapterKind::Ollama,
        tag: tag(target),
        images,
        messages: Vec::with_capacity(request.messages.len() + 1),
        open: Vec::new(),
    };
    let mut system = (!request.system.is_empty()).then(|| request.system.to_owned());
    let caches = target.service.wire == Wire::Messages;
    if caches && let Some(text) = system.take() {
        writer.messages.push(ChatMessage::system(text).with_options(CacheControl::Ephemeral));
    }
    for message in request.messages {
        writer.message(message);
    }
    writer.close(&[]);
    let mut messages = writer.messages;
    if caches && let Some(last) = messages.pop() {
        messages.push(last.with_options(CacheControl::Ephemeral));
    }
    let tools: Vec<Tool> = request.tools.iter().map(|spec| tool(spec, target.service.wire)).collect();
    let mut whole = ChatRequest::from_messages(messages);
    whole.system = system;
    whole.tools = (!tools.is_empty()).then_some(tools);
    whole
}

/// The options of every request, over those of the parameters.
pub(super) fn options(target: &Target, params: &ChatOptions, max_output: Option<u32>) -> ChatOptions {
    let thinks = params.reasoning_effort.is_some() || reasons(&target.model);
    let mut options = params.clone().with_capture_usage(true);
    if target.service.wire == Wire::Library {
        options = options.with_capture_tool_calls(true).with_capture_content(true);
    }
    if target.service.wire != Wire::Responses || thinks {
        options = options.with_capture_reasoning_content(true);
    }
    if let Some(most) = max_output {
        options.max_tokens = Some(options.max_tokens.map_or(most, |own| own.min(most)));
    }
    let like_an_effort = target.model.rsplit('-').next().and_then(ReasoningEffort::from_keyword).is_some();
    let over_openai = matches!(target.service.wire, Wire::Chat | Wire::Responses);
    if like_an_effort && over_openai && options.reasoning_effort.is_none() {
        // The library takes a name's end (`-max`, `-high`) for an effort, unless there is one. This one is not sent.
        options.reasoning_effort = Some(ReasoningEffort::Budget(0));
    }
    options
}

/// Whose seals are whose: a service believes what this model of its said.
pub(super) fn tag(target: &Target) -> String {
    format!("{}/{}", target.service.name, target.model)
}

struct Writer<'a> {
    wire: Wire,
    echoes: bool,
    single: bool,
    tag: String,
    images: bool,
    messages: Vec<ChatMessage>,
    /// Calls that wait for their results.
    open: Vec<&'a ModelCall>,
}

impl<'a> Writer<'a> {
    fn message(&mut self, message: &'a Message) {
        match message {
            Message::Tools(answers) => self.close(answers),
            Message::User(parts) => {
                self.close(&[]);
                let parts = self.user_parts(parts);
                self.messages.push(ChatMessage::user(parts));
            }
            Message::Assistant(parts) => {
                self.close(&[]);
                let content: Vec<ContentPart> =
                    parts.iter().filter_map(|part| self.answer_part(part)).flatten().collect();
                if !content.is_empty() {
                    self.messages.push(ChatMessage::assistant(content));
                }
                self.open = parts
                    .iter()
                    .filter_map(|part| match part {
                        AnswerPart::Call(call) => Some(call),
                        _ => None,
                    })
                    .collect();
            }
        }
    }

    fn user_parts(&self, parts: &[UserPart]) -> Vec<ContentPart> {
        let mut content: Vec<ContentPart> = parts
            .iter()
            .filter_map(|part| match part {
                UserPart::Text(text) => (!text.is_empty()).then(|| ContentPart::from_text(text)),
                UserPart::Image { .. } if !self.images => Some(ContentPart::from_text(UNSEEN)),
                UserPart::Image { mime_type, data } => {
                    Some(ContentPart::from_binary_base64(mime_type, data.as_str(), None))
                }
            })
            .collect();
        if content.is_empty() {
            content.push(ContentPart::from_text(" "));
        }
        content
    }

    fn answer_part(&self, part: &AnswerPart) -> Option<Vec<ContentPart>> {
        match part {
            AnswerPart::Text(text) => (!text.is_empty()).then(|| vec![ContentPart::from_text(text)]),
            AnswerPart::Thinking { text, seal } => self.thinking(text, seal.as_ref()),
            AnswerPart::Call(call) => {
                let seals =
                    self.own(call.seal.as_ref()).and_then(|seal| serde_json::from_str(&seal.data).ok());
                Some(vec![ContentPart::ToolCall(ToolCall {
                    call_id: call.id.clone(),
                    fn_name: call.name.clone(),
                    fn_arguments: arguments(&call.arguments),
                    thought_signatures: seals,
                })])
            }
        }
    }

    fn own<'s>(&self, seal: Option<&'s Seal>) -> Option<&'s Seal> {
        seal.filter(|seal| seal.service == self.tag)
    }

    fn thinking(&self, text: &str, seal: Option<&Seal>) -> Option<Vec<ContentPart>> {
        if self.wire == Wire::Chat {
            return (self.echoes && !text.is_empty())
                .then(|| vec![ContentPart::ReasoningContent(text.to_owned())]);
        }
        let seal = self.own(seal)?;
        if seal.block {
            let block = serde_json::from_str(&seal.data).ok()?;
            return Some(vec![ContentPart::from_custom(block, None)]);
        }
        if self.wire == Wire::Messages {
            let block = json!({ "type": "thinking", "thinking": text, "signature": seal.data });
            return Some(vec![ContentPart::from_custom(block, None)]);
        }
        Some(vec![ContentPart::ThoughtSignature(seal.data.clone())])
    }

    /// Writes the results of the calls that are open. Every call gets one, and a result without its call is told as
    /// what the user says, because services refuse conversations in which they do not match.
    fn close(&mut self, answers: &[ToolAnswer]) {
        let open = std::mem::take(&mut self.open);
        let known: BTreeSet<&str> = open.iter().map(|call| call.id.as_str()).collect();
        let missing: Vec<ToolAnswer> = open
            .iter()
            .filter(|call| !answers.iter().any(|answer| answer.call_id == call.id))
            .map(|call| ToolAnswer {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: vec![UserPart::Text(NO_RESULT.to_owned())],
                is_error: true,
            })
            .collect();
        let (own, strays): (Vec<&ToolAnswer>, Vec<&ToolAnswer>) =
            answers.iter().chain(&missing).partition(|answer| known.contains(answer.call_id.as_str()));
        let mut pictures = Vec::new();
        let mut parts = Vec::new();
        for answer in own {
            parts.push(self.tool_part(answer, &mut pictures));
        }
        // Of a message for Ollama the library takes one result alone.
        let size = if self.single { 1 } else { parts.len().max(1) };
        let chunks = parts.chunks(size).map(|chunk| ChatMessage::tool(MessageContent::from_parts(chunk)));
        self.messages.extend(chunks);
        if !pictures.is_empty() {
            self.messages.push(ChatMessage::user(pictures));
        }
        for stray in strays {
            let mut parts =
                vec![ContentPart::from_text(format!("Result of an earlier call of {}:", stray.name))];
            parts.extend(self.user_parts(&stray.content));
            self.messages.push(ChatMessage::user(parts));
        }
    }

    fn tool_part(&self, answer: &ToolAnswer, pictures: &mut Vec<ContentPart>) -> ContentPart {
        if self.wire == Wire::Messages {
            return self.messages_result(answer);
        }
        let mut text = String::new();
        let mut seen = Vec::new();
        for part in &answer.content {
            let line = match part {
                UserPart::Text(text) => text.as_str(),
                UserPart::Image { .. } if !self.images => UNSEEN,
                UserPart::Image { mime_type, data } => {
                    seen.push(ContentPart::from_binary_base64(mime_type, data.as_str(), None));
                    "[a picture, which follows]"
                }
            };
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
        }
        if !seen.is_empty() {
            pictures.push(ContentPart::from_text(format!("Pictures that {} answered:", answer.name)));
            pictures.append(&mut seen);
        }
        if answer.is_error && !text.trim_start().to_ascii_lowercase().starts_with("error") {
            text.insert_str(0, "Error: ");
        }
        let response = ToolResponse::new(&answer.call_id, text).with_fn_name(&answer.name);
        ContentPart::ToolResponse(response)
    }

    /// Anthropic's results have pictures and say that they are errors, which the library cannot tell it.
    fn messages_result(&self, answer: &ToolAnswer) -> ContentPart {
        let content: Vec<Value> = answer
            .content
            .iter()
            .filter_map(|part| match part {
                UserPart::Text(text) => (!text.is_empty()).then(|| json!({ "type": "text", "text": text })),
                UserPart::Image { .. } if !self.images => Some(json!({ "type": "text", "text": UNSEEN })),
                UserPart::Image { mime_type, data } => Some(json!({
                    "type": "image",
                    "source": { "type": "base64", "media_type": mime_type, "data": data },
                })),
            })
            .collect();
        let mut block = json!({ "type": "tool_result", "tool_use_id": answer.call_id, "content": content });
        if answer.is_error {
            block["is_error"] = true.into();
        }
        ContentPart::from_custom(block, None)
    }
}

fn tool(spec: &ToolSpec, wire: Wire) -> Tool {
    let tool =
        Tool::new(spec.name.clone()).with_description(&spec.description).with_schema(schema(&spec.schema));
    if matches!(wire, Wire::Chat | Wire::Responses) { tool.with_strict(false) } else { tool }
}
