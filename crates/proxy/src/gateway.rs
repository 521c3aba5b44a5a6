//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod client;
mod config;
mod connection;
mod lists;
mod message;
mod state;
mod upstream;

pub use client::{Alone, Client, ClientError, Companion, Happening};
pub use config::{
    ChildTarget, Expose, GatewayConfig, Protocol, RemoteKind, RemoteTarget, ServerConfig, ServerEntry, Share,
    Target, Timeouts, ToolFilter, Wait,
};
pub use connection::{
    Carrier, Connection, Eras, Exchange, Face, Known, Negotiated, OpenDetail, OpenError, Received, Shared,
};
pub use lists::{ListKind, RawLists};
pub use message::{ClientMessage, Message, SessionId};
pub use state::{ServerState, Stage};
pub use upstream::{Full, Upstream, UpstreamEvent, UpstreamId};
