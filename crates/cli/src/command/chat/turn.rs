//! Owns one prompt from its sending to the whole answer: turns of the agent, and the calls of the chat's tools in between.

use tokio_util::sync::CancellationToken;
use toolway_bridge::{
    AssistantBlock, AssistantMessage, Block, HostResult, HostSystem, Message, MessageBody, NoticeLevel,
    Replayed, StopReason, SystemPart, SystemPartKind, ToolCall, TurnEvent, TurnRequest, activate,
};

use super::Chat;
use super::PROFILE;
use crate::exit::Exit;

/// Whose look a card of the agent's own tools can have.
const NATIVE: [&str; 7] = ["read", "bash", "grep", "find", "ls", "edit", "write"];
const SIGINT: i32 = 2;
/// What the agent is told of where it is.
const SYSTEM: &str = "You talk with a person in a terminal, by `toolway chat`. Your answers are shown there as markdown: \
write short lines and narrow tables. Tools whose names begin with `host__` belong to the chat itself: the person sees what \
they do.";

/// What came of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered.
    Answered,
    /// The agent failed.
    Failed,
    /// The user stopped it.
    Stopped,
    /// The chat is to end.
    End(Exit),
}

impl Chat {
    /// Sends what the user said, and goes on until the answer is whole.
    pub(super) async fn prompt(&mut self, text: &str) -> Outcome {
        self.remember(Message::user(text));
        let abort = CancellationToken::new();
        let mut ending = None;
        let outcome = loop {
            let message = match self.turn(&abort, &mut ending).await {
                Ok(message) => message,
                Err(exit) => return Outcome::End(exit),
            };
            self.screen.end_answer();
            self.tell_notices();
            let calls = self.remember_answer(&message);
            match message.stop {
                StopReason::ToolUse => {
                    for call in calls {
                        let result = match self.one_call(&call, &abort, &mut ending).await {
                            Ok(result) => result,
                            Err(exit) => return Outcome::End(exit),
                        };
                        self.remember_result(&call, &result);
                    }
                    if abort.is_cancelled() {
                        break Outcome::Stopped;
                    }
                }
                StopReason::Stop => break Outcome::Answered,
                StopReason::Error(reason) => {
                    self.screen.notice(NoticeLevel::Error, &reason);
                    break Outcome::Failed;
                }
                StopReason::Aborted(reason) => {
                    if !abort.is_cancelled() {
                        self.screen.notice(NoticeLevel::Error, &reason);
                        break Outcome::Failed;
                    }
                    break Outcome::Stopped;
                }
            }
        };
        self.tell_notices();
        match ending {
            Some(signal) => Outcome::End(signalled(signal)),
            None => outcome,
        }
    }

    /// One turn, shown as it comes.
    async fn turn(
        &mut self,
        abort: &CancellationToken,
        ending: &mut Option<i32>,
    ) -> Result<AssistantMessage, Exit> {
        let request = self.request(abort);
        let mut turn = self.session.turn(request).await;
        loop {
            let event = tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => {
                    self.stop(signal, abort, ending)?;
                    continue;
                }
                event = turn.next() => event,
            };
            match event {
                Some(TurnEvent::Text(text)) => self.screen.text(&text),
                Some(TurnEvent::Thinking(text)) => self.screen.thinking(&text),
                Some(TurnEvent::End(message)) => return Ok(message),
                Some(_) => {}
                // After the end there is nothing, and the end was returned.
                None => return Err(Exit::Ended),
            }
            if self.screen.gone {
                abort.cancel();
            }
        }
    }

    /// A signal: the first one stops what is done, the second one ends the chat.
    fn stop(&mut self, signal: i32, abort: &CancellationToken, ending: &mut Option<i32>) -> Result<(), Exit> {
        if abort.is_cancelled() {
            return Err(signalled(signal));
        }
        if signal == SIGINT {
            self.screen.notice(NoticeLevel::Info, "stopping; Ctrl-C once more ends the chat");
        } else {
            *ending = Some(signal);
        }
        abort.cancel();
        Ok(())
    }

    fn request(&self, abort: &CancellationToken) -> TurnRequest {
        let mut system = vec![part(SystemPartKind::Text, SYSTEM)];
        if !self.skills.is_empty() {
            system.push(part(SystemPartKind::Skills, ""));
        }
        let wrappers = NATIVE.into_iter().chain([PROFILE.display_tool]).map(str::to_owned);
        let wrappers: Vec<String> = wrappers.collect();
        let mut context_tools = self.active();
        context_tools.extend_from_slice(&wrappers);
        TurnRequest {
            messages: self.messages.clone(),
            system: HostSystem::Parts(system),
            instruction_files: Vec::new(),
            skills: self.skills.clone(),
            context_tools,
            wrappers,
            mode: self.mode,
            model: self.model.clone(),
            cwd: self.tools.cwd.clone(),
            setting_sources: Some(self.sources.clone()),
            budget_tokens: None,
            abort: abort.clone(),
        }
    }

    /// Keeps the answer; the calls that it ends with.
    fn remember_answer(&mut self, message: &AssistantMessage) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        let mut content = Vec::new();
        for block in &message.content {
            content.push(match block {
                AssistantBlock::Text(text) => Block::Text(text.clone()),
                AssistantBlock::Thinking(text) => Block::Thinking(text.clone()),
                AssistantBlock::ToolCall(call) => {
                    calls.push(call.clone());
                    Block::ToolCall {
                        id: call.id.to_string(),
                        name: call.name.clone(),
                        arguments: call.arguments.clone(),
                    }
                }
            });
        }
        if !content.is_empty() {
            self.remember(Message::new(MessageBody::Assistant { content }));
        }
        calls
    }

    fn remember_result(&mut self, call: &ToolCall, result: &HostResult) {
        let [id, name] = [call.id.as_str(), call.name.as_str()].map(serde_json::Value::from);
        let text = format!(
            "{{\"role\":\"toolResult\",\"toolCallId\":{id},\"toolName\":{name},\"content\":{},\"isError\":{}}}",
            result.content.text(),
            result.is_error
        );
        match serde_json::from_str::<Message>(&text) {
            Ok(message) => self.remember(message),
            Err(error) => tracing::warn!(%error, "a result could not be kept"),
        }
    }

    /// A call: a record that is shown, or a tool of the chat that runs.
    async fn one_call(
        &mut self,
        call: &ToolCall,
        abort: &CancellationToken,
        ending: &mut Option<i32>,
    ) -> Result<HostResult, Exit> {
        match self.session.replayed(&call.name, call.id.as_str()) {
            Replayed::Result(card) => {
                self.screen.card(&card);
                Ok(HostResult::text(&card.text()))
            }
            Replayed::Failed { message, card } => {
                self.screen.card(&card);
                Ok(HostResult::error(&message))
            }
            Replayed::Refused(refusal) => Ok(HostResult::error(&refusal.to_string())),
            Replayed::Ordinary => {
                if let Err(reason) = self.session.admit(&call.id) {
                    return Ok(HostResult::error(&reason));
                }
                self.screen.call(&call.name, call.arguments.text());
                let cancel = abort.child_token();
                self.host.begins(&call.id, &cancel);
                let result = self.run_tool(call, &cancel, abort, ending).await;
                self.host.ended(&call.id);
                let result = result?;
                self.screen.result(&text_of(&result), result.is_error);
                Ok(result)
            }
        }
    }

    async fn run_tool(
        &mut self,
        call: &ToolCall,
        cancel: &CancellationToken,
        abort: &CancellationToken,
        ending: &mut Option<i32>,
    ) -> Result<HostResult, Exit> {
        if call.name == PROFILE.skill_tool {
            return Ok(match activate(&self.skills, &call.arguments).await {
                Ok(activation) => activation.result(),
                Err(error) => error.result(),
            });
        }
        if !self.active().contains(&call.name) {
            return Ok(HostResult::error(&format!("there is no tool {:?} here now", call.name)));
        }
        let tools = std::sync::Arc::clone(&self.tools);
        let work = tools.run(&call.name, &call.arguments, cancel);
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => self.stop(signal, abort, ending)?,
                result = &mut work => return Ok(result),
            }
        }
    }
}

fn part(kind: SystemPartKind, text: &str) -> SystemPart {
    SystemPart { kind, text: text.to_owned(), path: None, layer: None }
}

/// How the program ends by a signal.
pub(super) fn signalled(signal: i32) -> Exit {
    Exit::Signal(u8::try_from(signal).unwrap_or(0))
}

/// The texts of a result.
fn text_of(result: &HostResult) -> String {
    let tree = result.content.tree();
    let blocks = tree.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    texts.join("\n")
}
