//! Transports: stdio, child processes, Streamable HTTP, legacy SSE, in-memory pairs.

mod authorizer;
mod child;
mod child_transport;
pub mod command;
pub mod environment;
mod http;
pub mod http_server;
mod limits;
pub mod memory;
mod platform;
mod process_group;
#[cfg(unix)]
mod socket;
mod sse_legacy;
mod stderr_tail;
mod stdio;
pub mod supervisor;
mod transport;

pub use authorizer::{Authorizer, BoxFuture, Challenge, Retry, SignInError, Signer};
pub use child::{Child, ChildConfig, Exit, StartError};
pub use child_transport::ChildTransport;
pub use http::{
    Connector, Head, HttpConfig, HttpTransport, JsonPost, PostAnswer, Roots, fetch, mirrored_mismatch,
};
pub use limits::{DEFAULT_MAX_IN_FLIGHT, DEFAULT_SSE_READ_TIMEOUT, DEFAULT_TIMEOUT};
pub use platform::Platform;
pub use process_group::{GRACE, StopSequence, StopStep};
#[cfg(unix)]
pub use socket::SocketTransport;
pub use sse_legacy::SseTransport;
pub use stderr_tail::{StderrTail, TAIL_BYTES};
pub use stdio::{AsyncInput, AsyncOutput, Input, Output, wait_for_hang_up};
pub use transport::{
    Closed, Failure, Inbound, Members, Outbound, Payload, StreamId, Transport, TransportError,
};
