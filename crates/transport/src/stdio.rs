//! Our own standard input and output: blocking for the pumps of a stdio relay, readiness-based for a relay that
//! runs on tokio. Bytes only; knows no lines and no messages. Never changes a flag that another process shares:
//! `O_NONBLOCK` belongs to the open file, which the client may hold as well.

mod async_input;
mod async_output;
mod blocking;
mod descriptor;
mod hang_up;

pub use async_input::AsyncInput;
pub use async_output::AsyncOutput;
pub use blocking::{Input, Output};
pub use hang_up::wait_for_hang_up;

/// How much is moved at once: as much as a pipe holds by default.
const CHUNK_BYTES: usize = 64 * 1024;
