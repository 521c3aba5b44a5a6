//! Owns what becomes of the agent's reports of its own tools, beside one answer: cards, traces, and silence for bridge
//! calls, which the host shows already.

use crate::replay::ReplayContext;

/// The display of one answer.
#[derive(Debug)]
pub(super) struct Display {
    context: ReplayContext,
}

impl Display {
    pub(super) fn new(context: ReplayContext) -> Self {
        Self { context }
    }

    /// The turn that goes on with the answer decides what can be shown in it.
    pub(super) fn set_context(&mut self, context: ReplayContext) {
        self.context = context;
    }
}
