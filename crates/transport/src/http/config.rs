//! What an HTTP or SSE transport is made of, validated. It must not know where the values come from.

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use toolway_secret::{Secret, secret_name, secret_value};
use url::Url;

use super::io::Connector;
use super::target::Target;
use super::tls::Roots;
use crate::authorizer::Signer;
use crate::limits::{DEFAULT_MAX_IN_FLIGHT, DEFAULT_SSE_READ_TIMEOUT, DEFAULT_TIMEOUT};
use crate::transport::TransportError;

/// Configuration of [`crate::HttpTransport`] and [`crate::SseTransport`].
#[derive(Clone)]
pub struct HttpConfig {
    /// The MCP endpoint, or for SSE the event stream. http or https, without user and password.
    pub url: Url,
    /// Sent with every request to the URL's origin, and to no other.
    pub headers: Vec<(String, Secret)>,
    /// Connect; wait for response headers; silence inside a JSON body.
    pub timeout: Duration,
    /// No bytes on an event stream that a request waits for. Comments count as life.
    pub sse_read_timeout: Duration,
    /// Messages in flight at the same time.
    pub max_in_flight: usize,
    /// How the server is reached.
    pub connector: Connector,
    /// Which certificate authorities are trusted.
    pub roots: Roots,
    /// Header names are sent in title case (`Authorization`), for servers that compare them byte by byte.
    pub title_case: bool,
    /// Texts of failures name the options of a command line that would help (`--timeout`, `--header`).
    pub advice: bool,
    /// The whole address is a secret, and no log shows it.
    pub secret: bool,
    /// Signs the requests to the URL's origin, and to no other. Not asked where `headers` has an `Authorization`.
    pub authorizer: Option<Signer>,
}

impl fmt::Debug for HttpConfig {
    /// Without the query of the URL, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        url.set_query(None);
        f.debug_struct("HttpConfig")
            .field("url", &if self.secret { "(secret)" } else { url.as_str() })
            .field("headers", &self.headers)
            .field("timeout", &self.timeout)
            .field("sse_read_timeout", &self.sse_read_timeout)
            .field("max_in_flight", &self.max_in_flight)
            .field("connector", &self.connector)
            .field("authorizer", &self.authorizer)
            .finish_non_exhaustive()
    }
}

impl HttpConfig {
    /// The defaults for `url`.
    pub fn new(url: &str) -> Result<Self, TransportError> {
        let url = Url::parse(url).map_err(|error| TransportError::Url(error.to_string()))?;
        Ok(Self {
            url,
            headers: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            sse_read_timeout: DEFAULT_SSE_READ_TIMEOUT,
            max_in_flight: DEFAULT_MAX_IN_FLIGHT,
            connector: Connector::default(),
            roots: Roots::default(),
            title_case: false,
            advice: true,
            secret: false,
            authorizer: None,
        })
    }

    pub(crate) fn target(&self) -> Result<Target, TransportError> {
        let target = Target::new(self.url.clone()).map_err(TransportError::Url)?;
        Ok(Target { secret: self.secret, ..target })
    }

    /// Our headers for `accept`, with the configured ones on top: for the configured origin only.
    pub(crate) fn own_headers(&self, accept: &'static str) -> Result<HeaderMap, TransportError> {
        let mut headers = plain_headers(accept);
        headers.reserve(self.headers.len() + 8);
        let mut seen = HeaderMap::<()>::with_capacity(self.headers.len());
        for (text, secret) in &self.headers {
            let refuse = |reason| TransportError::Header { name: text.clone(), reason };
            let name = HeaderName::try_from(text.as_str()).map_err(|_| refuse("this is no header name"))?;
            if FRAMING.contains(&name.as_str()) {
                return Err(refuse("the transport sets it"));
            }
            let mut value = HeaderValue::try_from(secret.expose())
                .map_err(|_| refuse("its value holds characters that a header cannot have"))?;
            value.set_sensitive(true);
            if seen.insert(name.clone(), ()).is_some() {
                headers.append(name, value);
            } else {
                headers.insert(name, value);
            }
        }
        Ok(headers)
    }

    /// The user configured a token of their own.
    pub(crate) fn has_authorization(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()))
    }

    /// Who signs, where the user configured no token of their own.
    pub(crate) fn signer(&self) -> Option<Signer> {
        self.authorizer.clone().filter(|_| !self.has_authorization())
    }

    /// What must not be shown, known to every redactor as long as it is held: the headers' values with the long words
    /// in them, and of the address what its query says, or all of it.
    pub(crate) fn secret_texts(&self) -> Vec<Secret> {
        let mut texts: Vec<Secret> = Vec::new();
        for (name, secret) in &self.headers {
            if PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(name)) {
                continue;
            }
            let whole = secret.expose().trim();
            let parts = whole.split_ascii_whitespace().filter(|part| *part != whole && part.len() >= 8);
            texts.extend(parts.map(Secret::in_use));
            texts.push(Secret::in_use(whole));
        }
        for (name, value) in self.url.query_pairs() {
            if secret_name(&name) || secret_value(&value) || value.len() >= LONG {
                texts.push(Secret::in_use(value));
            }
        }
        if self.secret {
            texts.push(Secret::in_use(self.url.as_str()));
        }
        texts
    }
}

/// Headers whose values are no secrets: taken for some, they would spoil every text.
const PLAIN: [&str; 5] = ["accept", "accept-language", "content-type", "user-agent", "mcp-protocol-version"];
/// A value in a query of this length is taken for a secret, whatever its name.
const LONG: usize = 20;

/// Headers that frame the message: a value from outside would break it.
const FRAMING: [&str; 6] = ["content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"];

/// What goes to any origin.
pub(crate) fn plain_headers(accept: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolway/", env!("CARGO_PKG_VERSION"))));
    headers
}

#[cfg(test)]
mod tests {
    use super::HttpConfig;
    use toolway_secret::Secret;

    fn config(headers: &[(&str, &str)]) -> HttpConfig {
        let mut config = HttpConfig::new("http://h/mcp").unwrap();
        config.headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value))).collect();
        config
    }

    #[test]
    fn configured_headers_win_over_ours_whatever_their_case() {
        let headers = config(&[("ACCEPT", "x/y"), ("User-agent", "me"), ("X-Two", "1"), ("x-two", "2")])
            .own_headers("a/b")
            .unwrap();
        let all = |name: &str| headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all("accept"), ["x/y"]);
        assert_eq!(all("user-agent"), ["me"]);
        assert_eq!(all("x-two"), ["1", "2"]);
    }

    #[test]
    fn headers_that_cannot_be_sent_are_refused_without_their_value() {
        for (name, value) in
            [("Content-Length", "5-s3cret"), ("bad name", "s3cret"), ("X", "s3cret\r\nY: 1"), ("", "s3cret")]
        {
            let refusal = config(&[(name, value)]).own_headers("a/b").unwrap_err().to_string();
            assert!(!refusal.contains("s3cret"), "{refusal}");
        }
    }

    #[test]
    fn no_debug_output_shows_a_header_value_or_a_query() {
        let mut config = config(&[("Authorization", "Bearer s3cret-token")]);
        config.url.set_query(Some("key=s3cret"));
        assert!(!format!("{config:?}").contains("s3cret"));
        assert!(!format!("{:?}", config.own_headers("a/b").unwrap()).contains("s3cret"));
    }
}
