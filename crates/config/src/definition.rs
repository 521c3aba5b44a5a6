//! Owns what one server's entry says, as raw texts with their places, in the dialect it was written in. Reads no file,
//! replaces no placeholder.

mod check;
mod options;
mod read;
mod reader;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use toolway_secret::Secret;

use crate::dialect::{Dialect, Field};
use crate::lines;
use crate::problem::Position;
use crate::template::{self, Piece};

pub(crate) use check::{env_name_fault, header_value_fault, name_fault, url_fault};
pub(crate) use read::own_members;
pub use read::{Content, ReadEntry};

/// A text as it stands in the file, placeholders and all. It may be a secret, so `Debug` shows none of it.
#[derive(Clone)]
pub struct Text {
    raw: Secret,
    /// Where it stands.
    pub at: Option<Position>,
}

impl Text {
    /// A text from nowhere in particular.
    pub fn new(raw: impl Into<String>) -> Self {
        Self { raw: Secret::new(raw), at: None }
    }

    /// A text and its place.
    pub fn placed(raw: impl Into<String>, at: impl Into<Option<Position>>) -> Self {
        Self { raw: Secret::new(raw), at: at.into() }
    }

    /// As it stands in the file. It may be a secret.
    pub fn raw(&self) -> &str {
        self.raw.expose()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[text]")
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for Text {}

/// What one entry says. Texts are raw; `Entry::expand` gives them their meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Whose conventions its texts follow.
    pub dialect: Dialect,
    /// Where the server runs.
    pub target: Target,
    /// All else that Toolway understands.
    pub options: Options,
    /// Members that Toolway does not know, as they stand: kept on rewrite, and warned about.
    pub unknown: Vec<(String, serde_json::Value)>,
}

impl Definition {
    /// All its texts, each with its field.
    pub(crate) fn texts(&self) -> Vec<(Field, &Text)> {
        match &self.target {
            Target::Stdio(target) => {
                let args = target.args.iter().flatten().map(|arg| (Field::Args, arg));
                let env = target.env.iter().map(|(_, value)| (Field::Env, value));
                let paths = target.cwd.iter().chain(&target.env_file).map(|path| (Field::Cwd, path));
                std::iter::once((Field::Command, &target.command))
                    .chain(args)
                    .chain(env)
                    .chain(paths)
                    .collect()
            }
            Target::Remote(target) => {
                let headers = target.headers.iter().map(|(_, value)| (Field::Headers, value));
                let auth =
                    target.auth.iter().flat_map(|auth| auth.client_id.iter().chain(&auth.client_secret));
                let auth = auth.map(|text| (Field::Auth, text));
                std::iter::once((Field::Url, &target.url)).chain(headers).chain(auth).collect()
            }
        }
    }

    /// Whether it starts Toolway's gateway, itself or by way of another program: a client's way to the servers, and
    /// none of them.
    pub fn starts_gateway(&self) -> bool {
        let Target::Stdio(target) = &self.target else { return false };
        let args = target.args.iter().flatten().map(Text::raw);
        let whole: Vec<&str> = std::iter::once(target.command.raw()).chain(args).collect();
        let split = || shlex::split(target.command.raw()).is_some_and(|words| lines::starts_gateway(&words));
        lines::starts_gateway(&whole) || (target.args.is_none() && split())
    }

    /// Whether a value is what a command prints.
    pub(crate) fn runs_commands(&self) -> bool {
        self.has(|piece| matches!(piece, Piece::Command(_)))
    }

    /// Whether a value is a secret of the user's keyring.
    pub(crate) fn reads_keyring(&self) -> bool {
        self.has(|piece| matches!(piece, Piece::Keyring(_)))
    }

    fn has(&self, what: fn(&Piece) -> bool) -> bool {
        self.texts().into_iter().any(|(field, text)| {
            let pieces = template::parse(text.raw(), self.dialect, field);
            pieces.is_ok_and(|pieces| pieces.iter().any(what))
        })
    }
}

/// Where a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A child process.
    Stdio(StdioTarget),
    /// An address.
    Remote(RemoteTarget),
}

/// A server that is started as a child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioTarget {
    /// The program; with its arguments, as a shell would split them, where `args` is `None`.
    pub command: Text,
    /// `None`: not given.
    pub args: Option<Vec<Text>>,
    /// Variables, in the order of the file.
    pub env: Vec<(String, Text)>,
    /// A file of variables that stand below `env`.
    pub env_file: Option<Text>,
    /// Variables of ours that are handed on.
    pub inherit_env: InheritEnv,
    /// The working directory.
    pub cwd: Option<Text>,
}

/// A server at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteTarget {
    /// Which transport.
    pub kind: RemoteKind,
    /// The address.
    pub url: Text,
    /// Headers of every request, in the order of the file.
    pub headers: Vec<(String, Text)>,
    /// A client that is registered with the authorization server.
    pub auth: Option<Auth>,
    /// Certificates.
    pub tls: Option<Tls>,
    /// How the names of headers are written over HTTP/1.1.
    pub header_case: HeaderCase,
}

/// Which transport a server at an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RemoteKind {
    /// Not said: Streamable HTTP with the fallback to legacy SSE; the other way round where the path ends in `/sse`.
    #[default]
    Auto,
    /// Streamable HTTP, with the fallback that the specification asks of clients.
    Http,
    /// Legacy SSE only.
    Sse,
}

/// How the names of headers are written over HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HeaderCase {
    /// In lower case.
    #[default]
    Lower,
    /// `Content-Type`.
    Title,
}

/// A pre-registered OAuth client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// `CLIENT_ID`; without it the client registers itself.
    pub client_id: Option<Text>,
    /// `CLIENT_SECRET`.
    pub client_secret: Option<Text>,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Where the authorization server sends its answer; without it, to a free port of this machine.
    pub redirect_uri: Option<String>,
    /// How tokens are got.
    pub grant_type: GrantType,
    /// Whose tokens, where one person has several accounts at a server.
    pub account: Option<String>,
}

/// How tokens are got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GrantType {
    /// A person signs in.
    #[default]
    AuthorizationCode,
    /// The client itself is known, and nobody is asked.
    ClientCredentials,
}

impl GrantType {
    /// The word of the configuration, and of RFC 6749.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::ClientCredentials => "client_credentials",
        }
    }
}

/// Certificates of a remote server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Certificates in PEM that are trusted, at most 131,072 characters.
    pub ca_bundle: Option<String>,
    /// Whether only those are trusted.
    pub strict: bool,
}

/// Which of our variables a child process gets beside the safe base set and its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum InheritEnv {
    /// None.
    #[default]
    Base,
    /// All.
    All,
    /// These.
    Names(Vec<String>),
}

/// What is the same for both kinds of server. Every field is optional in a file; the defaults are applied by whoever
/// runs the server, except where this says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// `enabled`, or the opposite of `disabled`.
    pub enabled: Option<bool>,
    /// Which tools are shown, and how.
    pub tools: ToolOptions,
    /// From the start to the answer to `initialize`; 60 s.
    pub startup_timeout: Option<Duration>,
    /// For one page of a list; 60 s.
    pub list_timeout: Option<Duration>,
    /// A call without progress; 60 s. Progress starts it again.
    pub call_idle_timeout: Option<Duration>,
    /// A call in all; 3600 s.
    pub call_max: Option<Duration>,
    /// The gateway is not ready without it; no.
    pub required: Option<bool>,
    /// Started by its first call; no.
    pub lazy: Option<bool>,
    /// Whether several clients use one copy; `auto`.
    pub share: Option<Share>,
    /// Another limit for the size of results, in characters.
    pub max_response_chars: Option<u64>,
    /// Roots that are told to a server that asks: paths or file URLs.
    pub roots: Option<Vec<Text>>,
    /// Which protocol generation is spoken; `auto`.
    pub protocol: Option<Protocol>,
    /// Where the server runs when the agent runs in a cloud.
    pub placement: Option<Placement>,
}

/// Which of a server's tools are shown, and how. Globs match the server's own names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOptions {
    /// `None`: all. First the allowed ones...
    pub allow: Option<Vec<String>>,
    /// ...then without these.
    pub deny: Vec<String>,
    /// Server's name of a tool to the name that replaces it.
    pub rename: BTreeMap<String, String>,
    /// Server's name of a tool to another description.
    pub describe: BTreeMap<String, String>,
}

/// Whether several clients use one copy of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// Yes, unless the server is found to keep state for each client.
    #[default]
    Auto,
    /// Yes, whatever it does.
    Always,
    /// Each client has its own copy.
    Never,
}

/// Which protocol generation is spoken to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// Found out.
    #[default]
    Auto,
    /// Up to 2025-11-25.
    Legacy,
    /// 2026-07-28.
    Modern,
}

/// Where a server runs when the agent runs in a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Beside the cloud's own services.
    Server,
    /// Beside the agent.
    Client,
}
