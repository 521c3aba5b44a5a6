//! Owns what a tool may do: rules, what they say about an action, who is asked, and what is remembered. It runs no tool
//! and knows no model.

mod action;
mod answer;
mod decide;
mod files;
mod gate;
mod paths;
mod pattern;
mod remember;
mod rule;
mod shell;
mod suggest;
mod token;

#[cfg(test)]
mod tests;

pub use action::{Action, PermissionMode};
pub use answer::{Answer, ApprovalRequest, Approver};
pub use decide::Decision;
pub(crate) use gate::USER_REFUSED;
pub use gate::{After, Gate, GateOptions, ToolUse, Verdict};
pub use rule::{PermissionRules, Rule};
