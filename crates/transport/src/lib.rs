//! Transports: stdio, child processes, Streamable HTTP, legacy SSE, in-memory pairs.

mod http;
mod limits;
mod transport;

pub use http::{Connector, HttpConfig, HttpTransport, Roots};
pub use limits::{DEFAULT_MAX_IN_FLIGHT, DEFAULT_SSE_READ_TIMEOUT, DEFAULT_TIMEOUT};
pub use transport::{
    Closed, Failure, Inbound, Members, Outbound, Payload, StreamId, Transport, TransportError,
};
