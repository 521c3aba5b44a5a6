//! Owns models that are reached over the network: which one a choice names, its connections, made when they are first
//! needed, and how often a request is sent again. It must not know how answers are written.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use genai::Client;
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use reqwest::redirect;
use tokio_util::sync::CancellationToken;
use toolway_secret::Secret;
use toolway_transport::Roots;

use super::params::Params;
use super::request;
use super::service::{ServiceAccess, Target, Wire};
use super::stream::RemoteStream;
use super::{Model, ModelFacts, ModelRequest, ModelSource, ModelStream};
use crate::error::AgentError;
use crate::options::{Machine, ModelChoice, Retries};

const CONNECT: Duration = Duration::from_secs(20);
const MESSAGES_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// How patient a request is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How often it is sent at most.
    pub(crate) attempts: u32,
    /// How long it waits before it is sent again; twice as long each time.
    pub(crate) first_delay: Duration,
    /// The longest wait. A service that wants a longer one gets no further request.
    pub(crate) longest_delay: Duration,
    /// How long a service may be silent. For twice as long it may send what is no whole event.
    pub(crate) silence: Duration,
    /// How long one event may take to be put together, the waiting for it aside.
    pub(crate) reading: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_mins(1),
            silence: Duration::from_mins(5),
            reading: Duration::from_secs(10),
        }
    }
}

/// Models of the services that are known. What it holds in common, its models share: keys, addresses, connections.
#[derive(Debug, Clone)]
pub(crate) struct RemoteModels {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    access: ServiceAccess,
    patience: Patience,
    plain: Connections,
    secure: Connections,
}

/// Connections to addresses of one kind, once they are needed.
#[derive(Debug, Default)]
struct Connections(Mutex<Option<Client>>);

impl Connections {
    fn get(&self) -> Option<Client> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that are there, or new ones.
    fn get_or_make(&self, make: impl FnOnce() -> Result<Client, String>) -> Result<Client, String> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*held {
            return Ok(client.clone());
        }
        let made = make()?;
        *held = Some(made.clone());
        Ok(made)
    }

    fn let_go(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl RemoteModels {
    #[cfg(test)]
    pub(super) fn has_read_certificates(&self) -> bool {
        self.shared.secure.get().is_some()
    }

    /// Models as an agent on this machine has them: with its key, or those of its environment.
    pub(crate) fn of(machine: &Machine, api_key: Option<Secret>, retries: Retries) -> Self {
        let variables = machine.environment().vars.clone();
        let patience = match retries {
            Retries::On => Patience::default(),
            Retries::Off => Patience { attempts: 1, ..Patience::default() },
        };
        Self::new(ServiceAccess { api_key, base_url: None, variables }, patience)
    }

    /// Models that are reached with that. Nothing is looked at yet.
    pub(crate) fn new(access: ServiceAccess, patience: Patience) -> Self {
        let shared =
            Shared { access, patience, plain: Connections::default(), secure: Connections::default() };
        Self { shared: Arc::new(shared) }
    }
}

impl ModelSource for RemoteModels {
    fn open(&self, choice: &ModelChoice) -> Result<Arc<dyn Model>, AgentError> {
        let params = Params::of(choice)?;
        let access = match &params.base_url {
            None => Cow::Borrowed(&self.shared.access),
            Some(base_url) => {
                Cow::Owned(ServiceAccess { base_url: Some(base_url.clone()), ..self.shared.access.clone() })
            }
        };
        let target = Target::of(&choice.id, &access)?;
        let known = ModelFacts::of(&target.model, target.service.images, target.official);
        let facts = params.facts(known);
        let remote =
            Remote { id: choice.id.clone(), target, params, facts, shared: Arc::clone(&self.shared) };
        Ok(Arc::new(RemoteModel(Arc::new(remote))))
    }

    fn let_go(&self) {
        self.shared.plain.let_go();
        self.shared.secure.let_go();
    }
}

#[derive(Debug)]
struct RemoteModel(Arc<Remote>);

/// One model, its parameters and its way to the service.
#[derive(Debug)]
pub(super) struct Remote {
    id: String,
    pub(super) target: Target,
    params: Params,
    facts: ModelFacts,
    shared: Arc<Shared>,
}

impl Model for RemoteModel {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn facts(&self) -> ModelFacts {
        self.0.facts
    }

    fn stream(&self, asked: &ModelRequest<'_>, cancel: &CancellationToken) -> Box<dyn ModelStream> {
        let remote = &self.0;
        let whole = request::request(&remote.target, asked, remote.facts.images);
        let silence = remote.patience().silence;
        let options = request::options(&remote.target, &remote.params.options, asked.max_output)
            .with_stream_header_timeout(silence)
            .with_stream_read_timeout(silence);
        Box::new(RemoteStream::new(Arc::clone(remote), whole, options, cancel.clone()))
    }
}

impl Remote {
    pub(super) fn patience(&self) -> Patience {
        self.shared.patience
    }

    /// The connections. Certificates are read when the first address needs them, outside of the event loop.
    pub(super) async fn client(&self) -> Result<Client, AgentError> {
        let secure = self.target.base.scheme() == "https";
        let place = if secure { &self.shared.secure } else { &self.shared.plain };
        let made = match place.get() {
            Some(made) => Ok(made),
            None if !secure => place.get_or_make(|| self.shared.client(&Roots::Only(Vec::new()))),
            None => {
                let shared = Arc::clone(&self.shared);
                let made = tokio::task::spawn_blocking(move || {
                    shared.secure.get_or_make(|| shared.client(&Roots::System))
                });
                made.await.unwrap_or_else(|error| Err(error.to_string()))
            }
        };
        made.map_err(|reason| AgentError::Network { message: format!("no connection can be made: {reason}") })
    }

    /// Where the request goes, and with which key.
    pub(super) fn service_target(&self) -> ServiceTarget {
        let target = &self.target;
        let auth = match &target.key {
            Some(key) => AuthData::from_single(key.expose()),
            None => self.without_key(),
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(target.base.as_str()),
            auth,
            model: ModelIden::new(target.service.kind, target.model.as_str()),
        }
    }

    /// The library wants a key; a service at an address of one's own may have none.
    fn without_key(&self) -> AuthData {
        let (path, headers) = match self.target.service.wire {
            Wire::Chat => ("chat/completions", Headers::default()),
            Wire::Responses => ("responses", Headers::default()),
            Wire::Messages => ("messages", Headers::from(MESSAGES_VERSION)),
            Wire::Library if self.target.service.keys.is_empty() => return AuthData::None,
            Wire::Library => return AuthData::from_single(""),
        };
        AuthData::RequestOverride { url: format!("{}{path}", self.target.base), headers }
    }
}

impl Shared {
    fn client(&self, roots: &Roots) -> Result<Client, String> {
        let tls = roots.client_config()?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(rustls::ClientConfig::clone(&tls))
            .user_agent(concat!("toolway/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            // A key is for the address that it was given for.
            .redirect(redirect::Policy::none())
            .no_proxy();
        let secure = !matches!(roots, Roots::Only(_));
        if let Some(proxy) = self.proxy(secure)? {
            builder = builder.proxy(proxy);
        }
        let web = builder.build().map_err(|error| error.to_string())?;
        Client::builder().with_reqwest(web).build().map_err(|error| error.to_string())
    }

    fn proxy(&self, secure: bool) -> Result<Option<reqwest::Proxy>, String> {
        let access = &self.access;
        let names: &[&str] = if secure {
            &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        } else {
            &["http_proxy", "all_proxy", "ALL_PROXY"]
        };
        let Some(address) = access.first(names) else {
            return Ok(None);
        };
        let proxy = reqwest::Proxy::all(address)
            .map_err(|_| "the proxy of the environment is no address".to_owned())?;
        let around = access.first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        let around = format!("localhost,127.0.0.1,::1,{around}");
        Ok(Some(proxy.no_proxy(reqwest::NoProxy::from_string(&around))))
    }
}
