//! Owns the joint between the transports, which want a header, and the sessions, which have tokens.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderValue, StatusCode};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;
use toolway_auth::{AuthError, Opener, Session};
use toolway_transport::{Authorizer, BoxFuture, Challenge, Retry, SignInError};

/// How a login that was begun for a request stands; it goes on when the request is cancelled.
type Login = watch::Receiver<Option<Result<(), AuthError>>>;

/// Signs requests with the tokens of a session.
pub struct Signed {
    session: Session,
    hint: String,
    /// Who is shown the address of a login; nobody: a person has to run a command.
    opener: Option<Arc<dyn Opener>>,
    login: Mutex<Option<Login>>,
    tasks: TaskTracker,
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signed").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Signs requests with the tokens of `session`. `hint` says what a person has to do, as `run: toolway login NAME`; where
/// there is an `opener`, it is shown the address by itself, once for all that wait.
pub fn authorizer(session: Session, hint: String, opener: Option<Arc<dyn Opener>>) -> Arc<dyn Authorizer> {
    Arc::new(Signed { session, hint, opener, login: Mutex::new(None), tasks: TaskTracker::new() })
}

impl Authorizer for Signed {
    fn ready(&self) -> Option<HeaderValue> {
        self.session.ready()
    }

    fn authorize(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, SignInError>> {
        Box::pin(async move {
            // Somebody is in front of the browser: with what comes of it this request is let in.
            let going = self.login.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(login) = going.filter(is_going) {
                ended(login).await.map_err(|error| told(&error))?;
            }
            match self.session.authorize().await {
                // The server's refusal says what it wants, and a login is begun with that.
                Err(error) if error.wants_login() && self.opener.is_some() => Ok(None),
                done => done.map_err(|error| told(&error)),
            }
        })
    }

    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Result<Retry, SignInError>> {
        Box::pin(async move {
            let status = StatusCode::from_u16(challenge.status).unwrap_or(StatusCode::UNAUTHORIZED);
            let values: Vec<&str> = challenge.challenges.iter().map(String::as_str).collect();
            match self.session.challenged(status, &values, challenge.refused.as_ref()).await {
                Ok(true) => Ok(Retry::Again),
                Ok(false) => Ok(Retry::No),
                Err(AuthError::NeedsLogin { scopes, .. }) if challenge.waited && self.opener.is_some() => {
                    ended(self.login(scopes)).await.map_err(|error| told(&error))?;
                    Ok(Retry::Again)
                }
                Err(error) => Err(told(&error)),
            }
        })
    }

    fn changed(&self, refused: Option<HeaderValue>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                if let Ok(Some(header)) = self.session.authorize().await
                    && Some(&header) != refused.as_ref()
                {
                    return;
                }
                self.session.changed().await;
            }
        })
    }

    fn hint(&self) -> String {
        self.hint.clone()
    }
}

impl Signed {
    /// The login that is under way, or a new one.
    fn login(&self, scopes: Vec<String>) -> Login {
        let mut login = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(going) = login.as_ref().filter(|login| is_going(login)) {
            return going.clone();
        }
        let (done, receiver) = watch::channel(None);
        if let Some(opener) = &self.opener {
            let (session, opener) = (self.session.clone(), Arc::clone(opener));
            self.tasks.spawn(async move {
                let ended = session.login(&scopes, false, &*opener).await.map(drop);
                done.send_replace(Some(ended));
            });
        }
        login.insert(receiver).clone()
    }
}

fn told(error: &AuthError) -> SignInError {
    SignInError { message: error.to_string(), hint: None, needs_login: error.wants_login() }
}

fn is_going(login: &Login) -> bool {
    login.borrow().is_none() && login.has_changed().is_ok()
}

/// How a login ended.
async fn ended(mut login: Login) -> Result<(), AuthError> {
    let cut = || Err(AuthError::Late { reason: "the login was cut off".to_owned() });
    match login.wait_for(Option::is_some).await {
        Ok(done) => (*done).clone().unwrap_or_else(cut),
        Err(_) => cut(),
    }
}
