//! Owns what is done with a conversation whose last run broke off: every call gets a result, so that models take it again.

use super::{Conversation, Origin};
use crate::native::model::{AnswerPart, Message, ModelCall, ToolAnswer, UserPart};

const MAY_HAVE_RUN: &str = "There is no result: the process ended while this call was on its way. It may have run, wholly or \
                            in part, or not at all. Look at what is there before you do it again.";
const NOT_BEGUN: &str = "There is no result: the process ended before this call was begun. It has not run.";

impl Conversation {
    /// Gives every call that has no result one which says so. `begun` are the ids of calls that were begun, where they are
    /// known: with none, every one may have run. Returns the calls that may have run.
    pub(crate) fn close_broken_calls(&mut self, begun: &[String]) -> Vec<ModelCall> {
        let open: Vec<ModelCall> = self
            .open_calls()
            .filter(|call| !self.pending.iter().any(|result| result.call_id == call.id))
            .cloned()
            .collect();
        let mut doubtful = Vec::new();
        for call in open {
            let may_have_run = begun.is_empty() || begun.contains(&call.id);
            let text = if may_have_run { MAY_HAVE_RUN } else { NOT_BEGUN };
            self.push_result(ToolAnswer {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: vec![UserPart::Text(text.to_owned())],
                is_error: true,
            });
            if may_have_run {
                doubtful.push(call);
            }
        }
        self.drop_strays();
        doubtful
    }

    /// A conversation that was kept is whole, unless somebody changed it. Results without calls, and calls without results
    /// in the middle, would be refused by every model's service for ever.
    fn drop_strays(&mut self) {
        self.pending.clear();
        let messages = std::mem::take(&mut self.messages);
        let marks = std::mem::take(&mut self.marks);
        let mut waiting: Vec<ModelCall> = Vec::new();
        for (message, mark) in messages.into_iter().zip(marks) {
            match message {
                Message::Tools(mut results) => {
                    results.retain(|result| waiting.iter().any(|call| call.id == result.call_id));
                    waiting.retain(|call| !results.iter().any(|result| result.call_id == call.id));
                    results.extend(waiting.drain(..).map(|call| lost(&call)));
                    if !results.is_empty() {
                        self.messages.push(Message::Tools(results));
                        self.marks.push(mark);
                    }
                }
                other => {
                    if !waiting.is_empty() {
                        let results = waiting.drain(..).map(|call| lost(&call)).collect();
                        self.push(Origin::Tools, Message::Tools(results));
                    }
                    if let Message::Assistant(parts) = &other {
                        waiting.extend(parts.iter().filter_map(|part| match part {
                            AnswerPart::Call(call) => Some(call.clone()),
                            _ => None,
                        }));
                    }
                    self.messages.push(other);
                    self.marks.push(mark);
                }
            }
        }
        if !waiting.is_empty() {
            let results = waiting.drain(..).map(|call| lost(&call)).collect();
            self.push(Origin::Tools, Message::Tools(results));
        }
    }
}

fn lost(call: &ModelCall) -> ToolAnswer {
    ToolAnswer {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: vec![UserPart::Text("There is no result of this call.".to_owned())],
        is_error: true,
    }
}
