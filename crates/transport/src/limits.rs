//! The bounds and default times of the network transports, in one place.

use std::time::Duration;

/// Connect, wait for response headers, silence inside a JSON body.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// No bytes on an event stream that a request waits for.
pub const DEFAULT_SSE_READ_TIMEOUT: Duration = Duration::from_mins(5);
/// Messages in flight at the same time, each on a connection of its own.
pub const DEFAULT_MAX_IN_FLIGHT: usize = 128;

/// Pieces of inbound messages that wait for the reader.
pub(crate) const INBOUND_QUEUE: usize = 64;
/// Largest piece, and so the largest response header section, in bytes.
pub(crate) const READ_BUFFER: usize = 64 * 1024;
/// A connection that has idled this long is closed; servers tend to wait 5 s or 60 s and more.
pub(crate) const POOL_IDLE: Duration = Duration::from_secs(30);
/// Idle connections that are kept.
pub(crate) const POOL_MAX: usize = 128;
/// A server's `Keep-Alive: timeout=N` is cut by this, so that the two ends do not race.
pub(crate) const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);
/// TCP asks an idle peer after this time whether it is there.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) const KEEPALIVE_IDLE: Duration = Duration::from_mins(1);
/// And asks again this often; the system gives up after some 8 questions.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Redirects that are followed for one message.
pub(crate) const MAX_REDIRECTS: usize = 5;
/// Bytes of an error answer that are read.
pub(crate) const MAX_ERROR_BODY: usize = 64 * 1024;
/// Time for the rest of an error answer's body.
pub(crate) const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// Characters of an error answer that are shown.
pub(crate) const SNIPPET_CHARS: usize = 300;
/// First delay before an event stream is opened again; it grows by half each time.
pub(crate) const RECONNECT_FIRST: Duration = Duration::from_secs(1);
/// Longest delay before an event stream is opened again.
pub(crate) const RECONNECT_MAX: Duration = Duration::from_secs(30);
/// Longest delay that a server's `retry` can ask for.
pub(crate) const RETRY_MAX: Duration = Duration::from_mins(1);
/// An answered request's stream may go on this long before its connection is given up.
pub(crate) const STREAM_LINGER: Duration = Duration::from_secs(10);
/// Time for ending the session and closing connections.
pub(crate) const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Longest wait for a token: a person may have to sign in meanwhile.
pub(crate) const SIGN_IN_TIME: Duration = Duration::from_mins(10);
/// Time that later messages wait for `notifications/initialized` to be acknowledged.
pub(crate) const INITIALIZED_WAIT: Duration = Duration::from_secs(10);
/// Delay between connection attempts to the addresses of one host (RFC 8305, section 5).
pub(crate) const CONNECT_STAGGER: Duration = Duration::from_millis(250);
/// Largest `initialize` that is kept for a new session, and largest answer read when one is begun.
pub(crate) const MAX_HANDSHAKE: usize = 1024 * 1024;
/// Largest `tools/list` answer that is searched for annotated parameters.
pub(crate) const MAX_TOOLS_LIST: usize = 4 * 1024 * 1024;
/// Pages of `tools/list` that the transport asks for by itself.
pub(crate) const MAX_TOOLS_PAGES: usize = 20;
/// Largest `tools/call` in which annotated parameters are looked up.
pub(crate) const MAX_PARAM_BODY: u64 = 8 * 1024 * 1024;
