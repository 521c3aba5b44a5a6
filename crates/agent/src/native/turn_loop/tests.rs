//! Scripts for the turn loop: what happened goes in, and what is to be done comes out as lines.

mod calls;
mod ends;
mod models;
mod text;

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::event::{AssistantBlock, ToolCallStatus};
use crate::native::model::{AnswerPart, Message, ModelCall, ModelStop};

/// A loop with tools `look` and `peek`, which only read, `write`, and `get` of a server; the server `late` is on its way.
pub(super) struct Rig {
    pub(super) turn: TurnLoop,
    now: Duration,
    pub(super) steering: Vec<String>,
    pub(super) lines: Vec<String>,
    pub(super) running: Vec<PlannedCall>,
}

impl Rig {
    pub(super) fn new(limits: Limits) -> Self {
        Self::with(Conversation::default(), limits)
    }

    pub(super) fn with(conversation: Conversation, limits: Limits) -> Self {
        let prices = Prices { input: 1_000_000.0, output: 1_000_000.0, cache_read: 0.0, cache_write: 0.0 };
        let mut turn = TurnLoop::new(conversation, limits, Some(prices), ATTEMPTS);
        turn.start(vec![UserPart::Text("hello".into())]);
        let mut rig =
            Self { turn, now: Duration::ZERO, steering: Vec::new(), lines: Vec::new(), running: Vec::new() };
        rig.drain();
        rig
    }

    fn offer() -> Arc<Offer> {
        let own = |together| Offered { together, shown: Shown::Own };
        let mcp = Shown::Mcp { server: "files".into(), tool: "get".into() };
        let tools = [
            ("look".to_owned(), own(true)),
            ("peek".to_owned(), own(true)),
            ("write".to_owned(), own(false)),
            ("files__get".to_owned(), Offered { together: true, shown: mcp }),
        ];
        let absent = Resolve(Some(Arc::new(|name: &str, arguments: &RawJson| {
            let tool = name.strip_prefix("late__")?.to_owned();
            let shown = Shown::Mcp { server: "late".into(), tool };
            let offered = Offered { together: false, shown };
            Some(Resolved { offered, arguments: arguments.clone() })
        })));
        Arc::new(Offer { tools: tools.into(), absent, ..Offer::default() })
    }

    fn drain(&mut self) {
        while let Some(effect) = self.turn.next_effect() {
            match effect {
                Effect::Boundary => {
                    let steering = std::mem::take(&mut self.steering);
                    self.turn.handle(self.now, Input::Boundary { steering, offer: Self::offer() });
                }
                Effect::Run(calls) => {
                    let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                    self.lines.push(format!("run {}", ids.join(" ")));
                    self.running.extend(calls);
                }
                effect => self.lines.push(line(&effect)),
            }
        }
    }

    pub(super) fn give(&mut self, input: Input) {
        self.now += Duration::from_millis(10);
        self.turn.handle(self.now, input);
        self.drain();
    }

    pub(super) fn answer(&mut self, parts: Vec<AnswerPart>, stop: ModelStop) {
        let usage = Some(Usage { input: 10, output: 5, ..Usage::default() });
        self.give(Input::Answered(ModelAnswer { parts, usage, stop }));
    }

    pub(super) fn says(&mut self, text: &str) {
        self.answer(vec![AnswerPart::Text(text.into())], ModelStop::End);
    }

    pub(super) fn calls(&mut self, calls: &[(&str, &str, &str)]) {
        let parts = calls.iter().map(|(id, name, arguments)| call(id, name, arguments)).collect();
        self.answer(parts, ModelStop::Calls);
    }

    pub(super) fn done(&mut self, id: &str, text: &str) {
        self.running.retain(|call| call.id != id);
        self.give(Input::CallDone(CallDone {
            id: id.into(),
            content: vec![UserPart::Text(text.into())],
            is_error: false,
            result: RawJson::of(&serde_json::json!({ "text": text })),
            is_part: false,
            usage: Usage::default(),
            cost: None,
        }));
    }

    /// The lines since the last look.
    pub(super) fn lines(&mut self) -> String {
        std::mem::take(&mut self.lines).join("\n")
    }

    /// The conversation as lines.
    pub(super) fn talk(&self) -> String {
        let lines = self.turn.conversation.messages().iter().map(|message| match message {
            Message::User(parts) => format!("user: {}", texts(parts)),
            Message::Assistant(parts) => {
                let parts = parts.iter().map(|part| match part {
                    AnswerPart::Text(text) => text.clone(),
                    AnswerPart::Thinking { text, .. } => format!("({text})"),
                    AnswerPart::Call(call) => format!("{}={}", call.id, call.name),
                });
                format!("model: {}", parts.collect::<Vec<_>>().join(" "))
            }
            Message::Tools(results) => {
                let results = results.iter().map(|result| {
                    let mark = if result.is_error { "!" } else { "" };
                    format!("{}{mark}: {}", result.call_id, texts(&result.content))
                });
                format!("tools: {}", results.collect::<Vec<_>>().join(" | "))
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

use toolway_bridge::RawJson;

fn texts(parts: &[UserPart]) -> String {
    let texts = parts.iter().map(|part| match part {
        UserPart::Text(text) => text.as_str(),
        UserPart::Image { .. } => "[image]",
    });
    texts.collect()
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> AnswerPart {
    AnswerPart::Call(ModelCall { id: id.into(), name: name.into(), arguments: arguments.into(), seal: None })
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::Event(EventKind::Assistant { content }) => {
            let blocks = content.iter().map(|block| match block {
                AssistantBlock::Text(text) => text.clone(),
                AssistantBlock::ToolUse { id, name, input } => format!("{id}={name}{}", input.text()),
            });
            format!("assistant {}", blocks.collect::<Vec<_>>().join(" "))
        }
        Effect::Event(EventKind::Thinking { text, thinking_duration_ms }) => {
            format!("thinking {text} {thinking_duration_ms:?}")
        }
        Effect::Event(EventKind::ToolCall(call)) => {
            let args = call.args.as_ref().map(RawJson::text).unwrap_or_default();
            match call.status {
                ToolCallStatus::Running => format!("running {} {} {args}", call.call_id, call.name),
                ToolCallStatus::Completed => format!("completed {}", call.call_id),
                ToolCallStatus::Error => format!("error {}", call.call_id),
            }
        }
        Effect::Event(EventKind::Usage(usage)) => format!("usage {}", usage.total()),
        Effect::Event(EventKind::Task { status, text }) => {
            format!("task {}: {}", status.as_deref().unwrap_or_default(), text.as_deref().unwrap_or_default())
        }
        Effect::Event(EventKind::User { text }) => format!("user {text}"),
        Effect::Event(other) => format!("event {other:?}"),
        Effect::Delta(Delta::Text(text)) => format!("~{text}"),
        Effect::Delta(Delta::ToolCallStarted(_) | Delta::ToolCallCompleted(_) | Delta::TurnEnded(_)) => {
            "~".into()
        }
        Effect::Delta(delta) => format!("~{delta:?}"),
        Effect::Checkpoint => "keep".into(),
        Effect::Ask { delay, shorten } => {
            let shorten = if *shorten { " shorter" } else { "" };
            format!("ask{shorten} after {} ms", delay.as_millis())
        }
        Effect::Hush => "hush".into(),
        Effect::CancelCalls => "cancel calls".into(),
        Effect::End(stop) => format!("end {stop:?}"),
        Effect::Fail(error) => format!("fail {error}"),
        Effect::Boundary | Effect::Run(_) => String::new(),
    }
}
