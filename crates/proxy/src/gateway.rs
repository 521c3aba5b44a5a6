//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod client;
mod config;
mod connection;
mod lists;
mod message;
mod naming;
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
pub use lists::{ListKind, MAX_ITEMS, MAX_LIST_BYTES, MAX_PAGES, NextPage, Paging, RawLists};
pub use message::{ClientMessage, Message, SessionId};
pub use naming::{MAX_NAME_CHARS, MIN_NAME_CHARS, Naming, RESERVED_PREFIX};
pub use state::{ServerState, Stage};
pub use upstream::{Full, Upstream, UpstreamEvent, UpstreamId};
