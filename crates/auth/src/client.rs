//! Owns who this program is at an authorization server: a client from the configuration, one whose id is the address of
//! its metadata document, or one that registers itself (RFC 7591), in this order.

use http::{HeaderMap, HeaderValue, Method};
use serde::Deserialize;
use serde_json::json;
use toolway_secret::Secret;
use url::Url;

use crate::discover::Issuer;
use crate::error::{AuthError, told};
use crate::http::{Http, shown};
use crate::settings::{ServerAuth, StaticClient};
use crate::store::{ClientRecord, Entry, Origin};

/// The client to ask as. `known` is what is kept of an earlier sign-in, `redirect` where the answer will go.
pub(crate) async fn client(
    http: &Http,
    server: &ServerAuth,
    issuer: &Issuer,
    document: Option<&Url>,
    known: Option<&Entry>,
    redirect: &str,
) -> Result<ClientRecord, AuthError> {
    if let Some(client) = &server.client {
        return Ok(configured(client, issuer));
    }
    if let Some(document) = document.filter(|_| issuer.reads_documents) {
        return Ok(ClientRecord {
            id: document.to_string(),
            secret: None,
            origin: Origin::Document,
            in_body: false,
            redirect: None,
            secret_ends: None,
        });
    }
    if let Some(known) = known.map(|known| &known.client).filter(|known| usable(known, redirect)) {
        return Ok(known.clone());
    }
    let Some(endpoint) = &issuer.registration else {
        let reason = if issuer.reads_documents {
            "it takes no registrations, but reads client id metadata documents: give a CLIENT_ID that is the address of one"
        } else {
            "it takes no registrations: register a client with it and give its CLIENT_ID (and CLIENT_SECRET, where it has one)"
        };
        return Err(AuthError::Client { issuer: issuer.name.clone(), reason: reason.to_owned() });
    };
    register(http, server, issuer, endpoint, redirect).await
}

/// A client from the configuration.
pub(crate) fn configured(client: &StaticClient, issuer: &Issuer) -> ClientRecord {
    let document = client.secret.is_none() && client.id.starts_with("https://");
    ClientRecord {
        id: client.id.clone(),
        secret: client.secret.clone(),
        origin: if document { Origin::Document } else { Origin::Static },
        in_body: in_body(&issuer.token_auth),
        redirect: None,
        secret_ends: None,
    }
}

/// Basic authentication is what every server has to know (RFC 6749, 2.3.1); the body is for those that say otherwise.
fn in_body(methods: &[String]) -> bool {
    let names = |method: &str| methods.iter().any(|one| one == method);
    names("client_secret_post") && !names("client_secret_basic")
}

/// A registered client can be used again where its redirect is the one of now.
fn usable(client: &ClientRecord, redirect: &str) -> bool {
    client.origin == Origin::Registered
        && client.redirect.as_deref() == Some(redirect)
        && client.secret_ends.is_none_or(|end| end > crate::token::now() + 60)
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    #[serde(default)]
    client_secret_expires_at: Option<serde_json::Value>,
    token_endpoint_auth_method: Option<String>,
}

#[derive(Deserialize)]
struct Problem {
    error: String,
    error_description: Option<String>,
}

async fn register(
    http: &Http,
    server: &ServerAuth,
    issuer: &Issuer,
    endpoint: &Url,
    redirect: &str,
) -> Result<ClientRecord, AuthError> {
    let methods = &issuer.token_auth;
    let method = ["none", "client_secret_basic", "client_secret_post"]
        .into_iter()
        .find(|method| methods.iter().any(|one| one == method))
        .unwrap_or(if methods.is_empty() { "none" } else { "client_secret_basic" });
    let mut asked = json!({
        "client_name": "Toolway",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native",
    });
    if !server.scopes.is_empty()
        && let Some(asked) = asked.as_object_mut()
    {
        asked.insert("scope".to_owned(), server.scopes.join(" ").into());
    }
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(http::header::CONTENT_TYPE, json.clone());
    headers.insert(http::header::ACCEPT, json);
    let reply = http.send(Method::POST, endpoint, headers, asked.to_string().into_bytes()).await?;
    if !reply.status.is_success() {
        let problem: Option<Problem> = serde_json::from_slice(&reply.body).ok();
        return Err(match problem {
            Some(problem) => AuthError::Refused {
                endpoint: shown(endpoint),
                code: told(&problem.error),
                description: problem.error_description.as_deref().map(told),
            },
            None => AuthError::Client {
                issuer: issuer.name.clone(),
                reason: match reply.status {
                    http::StatusCode::NOT_FOUND | http::StatusCode::METHOD_NOT_ALLOWED => {
                        "it registers no clients: give the CLIENT_ID of one that you have there; and where the server wants a token that you have, give that in an Authorization header".to_owned()
                    }
                    status => format!("its registration answers HTTP {status}"),
                },
            },
        });
    }
    let registered: Registered = serde_json::from_slice(&reply.body).map_err(|_| AuthError::Client {
        issuer: issuer.name.clone(),
        reason: "its registration gave no client_id".to_owned(),
    })?;
    if registered.client_id.is_empty() {
        let reason = "its registration gave an empty client_id".to_owned();
        return Err(AuthError::Client { issuer: issuer.name.clone(), reason });
    }
    let method = registered.token_endpoint_auth_method.as_deref().unwrap_or(method);
    let secret = registered.client_secret.filter(|secret| !secret.is_empty() && method != "none");
    Ok(ClientRecord {
        id: registered.client_id,
        secret: secret.map(Secret::in_use),
        origin: Origin::Registered,
        in_body: method == "client_secret_post",
        redirect: Some(redirect.to_owned()),
        // 0 is never (RFC 7591, 3.2.1).
        secret_ends: registered.client_secret_expires_at.and_then(|at| at.as_u64()).filter(|at| *at > 0),
    })
}
