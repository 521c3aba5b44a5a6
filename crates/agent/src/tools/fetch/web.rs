//! Owns the way to a page: who is asked, redirections, and bounds of size and time. It knows nothing of what a page says.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, redirect};
use tokio::time::timeout;
use toolway_auth::is_public;
use toolway_transport::Roots;
use url::{Host, Url};

use crate::tools::ToolSetup;

/// Bytes of a page that are read.
const MOST: usize = 10 << 20;
/// How long all of it may take.
const TIME: Duration = Duration::from_mins(1);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(15);
/// Redirections of one page.
const MOST_REDIRECTIONS: usize = 5;
const ACCEPTED: &str =
    "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

/// The client of an agent, made when the first page is read.
#[derive(Debug, Default)]
pub(crate) struct Web {
    client: tokio::sync::OnceCell<Client>,
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Answer {
    /// A page.
    Page(Page),
    /// It leads to another host.
    Elsewhere(Url),
}

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    /// Where it was in the end.
    pub(super) url: Url,
    pub(super) status: u16,
    /// Its type, without parameters.
    pub(super) kind: String,
    charset: Option<String>,
    pub(super) body: Vec<u8>,
    /// More came than is read.
    pub(super) cut: bool,
}

impl Web {
    /// Reads a page. The error is a fragment.
    pub(super) async fn get(&self, setup: &ToolSetup, url: Url) -> Result<Answer, String> {
        let asked = timeout(TIME, self.follow(setup, url)).await;
        asked.unwrap_or_else(|_| Err(format!("it took more than {} s", TIME.as_secs())))
    }

    async fn follow(&self, setup: &ToolSetup, mut url: Url) -> Result<Answer, String> {
        let client = self.client.get_or_try_init(|| async { client(setup) }).await?;
        for _ in 0..=MOST_REDIRECTIONS {
            check(&url, setup.fetch_private)?;
            let request = client.get(url.clone()).header(ACCEPT, ACCEPTED);
            let answer = request.send().await.map_err(|error| reason(&error))?;
            if !answer.status().is_redirection() {
                return page(url, answer).await.map(Answer::Page);
            }
            let next = location(&url, answer.headers())?;
            if !same_host(&url, &next) {
                return Ok(Answer::Elsewhere(next));
            }
            url = next;
        }
        Err(format!("it leads on more than {MOST_REDIRECTIONS} times"))
    }
}

fn client(setup: &ToolSetup) -> Result<Client, String> {
    let tls = Roots::System.client_config()?;
    let mut builder = Client::builder()
        .tls_backend_preconfigured(rustls::ClientConfig::clone(&tls))
        .user_agent(concat!("toolway/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .redirect(redirect::Policy::none())
        .no_proxy();
    let variable = |names: &[&str]| {
        let value = names.iter().find_map(|name| setup.variables.get(std::ffi::OsStr::new(name)))?;
        value.to_str().filter(|value| !value.is_empty()).map(str::to_owned)
    };
    let around = variable(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let mut proxied = false;
    // CGI gives `HTTP_PROXY` to programs from a header, so only the small form counts.
    for (https, names) in [
        (true, &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"][..]),
        (false, &["http_proxy", "all_proxy", "ALL_PROXY"]),
    ] {
        let Some(address) = variable(names) else { continue };
        let proxy = if https { reqwest::Proxy::https(address) } else { reqwest::Proxy::http(address) };
        let proxy = proxy.map_err(|_| "the proxy of the environment is no address".to_owned())?;
        builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_string(&around)));
        proxied = true;
    }
    // A proxy finds the address itself, and stands in a private network itself.
    if !setup.fetch_private && !proxied {
        builder = builder.dns_resolver(Arc::new(PublicNames));
    }
    builder.build().map_err(|error| reason(&error))
}

/// Names lead to public addresses only, whatever a name server says and when it says it.
#[derive(Debug)]
struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public = public_only(name.as_str(), found)?;
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn public_only(name: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Private> {
    let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
    if public.is_empty() { Err(Private(name.to_owned())) } else { Ok(public) }
}

/// A host is on this machine or in a private network.
#[derive(Debug)]
struct Private(String);

impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is on this machine or in a private network, which is not allowed", self.0)
    }
}

impl std::error::Error for Private {}

fn check(url: &Url, private: bool) -> Result<(), String> {
    let refused = match url.host() {
        None => return Err("it names no host".to_owned()),
        _ if private => false,
        Some(Host::Ipv4(address)) => !is_public(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => !is_public(IpAddr::V6(address)),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
    };
    if refused { Err(Private(url.host_str().unwrap_or_default().to_owned()).to_string()) } else { Ok(()) }
}

/// Where a redirection leads.
fn location(from: &Url, headers: &HeaderMap) -> Result<Url, String> {
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| "it leads on without saying where".to_owned())?;
    let mut to =
        from.join(location).map_err(|error| format!("it leads on to what is no address: {error}"))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(format!("it leads on to an address of the kind {}", to.scheme()));
    }
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err("it leads from https to http".to_owned());
    }
    to.set_fragment(None);
    // Whatever a server puts there is sent to nobody. They can be set: there is a host.
    to.set_username("").ok();
    to.set_password(None).ok();
    Ok(to)
}

/// The permission for a host is good for this one too.
fn same_host(one: &Url, other: &Url) -> bool {
    let upgraded = one.scheme() == "http" && other.scheme() == "https";
    let ports = one.port_or_known_default() == other.port_or_known_default()
        || (upgraded && one.port().is_none() && other.port().is_none());
    one.host() == other.host() && ports
}

async fn page(url: Url, mut answer: Response) -> Result<Page, String> {
    let status = answer.status().as_u16();
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("text/plain");
    let mut parts = kind.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_ascii_lowercase())
    });
    let (mut body, mut cut) = (Vec::new(), false);
    while let Some(piece) = answer.chunk().await.map_err(|error| reason(&error))? {
        let room = MOST - body.len();
        body.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
        if piece.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Page { url, status, kind, charset, body, cut })
}

impl Page {
    pub(super) fn is_html(&self) -> bool {
        matches!(self.kind.as_str(), "text/html" | "application/xhtml+xml")
    }

    pub(super) fn is_image(&self) -> bool {
        matches!(self.kind.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp")
    }

    pub(super) fn is_text(&self) -> bool {
        let named = self.kind.starts_with("text/")
            || self.is_html()
            || ["json", "xml", "javascript", "yaml", "toml", "x-sh", "ecmascript"]
                .iter()
                .any(|kind| self.kind.ends_with(kind));
        named && !self.body.iter().take(8192).any(|byte| *byte == 0)
    }

    /// As text. What is in no encoding that is known here is read as UTF-8.
    pub(super) fn text(&self) -> String {
        match self.charset.as_deref() {
            Some("iso-8859-1" | "latin1" | "windows-1252" | "iso-8859-15" | "us-ascii")
                if std::str::from_utf8(&self.body).is_err() =>
            {
                self.body.iter().copied().map(char::from).collect()
            }
            _ => String::from_utf8_lossy(&self.body).into_owned(),
        }
    }
}

/// The innermost reason: the outer ones say that a request failed, which is known.
fn reason(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn hosts_of_this_machine_are_refused_however_they_are_written() {
        for text in [
            "http://localhost/",
            "http://LOCALHOST:8080/",
            "http://a.localhost./",
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest/meta-data",
        ] {
            assert!(check(&url(text), false).unwrap_err().contains("private network"), "{text}");
            assert!(check(&url(text), true).is_ok(), "{text}");
        }
        assert!(check(&url("https://example.org/"), false).is_ok());
    }

    #[test]
    fn names_that_lead_to_private_addresses_lead_nowhere() {
        let found = |texts: &[&str]| {
            let addresses: Vec<SocketAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
            public_only("x.org", addresses.into_iter()).map_err(|error| error.to_string())
        };
        assert_eq!(found(&["10.0.0.1:0", "1.1.1.1:0"]).unwrap(), ["1.1.1.1:0".parse().unwrap()]);
        assert!(found(&["127.0.0.1:0", "[::1]:0"]).unwrap_err().starts_with("x.org is on this machine"));
    }

    #[test]
    fn redirections_are_followed_on_the_same_host_only() {
        let table = [
            ("http://a.org/x", "/y", Ok(("http://a.org/y", true))),
            ("http://a.org/x", "https://a.org/x", Ok(("https://a.org/x", true))),
            ("http://a.org/x", "http://b.org/", Ok(("http://b.org/", false))),
            ("http://a.org/x", "//a.org:81/", Ok(("http://a.org:81/", false))),
            ("http://a.org/x", "http://u:p@a.org/#f", Ok(("http://a.org/", true))),
            ("http://a.org/x", "file:///etc/passwd", Err("of the kind file")),
            ("https://a.org/x", "http://a.org/", Err("from https to http")),
        ];
        for (from, to, expected) in table {
            let headers = HeaderMap::from_iter([(LOCATION, to.parse().unwrap())]);
            let found = location(&url(from), &headers);
            match expected {
                Ok((expected, same)) => {
                    let found = found.unwrap();
                    assert_eq!((found.as_str(), same_host(&url(from), &found)), (expected, same));
                }
                Err(reason) => assert!(found.unwrap_err().contains(reason), "{to}"),
            }
        }
    }
}
