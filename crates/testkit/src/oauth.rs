//! An OAuth issuer and an MCP server that it protects, on 127.0.0.1, for tests of whoever signs in. Both are strict: a
//! client that does something wrong is refused, and the journal says why. By its options the issuer tells lies and
//! makes mistakes, and its gates hold token requests where a race would be lost.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use toolway_testkit::oauth::{Browser, Issuer, IssuerOptions};
//! let issuer = Issuer::start(IssuerOptions::default())?;
//! // A client that signs in to issuer.resource_url() prints a URL for the user's browser:
//! # let url = String::new();
//! let visit = Browser::open(&url)?;
//! assert!(visit.redirect.is_some() && issuer.journal().authorizations() == 1);
//! # Ok(())
//! # }
//! ```

mod authorize;
mod browser;
mod call;
mod clients;
mod faults;
mod gates;
mod http;
mod journal;
mod metadata;
mod options;
mod resource;
mod server;
mod token;
mod vault;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

pub use self::browser::{Browser, Visit};
use self::call::State;
pub use self::faults::{Fault, FaultRule};
use self::gates::Gates;
pub use self::gates::{Held, Stage, Which};
pub use self::http::{Ask, Reply};
pub use self::journal::{ClientAuth, Endpoint, Exchange, Grant, IssuerJournal, Outcome, Site};
use self::metadata::Places;
pub use self::options::{
    Approval, Challenge, ExpiresIn, IssuerOptions, MetadataPlaces, Parameter, Registration, StaticClient,
};
use self::server::Shared;
use self::vault::{Given, Vault};
use crate::journal::Journal;

/// An issuer and its resource. Dropped, both close their ports and connections and end their threads.
#[derive(Debug)]
pub struct Issuer {
    shared: Arc<Shared>,
    places: Places,
    listeners: Vec<SocketAddr>,
}

/// A client that is logged in already.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The client's id; it is public, and redirected to loopback.
    pub client_id: String,
    /// The access token.
    pub access_token: String,
    /// Its label.
    pub access_label: String,
    /// The refresh token.
    pub refresh_token: String,
    /// Its label.
    pub refresh_label: String,
    /// The scope of both.
    pub scope: String,
    /// The resource that they are for.
    pub resource: String,
    /// The issuer.
    pub issuer: String,
}

impl Seed {
    /// As JSON, the tokens in it.
    pub fn told(&self) -> Value {
        json!({
            "client_id": self.client_id, "access_token": self.access_token, "refresh_token": self.refresh_token,
            "scope": self.scope, "resource": self.resource, "issuer": self.issuer,
        })
    }
}

impl Issuer {
    /// Starts it on free ports.
    pub fn start(options: IssuerOptions) -> Result<Self> {
        Self::start_with(options, Journal::default())
    }

    /// The same, with a journal that is written as it goes.
    pub fn start_with(options: IssuerOptions, journal: Journal) -> Result<Self> {
        let bind = || TcpListener::bind(("127.0.0.1", 0)).context("no port can be had");
        let (issuer, elsewhere) = (bind()?, bind()?);
        let resource = if options.one_origin { None } else { Some(bind()?) };
        let origin =
            |listener: &TcpListener| Ok::<_, std::io::Error>(format!("http://{}", listener.local_addr()?));
        let issuer_origin = origin(&issuer)?;
        let resource_origin = resource.as_ref().map_or_else(|| Ok(issuer_origin.clone()), origin)?;
        let places = Places {
            issuer: format!("{issuer_origin}{}", options.path),
            resource: format!("{resource_origin}{}", options.resource_path),
            resource_origin,
            elsewhere: origin(&elsewhere)?,
        };
        let state = State {
            vault: Vault::new(&options.clients),
            options,
            places: places.clone(),
            gates: Gates::default(),
            journal: IssuerJournal::default(),
            sessions: Vec::new(),
            pending: Vec::new(),
            hosted: Vec::new(),
            over: false,
        };
        let shared = Arc::new(Shared::new(state, journal));
        let mut listeners = Vec::new();
        let resource = resource.map(|listener| (listener, Site::Resource));
        let all = [(issuer, Site::Issuer), (elsewhere, Site::Elsewhere)].into_iter().chain(resource);
        for (listener, site) in all {
            listeners.push(listener.local_addr()?);
            shared.listen(listener, site);
        }
        Ok(Self { shared, places, listeners })
    }

    /// The issuer's id: `http://127.0.0.1:PORT` and its path.
    pub fn url(&self) -> &str {
        &self.places.issuer
    }

    /// The MCP endpoint, which is the resource's id too.
    pub fn resource_url(&self) -> &str {
        &self.places.resource
    }

    /// A third origin, which answers 404 to everything but hosted documents and what was moved to it, and whose
    /// requests are in the journal.
    pub fn elsewhere_url(&self) -> &str {
        &self.places.elsewhere
    }

    /// The URL of `authorize`, `token`, `register` or `revoke`.
    pub fn endpoint(&self, name: &str) -> String {
        self.places.of(name)
    }

    /// All requests so far.
    pub fn journal(&self) -> IssuerJournal {
        self.shared.state().journal.clone()
    }

    /// Waits until the journal is so.
    pub fn wait_for(
        &self,
        within: Duration,
        mut so: impl FnMut(&IssuerJournal) -> bool,
    ) -> Result<IssuerJournal> {
        let found = self.shared.wait(within, |state| so(&state.journal).then(|| state.journal.clone()));
        found.with_context(|| format!("after {within:?} this is all:\n{}", self.journal().told()))
    }

    /// Changes the options; requests from now on see them. Ports, paths and clients stay.
    pub fn change(&self, change: impl FnOnce(&mut IssuerOptions)) {
        self.shared.change(|state| change(&mut state.options));
    }

    /// Adds a fault.
    pub fn fault(&self, rule: FaultRule) {
        self.change(|options| options.faults.push(rule));
    }

    /// Takes all faults away.
    pub fn no_faults(&self) {
        self.change(|options| options.faults.clear());
    }

    /// Holds refreshes at this stage.
    pub fn hold(&self, stage: Stage, which: Which) {
        self.hold_grant(Grant::RefreshToken, stage, which);
    }

    /// Holds token requests with that grant.
    pub fn hold_grant(&self, grant: Grant, stage: Stage, which: Which) {
        self.shared.change(|state| state.gates.add(grant, stage, which));
    }

    /// Waits until a request is held; the one that came first.
    pub fn held(&self, within: Duration) -> Result<Held> {
        let found = self.shared.wait(within, |state| state.gates.held().into_iter().next());
        found.with_context(|| format!("after {within:?} none is held:\n{}", self.journal().told()))
    }

    /// All requests that are held now.
    pub fn all_held(&self) -> Vec<Held> {
        self.shared.state().gates.held()
    }

    /// Lets all go on that are held now; gates that hold each request go on to do so.
    pub fn release(&self) {
        self.shared.change(|state| state.gates.release());
    }

    /// Lets all go on, and holds none any more.
    pub fn open_gates(&self) {
        self.shared.change(|state| state.gates.open());
    }

    /// Puts the issuer's clock forward.
    pub fn advance(&self, by: Duration) {
        self.shared.change(|state| state.vault.advance(by));
    }

    /// All access tokens expire now.
    pub fn expire_access_tokens(&self) {
        self.shared.change(|state| state.vault.expire_access());
    }

    /// Revokes every token.
    pub fn revoke_everything(&self) {
        self.shared.change(|state| state.vault.revoke_all());
    }

    /// Revokes the family of a token, given by its label or itself; false when there is none.
    pub fn revoke_family(&self, token: &str) -> bool {
        self.shared.change(|state| {
            let vault = &mut state.vault;
            let fits = |text: &str| text == token || vault.label(text).is_some_and(|label| label == token);
            let access = vault.access.iter().find(|known| fits(&known.text)).map(|known| &known.given);
            let refresh = vault.refresh.iter().find(|known| fits(&known.text)).map(|known| &known.given);
            let family = access.or(refresh).and_then(|given| given.family);
            family.map(|family| vault.revoke_family(family)).is_some()
        })
    }

    /// Forgets a client, as if its registration had been deleted; false when it is not known.
    pub fn forget_client(&self, id: &str) -> bool {
        self.shared.change(|state| state.vault.clients.remove(id).is_some())
    }

    /// The short label of a secret, if this issuer gave it.
    pub fn label(&self, secret: &str) -> Option<String> {
        self.shared.state().vault.label(secret)
    }

    /// All tokens, codes and client secrets so far: nothing else may know them.
    pub fn secrets(&self) -> Vec<String> {
        let state = self.shared.state();
        let clients = state.vault.clients.values().filter_map(|client| client.secret.clone());
        let codes = state.vault.codes.iter().map(|code| code.text.clone());
        let access = state.vault.access.iter().map(|token| token.text.clone());
        let refresh = state.vault.refresh.iter().map(|token| token.text.clone());
        clients.chain(codes).chain(access).chain(refresh).collect()
    }

    /// Serves a JSON document on the third origin; its URL.
    pub fn host_document(&self, path: &str, document: Value) -> String {
        self.shared.change(|state| state.hosted.push((path.to_owned(), document)));
        format!("{}{path}", self.places.elsewhere)
    }

    /// Serves a client id metadata document there; its URL, which is the client's id.
    pub fn host_client_document(&self, redirect_uris: &[&str]) -> String {
        let path = format!("/clients/{}.json", self.shared.state().hosted.len() + 1);
        let id = format!("{}{path}", self.places.elsewhere);
        let document = json!({
            "client_id": id, "client_name": "a client", "redirect_uris": redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        self.host_document(&path, document)
    }

    /// Gives a pair of tokens of the base scope to a public client of this id, which is made known if it is not. The
    /// access token lives on as the options say, or has `expired`.
    pub fn seed(&self, client_id: &str, expired: bool) -> Seed {
        self.shared.change(|state| {
            if !state.vault.clients.contains_key(client_id) {
                state.vault.add_client(StaticClient::public(client_id).into());
            }
            let family = Some(state.vault.new_family());
            let scope = state.options.base_scope.clone();
            let resource = state.places.resource.clone();
            let given = Given { client: client_id.to_owned(), scope, resource, family };
            let life = if expired { Duration::ZERO } else { state.options.access_token_life };
            let (access_token, access_label) = state.vault.new_access(given.clone(), life);
            let (refresh_token, refresh_label) = state.vault.new_refresh(given.clone());
            Seed {
                client_id: given.client,
                access_token,
                access_label,
                refresh_token,
                refresh_label,
                scope: given.scope,
                resource: given.resource,
                issuer: state.places.issuer.clone(),
            }
        })
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.shared.end(&self.listeners);
    }
}
