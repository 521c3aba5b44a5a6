//! The documents in which resource and issuer describe themselves, and where these are found.

use serde_json::{Value, json};

use super::journal::{ClientAuth, Endpoint, Site};
use super::options::{IssuerOptions, Registration};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";
/// A place of the resource's metadata that only its challenge tells.
const TOLD: &str = "/about/this-resource";

/// The URLs of everything.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// The issuer's id.
    pub(super) issuer: String,
    /// The MCP endpoint.
    pub(super) resource: String,
    /// Origins.
    pub(super) resource_origin: String,
    pub(super) elsewhere: String,
}

impl Places {
    /// The URL of one of the issuer's endpoints.
    pub(super) fn of(&self, endpoint: &str) -> String {
        format!("{}/{endpoint}", self.issuer.trim_end_matches('/'))
    }

    /// A text with its places filled in.
    pub(super) fn filled(&self, text: &str) -> String {
        text.replace("${issuer}", &self.issuer)
            .replace("${resource}", &self.resource)
            .replace("${elsewhere}", &self.elsewhere)
    }

    pub(super) fn filled_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.filled(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.filled_value(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.filled_value(member)),
            _ => {}
        }
    }

    /// Where the challenge says that the resource's metadata are.
    pub(super) fn told(&self, options: &IssuerOptions) -> String {
        let place = if options.metadata.resource_at_path {
            format!("{RESOURCE}{}", options.resource_path)
        } else if options.metadata.resource_at_root {
            RESOURCE.to_owned()
        } else {
            TOLD.to_owned()
        };
        format!("{}{place}", self.resource_origin)
    }
}

/// What stands at a path; none: nothing does.
pub(super) fn endpoint(options: &IssuerOptions, site: Option<Site>, path: &str) -> Option<Endpoint> {
    let is_resource = site.is_none_or(|site| site == Site::Resource || options.one_origin);
    let is_issuer = site.is_none_or(|site| site == Site::Issuer || options.one_origin);
    let places = options.metadata;
    if is_resource {
        let at_path = places.resource_at_path && path == format!("{RESOURCE}{}", options.resource_path);
        if at_path || (places.resource_at_root && path == RESOURCE) || path == TOLD {
            return Some(Endpoint::ResourceMetadata);
        }
        if path == options.resource_path {
            return Some(Endpoint::Mcp);
        }
    }
    if !is_issuer {
        return None;
    }
    let base = options.path.trim_end_matches('/');
    if places.oauth && path == format!("{OAUTH}{base}") {
        return Some(Endpoint::IssuerMetadata);
    }
    let inserted = places.openid_inserted && path == format!("{OPENID}{base}");
    if inserted || (places.openid_appended && path == format!("{base}{OPENID}")) {
        return Some(Endpoint::OpenIdMetadata);
    }
    match path.strip_prefix(base)? {
        "/authorize" => Some(Endpoint::Authorization),
        "/consent" => Some(Endpoint::Consent),
        "/token" => Some(Endpoint::Token),
        "/register" if options.registration != Registration::Absent => Some(Endpoint::Registration),
        "/revoke" if options.revocation => Some(Endpoint::Revocation),
        _ => None,
    }
}

/// The resource's metadata (RFC 9728, 2).
pub(super) fn of_resource(options: &IssuerOptions, places: &Places) -> Value {
    json!({
        "resource": places.resource,
        "authorization_servers": [places.issuer],
        "scopes_supported": options.scopes(),
        "bearer_methods_supported": ["header"],
        "resource_name": "a protected test server",
    })
}

/// The issuer's metadata (RFC 8414, 2; RFC 9207, 3). As `OpenID` discovery they have what that demands besides.
pub(super) fn of_issuer(options: &IssuerOptions, places: &Places, openid: bool) -> Value {
    let client_auth: Vec<&str> = options.client_auth.iter().copied().map(ClientAuth::name).collect();
    let mut grants = vec!["authorization_code", "client_credentials"];
    if options.refresh_tokens {
        grants.push("refresh_token");
    }
    let mut metadata = json!({
        "issuer": places.issuer,
        "authorization_endpoint": places.of("authorize"),
        "token_endpoint": places.of("token"),
        "scopes_supported": options.scopes(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": grants,
        "token_endpoint_auth_methods_supported": client_auth,
        "code_challenge_methods_supported": ["S256"],
    });
    let mut add = |name: &str, value: Value| {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert(name.to_owned(), value);
        }
    };
    if options.registration != Registration::Absent {
        add("registration_endpoint", places.of("register").into());
    }
    if options.revocation {
        add("revocation_endpoint", places.of("revoke").into());
        add("revocation_endpoint_auth_methods_supported", json!(client_auth));
    }
    if options.iss_promised {
        add("authorization_response_iss_parameter_supported", true.into());
    }
    if options.client_documents {
        add("client_id_metadata_document_supported", true.into());
    }
    if openid {
        add("jwks_uri", places.of("jwks").into());
        add("subject_types_supported", json!(["public"]));
        add("id_token_signing_alg_values_supported", json!(["RS256"]));
    }
    metadata
}
