//! Clients that were not known from the start: dynamic registration (RFC 7591) and client id metadata documents.

use serde_json::{Value, json};
use url::Url;

use super::call::{Call, State};
use super::http::{Answer, Ask};
use super::journal::ClientAuth;
use super::options::Registration;
use super::vault::Client;

/// Registers a client.
pub(super) fn register(call: &mut Call, state: &mut State) -> Answer {
    if call.method != "POST" || !call.body.is_object() {
        return call.refuse(400, "invalid_client_metadata", "no JSON object was posted");
    }
    let metadata = call.body.clone();
    let redirect_uris = texts(&metadata, "redirect_uris");
    let only_credentials = texts(&metadata, "grant_types") == ["client_credentials"];
    if !redirect_uris.iter().all(|uri| is_safe(uri)) || (redirect_uris.is_empty() && !only_credentials) {
        return call.refuse(400, "invalid_redirect_uri", "a redirect is https, or http on loopback");
    }
    let auth = match metadata.get("token_endpoint_auth_method").and_then(Value::as_str) {
        None | Some("client_secret_basic") => ClientAuth::Basic,
        Some("client_secret_post") => ClientAuth::Post,
        Some("none") => ClientAuth::None,
        Some(_) => {
            return call.refuse(400, "invalid_client_metadata", "there is no such way of authentication");
        }
    };
    let secret = match (&state.options.registration, auth) {
        (Registration::Refuses(code), _) => {
            let code = code.clone();
            return call.refuse(400, &code, "this client is not wanted here");
        }
        (Registration::Confidential, _) | (_, ClientAuth::Basic | ClientAuth::Post) => {
            // What a secret may be made of is the issuer's affair.
            Some(format!("s:%{}+/&=", state.vault.random()))
        }
        _ => None,
    };
    let auth = if secret.is_some() && auth == ClientAuth::None { ClientAuth::Basic } else { auth };
    let id = format!("registered-{}", state.vault.clients.len() + 1);
    let mut answer = metadata;
    let mut add = |name: &str, value: Value| {
        if let Some(answer) = answer.as_object_mut() {
            answer.insert(name.to_owned(), value);
        }
    };
    add("client_id", id.clone().into());
    add("client_id_issued_at", json!(state.vault.now().as_secs()));
    add("token_endpoint_auth_method", auth.name().into());
    if let Some(secret) = &secret {
        add("client_secret", secret.clone().into());
        add("client_secret_expires_at", 0.into());
    }
    call.exchange.client_id = Some(id.clone());
    state.vault.add_client(Client { id, secret, redirect_uris, auth: Some(auth) });
    Answer::json(201, &answer)
}

/// A client's metadata document that has to be fetched, and its URL. The state must not be locked meanwhile.
pub(super) fn wanted_document(call: &Call, state: &State) -> Option<String> {
    let id = call.exchange.client_id.as_ref().filter(|_| state.options.client_documents)?;
    let url = Url::parse(id).ok()?;
    let loopback = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let fetched = url.scheme() == "http" && loopback;
    let known = state.options.known_documents.contains_key(id);
    (url.path() != "/" && (fetched || known) && !state.vault.clients.contains_key(id)).then(|| id.clone())
}

/// Fetches it.
pub(super) fn fetch_document(url: &str) -> Option<Value> {
    let reply = Ask::get(url).header("Accept", "application/json").send().ok()?;
    if reply.status == 200 { reply.json().ok() } else { None }
}

/// Takes the document for a client's metadata, if it is that client's.
pub(super) fn take_document(state: &mut State, url: &str, document: &Value) {
    let redirect_uris = texts(document, "redirect_uris");
    let fits = document.get("client_id").and_then(Value::as_str) == Some(url)
        && document.get("client_name").is_some_and(Value::is_string)
        && document.get("client_secret").is_none()
        && !redirect_uris.is_empty();
    if fits {
        let auth = Some(ClientAuth::None);
        state.vault.add_client(Client { id: url.to_owned(), secret: None, redirect_uris, auth });
    }
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    let items = value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_safe(uri: &str) -> bool {
    Url::parse(uri).is_ok_and(|uri| {
        let loopback = matches!(uri.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        uri.fragment().is_none() && (uri.scheme() == "https" || (uri.scheme() == "http" && loopback))
    })
}
