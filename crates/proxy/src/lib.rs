//! The relay: one client, one server, every message whole. The gateway: many servers behind one front.

mod admission;
#[cfg(unix)]
pub mod daemon;
pub mod gateway;
mod pending;
mod record;
mod relay;

pub use record::{Direction, Recorder};
pub use relay::{Counts, Ending, Outside, Relay, RelayConfig, run_remote, run_stdio, run_unstarted};
