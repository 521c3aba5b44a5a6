//! Owns the signing in to one server within one process: the token in memory, and who may renew it or sign in.

mod kept;
mod login;
mod machine;
mod renew;
mod status;
mod turn;

use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use ::http::{HeaderValue, StatusCode};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub use login::{Login, Opener};
pub use status::{SignIn, SignInState, SignedOut};

use crate::challenge::BearerChallenge;
use crate::error::AuthError;
use crate::http::Http;
use crate::named::NamedSecrets;
use crate::settings::{AuthSettings, Grant, ServerAuth, union};
use crate::store::{Entry, Store};
use crate::token::{margin, now_ms};

/// How long a failure to renew holds for those who ask next.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a token that is on its way is waited for at the end.
const SETTLE: Duration = Duration::from_secs(5);
/// How often in [`SPAN`] refused tokens are renewed: a server that refuses every token gets no storm.
const MOST_REFUSALS: usize = 5;
const SPAN: Duration = Duration::from_secs(10);
/// How often it is looked whether somebody else has signed in.
const LOOK: Duration = Duration::from_secs(1);

/// What goes on when those who asked for it are gone: a refresh token or a code that was sent is good no more, so what
/// comes of it is kept in any case. Closed from the beginning, which says that it can be waited for.
static TASKS: LazyLock<TaskTracker> = LazyLock::new(|| {
    let tasks = TaskTracker::new();
    tasks.close();
    tasks
});

/// Waits until no token is on its way, and no longer than 5 s. To be called on each runtime before it ends.
pub async fn settle() {
    settle_within(SETTLE).await;
}

/// The same, with another bound.
pub async fn settle_within(most: Duration) {
    if !TASKS.is_empty() && tokio::time::timeout(most, TASKS.wait()).await.is_err() {
        tracing::warn!("this ends while a token is on its way");
    }
}

/// All signing in of a process. Cheap to clone; nothing is read before it is needed.
#[derive(Debug, Clone)]
pub struct Auth {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    settings: AuthSettings,
    store: Arc<Store>,
    http: Http,
}

impl Auth {
    /// With these settings.
    pub fn new(settings: AuthSettings) -> Self {
        let store = Arc::new(Store::new(settings.directory.clone(), settings.keyring));
        let http = Http::new(Arc::clone(&settings.tls), settings.request_timeout);
        Self { shared: Arc::new(Shared { settings, store, http }) }
    }

    /// The signing in to one server. One per server and process: those that share it share its token and its renewals.
    pub fn session(&self, server: ServerAuth) -> Session {
        let http = match &server.tls {
            Some(tls) => Http::new(Arc::clone(&tls.0), self.shared.settings.request_timeout),
            None => self.shared.http.clone(),
        };
        Session {
            inner: Arc::new(Inner {
                shared: Arc::clone(&self.shared),
                http,
                server,
                state: RwLock::new(State::default()),
                renewing: tokio::sync::Mutex::new(()),
            }),
        }
    }

    /// The secrets that are kept under names.
    pub fn named(&self) -> NamedSecrets {
        NamedSecrets::new(Arc::clone(&self.shared.store))
    }
}

/// The signing in to one server.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    http: Http,
    server: ServerAuth,
    state: RwLock<State>,
    /// One renewal at a time.
    renewing: tokio::sync::Mutex<()>,
}

/// What is known in this process.
#[derive(Debug, Default)]
struct State {
    live: Live,
    /// What the server last said of how to be let in.
    challenge: Option<BearerChallenge>,
    /// When tokens were renewed because the server refused the ones before.
    refusals: Vec<Instant>,
    failed: Option<(Instant, AuthError)>,
    /// A token that the server refused, and that cannot be renewed.
    dead: Option<HeaderValue>,
    /// Scopes that were asked for without anybody, and that the issuer does not know.
    vain: Vec<String>,
}

#[derive(Debug, Default)]
enum Live {
    /// The store was not looked at yet.
    #[default]
    Unknown,
    /// There is no token; the store is looked at again when the server refuses.
    Absent,
    /// A token.
    Token(Token),
}

#[derive(Debug)]
struct Token {
    header: HeaderValue,
    /// Until when it is used without asking; `None`: until it is refused.
    until: Option<Instant>,
    /// When it is good no more, as far as is known.
    end: Option<Instant>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("server", &self.inner.server).finish_non_exhaustive()
    }
}

impl Session {
    /// The value of `Authorization`, where a token that is good is in memory: without any I/O.
    pub fn ready(&self) -> Option<HeaderValue> {
        self.inner.ready()
    }

    /// The same, after a look into the store and a renewal where that is needed. `None`: nobody is signed in, as far as is
    /// known; the server may want nothing.
    pub async fn authorize(&self) -> Result<Option<HeaderValue>, AuthError> {
        if let Some(header) = self.inner.ready() {
            return Ok(Some(header));
        }
        if matches!(self.inner.state().live, Live::Absent) {
            return Ok(None);
        }
        self.renew_in_time().await
    }

    /// What to do when the server refused a request that was sent with `refused`: whether to send it again, with what
    /// [`Self::ready`] gives then. `statuses` other than 401 and 403 are no refusals of tokens.
    pub async fn challenged(
        &self,
        status: StatusCode,
        challenges: &[&str],
        refused: Option<&HeaderValue>,
    ) -> Result<bool, AuthError> {
        let challenge = BearerChallenge::parse(challenges.iter().copied());
        if status == StatusCode::UNAUTHORIZED {
            return self.unauthorized(challenge, refused).await;
        }
        let insufficient = challenge.filter(BearerChallenge::is_insufficient_scope);
        match insufficient.filter(|_| status == StatusCode::FORBIDDEN) {
            Some(challenge) => self.insufficient(challenge, refused).await,
            None => Ok(false),
        }
    }

    async fn unauthorized(
        &self,
        challenge: Option<BearerChallenge>,
        refused: Option<&HeaderValue>,
    ) -> Result<bool, AuthError> {
        {
            let mut state = self.inner.state_mut();
            state.challenge = challenge.or(state.challenge.take());
            if matches!(state.live, Live::Absent) {
                state.live = Live::Unknown;
            }
        }
        if let Some(header) = self.inner.ready()
            && Some(&header) != refused
        {
            return Ok(true);
        }
        match self.renew(refused.cloned()).await? {
            // The same, where new ones were refused again and again.
            Some(header) => Ok(Some(&header) != refused),
            None => Err(self.inner.needs_login().await),
        }
    }

    async fn insufficient(
        &self,
        challenge: BearerChallenge,
        refused: Option<&HeaderValue>,
    ) -> Result<bool, AuthError> {
        let scopes = challenge.scopes.clone();
        self.inner.state_mut().challenge = Some(challenge);
        self.step_up(scopes, refused.cloned()).await
    }

    /// Ends when somebody, in whichever process, has changed what is kept for this server: signed in, most often.
    pub async fn changed(&self) {
        let before = self.inner.stamp().await;
        // Somebody may have signed in since it was last looked, and before this look.
        let unseen = {
            let mut state = self.inner.state_mut();
            let absent = matches!(state.live, Live::Absent);
            if absent {
                state.live = Live::Unknown;
            }
            absent
        };
        if unseen && matches!(self.authorize().await, Ok(Some(_))) {
            return;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            if self.inner.stamp().await != before {
                let mut state = self.inner.state_mut();
                if matches!(state.live, Live::Absent) {
                    state.live = Live::Unknown;
                }
                return;
            }
        }
    }

    /// The server's settings.
    pub fn server(&self) -> &ServerAuth {
        &self.inner.server
    }
}

impl Inner {
    fn state(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> Option<HeaderValue> {
        match &self.state().live {
            Live::Token(token) if token.until.is_none_or(|until| Instant::now() < until) => {
                Some(token.header.clone())
            }
            _ => None,
        }
    }

    /// Uses these tokens from now on. `None` where they are at their end, or are the ones that were refused.
    fn adopt(&self, entry: &Entry, refused: Option<&HeaderValue>) -> Option<HeaderValue> {
        let tokens = entry.tokens.as_ref()?;
        let header = tokens.header()?;
        if refused == Some(&header) || self.state().dead.as_ref() == Some(&header) {
            return None;
        }
        let (until, end) = match tokens.left(now_ms()) {
            None => (None, None),
            Some(left) => {
                let margin = margin(tokens.expires_in.unwrap_or_default());
                let early = left.checked_sub(margin).filter(|left| !left.is_zero())?;
                let now = Instant::now();
                (Some(now + early), Some(now + left))
            }
        };
        self.hold(header.clone(), until, end);
        Some(header)
    }

    fn hold(&self, header: HeaderValue, until: Option<Instant>, end: Option<Instant>) {
        let mut state = self.state_mut();
        state.failed = None;
        state.live = Live::Token(Token { header, until, end });
    }

    fn absent(&self) {
        self.state_mut().live = Live::Absent;
    }

    /// Scopes that are asked for: those of the configuration, else what the server wants; and what was refused before.
    fn scopes(&self, wanted: &[String], offered: &[String]) -> Vec<String> {
        let own = &self.server.scopes;
        let base = if own.is_empty() { offered } else { own };
        union(base.iter().chain(wanted))
    }

    fn client_id(&self) -> Option<&str> {
        self.server.client.as_ref().map(|client| client.id.as_str())
    }

    fn asked(&self) -> &str {
        self.server.resource.as_str()
    }

    fn is_machine(&self) -> bool {
        self.server.grant == Grant::ClientCredentials
    }

    /// Why somebody has to sign in.
    async fn needs_login(&self) -> AuthError {
        let kept = self.kept().await;
        let (ended, wanted) = match kept {
            Ok(Some(entry)) => (entry.ended, entry.wanted),
            Ok(None) => (None, Vec::new()),
            Err(error) => return error,
        };
        let reason = ended.unwrap_or_else(|| "nobody is signed in to this server".to_owned());
        AuthError::NeedsLogin { reason, scopes: wanted }
    }
}
