//! What goes wrong at an endpoint, how often, and the lies that metadata can tell.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::journal::Endpoint;
use super::options::seconds;

/// What goes wrong. Some come instead of an answer, and the request is not processed; the others spoil the answer of a
/// request that was processed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Instead: this status, with `error` in a JSON body, and `Retry-After` if that is told.
    Status {
        /// The status.
        status: u16,
        /// The error code, for example `invalid_grant`.
        #[serde(default)]
        error: Option<String>,
        /// `Retry-After`.
        #[serde(default)]
        retry_after: Option<String>,
    },
    /// Instead: a page of HTML with this status.
    Html(u16),
    /// Instead: status 307 to the same path below `/moved`, where the same answer is found.
    Moved,
    /// The same on another origin.
    MovedElsewhere,
    /// Instead: status 302 to this URL; `${elsewhere}` stands for another origin.
    Redirect(String),
    /// Instead: nothing is answered until the client goes.
    Mute,
    /// Spoils: the connection is closed without an answer, although the request was processed.
    Lost,
    /// Spoils: the connection is closed in the middle of the body.
    Cut,
    /// Spoils: the body is no JSON.
    NotJson,
    /// Spoils: so many bytes of white space stand before the body.
    Huge(usize),
    /// Spoils: the body has no stated length and does not end while the client reads (after 1 GiB it does).
    Endless,
    /// Spoils: the body comes byte by byte, so many seconds apart.
    Drip(#[serde(deserialize_with = "seconds")] Duration),
    /// Spoils: the answer comes late, after so many seconds.
    Slow(#[serde(deserialize_with = "seconds")] Duration),
    /// Spoils: members of the JSON answer are replaced; null takes one out. In texts, `${issuer}`, `${resource}` and
    /// `${elsewhere}` stand for the issuer's URL, the resource's URL and another origin.
    Edit(Value),
}

impl Fault {
    /// A status with an error code.
    pub fn status(status: u16, error: &str) -> Self {
        Self::Status { status, error: Some(error.to_owned()), retry_after: None }
    }

    /// It comes instead of an answer: the request is not processed.
    pub fn is_instead(&self) -> bool {
        matches!(
            self,
            Self::Status { .. }
                | Self::Html(_)
                | Self::Moved
                | Self::MovedElsewhere
                | Self::Redirect(_)
                | Self::Mute
        )
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Html(_) => "html",
            Self::Moved => "moved",
            Self::MovedElsewhere => "moved-elsewhere",
            Self::Redirect(_) => "redirect",
            Self::Mute => "mute",
            Self::Lost => "lost",
            Self::Cut => "cut",
            Self::NotJson => "not-json",
            Self::Huge(_) => "huge",
            Self::Endless => "endless",
            Self::Drip(_) => "drip",
            Self::Slow(_) => "slow",
            Self::Edit(_) => "edit",
        }
    }
}

/// A fault, where it happens and how often.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The endpoint.
    pub at: Endpoint,
    /// How many requests there go well before.
    #[serde(default)]
    pub skip: u32,
    /// How many it then happens to; none: to all.
    #[serde(default)]
    pub times: Option<u32>,
    /// The fault.
    pub fault: Fault,
}

impl FaultRule {
    /// It happens always.
    pub fn always(at: Endpoint, fault: Fault) -> Self {
        Self { at, skip: 0, times: None, fault }
    }

    /// It happens to the next request.
    pub fn once(at: Endpoint, fault: Fault) -> Self {
        Self { at, skip: 0, times: Some(1), fault }
    }

    /// It happens to that request, the first being 1.
    pub fn nth(at: Endpoint, nth: u32, fault: Fault) -> Self {
        Self { at, skip: nth.saturating_sub(1), times: Some(1), fault }
    }

    /// Whether it happens to the request that is here now. Counts it.
    pub(super) fn strikes(&mut self, at: Endpoint) -> bool {
        if self.at != at {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        match &mut self.times {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// The issuer's metadata, wherever they are found, have these members.
    pub fn issuer_says(members: Value) -> Vec<Self> {
        vec![
            Self::always(Endpoint::OpenIdMetadata, Fault::Edit(members.clone())),
            Self::always(Endpoint::IssuerMetadata, Fault::Edit(members)),
        ]
    }

    /// The resource's metadata have these members.
    pub fn resource_says(members: Value) -> Vec<Self> {
        vec![Self::always(Endpoint::ResourceMetadata, Fault::Edit(members))]
    }

    /// The issuer's metadata name another issuer than the one they were found at (RFC 8414, 3.3).
    pub fn other_issuer() -> Vec<Self> {
        Self::issuer_says(json!({ "issuer": "${elsewhere}" }))
    }

    /// The resource's metadata name another resource (RFC 9728, 3.3).
    pub fn other_resource() -> Vec<Self> {
        Self::resource_says(json!({ "resource": "${elsewhere}/mcp" }))
    }

    /// The issuer's endpoints stand below this origin, for example `http://10.0.0.1`, `http://169.254.169.254`,
    /// `https://[fd00::1]` or `http://issuer.example`.
    pub fn endpoints_at(origin: &str) -> Vec<Self> {
        let at = |path: &str| format!("{origin}/{path}");
        Self::issuer_says(json!({
            "authorization_endpoint": at("authorize"), "token_endpoint": at("token"),
            "registration_endpoint": at("register"), "revocation_endpoint": at("revoke"),
        }))
    }

    /// The resource says that this is its issuer.
    pub fn issuer_at(url: &str) -> Vec<Self> {
        Self::resource_says(json!({ "authorization_servers": [url] }))
    }

    /// The issuer's metadata do not offer PKCE with S256: they offer nothing, or `plain` only.
    pub fn no_s256(plain: bool) -> Vec<Self> {
        let offered = if plain { json!(["plain"]) } else { Value::Null };
        Self::issuer_says(json!({ "code_challenge_methods_supported": offered }))
    }

    /// A member is missing in the issuer's metadata, for example `token_endpoint`.
    pub fn issuer_lacks(member: &str) -> Vec<Self> {
        Self::issuer_says(json!({ member: null }))
    }
}
