//! The upstream: a small, deterministic MCP server over stdio, Streamable HTTP or legacy HTTP+SSE. Written by hand
//! so that it is never the bottleneck; every fault that a front must survive can be asked for. Shares nothing with
//! the product, whose mistakes it must not repeat.

mod answer;
mod catalogue;
mod http;
mod legacy;
mod sse;
mod stdio;
mod streamable;
mod text;
mod tools;

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::sys;

pub(crate) use text::{INIT_TAIL, blob_base64, blob_piece, blob_text, probe_result};

/// How the upstream is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

impl FromStr for Transport {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text {
            "stdio" => Ok(Self::Stdio),
            "http" => Ok(Self::Http),
            "sse" => Ok(Self::Sse),
            other => anyhow::bail!("no such transport: {other}"),
        }
    }
}

/// What `server` was asked to be.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one switch of the command line")]
pub(crate) struct Options {
    pub(crate) transport: Transport,
    pub(crate) port: u16,
    /// Streamable HTTP: answers come as event streams.
    pub(crate) reply_sse: bool,
    /// Streamable HTTP: no GET stream.
    pub(crate) no_get: bool,
    /// Streamable HTTP: no sessions.
    pub(crate) stateless: bool,
    /// Where the process id is appended.
    pub(crate) pidfile: Option<PathBuf>,
    pub(crate) ignore_eof: bool,
    pub(crate) ignore_term: bool,
    /// After the end of stdin, slow calls still finish.
    pub(crate) drain: bool,
    /// An upstream that was left behind ends by itself.
    pub(crate) max_life: Duration,
    pub(crate) init_delay: Duration,
    /// So many tools that one can search, in place of those with faults.
    pub(crate) tools: Option<usize>,
    /// What this upstream calls itself.
    pub(crate) name: String,
    /// A folder where the moment of the first answer to `tools/list` is left, in a file of that name.
    pub(crate) stamps: Option<PathBuf>,
}

/// Where a message goes that is not the immediate answer.
trait Emit: Send + Sync {
    fn emit(&self, message: &[u8]);
    /// Half a message, with nothing behind it.
    fn emit_torn(&self) {}
    /// A notification under an event id, where the transport has such ids.
    fn emit_with_id(&self, _event_id: &str, _message: &[u8]) {}
    /// One message made of `head`, `n` characters of blob text and `tail`.
    fn emit_blob(&self, head: &[u8], n: usize, tail: &[u8]) {
        self.emit(&[head, &blob_text(n, "ascii"), tail].concat());
    }
    /// Breaks the transport under this message, half way.
    fn cut(&self) {}
}

#[derive(Debug, Default)]
struct State {
    waiting: Mutex<HashMap<String, SyncSender<Vec<u8>>>>,
    methods: Mutex<Vec<(String, u64)>>,
    cancelled: Mutex<Vec<String>>,
    last_init: Mutex<Vec<u8>>,
    resumable: Mutex<HashMap<String, Vec<u8>>>,
    next: AtomicU64,
    slow: AtomicUsize,
}

#[derive(Debug)]
struct Server {
    options: Options,
    /// The result of `tools/list`.
    tools: String,
    state: State,
}

impl Server {
    /// Leaves the moment of the first list behind.
    fn stamp(&self) {
        let Some(folder) = &self.options.stamps else { return };
        let file = folder.join(&self.options.name);
        if !file.exists() && std::fs::create_dir_all(folder).is_ok() {
            std::fs::write(file, wall_clock().to_string()).ok();
        }
    }

    /// Counts a method; `stats` shows it.
    fn count(&self, method: &str) {
        let mut methods = sys::held(&self.state.methods);
        match methods.iter_mut().find(|(name, _)| name == method) {
            Some(entry) => entry.1 += 1,
            None => methods.push((method.to_owned(), 1)),
        }
    }
}

/// Serves until the input ends, `--max-life` is over, or a tool ends it.
pub(crate) fn run(options: Options) -> anyhow::Result<()> {
    if let Some(path) = &options.pidfile {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{}", std::process::id())?;
    }
    let life = options.max_life;
    small_thread(64, move || {
        sys::pause(life);
        sys::quit(9);
    })?;
    if options.ignore_term {
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
    }
    let tools = options.tools.map_or_else(|| text::TOOLS.to_owned(), |n| catalogue::tools(n, &options.name));
    let server = Arc::new(Server { options, tools, state: State::default() });
    match server.options.transport {
        Transport::Stdio => stdio::serve(&server),
        Transport::Http | Transport::Sse => http::serve(&server).context("HTTP upstream")?,
    }
    Ok(())
}

/// Nanoseconds of the clock that all processes of a machine share.
pub(crate) fn wall_clock() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}

/// A thread with a small stack, so that hundreds cost little.
fn small_thread(stack_kib: usize, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().stack_size(stack_kib << 10).spawn(run).map(drop)
}
