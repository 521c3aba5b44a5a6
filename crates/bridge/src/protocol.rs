//! Owns the protocol for hosts in any language: JSON-RPC 2.0, one message a line. Documented in docs/host-protocol.md;
//! it knows neither stdin nor stdout.

mod agents;
mod answers;
mod calls;
mod connection;
mod dispatch;
mod display;
mod fault;
mod host;
mod inbox;
mod lines;
mod message;
mod notices;
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
mod skill;
mod turns;

#[cfg(test)]
mod tests;

pub use connection::HostProtocolConfig;
pub use schema::host_protocol_schema;
pub use server::{HostEnding, serve_host, serve_host_with};

/// The version of the protocol that is spoken here.
pub const PROTOCOL_VERSION: u32 = 1;
