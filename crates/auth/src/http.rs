//! Owns the requests of signing in: bounded in time and size, never led on to another origin, and never to an address
//! in a private network that a public server names. It does not know what is asked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::LOCATION;
use reqwest::{Client, redirect};
use tokio::sync::OnceCell;
use url::{Host, Url};

use crate::address::{is_localhost, is_loopback, is_public};
use crate::error::AuthError;
use crate::settings::TlsSource;

/// Bytes of an answer that are read: metadata and tokens are small.
const MOST: usize = 1 << 20;
const CONNECT: Duration = Duration::from_secs(15);
/// How often metadata may lead on within its origin.
const MOST_REDIRECTIONS: usize = 3;

/// Which addresses may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those that anybody on the internet reaches: the MCP server has one itself.
    Public,
    /// Those of private networks and of this machine too: the MCP server is there itself.
    Private,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Makes the requests of one MCP server's sign-in.
#[derive(Clone)]
pub(crate) struct Http {
    shared: Arc<Shared>,
    reach: Reach,
}

struct Shared {
    tls: TlsSource,
    timeout: Duration,
    public: OnceCell<Client>,
    private: OnceCell<Client>,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Http {
    pub(crate) fn new(tls: TlsSource, timeout: Duration) -> Self {
        let shared = Shared { tls, timeout, public: OnceCell::new(), private: OnceCell::new() };
        Self { shared: Arc::new(shared), reach: Reach::Public }
    }

    /// The same for servers that this resource names: what it may lead to depends on where it is itself.
    pub(crate) async fn near(&self, resource: &Url) -> Self {
        let reach = match resource.host() {
            Some(Host::Ipv4(address)) => reach_of([IpAddr::from(address)]),
            Some(Host::Ipv6(address)) => reach_of([IpAddr::from(address)]),
            Some(Host::Domain(name)) if is_localhost(name) => Reach::Private,
            Some(Host::Domain(name)) => {
                let found = tokio::time::timeout(CONNECT, tokio::net::lookup_host((name, 0))).await;
                // Without an answer nothing is reached anyway.
                found
                    .ok()
                    .and_then(Result::ok)
                    .map_or(Reach::Public, |found| reach_of(found.map(|one| one.ip())))
            }
            None => Reach::Public,
        };
        Self { shared: Arc::clone(&self.shared), reach }
    }

    async fn client(&self) -> Result<&Client, String> {
        let cell = match self.reach {
            Reach::Public => &self.shared.public,
            Reach::Private => &self.shared.private,
        };
        cell.get_or_try_init(|| async {
            let tls = (self.shared.tls)()?;
            Client::builder()
                .tls_backend_preconfigured(rustls::ClientConfig::clone(&tls))
                .user_agent(concat!("toolway/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT)
                .redirect(redirect::Policy::none())
                // Each is used for a few requests with long pauses: one that the server has closed would only fail.
                .pool_max_idle_per_host(0)
                .no_proxy()
                .dns_resolver(Arc::new(Names(self.reach)))
                .build()
                .map_err(|error| reason(&error))
        })
        .await
    }

    /// A document, followed within its origin. `None`: there is none (4xx).
    pub(crate) async fn document(&self, at: &Url) -> Result<Option<Vec<u8>>, AuthError> {
        let mut url = at.clone();
        for _ in 0..=MOST_REDIRECTIONS {
            let mut headers = HeaderMap::new();
            headers.insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
            headers.insert("mcp-protocol-version", http::HeaderValue::from_static("2025-11-25"));
            let reply = self.send(Method::GET, &url, headers, Vec::new()).await?;
            if reply.status.is_redirection() {
                let next = reply.headers.get(LOCATION).and_then(|value| value.to_str().ok());
                let next = next.and_then(|next| url.join(next).ok());
                let Some(next) = next else { return Err(unreachable(&url, "it leads on to nowhere")) };
                if next.origin() != url.origin() {
                    return Err(unreachable(
                        &url,
                        format!("it leads on to another origin, {}", shown(&next)),
                    ));
                }
                url = next;
                continue;
            }
            if reply.status.is_client_error() && reply.status != StatusCode::TOO_MANY_REQUESTS {
                return Ok(None);
            }
            if !reply.status.is_success() {
                return Err(unreachable(&url, format!("HTTP {}", reply.status)));
            }
            return Ok(Some(reply.body));
        }
        Err(unreachable(at, format!("it leads on more than {MOST_REDIRECTIONS} times")))
    }

    /// One request, not led on.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Reply, AuthError> {
        let asked = async {
            let mut answer = self.begun(method, url, headers, body).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await.map_err(|error| unreachable(url, reason(&error)))? {
                if body.len() + piece.len() > MOST {
                    return Err(unreachable(url, "its answer is longer than 1 MiB"));
                }
                body.extend_from_slice(&piece);
            }
            Ok(Reply { status, headers, body })
        };
        self.in_time(url, asked).await
    }

    /// The headers of an answer. Its body is not waited for: it may be a stream that has no end.
    pub(crate) async fn head(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<HeaderMap, AuthError> {
        let asked = async { Ok(self.begun(method, url, headers, body).await?.headers().clone()) };
        self.in_time(url, asked).await
    }

    async fn begun(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, AuthError> {
        self.check(url)?;
        let client = self.client().await.map_err(|error| unreachable(url, error))?;
        let request = client.request(method, url.clone()).headers(headers).body(body);
        request.send().await.map_err(|error| unreachable(url, reason(&error)))
    }

    async fn in_time<T>(
        &self,
        url: &Url,
        asked: impl Future<Output = Result<T, AuthError>>,
    ) -> Result<T, AuthError> {
        let late = || unreachable(url, format!("no answer within {} s", self.shared.timeout.as_secs()));
        tokio::time::timeout(self.shared.timeout, asked).await.unwrap_or_else(|_| Err(late()))
    }

    /// Whether an address may be asked at all; names are looked at when they are resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), AuthError> {
        let refuse = |reason: &str| Err(unreachable(url, reason));
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(url) => {}
            "http" => return refuse("it is plain http, which is for this machine only"),
            _ => return refuse("it is neither https nor http"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it holds a user or a password");
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::from(address),
            Some(Host::Ipv6(address)) => IpAddr::from(address),
            Some(Host::Domain(name)) if is_localhost(name) && self.reach == Reach::Public => {
                return refuse("it is on this machine, and the server that names it is not");
            }
            Some(Host::Domain(_)) => return Ok(()),
            None => return refuse("it names no host"),
        };
        if allowed(address, self.reach) {
            Ok(())
        } else {
            refuse("it is in a private network, and the server that names it is not")
        }
    }
}

/// Names lead to allowed addresses only, whatever a name server says and when it says it.
#[derive(Debug)]
struct Names(Reach);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            // Whoever answers for names: this one is this machine (RFC 6761, 6.3), and plain http is for it alone.
            let here = is_localhost(name.as_str());
            let fits = |ip: IpAddr| allowed(ip, reach) && (!here || ip.is_loopback());
            let good: Vec<SocketAddr> = found.filter(|one| fits(one.ip())).collect();
            if good.is_empty() {
                return Err("it leads to a private network, and the server that names it is not there".into());
            }
            Ok(Box::new(good.into_iter()) as Addrs)
        })
    }
}

fn reach_of(addresses: impl IntoIterator<Item = IpAddr>) -> Reach {
    let private = addresses.into_iter().any(|address| !is_public(address));
    if private { Reach::Private } else { Reach::Public }
}

fn allowed(address: IpAddr, reach: Reach) -> bool {
    is_public(address) || (reach == Reach::Private && !is_link_local(address))
}

/// Where the clouds serve their machines' credentials: no authorization server is there.
fn is_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local() || address.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        }
    }
}

/// An address as it may be shown: a query may hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string()
}

pub(crate) fn unreachable(url: &Url, reason: impl Into<String>) -> AuthError {
    AuthError::Unreachable { url: shown(url), reason: reason.into() }
}

/// Why a request failed, without its address.
fn reason(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut source: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(inner) = source {
        text = inner.to_string();
        source = inner.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { crate::error::told(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(reach: Reach, url: &str) -> bool {
        let tls: TlsSource = Arc::new(|| Err("none".to_owned()));
        let http = Http { reach, ..Http::new(tls, CONNECT) };
        http.check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn what_may_be_asked_depends_on_where_the_server_is() {
        for (url, public, private) in [
            ("https://as.example/x", true, true),
            ("http://as.example/x", false, false),
            ("ftp://as.example/x", false, false),
            ("https://user:pw@as.example/x", false, false),
            ("https://10.0.0.1/x", false, true),
            ("http://10.0.0.1/x", false, false),
            ("https://[fd00::1]/x", false, true),
            ("http://127.0.0.1:8/x", false, true),
            ("http://[::1]:8/x", false, true),
            ("http://localhost:8/x", false, true),
            ("https://LOCALHOST./x", false, true),
            ("https://169.254.169.254/x", false, false),
            ("https://[::ffff:169.254.169.254]/x", false, false),
            ("https://[fe80::1]/x", false, false),
            ("https://0x7f.1/x", false, true),
        ] {
            assert_eq!(
                (checked(Reach::Public, url), checked(Reach::Private, url)),
                (public, private),
                "{url}"
            );
        }
    }
}
