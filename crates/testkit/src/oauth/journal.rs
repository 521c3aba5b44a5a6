//! What an issuer and its resource saw and did. Secrets stand in it by short labels: `AT3` is the third access token,
//! `RT2` the second refresh token, `C1` the first code, `S1` a client's secret.

use serde::Deserialize;
use serde_json::{Value, json};

/// An endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// Metadata of the resource (RFC 9728).
    ResourceMetadata,
    /// Metadata of the issuer (RFC 8414).
    IssuerMetadata,
    /// The same as `OpenID` discovery.
    #[serde(rename = "openid-metadata")]
    OpenIdMetadata,
    /// Where the user's browser asks for a code.
    Authorization,
    /// Where the form of its page is posted.
    Consent,
    /// Where tokens are given.
    Token,
    /// Where clients are registered (RFC 7591).
    Registration,
    /// Where tokens are given up (RFC 7009).
    Revocation,
    /// The resource: an MCP server.
    Mcp,
    /// Another origin, or a path that there is not.
    Elsewhere,
}

impl Endpoint {
    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResourceMetadata => "resource-metadata",
            Self::IssuerMetadata => "issuer-metadata",
            Self::OpenIdMetadata => "openid-metadata",
            Self::Authorization => "authorization",
            Self::Consent => "consent",
            Self::Token => "token",
            Self::Registration => "registration",
            Self::Revocation => "revocation",
            Self::Mcp => "mcp",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// Which listener a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Site {
    /// The issuer's.
    Issuer,
    /// The resource's.
    Resource,
    /// A third origin, which nobody should send a secret to.
    Elsewhere,
}

/// What a token is asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A code and its verifier.
    AuthorizationCode,
    /// A refresh token.
    RefreshToken,
    /// The client's own credentials.
    ClientCredentials,
}

impl Grant {
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "authorization_code" => Some(Self::AuthorizationCode),
            "refresh_token" => Some(Self::RefreshToken),
            "client_credentials" => Some(Self::ClientCredentials),
            _ => None,
        }
    }

    /// As on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
        }
    }
}

/// How a client authenticated itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum ClientAuth {
    /// In the `Authorization` header.
    #[serde(rename = "client_secret_basic")]
    Basic,
    /// In the body.
    #[serde(rename = "client_secret_post")]
    Post,
    /// Not at all.
    #[serde(rename = "none")]
    None,
}

impl ClientAuth {
    /// As in metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::None => "none",
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused with this error code.
    Refused(String),
    /// A fault of this name came instead.
    Fault(&'static str),
    /// Its connection went away while it was held: it was not processed.
    Dropped,
}

/// A request and what became of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Where it came to.
    pub site: Site,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// `GET`, `POST` and so on.
    pub method: String,
    /// The path as it was asked for, without the query.
    pub path: String,
    /// The headers, names in lower case, secrets by their labels.
    pub headers: Vec<(String, String)>,
    /// The parameters of query and form, secrets by their labels.
    pub parameters: Vec<(String, String)>,
    /// The body if it is JSON, else null.
    pub body: Value,
    /// What a token was asked for with.
    pub grant: Option<Grant>,
    /// The client.
    pub client_id: Option<String>,
    /// How it authenticated itself.
    pub client_auth: Option<ClientAuth>,
    /// The label of the token or code that was presented; `unknown` for one that was never given.
    pub presented: Option<String>,
    /// The labels of what was given.
    pub issued: Vec<String>,
    /// The scope that was given, or that the presented token has.
    pub scope: Option<String>,
    /// A refresh token came a second time, outside of the leeway.
    pub reused: bool,
    /// The method of an MCP request, and behind a blank the tool.
    pub rpc: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// The status of the answer; 0 where there was none.
    pub status: u16,
    /// The spoiling faults.
    pub spoiled: Vec<&'static str>,
}

impl Exchange {
    /// A parameter of query or form.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The error code that it was refused with.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Refused(code) => Some(code),
            _ => None,
        }
    }

    /// The same as a line of a journal.
    pub(super) fn told(&self) -> Value {
        let outcome = match &self.outcome {
            Outcome::Done => json!("done"),
            Outcome::Refused(code) => json!({ "refused": code }),
            Outcome::Fault(name) => json!({ "fault": name }),
            Outcome::Dropped => json!("dropped"),
        };
        json!({
            "endpoint": self.endpoint.name(), "site": format!("{:?}", self.site).to_lowercase(),
            "method": self.method, "path": self.path, "status": self.status, "outcome": outcome,
            "grant": self.grant.map(Grant::name), "client_id": self.client_id,
            "client_auth": self.client_auth.map(ClientAuth::name), "presented": self.presented,
            "issued": self.issued, "scope": self.scope, "reused": self.reused, "rpc": self.rpc,
            "parameters": self.parameters, "spoiled": self.spoiled,
        })
    }
}

/// All requests so far, in the order in which they were done with.
#[derive(Debug, Clone, Default)]
pub struct IssuerJournal {
    /// The requests.
    pub exchanges: Vec<Exchange>,
}

impl IssuerJournal {
    /// Those that came to an endpoint.
    pub fn at(&self, endpoint: Endpoint) -> Vec<&Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.endpoint == endpoint).collect()
    }

    /// Token requests with that grant, dropped ones too.
    pub fn grants(&self, grant: Grant) -> Vec<&Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.grant == Some(grant)).collect()
    }

    /// Refreshes that were processed, well or not.
    pub fn refreshes(&self) -> Vec<&Exchange> {
        let mut refreshes = self.grants(Grant::RefreshToken);
        refreshes.retain(|exchange| exchange.outcome != Outcome::Dropped);
        refreshes
    }

    /// How many authorizations were opened in a browser.
    pub fn authorizations(&self) -> usize {
        self.at(Endpoint::Authorization).len()
    }

    /// How often a refresh token came a second time.
    pub fn reused(&self) -> usize {
        self.exchanges.iter().filter(|exchange| exchange.reused).count()
    }

    /// Requests that were refused with this error code.
    pub fn refused(&self, code: &str) -> Vec<&Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.error() == Some(code)).collect()
    }

    /// Calls of tools that the resource let through, with the tool's name.
    pub fn calls(&self, tool: &str) -> Vec<&Exchange> {
        let rpc = format!("tools/call {tool}");
        let fits = |exchange: &&Exchange| exchange.rpc.as_ref() == Some(&rpc) && exchange.status == 200;
        self.exchanges.iter().filter(fits).collect()
    }

    /// One short line for each request.
    pub fn told(&self) -> String {
        self.exchanges.iter().map(|exchange| exchange.told().to_string()).collect::<Vec<_>>().join("\n")
    }
}
