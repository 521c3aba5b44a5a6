//! Transports: stdio, child processes, Streamable HTTP, legacy SSE, in-memory pairs.

mod child;
pub mod command;
pub mod environment;
mod platform;
mod process_group;
mod stderr_tail;
mod stdio;
pub mod supervisor;

pub use child::{Child, ChildConfig, Exit, StartError};
pub use platform::Platform;
pub use process_group::{GRACE, StopSequence, StopStep};
pub use stderr_tail::{StderrTail, TAIL_BYTES};
pub use stdio::{AsyncInput, AsyncOutput, Input, Output};
mod http;
mod limits;
mod transport;

pub use http::{Connector, HttpConfig, HttpTransport, Roots};
pub use limits::{DEFAULT_MAX_IN_FLIGHT, DEFAULT_SSE_READ_TIMEOUT, DEFAULT_TIMEOUT};
pub use transport::{
    Closed, Failure, Inbound, Members, Outbound, Payload, StreamId, Transport, TransportError,
};
