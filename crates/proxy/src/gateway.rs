//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod config;
mod hub;
mod message;
mod outlet;
mod run;
mod state;
mod status;
pub mod translate;

pub use config::{
    ChildTarget, Expose, GatewayConfig, Protocol, RemoteKind, RemoteTarget, ServerConfig, ServerEntry, Share,
    Target, Timeouts, ToolFilter, Wait,
};
pub use hub::{ClientEvent, Command, SessionOptions};
pub use message::{ClientMessage, Content, Message, SessionId};
pub use outlet::{Outlet, Sink, outlet};
pub use run::{ClientSession, GatewayHandle};
pub use state::{ServerState, Stage};
pub use status::Status;
