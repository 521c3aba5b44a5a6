//! Owns the arguments of the commands about signing in: login, logout, auth.

use clap::{Args, Subcommand};

use super::SourceArgs;

/// Which server, and as whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct SignInArgs {
    /// A configured server, or the address of one.
    #[arg(value_name = "SERVER|URL")]
    pub(crate) server: String,
    /// Whose tokens, where you have several accounts at a server.
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// A client that was registered beforehand; its secret comes from `TOOLWAY_CLIENT_SECRET` or --client-secret-file.
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// A file that holds the client's secret.
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub(crate) client_secret_file: Option<String>,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Show our own log; twice: all of it.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// `toolway login`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 signed in; 2 something in the arguments or the configuration is wrong; 3 the server \
is not approved; 4 a server cannot be reached; 5 not signed in."
)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) target: SignInArgs,
    /// A scope to ask for, beside those of the configuration or of the server. May be repeated.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// Print the address and open no browser: for another machine's, whose last address you paste here.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Where the answer is sent, if the client was registered with that: `http://localhost:8787/callback`.
    #[arg(long, value_name = "URL")]
    pub(crate) redirect_uri: Option<String>,
    /// Get tokens for the client itself, which nobody is asked for.
    #[arg(long)]
    pub(crate) client_credentials: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `toolway logout`.
#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    pub(crate) target: SignInArgs,
}

/// `toolway auth`.
#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Show who is signed in to what, and for how long. Asks nobody.
    Status(StatusArgs),
    /// Print a token that is good now, renewed if need be, for a program that speaks with the server itself.
    Token(TokenArgs),
    /// Keep or remove a secret that files name as ${keyring:NAME}.
    Secret(SecretArgs),
}

/// `toolway auth status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
}

/// `toolway auth token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    pub(crate) target: SignInArgs,
    /// Print it also to a terminal.
    #[arg(long)]
    pub(crate) show: bool,
}

/// `toolway auth secret`.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    #[command(subcommand)]
    pub(crate) command: SecretCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Keep what stands on stdin, without a line break at its end, under a name.
    Set {
        /// The name.
        name: String,
    },
    /// Forget the secret of a name.
    Remove {
        /// The name.
        name: String,
    },
}
