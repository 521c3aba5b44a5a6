//! The HTTP transports from outside: a scripted server answers raw bytes, and the test looks at both ends. Clocks are
//! paused where connections are in memory, so no test waits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod answers;
mod client;
mod connections;
mod documents;
mod legacy_sse;
mod modern;
mod refusals;
mod server;
mod sessions;
mod signer;
mod signing;
mod signing_waits;
mod streams;
mod tls;
