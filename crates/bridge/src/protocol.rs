//! Owns the protocol for hosts in any language: JSON-RPC 2.0, one message a line. Documented in docs/host-protocol.md;
//! it knows neither stdin nor stdout.

mod answers;
mod calls;
mod connection;
mod dispatch;
mod display;
mod fault;
mod inbox;
mod lines;
mod message;
mod opening;
mod outbox;
mod place;
mod prompts;
mod reports;
mod requests;
mod schema;
mod server;
mod session;
mod settings_shown;

#[cfg(test)]
mod tests;

pub use connection::HostProtocolConfig;
pub use schema::host_protocol_schema;
pub use server::{HostEnding, serve_host};

/// The version of the protocol that is spoken here.
pub const PROTOCOL_VERSION: u32 = 1;
