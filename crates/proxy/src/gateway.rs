//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod config;
mod message;
mod state;
pub mod translate;

pub use config::{
    ChildTarget, Expose, GatewayConfig, Protocol, RemoteKind, RemoteTarget, ServerConfig, ServerEntry, Share,
    Target, Timeouts, ToolFilter, Wait,
};
pub use message::{ClientMessage, Message, SessionId};
pub use state::{ServerState, Stage};
