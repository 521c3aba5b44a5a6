//! Owns the runtime of agents behind the Agent Client Protocol: another program thinks, and its process, its session and
//! what it may touch are kept here. It knows no store and no configuration files.

mod options;
mod preset;
mod servers;

pub use options::{AcpOptions, AcpSurroundings, AcpTimeouts};
pub use preset::AcpPreset;
pub use servers::AcpServer;
