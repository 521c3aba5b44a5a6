//! Owns the signing in to the servers of a process: which settings it has, and how the transports' requests are signed by
//! it. The protocol is the auth crate's.

mod signed;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use toolway_auth::{
    Auth, AuthError, AuthSettings, Grant, KeyringUse, NamedSecrets, Opener, Redirect, ServerAuth, Session,
    StaticClient, Tls,
};
use toolway_config::{ExpandedAuth, ExpandedRemote, GrantType};
use toolway_secret::Secret;
use toolway_transport::{Authorizer, Roots};
use url::Url;

pub use signed::{Signed, authorizer};

use crate::options::Machine;

/// Where the key of the store is kept: `auto`, `always` or `never` in the platform's keyring.
const KEYRING: &str = "TOOLWAY_KEYRING";
/// The address of a client id metadata document.
const CLIENT_METADATA: &str = "TOOLWAY_CLIENT_METADATA_URL";

/// The signing in of a process: of each server one session, whichever agents and gateways use it.
#[derive(Clone)]
pub struct SignIns {
    auth: Auth,
    sessions: Arc<Mutex<HashMap<[u8; 32], Session>>>,
}

impl fmt::Debug for SignIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignIns").field("auth", &self.auth).finish_non_exhaustive()
    }
}

impl SignIns {
    /// With the store in the user's state directory. Reads nothing yet. `None` without a home.
    pub(crate) fn of(machine: &Machine) -> Option<Self> {
        let mut settings =
            AuthSettings::new(machine.state_dir()?.join("auth"), Arc::new(|| Roots::System.client_config()));
        settings.keyring = keyring(machine);
        settings.metadata_document = machine.var(CLIENT_METADATA).and_then(|text| {
            let url = Url::parse(text).ok().filter(|url| url.scheme() == "https" && url.path() != "/");
            if url.is_none() {
                tracing::warn!("{CLIENT_METADATA} is no https address with a path, and is left out");
            }
            url
        });
        Some(Self { auth: Auth::new(settings), sessions: Arc::default() })
    }

    /// The session of a server.
    pub fn session(&self, server: ServerAuth) -> Session {
        let key = key(&server);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(key).or_insert_with(|| self.auth.session(server)).clone()
    }

    /// What all of them share.
    pub fn auth(&self) -> &Auth {
        &self.auth
    }

    /// Secrets that are kept under names.
    pub fn named(&self) -> NamedSecrets {
        self.auth.named()
    }

    /// Signs the requests to a configured server. `None`: it has a header for that already.
    pub(crate) fn sign(
        &self,
        name: &str,
        remote: &ExpandedRemote,
        opener: Option<Arc<dyn Opener>>,
    ) -> Result<Option<Arc<dyn Authorizer>>, AuthError> {
        let server = server_auth(remote)?;
        let hint = format!("run: toolway login {}", crate::compose::quoted(name, cfg!(windows)));
        Ok(server.map(|server| authorizer(self.session(server), hint, opener)))
    }
}

/// What makes two servers the same. A secret is in it, and cannot be read out of it.
fn key(server: &ServerAuth) -> [u8; 32] {
    let secret = server.client.as_ref().and_then(|client| client.secret.as_ref());
    let mut hash = Sha256::new();
    hash.update(secret.map_or("", Secret::expose));
    // The secret is not in what is printed.
    hash.update(format!("{server:?}"));
    hash.finalize().into()
}

/// On Linux there is a keyring only where there is a desktop's bus.
fn keyring(machine: &Machine) -> KeyringUse {
    match machine.var(KEYRING) {
        Some("always") => KeyringUse::Always,
        Some("never") => KeyringUse::Never,
        Some(other) if other != "auto" => {
            tracing::warn!("{KEYRING} must be auto, always or never");
            KeyringUse::Never
        }
        _ if cfg!(target_os = "linux") && machine.var("DBUS_SESSION_BUS_ADDRESS").is_none() => {
            KeyringUse::Never
        }
        _ => KeyringUse::Auto,
    }
}

/// What signing in to a configured server is made of. `None`: it has an `Authorization` header of its own.
///
/// # Errors
/// Where `auth` says what cannot be.
pub fn server_auth(remote: &ExpandedRemote) -> Result<Option<ServerAuth>, AuthError> {
    if remote.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
        return Ok(None);
    }
    let url = Url::parse(remote.url.expose())
        .map_err(|error| AuthError::Setting { field: "url".to_owned(), reason: error.to_string() })?;
    let mut server = ServerAuth::new(url)?;
    if let Some(auth) = &remote.auth {
        client_of(&mut server, auth)?;
    }
    if let Some(tls) = remote.tls.as_ref().filter(|tls| tls.ca_bundle.is_some()) {
        let (bundle, only) = (tls.ca_bundle.clone().unwrap_or_default(), tls.strict);
        server.tls = Some(Tls(Arc::new(move || Roots::from_pem(&bundle, only)?.client_config())));
    }
    Ok(Some(server))
}

fn client_of(server: &mut ServerAuth, auth: &ExpandedAuth) -> Result<(), AuthError> {
    server.client = auth.client_id.as_ref().map(|id| StaticClient {
        id: id.clone(),
        secret: auth.client_secret.as_ref().map(|secret| secret.clone().made_known()),
    });
    server.scopes.clone_from(&auth.scopes);
    server.account = auth.account.clone().unwrap_or_default();
    if let Some(redirect) = &auth.redirect_uri {
        server.redirect = Redirect::parse(redirect)?;
    }
    server.grant = match auth.grant_type {
        GrantType::AuthorizationCode => Grant::AuthorizationCode,
        GrantType::ClientCredentials => Grant::ClientCredentials,
    };
    Ok(())
}
