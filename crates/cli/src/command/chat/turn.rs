//! Owns one prompt from its sending to the whole answer: turns of the agent, and what is said meanwhile.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use toolway_bridge::{
    AssistantBlock, AssistantMessage, Block, HostResult, HostSystem, Message, MessageBody, NoticeLevel,
    StopReason, SystemPart, SystemPartKind, ToolCall, TurnEvent, TurnRequest,
};

use super::Chat;
use super::PROFILE;
use crate::exit::Exit;

/// Whose look a card of the agent's own tools can have.
const NATIVE: [&str; 7] = ["read", "bash", "grep", "find", "ls", "edit", "write"];
const SIGINT: i32 = 2;
/// How often it is said anew what goes on.
const TICK: Duration = Duration::from_millis(500);
/// The most tokens of the conversation that a new agent is told, roughly: what current models read, with room for their work.
/// The newest messages come first.
const BUDGET: usize = 90_000;
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
        self.working.start();
        let outcome = self.answer().await;
        self.working.stop();
        self.console.clear();
        outcome
    }

    /// Turn after turn.
    async fn answer(&mut self) -> Outcome {
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
                    let results = match self.calls(&calls, &abort, &mut ending).await {
                        Ok(results) => results,
                        Err(exit) => return Outcome::End(exit),
                    };
                    for (call, result) in calls.iter().zip(&results) {
                        self.remember_result(call, result);
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
        let mut tick = ticks();
        loop {
            let event = tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => {
                    self.stop(signal, abort, ending)?;
                    continue;
                }
                event = turn.next() => event,
                _ = tick.tick() => {
                    self.draw();
                    continue;
                }
            };
            self.tell_servers().await;
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

    /// Says what goes on.
    pub(super) fn draw(&mut self) {
        if let Some(line) = self.working.line() {
            self.screen.status(&line);
        }
    }

    /// A signal: the first one stops what is done, the second one ends the chat.
    pub(super) fn stop(
        &mut self,
        signal: i32,
        abort: &CancellationToken,
        ending: &mut Option<i32>,
    ) -> Result<(), Exit> {
        if abort.is_cancelled() {
            return Err(signalled(signal));
        }
        if signal == SIGINT {
            self.screen.interrupted();
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
            budget_tokens: Some(BUDGET),
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
}

/// When it is said what goes on.
pub(super) fn ticks() -> Interval {
    let mut ticks = interval_at(Instant::now() + TICK, TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

fn part(kind: SystemPartKind, text: &str) -> SystemPart {
    SystemPart { kind, text: text.to_owned(), path: None, layer: None }
}

/// How the program ends by a signal.
pub(super) fn signalled(signal: i32) -> Exit {
    Exit::Signal(u8::try_from(signal).unwrap_or(0))
}
