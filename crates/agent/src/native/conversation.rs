//! Owns a conversation: its messages in order, who really wrote them, and the form in which it is kept. Calls and their
//! results are never apart in it. It knows no model and no I/O.

mod keep;
mod repair;

use std::collections::HashSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use toolway_bridge::RawJson;

use super::model::{AnswerPart, Message, ModelCall, ToolAnswer, UserPart};

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The user, to begin a run.
    Prompt,
    /// The user, in the middle of a run.
    Steering,
    /// The loop, in the user's place: something that the model has to know.
    Notice,
    /// The loop: a summary of what was before.
    Summary,
    /// The model.
    Model,
    /// Tools.
    Tools,
}

/// What is known of a message beside its text.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) origin: Origin,
    /// The message as it is kept, once it was written: messages do not change, but for results that are dropped.
    json: Option<Bytes>,
    /// How many units of the estimate it is, once that was counted.
    pub(crate) weight: Option<u64>,
}

/// A conversation.
#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    marks: Vec<Mark>,
    /// Results of the last message's calls, while some are missing.
    pending: Vec<ToolAnswer>,
    ids: HashSet<String>,
    /// Tokens for each unit of the estimate, as the model's service last told.
    pub(crate) ratio: f64,
    /// The list of what is to do, as it was when the conversation was last kept.
    pub(crate) todos: Option<RawJson>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            marks: Vec::new(),
            pending: Vec::new(),
            ids: HashSet::new(),
            ratio: 1.0,
            todos: None,
        }
    }
}

impl Conversation {
    /// Every message, oldest first.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What is known of them, in the same order.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The same, to note weights.
    pub(crate) fn weigh(&mut self, weight: impl Fn(&Message) -> u64) -> u64 {
        let mut sum = 0u64;
        for (message, mark) in self.messages.iter().zip(&mut self.marks) {
            let of_this = *mark.weight.get_or_insert_with(|| weight(message));
            sum = sum.saturating_add(of_this);
        }
        sum
    }

    /// Adds a message of the user's side.
    pub(crate) fn push_user(&mut self, origin: Origin, parts: Vec<UserPart>) {
        self.push(origin, Message::User(parts));
    }

    /// Adds what the model said. Its calls have ids that no other call of the conversation has: the caller made sure by
    /// [`Conversation::claim_id`].
    pub(crate) fn push_answer(&mut self, parts: Vec<AnswerPart>) {
        if !parts.is_empty() {
            self.push(Origin::Model, Message::Assistant(parts));
        }
    }

    /// Adds a result of one of the last message's calls. With the last one they become a message.
    pub(crate) fn push_result(&mut self, result: ToolAnswer) {
        self.pending.push(result);
        let order: Vec<&str> = self.open_calls().map(|call| call.id.as_str()).collect();
        if self.pending.len() < order.len() {
            return;
        }
        let place = |answer: &ToolAnswer| order.iter().position(|id| *id == answer.call_id);
        let mut results = self.pending.clone();
        results.sort_by_key(place);
        self.pending.clear();
        self.push(Origin::Tools, Message::Tools(results));
    }

    fn push(&mut self, origin: Origin, message: Message) {
        self.messages.push(message);
        self.marks.push(Mark { origin, json: None, weight: None });
    }

    /// The calls of the last message, if it is one of the model's: they wait for results.
    fn open_calls(&self) -> impl Iterator<Item = &ModelCall> {
        let parts = match self.messages.last() {
            Some(Message::Assistant(parts)) => parts.as_slice(),
            _ => &[],
        };
        parts.iter().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The id under which a call goes on: the model's own, or a new one where that is empty or was there before.
    pub(crate) fn claim_id(&mut self, wanted: &str) -> String {
        let trimmed = wanted.trim();
        let mut id = trimmed.to_owned();
        let mut number = self.ids.len();
        while id.is_empty() || self.ids.contains(&id) {
            number += 1;
            id = format!("call_{number}");
        }
        self.ids.insert(id.clone());
        id
    }

    /// Whether there was a call of this id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Puts something smaller in the place of a result's content.
    pub(crate) fn replace_result(&mut self, message: usize, call_id: &str, text: String) {
        let Some(Message::Tools(results)) = self.messages.get_mut(message) else { return };
        let Some(result) = results.iter_mut().find(|result| result.call_id == call_id) else { return };
        result.content = vec![UserPart::Text(text)];
        if let Some(mark) = self.marks.get_mut(message) {
            mark.json = None;
            mark.weight = None;
        }
    }

    /// Puts other messages in the place of the first ones: `keep` are the places of those of them that stay.
    pub(crate) fn replace_head(&mut self, until: usize, summary: String, keep: &[usize]) {
        let until = until.min(self.messages.len());
        let tail_messages = self.messages.split_off(until);
        let tail_marks = self.marks.split_off(until);
        let head = std::mem::take(&mut self.messages).into_iter().zip(std::mem::take(&mut self.marks));
        let kept: Vec<(Message, Mark)> =
            head.enumerate().filter(|(place, _)| keep.contains(place)).map(|(_, message)| message).collect();
        self.push_user(Origin::Summary, vec![UserPart::Text(summary)]);
        for (message, mark) in kept.into_iter().chain(tail_messages.into_iter().zip(tail_marks)) {
            self.messages.push(message);
            self.marks.push(mark);
        }
    }
}

#[cfg(test)]
mod tests;
