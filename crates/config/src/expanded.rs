//! Owns a definition with every placeholder replaced, ready to be run. Its values may be secrets, and are kept as such.

use std::path::PathBuf;

use toolway_secret::Secret;

use crate::definition::{GrantType, HeaderCase, InheritEnv, Options, RemoteKind, Tls};
use crate::problem::Problem;

/// A server ready to be started.
#[derive(Debug, Clone)]
pub struct Expanded {
    /// Its name as configured.
    pub name: String,
    /// Where it runs.
    pub target: ExpandedTarget,
    /// All else; `roots` are expanded here as well.
    pub options: Options,
    /// Roots that are told to a server that asks, as file URLs; `None`: the client's own.
    pub roots: Option<Vec<String>>,
    /// Digest of all of it, the values of variables and the working directory included: equal means that one running
    /// copy can serve for the other.
    pub digest: String,
    /// Values that must not be seen in any output of this server or about it.
    pub secrets: Vec<Secret>,
    /// What works, and perhaps not as meant.
    pub warnings: Vec<Problem>,
}

/// Where a server runs.
#[derive(Debug, Clone)]
pub enum ExpandedTarget {
    /// A child process.
    Stdio(ExpandedStdio),
    /// An address.
    Remote(ExpandedRemote),
}

/// A server that is started as a child process.
#[derive(Debug, Clone)]
pub struct ExpandedStdio {
    /// The program: a name to be looked up in `PATH`, or an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<Secret>,
    /// Its own variables, those of `envFile` among them; each name once.
    pub env: Vec<(String, Secret)>,
    /// Which of our variables it gets beside the safe base set.
    pub inherit_env: InheritEnv,
    /// Its working directory, absolute.
    pub cwd: PathBuf,
}

/// A server at an address.
#[derive(Debug, Clone)]
pub struct ExpandedRemote {
    /// Which transport.
    pub kind: RemoteKind,
    /// The address, `http` or `https`, checked.
    pub url: Secret,
    /// Headers of every request; each name once.
    pub headers: Vec<(String, Secret)>,
    /// How their names are written over HTTP/1.1.
    pub header_case: HeaderCase,
    /// A client that is registered with the authorization server.
    pub auth: Option<ExpandedAuth>,
    /// Certificates.
    pub tls: Option<Tls>,
}

/// A pre-registered OAuth client.
#[derive(Debug, Clone)]
pub struct ExpandedAuth {
    /// Without it the client registers itself.
    pub client_id: Option<String>,
    /// For the authorization server only.
    pub client_secret: Option<Secret>,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Where the authorization server sends its answer; without it, to a free port of this machine.
    pub redirect_uri: Option<String>,
    /// How tokens are got.
    pub grant_type: GrantType,
    /// Whose tokens, where one person has several accounts at a server.
    pub account: Option<String>,
}
