//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod catalogue;
mod config;
mod filter;
mod lists;
mod message;
mod naming;
mod search;
mod state;

pub use catalogue::{
    Catalogue, CatalogueDisk, Changes, Definition, Difference, Digest, Hit, Kept, Pins, Refused,
    ResourceRoute, Route, ServerCatalogue, Shaping,
};
pub use config::{
    ChildTarget, Expose, GatewayConfig, Protocol, RemoteKind, RemoteTarget, ServerConfig, ServerEntry, Share,
    Target, Timeouts, ToolFilter, Wait,
};
pub use filter::Hidden;
pub use lists::{ListKind, MAX_ITEMS, MAX_LIST_BYTES, MAX_PAGES, NextPage, Paging, RawLists};
pub use message::{ClientMessage, Message, SessionId};
pub use naming::{MAX_NAME_CHARS, MIN_NAME_CHARS, Naming, RESERVED_PREFIX};
pub use search::{
    CALL_TOOL, CallRequest, SEARCH_TOOL, SearchRequest, call_definition, no_such_tool, search_definition,
    search_result,
};
pub use state::{ServerState, Stage};
