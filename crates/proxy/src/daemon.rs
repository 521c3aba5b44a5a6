//! The daemon: one process of a user that runs one copy of each server for all gateways of that user. A gateway reaches a
//! copy over a local socket: one line says who it is and which server it wants, whole, one line answers, and then MCP
//! messages go both ways, one a line. What is shared is what is equal in everything, environment and working directory
//! included. Knows no configuration files and no command line.

mod attach;
mod copies;
mod definition;
mod hello;
mod listener;

pub use attach::{DaemonClient, Launch};
pub use hello::{CopyStatus, DaemonStatus};
pub use listener::{Daemon, DaemonConfig, PeerUser, peer_user};

/// The version in which daemon and clients speak: another one has a socket of its own.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
