//! Owns the person in front of an agent, as traits: who is asked for permission, and who answers the model's questions. It
//! knows no terminal and no editor.

use std::fmt;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::boxed::BoxFuture;
use crate::policy::Approver;

/// Whoever can be asked: a terminal, a host. Implemented by the surface that an agent is driven from.
pub trait AskHost: Send + Sync + 'static {
    /// Asks and waits. The error says why there is no answer.
    fn ask<'a>(
        &'a self,
        question: Question,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<String>, String>>;
}

/// A question for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// Answers to choose from. None: whatever the user writes.
    pub options: Vec<String>,
    /// More than one may be chosen.
    pub several: bool,
}

/// The person in front of an agent, as far as there is one.
#[derive(Clone, Default)]
pub struct Person {
    /// Who is asked for permission. With somebody to ask, nothing but reading and what rules allow is done unasked.
    pub approver: Option<Arc<dyn Approver>>,
    /// Who answers the model's questions.
    pub host: Option<Arc<dyn AskHost>>,
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (approves, answers) = (self.approver.is_some(), self.host.is_some());
        f.debug_struct("Person").field("approves", &approves).field("answers", &answers).finish()
    }
}
