//! Owns the seam between the turn loop and models: a conversation in neutral terms goes in, a stream of events comes out
//! whose last item is the whole answer. It must not know tools, stores or prompts.

mod facts;
mod fault;
mod message;
mod params;
mod remote;
mod request;
mod schema;
mod service;
mod stream;
mod wire;

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub(crate) use self::facts::{ModelFacts, Prices};
pub(crate) use self::message::{AnswerPart, Message, ModelCall, ToolAnswer, UserPart};
#[cfg(test)]
use self::remote::Patience;
pub(crate) use self::remote::RemoteModels;
#[cfg(test)]
use self::service::ServiceAccess;
use crate::engine::BoxFuture;
use crate::error::AgentError;
use crate::event::Usage;
use crate::options::{Machine, ModelChoice, Retries};
use toolway_bridge::RawJson;
use toolway_secret::Secret;

/// Opens models by their choice. It does no I/O: what is wrong with a name, a key or a parameter is said here, and what
/// the service says comes with the first event of a stream.
pub(crate) trait ModelSource: Send + Sync + fmt::Debug + 'static {
    /// The model of that choice.
    fn open(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, AgentError>;

    /// Lets go of what it holds open between requests; the next one opens it again.
    fn let_go(&self);
}

/// The models that can be asked now, by their ids, with what is known of them: the chosen one first, then those that are known
/// by name, at their service's own address, where there is a key for it. A key that was given is for the chosen one.
pub(crate) fn at_hand(
    machine: &Machine,
    api_key: Option<&Secret>,
    chosen: Option<&ModelChoice>,
) -> Vec<(String, ModelFacts)> {
    let chosen_facts = chosen.map(|choice| {
        let model = RemoteModels::of(machine, api_key.cloned(), Retries::Off).open(choice);
        (choice.id.clone(), model.map(|model| model.facts()).unwrap_or_default())
    });
    let source = RemoteModels::of(machine, None, Retries::Off);
    let others = facts::names().filter(|name| chosen.is_none_or(|choice| choice.id != *name));
    let others = others.filter_map(|name| {
        let choice = ModelChoice { id: name.to_owned(), params: Vec::new() };
        let facts = source.open(&choice).ok()?.facts();
        facts.prices.is_some().then_some((choice.id, facts))
    });
    chosen_facts.into_iter().chain(others).collect()
}

/// A model with its parameters.
pub(crate) trait Model: Send + Sync + fmt::Debug + 'static {
    /// Its id, as it was named.
    fn id(&self) -> &str;

    /// What is known of it.
    fn facts(&self) -> ModelFacts;

    /// Asks it. The request is read before this returns; nothing is sent before the first [`ModelStream::next`]. What
    /// is dropped ends the request.
    fn stream(&self, request: &ModelRequest<'_>, cancel: &CancellationToken) -> Box<dyn ModelStream>;
}

/// An answer as it comes.
pub(crate) trait ModelStream: Send {
    /// The next event. The last one is [`ModelEvent::Done`] or an error, and nothing follows it. After a
    /// cancellation it is `None` at once. It may be dropped at a wait without losing an event.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, AgentError>>>;
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelRequest<'a> {
    /// Instructions that stand before the conversation. Empty is none.
    pub(crate) system: &'a str,
    /// The conversation, oldest first. It ends with the user or with results of tools.
    pub(crate) messages: &'a [Message],
    /// Tools that it may call.
    pub(crate) tools: &'a [ToolSpec],
    /// Tokens it may write at most, where the caller wants fewer than the parameters say.
    pub(crate) max_output: Option<u32>,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolSpec {
    /// Its name.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
    /// The JSON Schema of its arguments.
    pub(crate) schema: RawJson,
}

/// What happens while a model answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ModelEvent {
    /// The request was refused for now, and is sent again after a while. Nothing of an answer came before it.
    Retry {
        /// How many times it was sent.
        attempt: u32,
        /// How long it waits.
        delay: std::time::Duration,
        /// Why.
        reason: String,
    },
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// More of a call's arguments. Only for showing: [`ModelEvent::Done`] has the calls.
    CallDelta {
        /// The call's id, the same as in the end.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments' text so far.
        arguments: String,
    },
    /// The end, and the answer as a whole.
    Done(ModelAnswer),
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelAnswer {
    /// Its parts in their order, to be kept in the conversation as they are.
    pub(crate) parts: Vec<AnswerPart>,
    /// Tokens, where the service told.
    pub(crate) usage: Option<Usage>,
    /// Why it ended.
    pub(crate) stop: ModelStop,
}

impl ModelAnswer {
    /// The text alone.
    pub(crate) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            AnswerPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The calls it asks for.
    #[cfg(test)]
    fn calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.parts.iter().filter_map(|part| match part {
            AnswerPart::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelStop {
    /// The model was done.
    End,
    /// It waits for results of the tools it called.
    Calls,
    /// It wrote as much as it may. A call that was being written is not among the calls.
    MaxTokens,
    /// It, or its service's filter, refuses.
    Refused(String),
    /// Another reason, in the service's word.
    Other(String),
}

#[cfg(test)]
mod tests;
