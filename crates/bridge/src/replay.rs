//! Owns the display of the agent's own tools: records, cards, routing, limits. It never runs anything.

mod activity;
mod card;
mod dedup;
mod diff;
mod incomplete;
mod kind;
mod lenient;
mod limits;
mod matrix;
mod pending_line;
mod preview;
mod reader;
mod records;
mod routing;
mod shell_output;
mod stage;
mod trace;
mod turn;
mod wrappers;

pub use activity::{AgentToolEvent, OutputStream, ToolActivity, ToolStatus};
pub use card::{Activity, Card, CardBlock, Details};
pub use incomplete::RunEnd;
pub use preview::{Disk, PreviewFiles, Sight, Wish};
pub use records::{Records, Refusal, Replayed};
pub use routing::{ReplayContext, Route};
pub use stage::{Replay, ReplayOutput};
pub use trace::{Trace, TraceKind};
pub use turn::{final_answer, replayed_turn};
pub use wrappers::{WrapperMoment, WrapperPlan, WrapperSurroundings, Wrappers, wrapper_definition};
