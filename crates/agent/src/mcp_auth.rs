//! Owns what a program does about signing in to the servers of an agent: look, begin, complete, give up. Which servers
//! there are is read from its options and files each time, as for a run.

use std::collections::HashMap;
use std::fmt;

use tokio::sync::Mutex;
use toolway_auth::{AuthError, Login, Redirect, Session, SignIn, SignedOut};
use toolway_config::{ExpandedTarget, LoadOptions, Loader, TrustMode};
use url::Url;

use crate::error::{AgentError, Fault};
use crate::options::{AgentOptions, Trust};
use crate::sign_in::server_auth;

/// How a login is begun.
#[derive(Debug, Clone, Default)]
pub struct BeginAuth {
    /// Where the authorization server sends its answer, where the program receives it itself: an https address, or one on
    /// loopback that somebody else listens at. Without it, a free port of this machine is listened at.
    pub redirect: Option<Url>,
    /// Scopes that are asked for beside those of the configuration, or of the server.
    pub scopes: Vec<String>,
}

/// A login that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthRequest {
    /// Where the person signs in.
    pub url: Url,
    /// Where the answer will be sent to.
    pub redirect: Url,
}

/// Signing in to an agent's servers, for programs. Tokens are kept for all processes of the user; none is ever given out.
///
/// ```no_run
/// # async fn example(options: toolway_agent::AgentOptions) -> Result<(), toolway_agent::AgentError> {
/// use toolway_agent::{BeginAuth, McpAuth};
///
/// let auth = McpAuth::new(&options);
/// if auth.status("linear").await?.is_none() {
///     let request = auth.begin("linear", BeginAuth::default()).await?;
///     println!("sign in at {}", request.url);
///     auth.wait("linear").await?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct McpAuth {
    options: AgentOptions,
    begun: Mutex<HashMap<String, Login>>,
}

impl fmt::Debug for McpAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpAuth").finish_non_exhaustive()
    }
}

impl McpAuth {
    /// For the servers that an agent with these options has. Reads nothing yet.
    pub fn new(options: &AgentOptions) -> Self {
        Self { options: options.clone(), begun: Mutex::default() }
    }

    /// How it stands with a server, as far as this machine knows; nobody is asked. `None`: nobody ever signed in.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] where there is no such server, or it has no sign-in of this kind.
    pub async fn status(&self, server: &str) -> Result<Option<SignIn>, AgentError> {
        let session = self.session(server, None).await?;
        session.status().await.map_err(|error| told(server, &error))
    }

    /// Begins a login. One that was begun before for the same server is given up.
    ///
    /// # Errors
    /// As [`Self::status`]; [`AgentError::Network`] where a server cannot be asked or its metadata cannot be used.
    pub async fn begin(&self, server: &str, how: BeginAuth) -> Result<AuthRequest, AgentError> {
        let session = self.session(server, how.redirect).await?;
        // Its port is free before another is looked for.
        self.begun.lock().await.remove(server);
        let login = session.begin(&how.scopes).await.map_err(|error| told(server, &error))?;
        let request = AuthRequest { url: login.url().clone(), redirect: login.redirect().clone() };
        self.begun.lock().await.insert(server.to_owned(), login);
        Ok(request)
    }

    /// Waits for the answer at the loopback redirect, and keeps the tokens. It waits for as long as it is let: bound it.
    ///
    /// # Errors
    /// As [`Self::complete`].
    pub async fn wait(&self, server: &str) -> Result<SignIn, AgentError> {
        let login = self.begun.lock().await.remove(server).ok_or_else(|| none(server))?;
        login.answered().await.map_err(|error| told(server, &error))
    }

    /// Completes a login by the address that the person's browser was sent to, or by its query: `code=...&state=...`. An
    /// answer that is none, or another login's, changes nothing: the right one can still be given.
    ///
    /// # Errors
    /// [`AgentError::Authentication`] where the answer is not of this login or of this authorization server, or is a
    /// refusal; [`AgentError::Network`] where the tokens cannot be got; [`AgentError::Store`] where they cannot be kept.
    pub async fn complete(&self, server: &str, answer: &str) -> Result<SignIn, AgentError> {
        let mut begun = self.begun.lock().await;
        let login = begun.get_mut(server).ok_or_else(|| none(server))?;
        let signed = login.complete(answer).await;
        // A code that was sent is good no more, whatever came of it.
        if login.is_over() {
            begun.remove(server);
        }
        signed.map_err(|error| told(server, &error))
    }

    /// Signs out: the authorization server is told where it can be, and what is kept is forgotten in any case.
    ///
    /// # Errors
    /// As [`Self::status`]; [`AgentError::Store`].
    pub async fn revoke(&self, server: &str) -> Result<SignedOut, AgentError> {
        let session = self.session(server, None).await?;
        self.begun.lock().await.remove(server);
        session.revoke().await.map_err(|error| told(server, &error))
    }

    async fn session(&self, server: &str, redirect: Option<Url>) -> Result<Session, AgentError> {
        let machine = self.options.work_machine();
        let Some(sign_ins) = machine.sign_ins().cloned() else {
            return Err(AgentError::fault(
                "HOME",
                "there is no home directory in which tokens could be kept",
            ));
        };
        let (options, name) = (self.options.clone(), server.to_owned());
        let found = tokio::task::spawn_blocking(move || definition(&options, &name)).await;
        let mut found = found.map_err(|error| AgentError::Runtime {
            message: format!("the files were not read: {error}"),
        })??;
        if let Some(url) = redirect {
            found.redirect = Redirect::Elsewhere(url);
        }
        Ok(sign_ins.session(found))
    }
}

/// What signing in to a server is made of, as the options and files of now say it.
fn definition(options: &AgentOptions, name: &str) -> Result<toolway_auth::ServerAuth, AgentError> {
    let machine = options.work_machine();
    let local = options.local_options();
    let load = LoadOptions {
        sources: local.map(|local| local.setting_sources.clone()).unwrap_or_default(),
        inline: options.mcp_servers.to_json(),
        trust: match local.map(|local| local.trust).unwrap_or_default() {
            Trust::Given => TrustMode::Given,
            Trust::Ask => TrustMode::Ask,
        },
        ..LoadOptions::default()
    };
    let fault = |message: String| {
        let field = format!("mcpServers.{name}");
        AgentError::Configuration(vec![Fault { subject: Some(name.to_owned()), field, message }])
    };
    let resolved = Loader::default().load(&load, machine.environment());
    let entry = resolved.entry(name).ok_or_else(|| fault("there is no such server".to_owned()))?;
    let expanded = entry.expand(machine.environment()).map_err(|problems| {
        let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
        fault(all.join("; "))
    })?;
    let ExpandedTarget::Remote(remote) = &expanded.target else {
        return Err(fault("it is a program on this machine: what it needs is given by its env".to_owned()));
    };
    let server = server_auth(remote).map_err(|error| fault(error.to_string()))?;
    server.ok_or_else(|| fault("it has an Authorization header of its own".to_owned()))
}

fn none(server: &str) -> AgentError {
    AgentError::Authentication { message: format!("no login to {server} was begun") }
}

fn told(server: &str, error: &AuthError) -> AgentError {
    let message = format!("{server}: {error}");
    match error {
        AuthError::Store { .. } | AuthError::Newer { .. } => AgentError::Store { message },
        AuthError::Unreachable { .. } | AuthError::Metadata { .. } | AuthError::Late { .. } => {
            AgentError::Network { message }
        }
        AuthError::Client { .. } | AuthError::Redirect { .. } | AuthError::Setting { .. } => {
            AgentError::fault(format!("mcpServers.{server}"), error.to_string())
        }
        AuthError::NeedsLogin { .. } | AuthError::Refused { .. } | AuthError::Answer { .. } => {
            AgentError::Authentication { message }
        }
    }
}
