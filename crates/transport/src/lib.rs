//! Transports: stdio, child processes, Streamable HTTP, legacy SSE, in-memory pairs.

mod child;
pub mod command;
pub mod environment;
mod platform;
mod process_group;
mod stderr_tail;
pub mod supervisor;

pub use child::{Child, ChildConfig, Exit, StartError};
pub use platform::Platform;
pub use process_group::{GRACE, StopSequence, StopStep};
pub use stderr_tail::{StderrTail, TAIL_BYTES};
