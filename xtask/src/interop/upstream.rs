//! The servers behind the front: their command lines, the listening ones, and both ways to reach each.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::interop::Stage;
use crate::interop::cases::Case;
use crate::interop::client::Target;
use crate::peers::Peers;
use crate::process::{Background, Step, tail};

const START_DEADLINE: Duration = Duration::from_secs(90);
/// One grey pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";

/// A server that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Server {
    Everything,
    /// The same, started through npm as a client's configuration does: npm, a shell, node.
    EverythingByNpm,
    FastMcp,
    Filesystem,
    Memory,
    Thinking,
    /// The fixture of the conformance suite.
    Fixture,
    /// The tools of the bridge's scripted host, without a bridge.
    PlainTools,
}

/// The transport between the front and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wire {
    Stdio,
    /// Streamable HTTP with answers as event streams.
    Http,
    /// Streamable HTTP with answers as plain JSON.
    HttpJson,
    Sse,
}

impl Wire {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::HttpJson => "http-json",
            Self::Sse => "sse",
        }
    }
}

impl Server {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::EverythingByNpm => "everything-by-npm",
            Self::FastMcp => "fastmcp",
            Self::Filesystem => "filesystem",
            Self::Memory => "memory",
            Self::Thinking => "thinking",
            Self::Fixture => "fixture",
            Self::PlainTools => "plain-tools",
        }
    }

    /// The file of steps for it.
    pub(super) const fn scenario(self) -> &'static str {
        match self {
            Self::EverythingByNpm => Self::Everything.name(),
            _ => self.name(),
        }
    }

    pub(super) const fn is_there(self, peers: &Peers) -> bool {
        match self {
            Self::Everything | Self::EverythingByNpm | Self::Filesystem | Self::Memory | Self::Thinking => {
                peers.node.is_some()
            }
            Self::FastMcp | Self::PlainTools => peers.python2.is_some(),
            Self::Fixture => peers.python2.is_some() && peers.fixture.is_some(),
        }
    }

    /// The folder that a server of files may show.
    pub(super) fn files(self, stage: &Stage) -> Result<PathBuf> {
        let folder = stage.folder("files")?;
        if self == Self::Filesystem {
            fill(stage, &folder)?;
        }
        Ok(folder)
    }

    /// The words that start it; `port` where it listens.
    pub(super) fn command(self, stage: &Stage, wire: Wire, port: u16) -> Result<Vec<String>> {
        self.command_in(stage, wire, port, &self.files(stage)?)
    }

    /// The same, with its files in that folder.
    pub(super) fn command_in(
        self,
        stage: &Stage,
        wire: Wire,
        port: u16,
        files: &Path,
    ) -> Result<Vec<String>> {
        let words = match self {
            Self::Everything => {
                let mode = match wire {
                    Wire::Stdio => "stdio",
                    Wire::Http | Wire::HttpJson => "streamableHttp",
                    Wire::Sse => "sse",
                };
                node(stage, "@modelcontextprotocol/server-everything/dist/index.js", mode)?
            }
            Self::EverythingByNpm => {
                let peers = stage.peers.node.as_ref().context("no npm peers")?;
                let folder = text(&peers.folder);
                let by_npm =
                    ["npm", "exec", "--prefix", &folder, "--offline", "--no", "--", "mcp-server-everything"];
                marked(stage).into_iter().chain(by_npm.map(str::to_owned)).collect()
            }
            Self::Filesystem => {
                node(stage, "@modelcontextprotocol/server-filesystem/dist/index.js", &text(files))?
            }
            Self::Memory => {
                let memory = format!("MEMORY_FILE_PATH={}", text(&files.join("memory.jsonl")));
                let mut words = node(stage, "@modelcontextprotocol/server-memory/dist/index.js", "stdio")?;
                words.insert(1, memory);
                words
            }
            Self::Thinking => {
                node(stage, "@modelcontextprotocol/server-sequential-thinking/dist/index.js", "stdio")?
            }
            Self::FastMcp => python(stage, "fastmcp_peer.py", wire, port)?,
            Self::Fixture => python(stage, "conformance_fixture.py", wire, port)?,
            Self::PlainTools => python(stage, "plain_tools.py", wire, port)?,
        };
        Ok(words)
    }

    const fn path(self, wire: Wire) -> &'static str {
        match (self, wire) {
            (_, Wire::Sse) => "/sse",
            _ => "/mcp",
        }
    }
}

/// Puts the files of [`Server::Filesystem`] there, unless they are.
pub(super) fn fill(stage: &Stage, folder: &Path) -> Result<()> {
    let big = folder.join("big.log");
    if big.exists() {
        return Ok(());
    }
    fs::write(folder.join("small.txt"), "first line\nsecond \u{e9}\u{4e16}\u{1f600}\n")?;
    fs::write(folder.join("pixel.png"), STANDARD.decode(PIXEL)?)?;
    let lines: String =
        (0..4000).flat_map(|line| [line.to_string(), " built \"x\"\t\u{1b}[0m\n".to_owned()]).collect();
    let fresh = tempfile::NamedTempFile::new_in(stage.scratch.path())?;
    fs::write(fresh.path(), lines)?;
    fresh.persist(big)?;
    Ok(())
}

fn node(stage: &Stage, script: &str, argument: &str) -> Result<Vec<String>> {
    let peers = stage.peers.node.as_ref().context("no npm peers")?;
    let mut words = marked(stage);
    words.extend([text(&peers.node), text(&peers.file(script)), argument.to_owned()]);
    Ok(words)
}

/// `env` marks the server as one of this run: a front passes on no variable that it was not told to.
fn marked(stage: &Stage) -> Vec<String> {
    vec!["env".to_owned(), format!("TOOLWAY_INTEROP={}", text(stage.scratch.path()))]
}

fn python(stage: &Stage, script: &str, wire: Wire, port: u16) -> Result<Vec<String>> {
    let interpreter = stage.peers.python2.as_deref().context("no Python peers")?;
    let mut words = marked(stage);
    words.push("PYTHONDONTWRITEBYTECODE=1".to_owned());
    if let Some(fixture) = &stage.peers.fixture {
        words.push(format!("PYTHONPATH={}", text(fixture)));
    }
    words.extend([text(interpreter), text(&stage.interop("servers").join(script)), wire.name().to_owned()]);
    if wire != Wire::Stdio {
        words.push(port.to_string());
    }
    Ok(words)
}

pub(super) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A port that nobody listens on right now.
pub(super) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?.port())
}

/// A server in the background that accepts connections.
#[derive(Debug)]
pub(super) struct Listener {
    process: Background,
    port: u16,
}

impl Listener {
    /// Starts `words` and waits until `port` accepts connections.
    pub(super) fn start(stage: &Stage, name: &str, words: &[String], port: u16) -> Result<Self> {
        let (program, arguments) = words.split_first().context("no command")?;
        let log = stage.folder("logs")?.join(format!("{}-{port}.log", name.replace(' ', "-")));
        let process = Step::new(program).args(arguments).env("PORT", port.to_string()).background(&log)?;
        let mut listener = Self { process, port };
        let deadline = Instant::now() + START_DEADLINE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if !listener.process.is_running() || Instant::now() > deadline {
                bail!("{name} does not listen:\n{}", tail(&fs::read_to_string(&log).unwrap_or_default()));
            }
            thread::park_timeout(Duration::from_millis(50));
        }
        Ok(listener)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

/// The listening servers of a run, each started once.
#[derive(Debug)]
pub(super) struct Upstreams {
    listeners: BTreeMap<(Server, Wire), Listener>,
}

impl Upstreams {
    /// Starts what the cases need.
    pub(super) fn start(stage: &Stage, cases: &[Case]) -> Result<Self> {
        let mut listeners = BTreeMap::new();
        for (server, wire) in cases.iter().flat_map(|case| case.listeners()) {
            if let Entry::Vacant(place) = listeners.entry((server, wire)) {
                let port = free_port()?;
                let words = server.command(stage, wire, port)?;
                let name = format!("{} {}", server.name(), wire.name());
                place.insert(Listener::start(stage, &name, &words, port)?);
            }
        }
        Ok(Self { listeners })
    }

    pub(super) fn url(&self, server: Server, wire: Wire) -> Result<String> {
        let listener = self.listeners.get(&(server, wire)).context("this server was not started")?;
        Ok(listener.url(server.path(wire)))
    }

    /// The server itself.
    pub(super) fn direct(&self, stage: &Stage, server: Server, wire: Wire) -> Result<Target> {
        Ok(match wire {
            Wire::Stdio => Target::Command(server.command(stage, wire, 0)?),
            Wire::Http | Wire::HttpJson => Target::Http(self.url(server, wire)?),
            Wire::Sse => Target::Sse(self.url(server, wire)?),
        })
    }

    /// The front before that server; it saves large results below `folder`.
    pub(super) fn through(&self, stage: &Stage, server: Server, wire: Wire, folder: &Path) -> Result<Target> {
        Ok(Target::Command(self.front(stage, server, wire, folder)?))
    }

    /// The words that start the front before that server.
    pub(super) fn front(
        &self,
        stage: &Stage,
        server: Server,
        wire: Wire,
        folder: &Path,
    ) -> Result<Vec<String>> {
        let command = match wire {
            Wire::Stdio => "stdio",
            Wire::Http | Wire::HttpJson => "streamable-http",
            Wire::Sse => "sse",
        };
        let mut words = vec![text(&stage.front), command.to_owned()];
        words.extend(["--output-dir".to_owned(), text(&folder.join("saved"))]);
        match wire {
            Wire::Stdio => {
                words.push("--".to_owned());
                words.extend(server.command(stage, wire, 0)?);
            }
            Wire::Http | Wire::HttpJson | Wire::Sse => {
                words.extend(["--url".to_owned(), self.url(server, wire)?]);
            }
        }
        Ok(words)
    }
}
