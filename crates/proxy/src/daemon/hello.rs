//! Owns the first line of each side of a connection to the daemon, and how much of it is read.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::VERSION;
use super::definition::Definition;

/// The longest first line: environments are large.
const MAX_LINE: usize = 4 << 20;
/// What it may take.
const LINE_TIME: Duration = Duration::from_secs(5);

/// What a client says first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`VERSION`] of the client.
    toolway: String,
    pub(super) want: Want,
}

/// What it wants.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Want {
    /// A server.
    Attach(Box<Definition>),
    /// What runs.
    Status,
    /// The end.
    Stop,
}

impl Hello {
    pub(super) fn new(want: Want) -> Self {
        Self { toolway: VERSION.to_owned(), want }
    }

    pub(super) fn is_ours(&self) -> bool {
        self.toolway == VERSION
    }
}

/// What the daemon answers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Reply {
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<DaemonStatus>,
}

impl Reply {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { error: Some(text.into()), ..Self::default() }
    }
}

/// What a daemon says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// The copies that run.
    pub servers: Vec<CopyStatus>,
}

/// One copy of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyStatus {
    /// What the gateway that asked first calls it.
    pub name: String,
    /// `connected`, `starting`, ...
    pub state: String,
    /// Gateways that use it now.
    pub clients: usize,
    /// Processes or connections of it: more than one where it keeps state for each client.
    pub instances: usize,
    /// For how long nobody has used it, in seconds.
    pub idle_s: u64,
}

/// Sends one line.
pub(super) async fn send(stream: &mut UnixStream, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    timeout(LINE_TIME, stream.write_all(&line)).await?
}

/// Reads one line of at most 4 MiB within some seconds (`patience`: or so much more), and nothing after it.
pub(super) async fn receive(stream: &mut UnixStream, patience: Duration) -> io::Result<Vec<u8>> {
    let reading = async {
        let mut line = Vec::new();
        let mut piece = [0; 4096];
        loop {
            // Nothing after the line is taken: it belongs to the session.
            let read = stream.read(&mut piece).await?;
            let got = piece.get(..read).unwrap_or_default();
            if let Some(end) = memchr::memchr(b'\n', got) {
                if end + 1 != got.len() {
                    return Err(io::Error::other("bytes after the first line"));
                }
                line.extend_from_slice(got.get(..end).unwrap_or_default());
                return Ok(line);
            }
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            line.extend_from_slice(got);
            if line.len() > MAX_LINE {
                return Err(io::Error::other("the first line is too long"));
            }
        }
    };
    timeout(LINE_TIME.max(patience), reading).await?
}
