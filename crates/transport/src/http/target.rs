//! Where a request goes: origin, path, and how both are shown in messages. It must not know what is sent there.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use url::{Host, Url};

/// Scheme, host and port (RFC 6454, section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) tls: bool,
    pub(crate) host: Host<String>,
    pub(crate) port: u16,
}

/// A URL, taken apart once.
pub(crate) struct Target {
    pub(crate) url: Url,
    pub(crate) origin: Arc<Origin>,
    /// Path and query, as they stand in the request line.
    pub(crate) uri: Uri,
    /// Value of `Host`.
    pub(crate) host: HeaderValue,
    /// It is shown nowhere: whoever knows it may call.
    pub(crate) secret: bool,
}

impl Target {
    /// Refuses what is not http or https, and URLs with a user or a password.
    pub(crate) fn new(mut url: Url) -> Result<Self, String> {
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(format!("its scheme is {other}, not http or https")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it holds a user or a password; pass credentials as a header instead".to_owned());
        }
        url.set_fragment(None);
        let host = url.host().ok_or("it has no host")?.to_owned();
        let port = url.port_or_known_default().ok_or("it has no port")?;
        let mut line = url.path().to_owned();
        if let Some(query) = url.query() {
            line.push('?');
            line.push_str(query);
        }
        let uri = Uri::try_from(line).map_err(|_| "its path or query cannot be sent")?;
        let name = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        let host_value = HeaderValue::try_from(name).map_err(|_| "its host cannot be sent")?;
        Ok(Self { url, origin: Arc::new(Origin { tls, host, port }), uri, host: host_value, secret: false })
    }

    /// The target that `location` names, seen from this one.
    pub(crate) fn join(&self, location: &str) -> Result<Self, String> {
        let url = self.url.join(location).map_err(|error| error.to_string())?;
        Ok(Self { secret: self.secret, ..Self::new(url)? })
    }

    pub(crate) fn same_origin(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.origin, &other.origin) || self.origin == other.origin
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl fmt::Display for Target {
    /// Without the query, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret {
            return f.write_str("(an address that is a secret)");
        }
        write!(f, "{}{}", self.origin, self.url.path())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.tls { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == default { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::Target;
    use url::Url;

    fn target(url: &str) -> Result<Target, String> {
        Target::new(Url::parse(url).map_err(|error| error.to_string())?)
    }

    #[test]
    fn a_target_is_shown_without_its_query() {
        for (url, shown, host) in [
            ("http://h:8080/mcp?key=1#f", "http://h:8080/mcp", "h:8080"),
            ("https://H.example:443/a%20b", "https://h.example/a%20b", "h.example"),
            ("http://[::1]:80/", "http://[::1]/", "[::1]"),
            ("http://b\u{fc}cher.example", "http://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ] {
            let target = target(url).unwrap();
            assert_eq!((target.to_string().as_str(), target.host.to_str().unwrap()), (shown, host), "{url}");
        }
    }

    #[test]
    fn a_secret_address_is_not_shown_nor_where_it_leads() {
        let secret = Target { secret: true, ..target("http://127.0.0.1:8080/token/mcp").unwrap() };
        for shown in [secret.to_string(), format!("{secret:?}"), secret.join("../x").unwrap().to_string()] {
            assert!(!shown.contains("8080") && !shown.contains("token"), "{shown}");
        }
    }

    #[test]
    fn credentials_and_foreign_schemes_are_refused_without_showing_them() {
        for url in ["http://user:hunter2@h/", "http://user@h/", "ftp://h/", "file:///x", "data:,x"] {
            let refusal = target(url).unwrap_err();
            assert!(!refusal.contains("hunter2"), "{refusal}");
        }
    }

    #[test]
    fn origins_differ_in_scheme_host_or_port() {
        let base = target("https://h.example/a").unwrap();
        assert!(base.same_origin(&target("https://H.example:443/b?x").unwrap()));
        for other in ["http://h.example/a", "https://h.example:8443/a", "https://sub.h.example/a"] {
            assert!(!base.same_origin(&target(other).unwrap()), "{other}");
        }
        assert_eq!(base.join("../c?d").unwrap().to_string(), "https://h.example/c");
    }
}
