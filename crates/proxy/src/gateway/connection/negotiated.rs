//! Owns what a server said of itself when the connection was made. Decides nothing.

use bytes::Bytes;
use toolway_wire::era::Era;
use toolway_wire::find::{Step, find, string};

use super::super::lists::ListKind;

/// How messages travel to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// The pipes of a child process.
    Stdio,
    /// Streamable HTTP.
    StreamableHttp,
    /// Legacy HTTP+SSE.
    Sse,
    /// In memory, for tests and embedding.
    Memory,
}

impl Carrier {
    /// The word used in every output: `stdio`, `http`, `sse`, `memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "http",
            Self::Sse => "sse",
            Self::Memory => "memory",
        }
    }
}

/// What was agreed with a server: the result of `initialize` or of `server/discover`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// Which generation is spoken.
    pub era: Era,
    /// The revision: what the server answered to `initialize`, or 2026-07-28.
    pub version: String,
    /// How messages travel.
    pub carrier: Carrier,
    /// The whole result object, byte for byte.
    pub result: Bytes,
}

impl Negotiated {
    /// `capabilities`, raw; `{}` where the server sent none.
    pub fn capabilities(&self) -> &[u8] {
        self.member(&["capabilities"]).unwrap_or(b"{}")
    }

    /// `serverInfo`, raw. A modern server has it in `_meta`.
    pub fn server_info(&self) -> Option<&[u8]> {
        self.member(&["serverInfo"]).or_else(|| self.member(&["_meta", "io.modelcontextprotocol/serverInfo"]))
    }

    /// `serverInfo.name`.
    pub fn server_name(&self) -> Option<String> {
        self.info_text("name")
    }

    /// `serverInfo.version`.
    pub fn server_version(&self) -> Option<String> {
        self.info_text("version")
    }

    /// `instructions`.
    pub fn instructions(&self) -> Option<String> {
        text(self.member(&["instructions"])?)
    }

    /// Whether `capabilities` has this member, at any depth: `["resources", "subscribe"]`. `false` and `null` are no.
    pub fn offers(&self, path: &[&str]) -> bool {
        let steps: Vec<Step<'_>> =
            std::iter::once("capabilities").chain(path.iter().copied()).map(Step::Key).collect();
        let value = find(&self.result, &steps).and_then(|at| self.result.get(at));
        value.is_some_and(|value| value != b"false" && value != b"null")
    }

    /// Whether the server says that it has lists of this kind.
    pub fn lists(&self, kind: ListKind) -> bool {
        self.offers(&[match kind {
            ListKind::Tools => "tools",
            ListKind::Prompts => "prompts",
            ListKind::Resources | ListKind::Templates => "resources",
        }])
    }

    fn info_text(&self, name: &str) -> Option<String> {
        let info = self.server_info()?;
        text(info.get(find(info, &[Step::Key(name)])?)?)
    }

    fn member(&self, path: &[&str]) -> Option<&[u8]> {
        let steps: Vec<Step<'_>> = path.iter().copied().map(Step::Key).collect();
        self.result.get(find(&self.result, &steps)?)
    }
}

fn text(raw: &[u8]) -> Option<String> {
    string(raw, 0..raw.len())
}
