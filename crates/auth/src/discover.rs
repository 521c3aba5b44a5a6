//! Owns the way from an MCP server's address to its authorization server: protected-resource metadata (RFC 9728),
//! authorization-server metadata (RFC 8414) and `OpenID` discovery, and what is not to be believed of them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::challenge::BearerChallenge;
use crate::error::{AuthError, told};
use crate::http::{Http, shown};

/// What is known of an authorization server, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Issuer {
    /// Its identifier as its metadata has it.
    pub(crate) name: String,
    pub(crate) authorization: Option<Url>,
    pub(crate) token: Url,
    pub(crate) registration: Option<Url>,
    pub(crate) revocation: Option<Url>,
    /// How clients prove themselves at the token endpoint; empty: not said.
    pub(crate) token_auth: Vec<String>,
    /// Its answers name it (RFC 9207).
    pub(crate) names_itself: bool,
    /// It reads client id metadata documents.
    pub(crate) reads_documents: bool,
    /// Scopes that it knows; empty: not said.
    pub(crate) scopes: Vec<String>,
}

/// What was found out about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) issuer: Issuer,
    /// `resource` of the requests (RFC 8707): what the server calls itself.
    pub(crate) resource: Url,
    /// The scopes to ask for where nobody said which: those of the challenge, else those of the metadata.
    pub(crate) scopes: Vec<String>,
}

/// RFC 9728, 2.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResourceMetadata {
    #[serde(deserialize_with = "patiently")]
    resource: Option<String>,
    #[serde(deserialize_with = "patiently")]
    authorization_servers: Vec<String>,
    #[serde(deserialize_with = "patiently")]
    scopes_supported: Vec<String>,
}

/// RFC 8414, 2.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerMetadata {
    #[serde(deserialize_with = "patiently")]
    issuer: Option<String>,
    #[serde(deserialize_with = "patiently")]
    authorization_endpoint: Option<String>,
    #[serde(deserialize_with = "patiently")]
    token_endpoint: Option<String>,
    #[serde(deserialize_with = "patiently")]
    registration_endpoint: Option<String>,
    #[serde(deserialize_with = "patiently")]
    revocation_endpoint: Option<String>,
    #[serde(deserialize_with = "patiently")]
    grant_types_supported: Vec<String>,
    #[serde(deserialize_with = "patiently")]
    code_challenge_methods_supported: Vec<String>,
    #[serde(deserialize_with = "patiently")]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(deserialize_with = "patiently")]
    scopes_supported: Vec<String>,
    #[serde(deserialize_with = "patiently")]
    authorization_response_iss_parameter_supported: bool,
    #[serde(deserialize_with = "patiently")]
    client_id_metadata_document_supported: bool,
}

/// A member that is null, or not what it should be, is as one that is not there.
fn patiently<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Finds out who signs people in for a server. `known`: an issuer that is preferred where the server trusts several.
pub(crate) async fn discover(
    http: &Http,
    server: &Url,
    challenge: Option<&BearerChallenge>,
    known: Option<&str>,
    codes: bool,
) -> Result<Found, AuthError> {
    let found = resource_metadata(http, server, challenge).await?;
    let Some((at, metadata)) = found else { return without_metadata(http, server, challenge, codes).await };
    let resource = checked_resource(&at, server, metadata.resource.as_deref())?;
    let servers = &metadata.authorization_servers;
    let preferred = servers.iter().find(|one| known.is_some_and(|known| same_issuer(one, known)));
    let Some(issuer) = preferred.or(servers.first()) else {
        // A resource that names nobody signs people in itself, as servers did before there was this metadata.
        let found = without_metadata(http, server, challenge, codes).await?;
        return Ok(Found { resource, ..found });
    };
    let issuer = server_metadata(http, &at, issuer, codes).await?;
    Ok(Found { issuer, resource, scopes: wanted(challenge, &metadata.scopes_supported) })
}

fn wanted(challenge: Option<&BearerChallenge>, supported: &[String]) -> Vec<String> {
    let asked = challenge.map(|challenge| challenge.scopes.clone()).unwrap_or_default();
    if asked.is_empty() { crate::settings::union(supported) } else { asked }
}

/// Where the server's metadata may be, and what it says (RFC 9728, 3.1).
async fn resource_metadata(
    http: &Http,
    server: &Url,
    challenge: Option<&BearerChallenge>,
) -> Result<Option<(Url, ResourceMetadata)>, AuthError> {
    let named = challenge.and_then(|challenge| challenge.resource_metadata.clone());
    let places = named.into_iter().chain(well_known(server, "oauth-protected-resource", true));
    first(http, places).await
}

/// The first document that is there. Where one cannot be had, as behind a proxy that says `http` of itself, the next may
/// be as good; if there is none, that is what is said.
async fn first<T: DeserializeOwned>(
    http: &Http,
    places: impl IntoIterator<Item = Url>,
) -> Result<Option<(Url, T)>, AuthError> {
    let mut failed = None;
    for at in places {
        match read(http, &at).await {
            Ok(Some(document)) => return Ok(Some((at, document))),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, "metadata cannot be had at one of their places");
                failed = failed.or(Some(error));
            }
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Servers of the revision 2025-03-26 are their own authorization servers.
async fn without_metadata(
    http: &Http,
    server: &Url,
    challenge: Option<&BearerChallenge>,
    codes: bool,
) -> Result<Found, AuthError> {
    let origin = server.join("/").map_err(|_| AuthError::setting("url", "it has no origin"))?;
    let issuer = origin.as_str().trim_end_matches('/').to_owned();
    let found = issuer_document(http, &origin).await?;
    let at = |path: &str| origin.join(path).map_err(|_| AuthError::setting("url", "it has no origin"));
    let issuer = match found {
        Some((place, metadata)) => checked_server(http, &place, &issuer, metadata, codes)?,
        None => Issuer {
            name: issuer,
            authorization: Some(at("/authorize")?),
            token: at("/token")?,
            registration: Some(at("/register")?),
            revocation: None,
            token_auth: Vec::new(),
            names_itself: false,
            reads_documents: false,
            scopes: Vec::new(),
        },
    };
    let mut resource = server.clone();
    // It may hold secrets, and nobody said that it belongs to the name.
    resource.set_query(None);
    Ok(Found { issuer, resource, scopes: wanted(challenge, &[]) })
}

async fn server_metadata(
    http: &Http,
    named_at: &Url,
    issuer: &str,
    codes: bool,
) -> Result<Issuer, AuthError> {
    let refuse = |reason: String| AuthError::Metadata { url: shown(named_at), reason };
    let url = Url::parse(issuer)
        .map_err(|_| refuse(format!("the authorization server \"{}\" is no address", told(issuer))))?;
    http.check(&url)?;
    match issuer_document(http, &url).await? {
        Some((place, metadata)) => checked_server(http, &place, issuer, metadata, codes),
        None => Err(refuse(format!("the authorization server {} has no metadata", shown(&url)))),
    }
}

/// The metadata of an issuer, at the places of RFC 8414, 3.1 and of `OpenID` discovery, 4.
async fn issuer_document(http: &Http, issuer: &Url) -> Result<Option<(Url, ServerMetadata)>, AuthError> {
    let mut places = well_known(issuer, "oauth-authorization-server", false);
    places.extend(well_known(issuer, "openid-configuration", false));
    let path = issuer.path().trim_end_matches('/');
    if !path.is_empty() {
        let mut appended = issuer.clone();
        appended.set_query(None);
        appended.set_path(&format!("{path}/.well-known/openid-configuration"));
        places.push(appended);
    }
    first(http, places).await
}

/// `/.well-known/NAME/path`, and the same without the path where that is a place too.
fn well_known(url: &Url, name: &str, root_too: bool) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let at = |path: &str| {
        let mut url = url.clone();
        url.set_fragment(None);
        if path.is_empty() {
            url.set_query(None);
        }
        url.set_path(&format!("/.well-known/{name}{path}"));
        url
    };
    let mut places = vec![at(path)];
    if root_too && !(path.is_empty() && url.query().is_none()) {
        places.push(at(""));
    }
    places
}

/// A JSON document. `None`: there is none, as servers say in many ways.
async fn read<T: DeserializeOwned>(http: &Http, at: &Url) -> Result<Option<T>, AuthError> {
    let Some(body) = http.document(at).await? else { return Ok(None) };
    match serde_json::from_slice(&body) {
        Ok(document) => Ok(Some(document)),
        // A web application answers every path with its page.
        Err(_) if body.trim_ascii_start().first() == Some(&b'<') => Ok(None),
        Err(error) => {
            let reason = format!("it is no such document (line {}, column {})", error.line(), error.column());
            Err(AuthError::Metadata { url: shown(at), reason })
        }
    }
}

/// What the server calls itself must be itself, or what it is a part of (RFC 9728, 3.3): else its tokens would be good
/// for somebody else's.
fn checked_resource(at: &Url, server: &Url, named: Option<&str>) -> Result<Url, AuthError> {
    let refuse = |reason: String| AuthError::Metadata { url: shown(at), reason };
    let Some(named) = named else { return Err(refuse("it names no resource".to_owned())) };
    let Ok(resource) = Url::parse(named) else {
        return Err(refuse(format!("its resource \"{}\" is no address", told(named))));
    };
    let below = |path: &str| {
        let path = path.trim_end_matches('/');
        let rest = server.path().strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let query = resource.query().is_none() || resource.query() == server.query();
    if resource.origin() == server.origin() && below(resource.path()) && query {
        return Ok(resource);
    }
    Err(refuse(format!("its resource is {}, and the server is {}", shown(&resource), shown(server))))
}

/// The endpoints of an authorization server, where its metadata is its own (RFC 8414, 3.3).
fn checked_server(
    http: &Http,
    at: &Url,
    issuer: &str,
    metadata: ServerMetadata,
    codes: bool,
) -> Result<Issuer, AuthError> {
    let refuse = |reason: String| AuthError::Metadata { url: shown(at), reason };
    let Some(own) = metadata.issuer else { return Err(refuse("it names no issuer".to_owned())) };
    if !same_issuer(&own, issuer) {
        return Err(refuse(format!(
            "it is of the issuer \"{}\", and \"{}\" was asked",
            told(&own),
            told(issuer)
        )));
    }
    let endpoint = |name: &str, text: Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let url = Url::parse(&text).map_err(|_| refuse(format!("its {name} is no address")))?;
        match http.check(&url) {
            Ok(()) => Ok(Some(url)),
            Err(AuthError::Unreachable { url, reason }) => Err(refuse(format!("its {name} {url}: {reason}"))),
            Err(other) => Err(other),
        }
    };
    let authorization = endpoint("authorization_endpoint", metadata.authorization_endpoint)?;
    let token = endpoint("token_endpoint", metadata.token_endpoint)?;
    let Some(token) = token else { return Err(refuse("it has no token_endpoint".to_owned())) };
    if codes {
        if authorization.is_none() {
            return Err(refuse("it has no authorization_endpoint".to_owned()));
        }
        if !metadata.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            let reason =
                "its code_challenge_methods_supported has no S256, without which codes can be stolen";
            return Err(refuse(reason.to_owned()));
        }
        let grants = &metadata.grant_types_supported;
        if !grants.is_empty() && !grants.iter().any(|grant| grant == "authorization_code") {
            return Err(refuse("its grant_types_supported has no authorization_code".to_owned()));
        }
    }
    Ok(Issuer {
        authorization,
        token,
        registration: endpoint("registration_endpoint", metadata.registration_endpoint)?,
        revocation: endpoint("revocation_endpoint", metadata.revocation_endpoint)?,
        name: own,
        token_auth: metadata.token_endpoint_auth_methods_supported,
        names_itself: metadata.authorization_response_iss_parameter_supported,
        reads_documents: metadata.client_id_metadata_document_supported,
        scopes: metadata.scopes_supported,
    })
}

/// Equal, but for the slash at the end, about which metadata often disagrees with itself.
pub(crate) fn same_issuer(one: &str, other: &str) -> bool {
    one.strip_suffix('/').unwrap_or(one) == other.strip_suffix('/').unwrap_or(other)
}

#[cfg(test)]
mod tests;
