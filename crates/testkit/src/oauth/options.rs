//! What an issuer and its resource are like. All of it can be written as JSON too, for `toolway-issuer`: the names of
//! the members are those of the fields, times are seconds, variants are in kebab case.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::faults::FaultRule;
use super::journal::ClientAuth;

/// What an issuer and its resource are like. The default is a good issuer: it rotates refresh tokens, registers clients,
/// approves at once, and stands on another origin than the resource.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a test's fixture")]
pub struct IssuerOptions {
    /// The path of the issuer's URL: empty, `/tenant`, or `/` for a URL that ends with a slash.
    pub path: String,
    /// The resource has the issuer's origin instead of one of its own.
    pub one_origin: bool,
    /// The path of the MCP endpoint.
    pub resource_path: String,
    /// Where metadata can be had.
    pub metadata: MetadataPlaces,
    /// What a refusal of the resource says in `WWW-Authenticate`.
    pub challenge: Challenge,
    /// Clients that are known from the start.
    pub clients: Vec<StaticClient>,
    /// Dynamic registration (RFC 7591).
    pub registration: Registration,
    /// A `client_id` that is a URL is fetched and taken for a client's metadata, and the metadata say so.
    pub client_documents: bool,
    /// Client metadata documents that are not fetched, by their URL: `https` cannot be fetched here.
    pub known_documents: BTreeMap<String, Value>,
    /// There is a revocation endpoint (RFC 7009).
    pub revocation: bool,
    /// How the authorization endpoint answers.
    pub approval: Approval,
    /// The parameter `iss` of the redirect (RFC 9207).
    pub iss: Parameter,
    /// The metadata promise that parameter.
    pub iss_promised: bool,
    /// The parameter `state` of the redirect.
    pub state: Parameter,
    /// A loopback redirect must have the registered port too (RFC 8252 lets it vary).
    pub exact_ports: bool,
    /// Authorization and token requests must name the resource (RFC 8707).
    pub require_resource: bool,
    /// The ways of client authentication that are offered.
    pub client_auth: Vec<ClientAuth>,
    /// How long an access token really lives.
    #[serde(deserialize_with = "seconds")]
    pub access_token_life: Duration,
    /// What is said of that.
    pub expires_in: ExpiresIn,
    /// There are refresh tokens.
    pub refresh_tokens: bool,
    /// There is a scope `offline_access`, and refresh tokens are given with it only.
    pub offline_access: bool,
    /// What a user grants, whatever scope was asked for.
    pub granted_scope: Option<String>,
    /// A refresh token is good for one refresh, and its second use revokes its family. Otherwise it stays as it is, and
    /// a refresh answers without one.
    pub rotation: bool,
    /// How long after its first use a refresh token may be used once more without being taken for stolen.
    #[serde(deserialize_with = "seconds")]
    pub reuse_leeway: Duration,
    /// Answers of the token endpoint say their scope.
    pub say_scope: bool,
    /// The scope that every request of the resource needs, and that is given when none is asked for.
    pub base_scope: String,
    /// The scopes that calls of these tools need besides.
    pub tool_scopes: BTreeMap<String, String>,
    /// The challenge for a tool names all scopes that the call needs, instead of the missing one only.
    pub challenge_all_scopes: bool,
    /// How far ahead the clock of the `Date` header is.
    pub clock_skew_seconds: i64,
    /// What goes wrong, and which lies are told.
    pub faults: Vec<FaultRule>,
}

impl Default for IssuerOptions {
    fn default() -> Self {
        Self {
            path: String::new(),
            one_origin: false,
            resource_path: "/mcp".to_owned(),
            metadata: MetadataPlaces::default(),
            challenge: Challenge::Full,
            clients: Vec::new(),
            registration: Registration::Public,
            client_documents: false,
            known_documents: BTreeMap::new(),
            revocation: true,
            approval: Approval::Auto,
            iss: Parameter::Right,
            iss_promised: true,
            state: Parameter::Right,
            exact_ports: false,
            require_resource: true,
            client_auth: vec![ClientAuth::Basic, ClientAuth::Post, ClientAuth::None],
            access_token_life: Duration::from_hours(1),
            expires_in: ExpiresIn::Right,
            refresh_tokens: true,
            offline_access: false,
            granted_scope: None,
            rotation: true,
            reuse_leeway: Duration::ZERO,
            say_scope: true,
            base_scope: "mcp".to_owned(),
            tool_scopes: BTreeMap::from([("admin".to_owned(), "admin".to_owned())]),
            challenge_all_scopes: false,
            clock_skew_seconds: 0,
            faults: Vec::new(),
        }
    }
}

impl IssuerOptions {
    /// Reads them from JSON; what is left out is as in the default.
    pub fn of(value: &Value) -> Result<Self> {
        Self::deserialize(value).context("these are no options of an issuer")
    }

    /// All scopes there are.
    pub(super) fn scopes(&self) -> Vec<String> {
        let mut scopes = vec![self.base_scope.clone()];
        scopes.extend(self.tool_scopes.values().cloned());
        scopes.extend(self.offline_access.then(|| "offline_access".to_owned()));
        scopes.retain(|scope| !scope.is_empty());
        scopes
    }
}

/// Where metadata can be had.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a test's fixture")]
pub struct MetadataPlaces {
    /// The resource's, at `/.well-known/oauth-protected-resource/mcp`.
    pub resource_at_path: bool,
    /// The resource's, at `/.well-known/oauth-protected-resource`.
    pub resource_at_root: bool,
    /// The issuer's, at `/.well-known/oauth-authorization-server/PATH` (RFC 8414).
    pub oauth: bool,
    /// The issuer's, at `/.well-known/openid-configuration/PATH`.
    pub openid_inserted: bool,
    /// The issuer's, at `/PATH/.well-known/openid-configuration`.
    pub openid_appended: bool,
}

impl Default for MetadataPlaces {
    fn default() -> Self {
        Self {
            resource_at_path: true,
            resource_at_root: true,
            oauth: true,
            openid_inserted: false,
            openid_appended: false,
        }
    }
}

/// What a refusal of the resource says in `WWW-Authenticate`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Challenge {
    /// Where the metadata are, the error and the scope.
    Full,
    /// The same without a scope.
    NoScope,
    /// The same without the place of the metadata.
    NoMetadata,
    /// There is no such header.
    Absent,
    /// This, word by word.
    Raw(String),
}

/// A client that is known from the start.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StaticClient {
    /// Its id.
    pub id: String,
    /// Its secret, if it is a confidential one.
    pub secret: Option<String>,
    /// Where it may be redirected to; on loopback any port fits.
    pub redirect_uris: Vec<String>,
    /// The one way in which it may authenticate itself; by default any that is offered.
    pub auth: Option<ClientAuth>,
}

impl StaticClient {
    /// A public one, redirected to `http://127.0.0.1/callback` (any port).
    pub fn public(id: &str) -> Self {
        Self { id: id.to_owned(), redirect_uris: vec![LOOPBACK.to_owned()], ..Self::default() }
    }

    /// The same with a secret.
    pub fn confidential(id: &str, secret: &str) -> Self {
        Self { secret: Some(secret.to_owned()), ..Self::public(id) }
    }
}

/// The redirect of clients that name no other.
pub(super) const LOOPBACK: &str = "http://127.0.0.1/callback";

/// Dynamic registration (RFC 7591).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registration {
    /// There is none, and the metadata name no endpoint.
    Absent,
    /// It gives ids without secrets, unless the client asks for a way of authentication that needs one.
    Public,
    /// It gives every client a secret.
    Confidential,
    /// It refuses with this error code.
    Refuses(String),
}

/// How the authorization endpoint answers a good request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approval {
    /// With the redirect and a code, at once.
    Auto,
    /// With a page whose form must be posted; then the redirect.
    Form,
    /// With the redirect and this error code.
    Deny(String),
    /// With a redirect to this URL instead of the client's, code and state in it. `${elsewhere}` stands for another
    /// origin.
    Elsewhere(String),
}

/// A parameter of the redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parameter {
    /// As it has to be.
    Right,
    /// With another value.
    Wrong,
    /// Left out.
    Absent,
}

/// What a token answer says of the life of the access token.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiresIn {
    /// The truth, in whole seconds.
    Right,
    /// Nothing.
    Absent,
    /// This.
    Says(Value),
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
}
