//! How requests to one server are signed by somebody else: the trait, and the thin layer above it that every transport
//! uses. It owns what was signed with lately, so that no text shows it; it must not know OAuth, stores or the life of a
//! token.

mod signer;

use std::fmt;
use std::pin::Pin;

use http::HeaderValue;

pub use signer::Signer;

/// A future in a box, for traits that are used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Signs the requests to one server. Implemented by the composition, over whatever keeps tokens; called by the HTTP and
/// SSE transports through a [`Signer`], for requests to the configured origin only.
///
/// A future may be dropped at any time, since its request can be cancelled: what must not be begun twice, such as the
/// refresh of a token that can be used only once, goes on without it. Any number of requests may ask at the same time:
/// they are to be served by one refresh, or one login.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// The value of `Authorization` (RFC 9110, section 11.6.2), where a valid token is in memory.
    ///
    /// Called for each request: no I/O, no waiting, under 2 µs.
    fn ready(&self) -> Option<HeaderValue>;

    /// The same, after waiting for a refresh or for a login that is going on, in this process or in another one. `None`:
    /// there is nothing to sign with, and the request goes out unsigned; the server's answer says what it wants.
    ///
    /// # Errors
    /// [`SignInError`]: the request is not sent.
    fn authorize(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, SignInError>>;

    /// The server refused a request, and did not serve it. Called at most once for each status of one request.
    ///
    /// Whoever has got another token meanwhile than the one that was refused says [`Retry::Again`] at once.
    ///
    /// # Errors
    /// [`SignInError`]: why there is no token that would do. The client reads it together with the refusal.
    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Result<Retry, SignInError>>;

    /// Waits until there is a token other than `refused`, whoever got it: a login in another process too. It may look
    /// for one now and then, but only while it is polled.
    fn changed(&self, refused: Option<HeaderValue>) -> BoxFuture<'_, ()>;

    /// What a person has to do to sign in, as the end of a sentence: `run: toolway login linear`.
    fn hint(&self) -> String;
}

/// What the server wants (RFC 9110, section 11.6.1; RFC 6750, section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// 401, or 403 with the error `insufficient_scope`.
    pub status: u16,
    /// The values of all `WWW-Authenticate` headers, as sent.
    pub challenges: Vec<String>,
    /// The value of `Authorization` that was refused. `None`: the request was not signed.
    pub refused: Option<HeaderValue>,
    /// Somebody waits for the answer. False: it was a request of the transport's own, such as that for the server's
    /// stream, for which nobody is to be disturbed.
    pub waited: bool,
}

/// What becomes of a request that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It is signed again, and sent again.
    Again,
    /// Its sender gets the refusal.
    No,
}

/// Why a request cannot be signed. All texts are safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SignInError {
    /// What happened: a fragment, in lower case.
    pub message: String,
    /// What to do, in place of [`Authorizer::hint`]: `run: toolway login linear --scope "read write"`.
    pub hint: Option<String>,
    /// A person has to sign in. False: it may work by itself later, for example when the issuer can be reached again.
    pub needs_login: bool,
}
