//! Owns what a sign-in is made of: who the server is, which client asks, where the answer goes. Plain values that
//! somebody else has read and checked; nothing here knows files or the environment.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolway_secret::Secret;
use url::Url;

use crate::error::AuthError;

/// Gives the TLS configuration when the first request is made.
pub type TlsSource = Arc<dyn Fn() -> Result<Arc<rustls::ClientConfig>, String> + Send + Sync>;

/// What all servers of a process share.
#[derive(Clone)]
pub struct AuthSettings {
    /// The directory of the store: made with mode 0700 when the first token is kept.
    pub directory: PathBuf,
    /// Where the key that seals the store is kept.
    pub keyring: KeyringUse,
    /// TLS for https requests.
    pub tls: TlsSource,
    /// The address of this program's client id metadata document, where it has one
    /// (draft-ietf-oauth-client-id-metadata-document).
    pub metadata_document: Option<Url>,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long it is waited for the person, and for another process's login.
    pub login_timeout: Duration,
    /// How long it is waited for another process that refreshes.
    pub lock_timeout: Duration,
}

impl fmt::Debug for AuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthSettings").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl AuthSettings {
    /// The defaults: 30 s for a request, 5 minutes for a login, 60 s for another process.
    pub fn new(directory: impl Into<PathBuf>, tls: TlsSource) -> Self {
        Self {
            directory: directory.into(),
            keyring: KeyringUse::Auto,
            tls,
            metadata_document: None,
            request_timeout: Duration::from_secs(30),
            login_timeout: Duration::from_mins(5),
            lock_timeout: Duration::from_mins(1),
        }
    }
}

/// Where the key that seals the store is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyringUse {
    /// In the platform's keyring where there is one, else in a file of mode 0600.
    #[default]
    Auto,
    /// In the platform's keyring; without one nothing is kept.
    Always,
    /// In a file of mode 0600.
    Never,
}

/// One MCP server to which tokens are sent.
#[derive(Debug, Clone)]
pub struct ServerAuth {
    /// The server's address: the resource of RFC 8707, its fragment left off.
    pub resource: Url,
    /// A client that was registered beforehand.
    pub client: Option<StaticClient>,
    /// Scopes to ask for. Empty: those that the server asks for.
    pub scopes: Vec<String>,
    /// Whose tokens: one person may have several accounts at a server. Empty for the only one.
    pub account: String,
    /// Where the answer is sent to.
    pub redirect: Redirect,
    /// How tokens are got.
    pub grant: Grant,
    /// TLS for this server's authorization server, in place of that of all.
    pub tls: Option<Tls>,
}

/// A source of TLS configurations that can be printed.
#[derive(Clone)]
pub struct Tls(pub TlsSource);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl ServerAuth {
    /// A server about which no more is known than its address.
    pub fn new(mut resource: Url) -> Result<Self, AuthError> {
        if !matches!(resource.scheme(), "http" | "https") || resource.host().is_none() {
            return Err(AuthError::setting("url", "only http and https servers can be signed in to"));
        }
        resource.set_fragment(None);
        // User and password belong to no resource, and into no store.
        if resource.set_username("").is_err() || resource.set_password(None).is_err() {
            return Err(AuthError::setting("url", "its user and password cannot be left off"));
        }
        Ok(Self {
            resource,
            client: None,
            scopes: Vec::new(),
            account: String::new(),
            redirect: Redirect::Loopback,
            grant: Grant::AuthorizationCode,
            tls: None,
        })
    }
}

/// A client that was registered beforehand. Its id may be the https address of a client id metadata document.
#[derive(Debug, Clone)]
pub struct StaticClient {
    /// `client_id`.
    pub id: String,
    /// `client_secret`; none for a public client.
    pub secret: Option<Secret>,
}

/// Where the authorization server sends the person's browser with its answer (RFC 8252, 7.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Redirect {
    /// `http://127.0.0.1:PORT/callback` on a port that is free.
    #[default]
    Loopback,
    /// A loopback address that was registered, with its port and path, as `http://localhost:8787/callback`.
    Fixed(Url),
    /// An address that somebody else serves: the answer is handed to [`crate::Login::complete`].
    Elsewhere(Url),
}

impl Redirect {
    /// A redirect to this address, which must name a port where it is on this machine.
    pub fn parse(text: &str) -> Result<Self, AuthError> {
        let refuse = |reason: &str| AuthError::setting("redirect", reason);
        let url = Url::parse(text).map_err(|error| refuse(&format!("it is no address: {error}")))?;
        if url.fragment().is_some() {
            return Err(refuse("a redirect has no fragment"));
        }
        if !crate::address::is_loopback(&url) {
            return match url.scheme() {
                "https" => Ok(Self::Elsewhere(url)),
                _ => Err(refuse("it must be https, or http on 127.0.0.1, [::1] or localhost")),
            };
        }
        match (url.scheme(), url.port()) {
            ("http", Some(port)) if port != 0 => Ok(Self::Fixed(url)),
            ("http", _) => Err(refuse("a fixed redirect on this machine names its port")),
            _ => Err(refuse("a redirect on this machine is http")),
        }
    }
}

/// How tokens are got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Grant {
    /// A person signs in (RFC 6749, 4.1).
    #[default]
    AuthorizationCode,
    /// The client itself is known (RFC 6749, 4.4): nobody is asked.
    ClientCredentials,
}

/// Texts of scopes, each once, in the order they came.
pub(crate) fn union<'a>(scopes: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in scopes {
        if !scope.is_empty() && !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

/// The scopes of a text that separates them by spaces (RFC 6749, 3.3).
pub(crate) fn scopes_of(text: &str) -> Vec<String> {
    let all: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    union(&all)
}
