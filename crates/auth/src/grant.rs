//! Owns what is asked of an authorization server's endpoints, by the `oauth2` crate: addresses of logins, codes, refresh
//! tokens and client credentials for tokens; and revocation (RFC 7009), which that crate refuses to do over loopback.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method};
use oauth2::basic::{
    BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
};
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, Client, ClientId, ClientSecret, CsrfToken,
    EndpointNotSet, EndpointSet, HttpRequest, HttpResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl,
    RefreshToken, RequestTokenError, Scope, StandardRevocableToken, TokenUrl,
};
use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use toolway_secret::Secret;
use url::Url;
use url::form_urlencoded::byte_serialize;

use crate::error::{AuthError, told};
use crate::http::{Http, shown, unreachable};
use crate::store::{ClientRecord, Entry};
use crate::token::TokenReply;

type OauthClient = Client<
    BasicErrorResponse,
    TokenReply,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;
type Failure = RequestTokenError<AuthError, BasicErrorResponse>;

/// A client at a token endpoint.
#[derive(Debug)]
pub(crate) struct Granting<'a> {
    pub(crate) http: &'a Http,
    pub(crate) client: &'a ClientRecord,
    pub(crate) token: &'a Url,
    /// `resource` of each request (RFC 8707).
    pub(crate) resource: &'a Url,
}

/// The address to show, and what must be known again when the answer comes.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) url: Url,
    pub(crate) state: Secret,
    pub(crate) verifier: PkceCodeVerifier,
    /// The same, so that the redactor knows it as long as it is used.
    pub(crate) known: Secret,
}

/// The requests of the library go the same way as all others.
struct Through<'a>(&'a Http);

impl<'c> AsyncHttpClient<'c> for Through<'_> {
    type Error = AuthError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, AuthError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let url = Url::parse(&parts.uri.to_string())
                .map_err(|_| AuthError::setting("token_endpoint", "is no address"))?;
            let reply = self.0.send(parts.method, &url, parts.headers, body).await?;
            if reply.status.is_redirection() {
                return Err(unreachable(&url, "it leads on to another address, where no token is sent"));
            }
            // Both are about how busy the server is, and no word on the token.
            if reply.status.is_server_error() || reply.status == http::StatusCode::TOO_MANY_REQUESTS {
                return Err(unreachable(&url, format!("HTTP {}", reply.status)));
            }
            let mut answer = http::Response::new(reply.body);
            // The library takes nothing else for a success.
            let good = reply.status.is_success();
            *answer.status_mut() = if good { http::StatusCode::OK } else { reply.status };
            Ok(answer)
        })
    }
}

impl<'a> Granting<'a> {
    /// For what is kept of a sign-in.
    pub(crate) fn of(http: &'a Http, entry: &'a Entry) -> Self {
        Self { http, client: &entry.client, token: &entry.endpoints.token, resource: &entry.resource }
    }

    fn oauth(&self) -> OauthClient {
        let client = Client::new(ClientId::new(self.client.id.clone()))
            .set_auth_type(if self.client.in_body { AuthType::RequestBody } else { AuthType::BasicAuth })
            .set_token_uri(TokenUrl::from_url(self.token.clone()));
        match &self.client.secret {
            Some(secret) => client.set_client_secret(ClientSecret::new(secret.expose().to_owned())),
            None => client,
        }
    }

    /// The address at which a person says yes (RFC 6749, 4.1.1; RFC 7636, 4.3).
    pub(crate) fn ask(&self, authorization: &Url, redirect: &Url, scopes: &[String]) -> Asked {
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let client = self.oauth().set_auth_uri(AuthUrl::from_url(authorization.clone()));
        let mut request = client
            .authorize_url(CsrfToken::new_random)
            .set_pkce_challenge(challenge)
            .set_redirect_uri(Cow::Owned(RedirectUrl::from_url(redirect.clone())))
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", self.resource.as_str());
        // OpenID providers give a token that outlives the session only where they are asked for consent (OpenID
        // Connect Core, 11).
        if scopes.iter().any(|scope| scope == "offline_access") {
            request = request.add_extra_param("prompt", "consent");
        }
        let (url, state) = request.url();
        Asked {
            url,
            state: Secret::in_use(state.into_secret()),
            known: Secret::in_use(verifier.secret().as_str()),
            verifier,
        }
    }

    /// Tokens for a code (RFC 6749, 4.1.3).
    pub(crate) async fn exchange(
        &self,
        code: &Secret,
        verifier: PkceCodeVerifier,
        redirect: &Url,
    ) -> Result<TokenReply, AuthError> {
        let client = self.oauth();
        let request = client
            .exchange_code(AuthorizationCode::new(code.expose().to_owned()))
            .set_pkce_verifier(verifier)
            .set_redirect_uri(Cow::Owned(RedirectUrl::from_url(redirect.clone())))
            .add_extra_param("resource", self.resource.as_str());
        self.answered(request.request_async(&Through(self.http)).await)
    }

    /// Tokens for a refresh token (RFC 6749, 6).
    pub(crate) async fn refresh(&self, token: &Secret) -> Result<TokenReply, AuthError> {
        let (client, token) = (self.oauth(), RefreshToken::new(token.expose().to_owned()));
        let request =
            client.exchange_refresh_token(&token).add_extra_param("resource", self.resource.as_str());
        self.answered(request.request_async(&Through(self.http)).await)
    }

    /// Tokens for the client itself (RFC 6749, 4.4).
    pub(crate) async fn credentials(&self, scopes: &[String]) -> Result<TokenReply, AuthError> {
        let client = self.oauth();
        let request = client
            .exchange_client_credentials()
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", self.resource.as_str());
        self.answered(request.request_async(&Through(self.http)).await)
    }

    /// Neither what was sent nor what came is in the error: both may hold tokens.
    fn answered(&self, answer: Result<TokenReply, Failure>) -> Result<TokenReply, AuthError> {
        let failed = |reason: String| Err(unreachable(self.token, reason));
        match answer {
            Ok(reply) if reply.is_bearer() => Ok(reply),
            Ok(_) => failed("its token is of another type than bearer".to_owned()),
            Err(RequestTokenError::ServerResponse(problem)) => Err(AuthError::Refused {
                endpoint: shown(self.token),
                code: told(problem.error().as_ref()),
                description: problem.error_description().map(|text| told(text)),
            }),
            Err(RequestTokenError::Request(error)) => Err(error),
            Err(RequestTokenError::Parse(error, _)) => {
                let path = error.path().to_string();
                let at = if path == "." { String::new() } else { format!(" (at {})", told(&path)) };
                failed(format!("its answer is no answer of a token endpoint{at}"))
            }
            Err(RequestTokenError::Other(_)) => {
                failed("its answer is no answer of a token endpoint".to_owned())
            }
        }
    }

    /// Makes a token worthless (RFC 7009, 2). What the server does not know is worthless already.
    pub(crate) async fn revoke(&self, endpoint: &Url, token: &Secret, kind: &str) -> Result<(), AuthError> {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token.expose()).append_pair("token_type_hint", kind);
        let mut headers = HeaderMap::new();
        headers.insert(
            http::header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-www-form-urlencoded"),
        );
        match &self.client.secret {
            Some(secret) if !self.client.in_body => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(&self.client.id), encoded(secret.expose()));
                let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                    .map_err(|_| AuthError::setting("CLIENT_SECRET", "cannot be sent in a header"))?;
                value.set_sensitive(true);
                headers.insert(http::header::AUTHORIZATION, value);
            }
            Some(secret) => {
                form.append_pair("client_id", &self.client.id).append_pair("client_secret", secret.expose());
            }
            None => {
                form.append_pair("client_id", &self.client.id);
            }
        }
        let reply = self.http.send(Method::POST, endpoint, headers, form.finish().into_bytes()).await?;
        if reply.status.is_success() {
            return Ok(());
        }
        Err(unreachable(endpoint, format!("HTTP {}", reply.status)))
    }
}

/// The server knows this refresh token no more, or it was used before (RFC 6749, 5.2).
pub(crate) fn is_spent(error: &AuthError) -> bool {
    let spent = BasicErrorResponseType::InvalidGrant;
    matches!(error, AuthError::Refused { code, .. } if code == spent.as_ref())
}

/// The server knows this client no more.
pub(crate) fn is_unknown_client(error: &AuthError) -> bool {
    matches!(error, AuthError::Refused { code, .. } if code == "invalid_client" || code == "unauthorized_client")
}
