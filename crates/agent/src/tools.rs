//! Owns the built-in tools of an agent: what each takes and does, and what its calls touch. It knows no model, no turn
//! and no permission rule: who calls a tool has asked for the permission before.

mod arguments;
mod ask;
mod capability;
mod context;
mod diff;
mod disk;
mod edit;
mod fetch;
mod files;
mod ls;
mod output;
mod outputs;
mod paths;
mod read;
mod registry;
mod search;
mod setup;
mod shell;
mod shells;
mod text;
mod todos;
mod write;

use std::fmt;
use std::sync::Arc;

pub use arguments::Arguments;
pub use capability::{Capabilities, Capability};
pub use context::{ToolContext, ToolSession};
pub use output::{ToolImage, ToolOutput};
pub use registry::ToolRegistry;
pub use setup::ToolSetup;

use crate::engine::BoxFuture;
use crate::policy::Action;

/// A tool of ours. Implemented here and by whoever has a tool of its own to add; called by the turn loop.
pub trait Tool: Send + Sync + fmt::Debug + 'static {
    /// The name that the model calls.
    fn name(&self) -> &'static str;

    /// By which it is allowed or denied.
    fn capability(&self) -> Capability;

    /// What the model reads about it.
    fn description(&self) -> String;

    /// The schema of its arguments, an object schema.
    fn schema(&self) -> serde_json::Value;

    /// Calls of it only look, so that several may run at a time, and a call that was cut off by a crash does no harm when
    /// it is made again.
    fn only_reads(&self) -> bool {
        false
    }

    /// What a call with these arguments will do, for permission. The error is the answer to the model: the arguments are
    /// no good.
    fn actions(&self, context: &ToolContext, args: &Arguments) -> Result<Vec<Action>, ToolOutput>;

    /// Does it. Never fails otherwise than by an output that says so; returns soon after `context.cancel`.
    fn run<'a>(&'a self, context: &'a ToolContext, args: Arguments) -> BoxFuture<'a, ToolOutput>;
}

/// All that are built in, in the order in which a model is told of them.
fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(shell::Shell),
        Arc::new(shell::WriteStdin),
        Arc::new(read::Read),
        Arc::new(write::Write),
        Arc::new(edit::Edit),
        Arc::new(write::Delete),
        Arc::new(search::Grep),
        Arc::new(search::Glob),
        Arc::new(ls::Ls),
        Arc::new(todos::UpdateTodos),
        Arc::new(todos::ReadTodos),
        Arc::new(fetch::WebFetch),
        Arc::new(ask::AskQuestion),
    ]
}
