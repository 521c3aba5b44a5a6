//! One request as the endpoints see it, and the state that they share.

use base64::Engine as _;
use serde_json::{Value, json};

use super::gates::Gates;
use super::http::Answer;
use super::journal::{ClientAuth, Endpoint, Exchange, Grant, IssuerJournal, Outcome, Site};
use super::metadata::Places;
use super::options::IssuerOptions;
use super::vault::{Client, Vault};
use crate::fake::request::Request;

/// Everything that changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) options: IssuerOptions,
    pub(super) places: Places,
    pub(super) vault: Vault,
    pub(super) gates: Gates,
    pub(super) journal: IssuerJournal,
    /// Sessions of the resource that are open.
    pub(super) sessions: Vec<String>,
    /// Authorization requests whose form has not been posted, by the value of its cookie.
    pub(super) pending: Vec<(String, Call)>,
    /// Documents of the third origin, by their path.
    pub(super) hosted: Vec<(String, Value)>,
    pub(super) over: bool,
}

/// A request, and what the journal will say of it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: String,
    headers: Vec<(String, String)>,
    parameters: Vec<(String, String)>,
    pub(super) body: Value,
    pub(super) exchange: Exchange,
}

impl Call {
    pub(super) fn new(request: &Request, site: Site, endpoint: Endpoint) -> Self {
        let (path, query) = request.path();
        let mut parameters = pairs(query.as_bytes());
        let form = request.header("content-type").is_some_and(|kind| kind.contains("x-www-form-urlencoded"));
        if form {
            parameters.extend(pairs(&request.body));
        }
        let body = if form { Value::Null } else { serde_json::from_slice(&request.body).unwrap_or_default() };
        let exchange = Exchange {
            site,
            endpoint,
            method: request.verb.clone(),
            path: path.to_owned(),
            headers: Vec::new(),
            parameters: Vec::new(),
            body: body.clone(),
            grant: None,
            client_id: None,
            client_auth: None,
            presented: None,
            issued: Vec::new(),
            scope: None,
            reused: false,
            rpc: None,
            outcome: Outcome::Done,
            status: 0,
            spoiled: Vec::new(),
        };
        let mut call = Self {
            method: request.verb.clone(),
            headers: request.headers.clone(),
            parameters,
            body,
            exchange,
        };
        if endpoint == Endpoint::Token {
            call.exchange.grant = call.parameter("grant_type").and_then(Grant::of);
        }
        if let Some(id) =
            call.basic().map(|(id, _)| id).or_else(|| call.parameter("client_id").map(str::to_owned))
        {
            call.exchange.client_id = Some(id);
        }
        call
    }

    /// A parameter that stands there once and is not empty.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(known, value)| known == name && !value.is_empty());
        let value = found.next().map(|(_, value)| value.as_str());
        value.filter(|_| found.next().is_none())
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    }

    /// Client id and secret of the `Authorization` header, both form-decoded (RFC 6749, 2.3.1).
    pub(super) fn basic(&self) -> Option<(String, String)> {
        let (scheme, rest) = self.header("authorization")?.split_once(' ')?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(rest).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (id, secret) = text.split_once(':')?;
        scheme.eq_ignore_ascii_case("basic").then(|| (decoded(id), decoded(secret)))
    }

    /// An error of RFC 6749 (5.2).
    pub(super) fn refuse(&mut self, status: u16, code: &str, description: &str) -> Answer {
        self.exchange.outcome = Outcome::Refused(code.to_owned());
        Answer::json(status, &json!({ "error": code, "error_description": description }))
    }

    /// A page for the user.
    pub(super) fn refuse_page(&mut self, status: u16, code: &str, description: &str) -> Answer {
        self.exchange.outcome = Outcome::Refused(code.to_owned());
        Answer::html(status, "It did not work", &format!("<h1>It did not work</h1><p>{description}</p>"))
    }

    /// Finds out which token or code is presented, and puts labels in the place of secrets.
    pub(super) fn label(&mut self, vault: &Vault) {
        let label = |text: &str| vault.label(text).unwrap_or_else(|| "unknown".to_owned());
        let presented = ["code", "refresh_token", "token"].into_iter().find_map(|name| self.parameter(name));
        let presented = presented.filter(|_| self.method == "POST").or_else(|| self.bearer()).map(label);
        let secret = ["code", "refresh_token", "token", "client_secret"];
        self.exchange.parameters = self
            .parameters
            .iter()
            .map(|(name, value)| match name.as_str() {
                known if secret.contains(&known) => (name.clone(), label(value)),
                "code_verifier" | "password" => (name.clone(), "[hidden]".to_owned()),
                _ => (name.clone(), value.clone()),
            })
            .collect();
        self.exchange.headers = self
            .headers
            .iter()
            .map(|(name, value)| {
                if name != "authorization" {
                    return (name.clone(), value.clone());
                }
                let shown = match (self.basic(), self.bearer()) {
                    (Some((id, secret)), _) => format!("Basic {id}:{}", label(&secret)),
                    (_, Some(token)) => format!("Bearer {}", label(token)),
                    _ => "unknown".to_owned(),
                };
                (name.clone(), shown)
            })
            .collect();
        self.exchange.presented = presented;
    }

    /// The client, if it is who it says (RFC 6749, 2.3 and 3.2.1).
    pub(super) fn client(&mut self, state: &State) -> Result<Client, Answer> {
        let posted = self.parameter("client_secret").map(str::to_owned);
        let basic = self.basic();
        let auth = match (&basic, &posted) {
            (Some(_), Some(_)) => {
                return Err(self.refuse(400, "invalid_request", "a client authenticates itself in one way"));
            }
            (Some(_), None) => ClientAuth::Basic,
            (None, Some(_)) => ClientAuth::Post,
            (None, None) => ClientAuth::None,
        };
        self.exchange.client_auth = Some(auth);
        let secret = basic.map(|(_, secret)| secret).or(posted);
        let client = self.exchange.client_id.as_ref().and_then(|id| state.vault.clients.get(id)).cloned();
        let fits = client.filter(|client| {
            client.secret == secret
                && state.options.client_auth.contains(&auth)
                && client.auth.is_none_or(|only| only == auth)
        });
        fits.ok_or_else(|| {
            self.refuse(
                401,
                "invalid_client",
                "the client is unknown, or did not authenticate itself as it must",
            )
            .with("WWW-Authenticate", "Basic realm=\"the token endpoint\"")
        })
    }
}

pub(super) fn pairs(text: &[u8]) -> Vec<(String, String)> {
    let pairs = url::form_urlencoded::parse(text);
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// A value as a form has it, decoded.
fn decoded(text: &str) -> String {
    pairs(format!("x={text}").as_bytes()).into_iter().next().map(|(_, value)| value).unwrap_or_default()
}
