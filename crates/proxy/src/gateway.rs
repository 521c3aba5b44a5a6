//! The gateway: many servers behind one front. Knows nothing of configuration files, command lines or the environment.

mod catalogue;
mod client;
mod config;
mod connection;
mod filter;
mod front;
mod hub;
mod lists;
mod message;
mod naming;
mod observe;
mod outlet;
mod run;
mod search;
mod state;
mod status;
pub mod translate;
mod upstream;

pub use catalogue::{
    Catalogue, CatalogueDisk, Changes, Definition, Difference, Digest, Hit, Kept, Pins, Refused,
    ResourceRoute, Route, ServerCatalogue, Shaping,
};
pub use client::{Alone, Client, ClientError, Companion, Happening};
#[cfg(unix)]
pub use config::{Attach, AttachFault, Attaching};
pub use config::{
    ChildTarget, Embedded, Expose, GatewayConfig, Protocol, RemoteKind, RemoteTarget, ServerConfig,
    ServerEntry, Share, Target, Timeouts, ToolFilter, Wait,
};
pub use connection::{
    Carrier, Connection, Eras, Exchange, Face, Known, Negotiated, OpenDetail, OpenError, Received, Shared,
};
pub use filter::Hidden;
pub use front::{
    CallGate, CallListener, Heard, HttpFront, HttpFrontConfig, Judgement, MAX_BODY, Passed, ServerTls,
    StdioFront, serve_stdio, server_tls,
};
pub use hub::{ClientEvent, Command, SessionOptions};
pub use lists::{ListKind, MAX_ITEMS, MAX_LIST_BYTES, MAX_PAGES, NextPage, Paging, RawLists};
pub use message::{ClientMessage, Content, Message, SessionId};
pub use naming::{MAX_NAME_CHARS, MIN_NAME_CHARS, Naming, RESERVED_PREFIX};
pub use observe::{
    AuditConfig, CallRecord, MetricsConfig, ObserveConfig, ObserveError, Observer, Outcome, TracesConfig,
};
pub use outlet::{Outlet, Sink, outlet};
pub use run::{ClientSession, GatewayHandle};
pub use search::{
    CALL_TOOL, CallRequest, SEARCH_TOOL, SearchRequest, call_definition, no_such_tool, search_definition,
    search_result,
};
pub use state::{ServerState, Stage};
pub use status::{Status, ToolStatus};
pub use upstream::{Full, Upstream, UpstreamEvent, UpstreamId};

/// Waits until then; for ever where there is no time.
async fn until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
