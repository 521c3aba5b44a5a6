//! What every HTTP server of ours stands on: a bounded accept loop, connections that cannot be held open for nothing, and
//! the reading of headers that decide before a body is looked at. It decides nothing by itself: paths, tokens and answers
//! are its callers'.

mod accept;
mod connection;
mod headers;
mod io;
mod modern;
mod watched;

pub use accept::{AcceptLimits, Accepted, Standing, accept_all};
pub use connection::{ConnectionTimes, serve_http1};
pub use headers::{Accepts, Origin, address, announced_length, is_json, set_event_stream, single};
pub use modern::{check_headers, check_version, is_modern};
pub use watched::Watched;
