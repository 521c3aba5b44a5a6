//! Owns the checks that come before anything of a request is read: who may call at all. Pure; knows no protocol.

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolway_secret::Secret;
use toolway_transport::http_server::{Origin, address, single};

use super::HttpFrontConfig;

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// There is no `Host`, or more than one.
    NoHost,
    /// `Host` is none of ours: a page whose name was pointed at this address.
    Host,
    /// The page that calls is none of ours.
    Origin,
    /// Another path.
    Path,
    /// No token, or a wrong one.
    Token,
}

impl Refused {
    /// The status and the text of the answer.
    pub(super) fn answer(self) -> (StatusCode, &'static str) {
        match self {
            Self::NoHost => (StatusCode::BAD_REQUEST, "the request needs one Host header"),
            Self::Host => (StatusCode::FORBIDDEN, "this Host is not served here (--allow-host)"),
            Self::Origin => (StatusCode::FORBIDDEN, "this Origin may not call (--allow-origin)"),
            Self::Path => (StatusCode::NOT_FOUND, "nothing is served at this path"),
            Self::Token => (StatusCode::UNAUTHORIZED, "Authorization: Bearer TOKEN is needed"),
        }
    }
}

/// Who may pass.
#[derive(Debug)]
pub(super) struct Door {
    path: String,
    token: Option<Secret>,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Door {
    pub(super) fn new(config: &HttpFrontConfig) -> Self {
        Self {
            path: config.path.clone(),
            token: config.token.clone(),
            hosts: config.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: config.origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
        }
    }

    /// `local` is the address that the connection has come to.
    pub(super) fn check(&self, request: &Parts, local: IpAddr) -> Result<(), Refused> {
        let host = single(&request.headers, &HOST).ok_or(Refused::NoHost)?;
        let named: Authority = host.parse().map_err(|_| Refused::Host)?;
        let in_target = request.uri.authority();
        for authority in std::iter::once(&named).chain(in_target) {
            if authority.as_str().contains('@') || !self.is_ours(authority.host(), local) {
                return Err(Refused::Host);
            }
        }
        self.origin(&request.headers)?;
        if request.uri.path() != self.path {
            return Err(Refused::Path);
        }
        self.token(&request.headers)
    }

    /// Ours are the address of the connection itself, `localhost` where that is a loopback one, and configured names. The
    /// port does not matter: ports are mapped, and no attack needs another one.
    fn is_ours(&self, host: &str, local: IpAddr) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        if self.hosts.iter().any(|ours| ours == host) {
            return true;
        }
        match address(host) {
            Some(ip) => ip == local.to_canonical(),
            None => host == "localhost" && local.to_canonical().is_loopback(),
        }
    }

    /// No `Origin` is no web page. Loopback's pages may call: they too need the token, and get no CORS headers.
    fn origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        match Origin::of(headers) {
            Origin::None | Origin::Loopback(_) => Ok(()),
            Origin::Foreign(origin) if self.origins.contains(&origin) => Ok(()),
            Origin::Foreign(_) => Err(Refused::Origin),
        }
    }

    fn token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = single(headers, &AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        // Digests have one length, so that the time says nothing of the token's either.
        let digest = |text: &str| Sha256::digest(text.as_bytes());
        let equal = digest(given.unwrap_or_default()).ct_eq(&digest(token.expose()));
        if given.is_some() && bool::from(equal) { Ok(()) } else { Err(Refused::Token) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door::new(&HttpFrontConfig {
            token: Some(Secret::new("s3cret-token")),
            hosts: vec!["Gateway.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            ..HttpFrontConfig::default()
        })
    }

    fn check(local: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let mut request = http::Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        door().check(&parts, local.parse().unwrap())
    }

    const TOKEN: (&str, &str) = ("authorization", "Bearer s3cret-token");

    #[test]
    fn only_hosts_of_the_address_itself_pass() {
        for (local, host, fits) in [
            ("127.0.0.1", "127.0.0.1:8080", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "LocalHost:1", true),
            ("127.0.0.1", "localhost.:1", true),
            ("127.0.0.1", "gateway.example", true),
            ("127.0.0.1", "evil.example", false),
            ("127.0.0.1", "localhost.evil.example", false),
            ("127.0.0.1", "127.0.0.1.evil.example", false),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "[::1]:8080", false),
            ("127.0.0.1", "0.0.0.0", false),
            ("127.0.0.1", "2130706433", false),
            ("127.0.0.1", "user@127.0.0.1", false),
            ("127.0.0.1", "", false),
            ("::1", "[::1]:8080", true),
            ("::1", "localhost", true),
            ("::ffff:127.0.0.1", "127.0.0.1", true),
            ("10.0.0.5", "10.0.0.5:80", true),
            ("10.0.0.5", "localhost", false),
        ] {
            let passes = check(local, "/mcp", &[("host", host), TOKEN]) == Ok(());
            assert_eq!(passes, fits, "{host} at {local}");
        }
        assert_eq!(check("127.0.0.1", "/mcp", &[TOKEN]), Err(Refused::NoHost));
        assert_eq!(
            check("127.0.0.1", "/mcp", &[("host", "localhost"), ("host", "localhost"), TOKEN]),
            Err(Refused::NoHost)
        );
        // A target with a host of its own is checked as well.
        assert_eq!(
            check("127.0.0.1", "http://evil.example/mcp", &[("host", "localhost"), TOKEN]),
            Err(Refused::Host)
        );
    }

    #[test]
    fn pages_of_others_are_turned_away() {
        for (origin, fits) in [
            ("http://localhost:3000", true),
            ("http://127.0.0.1", true),
            ("http://[::1]:3", true),
            ("https://app.example", true),
            ("https://APP.example", true),
            ("http://app.example", false),
            ("http://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://evil.example/http://localhost", false),
            ("null", false),
            ("file://", false),
            ("", false),
        ] {
            let passes =
                check("127.0.0.1", "/mcp", &[("host", "localhost"), ("origin", origin), TOKEN]) == Ok(());
            assert_eq!(passes, fits, "{origin}");
        }
        let two =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost"), TOKEN];
        assert_eq!(check("127.0.0.1", "/mcp", &two), Err(Refused::Origin));
    }

    #[test]
    fn the_token_is_compared_whole_and_stands_once() {
        for (value, fits) in [
            ("Bearer s3cret-token", true),
            ("bearer s3cret-token", true),
            ("Bearer s3cret-tokeN", false),
            ("Bearer s3cret", false),
            ("Bearer ", false),
            ("Basic s3cret-token", false),
            ("s3cret-token", false),
        ] {
            let result = check("127.0.0.1", "/mcp", &[("host", "localhost"), ("authorization", value)]);
            assert_eq!(result == Ok(()), fits, "{value}");
        }
        assert_eq!(check("127.0.0.1", "/mcp", &[("host", "localhost")]), Err(Refused::Token));
        assert_eq!(check("127.0.0.1", "/mcp", &[("host", "localhost"), TOKEN, TOKEN]), Err(Refused::Token));
        assert_eq!(check("127.0.0.1", "/mcp/x", &[("host", "localhost"), TOKEN]), Err(Refused::Path));
    }

    #[test]
    fn the_order_is_host_origin_path_token() {
        let evil = [("host", "evil.example"), ("origin", "http://evil.example")];
        assert_eq!(check("127.0.0.1", "/other", &evil), Err(Refused::Host));
        let page = [("host", "localhost"), ("origin", "http://evil.example")];
        assert_eq!(check("127.0.0.1", "/other", &page), Err(Refused::Origin));
        assert_eq!(check("127.0.0.1", "/other", &[("host", "localhost")]), Err(Refused::Path));
    }
}
