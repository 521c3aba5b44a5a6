//! Owns the question whether a tool may go on, and the answers to it.

use tokio_util::sync::CancellationToken;

use super::action::Action;
use crate::boxed::BoxFuture;

/// Somebody who can be asked: a person at a terminal, an editor, a program. An agent without one denies what would be
/// asked.
pub trait Approver: Send + Sync + 'static {
    /// Asks. The question is off once `cancel` is cancelled; no answer is awaited then.
    fn ask<'a>(&'a self, request: ApprovalRequest, cancel: &'a CancellationToken) -> BoxFuture<'a, Answer>;
}

/// The question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What it is about to do that nothing allows.
    pub actions: Vec<Action>,
    /// Why it is asked, for people.
    pub reason: String,
    /// The rules that an answer for longer would add. Empty: it can be allowed once only.
    pub rules: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This one time.
    Once,
    /// As long as this agent's handle lives.
    ThisAgent,
    /// For good: the rules are written to the user's own file.
    Always,
    /// Not at all, with what the model is told about it.
    No(Option<String>),
}
