//! Owns the state of all sessions and the routing between clients and servers: synchronous handlers, events in and
//! effects out. Knows no runtime, no transport and no front.

mod event;

pub use event::{ClientEvent, Command, SessionOptions};
