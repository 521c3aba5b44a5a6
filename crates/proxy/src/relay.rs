//! Owns what both relays share: configuration, the open requests, what is counted, and how a relay ends. Knows no
//! transport.

mod core;
mod downlink;
mod parts;
mod remote;
mod rewrite;

mod stdio;
mod unstarted;
mod uplink;

pub use self::core::{Counts, Relay, RelayConfig};
pub(crate) use parts::{Line, Part, flatten_in_place, read_at, utf8};
pub(crate) use remote::Outbox;
pub use remote::{Outside, run_remote};

pub use stdio::run_stdio;
pub use unstarted::run_unstarted;

/// How a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client closed.
    ClientClosed,
    /// The upstream ended by itself.
    UpstreamEnded,
    /// The upstream could not be started or reached.
    NotStarted,
    /// Nobody has signed in to the upstream.
    NotSignedIn,
    /// A signal came, of this number.
    Signal(i32),
}

/// A signal's name for people.
pub(crate) fn signal_text(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}
