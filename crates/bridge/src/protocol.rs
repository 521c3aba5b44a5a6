//! Owns the protocol for hosts in any language: JSON-RPC 2.0, one message a line. Documented in docs/host-protocol.md;
//! it knows neither stdin nor stdout.

mod answers;
mod fault;
mod message;
mod place;
mod requests;
mod schema;

pub use schema::host_protocol_schema;

/// The version of the protocol that is spoken here.
pub const PROTOCOL_VERSION: u32 = 1;
