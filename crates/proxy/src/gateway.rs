//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod catalogue;
mod config;
mod filter;
mod lists;
mod message;
mod naming;
mod state;

pub use catalogue::{
    Catalogue, Changes, Definition, Difference, Digest, Hit, Pins, Refused, ResourceRoute, Route,
    ServerCatalogue, Shaping,
};
pub use config::{
    ChildTarget, Expose, GatewayConfig, Protocol, RemoteKind, RemoteTarget, ServerConfig, ServerEntry, Share,
    Target, Timeouts, ToolFilter, Wait,
};
pub use filter::Hidden;
pub use lists::{ListKind, MAX_ITEMS, MAX_LIST_BYTES, MAX_PAGES, NextPage, Paging, RawLists};
pub use message::{ClientMessage, Message, SessionId};
pub use naming::{MAX_NAME_CHARS, MIN_NAME_CHARS, Naming, RESERVED_PREFIX};
pub use state::{ServerState, Stage};
