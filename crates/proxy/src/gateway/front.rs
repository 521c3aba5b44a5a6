//! The sides of the gateway that face clients: stdin and stdout, and Streamable HTTP. They carry messages and decide
//! what is no message; what a message means is for the hub.

mod admit;
mod http;
mod stdio;

pub use http::{
    CallGate, CallListener, Heard, HttpFront, HttpFrontConfig, Judgement, MAX_BODY, Passed, ServerTls,
    server_tls,
};
pub use stdio::{StdioFront, serve_stdio};

#[cfg(test)]
mod tests;
