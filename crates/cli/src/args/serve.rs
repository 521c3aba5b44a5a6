//! Owns the arguments of `serve` and `daemon`.

use std::path::PathBuf;

use clap::Args;

use super::{CommonArgs, SourceArgs};

/// `toolway serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// What clients see, and what is told about it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Gateway")]
pub(crate) struct GatewayArgs {
    /// What a client sees: every tool, or `toolway_search` and `toolway_call` [default: all].
    #[arg(long, value_name = "all|search")]
    pub(crate) expose: Option<String>,
    /// With --expose search: tools that are shown all the same, by their exposed names.
    #[arg(long, value_name = "GLOB")]
    pub(crate) pin: Vec<String>,
    /// Names stay bare, without their server's: for one server.
    #[arg(long)]
    pub(crate) bare: bool,
    /// What the first list waits for, within the servers' own start times [default: none].
    #[arg(long, value_name = "all|required|none")]
    pub(crate) wait: Option<String>,
    /// Hold back tools whose definition has changed since it was first seen.
    #[arg(long)]
    pub(crate) pin_tools: bool,
    /// Use one copy of each server together with other gateways of this user (see `toolway daemon`).
    #[arg(long)]
    pub(crate) shared: bool,
    /// Serve numbers for Prometheus at this loopback address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,
    /// Write one line for each call to this file: who, which tool, sizes, time, outcome; never payloads.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<String>,
}

/// The front over HTTP, instead of stdin and stdout.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "HTTP")]
pub(crate) struct HttpArgs {
    /// Serve Streamable HTTP at this address, path /mcp, instead of stdin and stdout.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// The token that clients send as `Authorization: Bearer`; other processes can see it here: better a file, or the
    /// variable `TOOLWAY_TOKEN` [default: a new one, said once on stderr].
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["token_file", "no_auth"])]
    pub(crate) token: Option<String>,
    /// A file with that token; made, for its owner only, when it is not there.
    #[arg(long, value_name = "FILE", conflicts_with = "no_auth")]
    pub(crate) token_file: Option<String>,
    /// Ask for no token; for loopback addresses only.
    #[arg(long)]
    pub(crate) no_auth: bool,
    /// A name that `Host` may have beside those of the address.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// An origin whose web pages may call, beside those of loopback: `https://app.example`.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// A certificate chain in PEM, for https.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The most bytes of one request [default: 32MiB].
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_body: Option<String>,
}

/// `toolway daemon`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct DaemonArgs {
    /// Show the servers that run, and who uses them.
    #[arg(long, conflicts_with = "stop")]
    pub(crate) status: bool,
    /// End the daemon and its servers.
    #[arg(long)]
    pub(crate) stop: bool,
    /// With --status: print JSON.
    #[arg(long, requires = "status")]
    pub(crate) json: bool,
    /// A server, and the daemon, that nobody has used for this long ends [default: 5m].
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle: Option<String>,
    /// What is logged on stderr: off, error, warn, info, debug or trace [default: warn].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Start it in another process, and end.
    #[arg(long, hide = true)]
    pub(crate) background: bool,
}
