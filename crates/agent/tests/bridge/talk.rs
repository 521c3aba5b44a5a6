//! A conversation of the host: it asks for turns, runs what it is asked to run, shows what it is given to show, and brings
//! the results, until the agent has answered.

use anyhow::{Result, ensure};
use tokio_util::sync::CancellationToken;
use toolway_bridge::{
    AgentMode, AssistantBlock, AssistantMessage, Block, CardBlock, HostSystem, Message, MessageBody, Profile,
    Replayed, Session, SkillList, StopReason, ToolCall, TurnRequest,
};

use super::rig::{Rig, soon};

/// A card, as the host drew it.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) text: String,
}

/// What one message of the user came to.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) stop: Option<StopReason>,
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// Calls of the host's own tools, turn by turn.
    pub(crate) batches: Vec<Vec<ToolCall>>,
    pub(crate) cards: Vec<Drawn>,
}

impl Answer {
    pub(crate) fn calls(&self) -> Vec<&ToolCall> {
        self.batches.iter().flatten().collect()
    }

    pub(crate) fn card_tools(&self) -> Vec<&str> {
        self.cards.iter().map(|card| card.tool.as_str()).collect()
    }
}

/// A conversation.
pub(crate) struct Talk {
    pub(crate) session: Session,
    pub(crate) messages: Vec<Message>,
    pub(crate) request: TurnRequest,
}

impl Talk {
    pub(crate) fn new(rig: &Rig, session: Session) -> Self {
        let names = ["bash", "edit", "write", "read", "ls", "grep", "find", Profile::PI.display_tool];
        let names: Vec<String> = names.map(str::to_owned).into();
        let request = TurnRequest {
            messages: Vec::new(),
            system: HostSystem::Text("You are in the host.".to_owned()),
            instruction_files: Vec::new(),
            skills: SkillList::default(),
            context_tools: names.clone(),
            wrappers: names,
            mode: AgentMode::Agent,
            model: String::new(),
            cwd: rig.work(),
            setting_sources: Some(Vec::new()),
            budget_tokens: None,
            abort: CancellationToken::new(),
        };
        Self { session, messages: Vec::new(), request }
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.messages.push(Message::user(text));
    }

    /// One turn of the conversation as it is.
    pub(crate) async fn turn(&mut self) -> Result<AssistantMessage> {
        let request = TurnRequest { messages: self.messages.clone(), ..self.request.clone() };
        let turn = self.session.turn(request).await;
        let message = soon(turn.message()).await?;
        let block = |block: &AssistantBlock| match block {
            AssistantBlock::Text(text) => Block::Text(text.clone()),
            AssistantBlock::Thinking(text) => Block::Thinking(text.clone()),
            AssistantBlock::ToolCall(call) => Block::ToolCall {
                id: call.id.to_string(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            },
        };
        let content = message.content.iter().map(block).collect();
        self.messages.push(Message::new(MessageBody::Assistant { content }));
        Ok(message)
    }

    pub(crate) fn bring(&mut self, call: &ToolCall, text: &str, is_error: bool) {
        self.messages.push(Message::new(MessageBody::ToolResult {
            tool_call_id: call.id.to_string(),
            tool_name: call.name.clone(),
            content: vec![Block::Text(text.to_owned())],
            is_error,
        }));
    }

    /// A message of the user, and all turns until the agent has answered. Host tools give what `run` says: a text, or an
    /// error.
    pub(crate) async fn say(
        &mut self,
        text: &str,
        mut run: impl AsyncFnMut(&ToolCall) -> Result<String, String>,
    ) -> Result<Answer> {
        self.user(text);
        self.go_on(&mut run).await
    }

    pub(crate) async fn go_on(
        &mut self,
        run: &mut impl AsyncFnMut(&ToolCall) -> Result<String, String>,
    ) -> Result<Answer> {
        let mut answer = Answer::default();
        for _ in 0..20 {
            let message = self.turn().await?;
            let mut batch = Vec::new();
            for block in message.content {
                match block {
                    AssistantBlock::Text(text) => answer.text.push_str(&text),
                    AssistantBlock::Thinking(text) => answer.thinking.push_str(&text),
                    AssistantBlock::ToolCall(call)
                        if call.id.as_str().starts_with(Profile::PI.replay_prefix) =>
                    {
                        let drawn = self.draw(&call)?;
                        self.bring(&call, &drawn.text, false);
                        answer.cards.push(drawn);
                    }
                    AssistantBlock::ToolCall(call) => {
                        let ran = match self.session.admit(&call.id) {
                            Ok(()) => soon(run(&call)).await?,
                            Err(blocked) => Err(blocked),
                        };
                        let (text, is_error) = match ran {
                            Ok(text) => (text, false),
                            Err(text) => (text, true),
                        };
                        self.bring(&call, &text, is_error);
                        batch.push(call);
                    }
                }
            }
            if !batch.is_empty() {
                answer.batches.push(batch);
            }
            if message.stop != StopReason::ToolUse {
                answer.stop = Some(message.stop);
                return Ok(answer);
            }
        }
        anyhow::bail!("it goes on and on: {answer:?}")
    }

    /// What the wrapper of that tool shows: what was recorded, once.
    fn draw(&self, call: &ToolCall) -> Result<Drawn> {
        let id = call.id.to_string();
        let shown = self.session.replayed(&call.name, &id);
        let card = match shown {
            Replayed::Result(card) | Replayed::Failed { card, .. } => card,
            other => anyhow::bail!("{id}: {other:?}"),
        };
        ensure!(
            matches!(self.session.replayed(&call.name, &id), Replayed::Refused(_)),
            "{id} is shown twice"
        );
        let texts = card.content.iter().filter_map(|block| match block {
            CardBlock::Text { text } => Some(text.as_str()),
            CardBlock::Image { .. } => None,
        });
        let texts: Vec<&str> = texts.collect();
        let text = format!("{} {} {}", card.summary, card.args.text(), texts.join("\n"));
        Ok(Drawn { id, tool: call.name.clone(), text })
    }
}

/// A host that is asked for nothing.
pub(crate) async fn nothing(call: &ToolCall) -> Result<String, String> {
    Err(format!("nobody runs {}", call.name))
}
