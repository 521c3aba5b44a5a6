//! A client by hand: what a login consists of, step by step.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolway_testkit::SOON;
use toolway_testkit::oauth::{Ask, Browser, Issuer, Reply, Visit};
use url::Url;

const VERIFIER: &str = "a-verifier-that-is-long-enough-for-the-standard";

/// A login on its way, with the listener that the redirect leads to.
pub(crate) struct Login {
    pub(crate) token_endpoint: String,
    pub(crate) redirect: String,
    pub(crate) parameters: Vec<(String, String)>,
    got: std::cell::RefCell<Option<Url>>,
    authorize: String,
    requests: Receiver<String>,
}

impl Login {
    pub(crate) fn new(issuer: &Issuer, client: &str) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let redirect = format!("http://{}/callback", listener.local_addr()?);
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            let connection = listener.accept().ok()?.0;
            sender.send(answer(&connection)?).ok()
        });
        let challenge =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER.as_bytes()));
        let parameters = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", &redirect),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", "a state"),
            ("resource", issuer.resource_url()),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Ok(Self {
            token_endpoint: issuer.endpoint("token"),
            redirect,
            parameters,
            got: std::cell::RefCell::default(),
            authorize: issuer.endpoint("authorize"),
            requests,
        })
    }

    pub(crate) fn scope(self, scope: &str) -> Self {
        self.with("scope", scope)
    }

    /// With another value of a parameter; without it if that is empty.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.parameters.retain(|(known, _)| known != name);
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn url(&self) -> Result<String> {
        let pairs = self.parameters.iter().filter(|(_, value)| !value.is_empty());
        Ok(Url::parse_with_params(&self.authorize, pairs)?.into())
    }

    pub(crate) fn visit(&self, browser: &Browser) -> Result<Visit> {
        browser.visit(&self.url()?)
    }

    /// Whether a redirect came. It has when a visit that led to it is over.
    pub(crate) fn was_redirected(&self) -> bool {
        self.requests.try_recv().is_ok()
    }

    /// A parameter that the redirect came with.
    pub(crate) fn received(&self, name: &str) -> Result<String> {
        if self.got.borrow().is_none() {
            let target = self.requests.recv_timeout(SOON).context("no redirect came")?;
            *self.got.borrow_mut() = Some(Url::parse("http://127.0.0.1")?.join(&target)?);
        }
        let got = self.got.borrow();
        let mut pairs = got.as_ref().context("nothing came")?.query_pairs();
        let found = pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        found.with_context(|| format!("the redirect has no {name}"))
    }

    pub(crate) fn redemption(&self) -> Result<Vec<(String, String)>> {
        let parameter = |name: &str| {
            let found = self.parameters.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let all = [
            ("grant_type", "authorization_code".to_owned()),
            ("code", self.received("code")?),
            ("code_verifier", VERIFIER.to_owned()),
            ("client_id", parameter("client_id")),
            ("redirect_uri", self.redirect.clone()),
            ("resource", parameter("resource")),
        ];
        Ok(all.map(|(name, value)| (name.to_owned(), value)).to_vec())
    }

    pub(crate) fn redeem(&self) -> Result<Value> {
        let all = self.redemption()?;
        let all: Vec<(&str, &str)> =
            all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let reply = Ask::form(&self.token_endpoint, &all).send()?;
        anyhow::ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
        reply.json()
    }
}

/// The target of the request, which is thanked for.
fn answer(connection: &TcpStream) -> Option<String> {
    let mut line = String::new();
    std::io::BufRead::read_line(&mut BufReader::new(connection), &mut line).ok()?;
    let mut connection = connection;
    connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nThanks").ok()?;
    line.split(' ').nth(1).map(str::to_owned)
}

/// A request of the resource.
pub(crate) fn rpc(url: &str, token: Option<&str>, method: &str, params: &Value) -> Result<Reply> {
    let ask = Ask::json(url, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
    match token {
        Some(token) => ask.header("Authorization", &format!("Bearer {token}")).send(),
        None => ask.send(),
    }
}

/// A call of a tool.
pub(crate) fn tool(issuer: &Issuer, token: &str, name: &str) -> Result<Reply> {
    let params = json!({ "name": name, "arguments": { "text": "hello" } });
    rpc(issuer.resource_url(), Some(token), "tools/call", &params)
}

/// A refresh by a public client.
pub(crate) fn refresh(issuer: &Issuer, client: &str, token: &str) -> Result<Reply> {
    let parameters = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", client),
        ("resource", issuer.resource_url()),
    ];
    Ask::form(&issuer.endpoint("token"), &parameters).send()
}
