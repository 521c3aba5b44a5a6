//! Owns the display of the agent's own tools: records, cards, routing, limits. It never runs anything.

mod activity;
mod card;
mod lenient;
mod records;
mod routing;

pub use activity::{AgentToolEvent, OutputStream, ToolActivity, ToolStatus};
pub use card::{Activity, Card, CardBlock, Details};
pub use records::{Records, Refusal, Replayed};
pub use routing::{ReplayContext, Route};
