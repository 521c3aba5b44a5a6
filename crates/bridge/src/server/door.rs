//! Owns the checks that come before anything of a request is read: who may call at all. Pure; knows no protocol.
//!
//! A web page can make a browser send requests to loopback addresses, and can point a name of its own at them (DNS
//! rebinding): `Host` and `Origin` tell such requests apart. Specification 2025-11-25, "Transports", "Security Warning".

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::StatusCode;
use http::header::HOST;
use http::request::Parts;
use toolway_transport::http_server::{Origin, single};

/// Why a request is turned away before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The connection has come to another address of this machine.
    Address,
    /// `Host` is missing, doubled, or none of ours.
    Host,
    /// The page that calls is not one of this machine.
    Origin,
    /// No run has this path.
    Path,
    /// The run that had this path is over.
    Gone,
}

impl Refused {
    /// The status and the text of the answer.
    pub(super) fn answer(self) -> (StatusCode, &'static str) {
        match self {
            Self::Address => (StatusCode::FORBIDDEN, "this is served on 127.0.0.1 only"),
            Self::Host => (StatusCode::FORBIDDEN, "this Host is not served here"),
            Self::Origin => (StatusCode::FORBIDDEN, "this Origin may not call"),
            Self::Path => (StatusCode::NOT_FOUND, "nothing is served at this path"),
            Self::Gone => (StatusCode::GONE, "this run is over: its tools cannot be called any more"),
        }
    }
}

/// Who may pass.
#[derive(Debug)]
pub(super) struct Door {
    hosts: [String; 2],
}

impl Door {
    pub(super) fn new(port: u16) -> Self {
        Self { hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")] }
    }

    /// `local` is the address that the connection has come to.
    pub(super) fn check(&self, request: &Parts, local: SocketAddr) -> Result<(), Refused> {
        if local.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) {
            return Err(Refused::Address);
        }
        let named = single(&request.headers, &HOST).ok_or(Refused::Host)?;
        // A target with a host of its own counts before the header (RFC 9112, section 3.2.2).
        let in_target = request.uri.authority().map_or(named, http::uri::Authority::as_str);
        if !self.is_ours(named) || !self.is_ours(in_target) {
            return Err(Refused::Host);
        }
        match Origin::of(&request.headers) {
            Origin::None | Origin::Loopback(_) => Ok(()),
            Origin::Foreign(_) => Err(Refused::Origin),
        }
    }

    fn is_ours(&self, host: &str) -> bool {
        self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(local: &str, target: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let mut request = http::Request::post(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        Door::new(4711).check(&parts, local.parse().unwrap())
    }

    #[test]
    fn only_the_two_hosts_with_the_port_pass() {
        for (host, fits) in [
            ("127.0.0.1:4711", true),
            ("localhost:4711", true),
            ("LocalHost:4711", true),
            ("127.0.0.1", false),
            ("localhost", false),
            ("127.0.0.1:80", false),
            ("127.0.0.1:04711", false),
            ("localhost.:4711", false),
            ("127.0.0.2:4711", false),
            ("127.1:4711", false),
            ("2130706433:4711", false),
            ("0.0.0.0:4711", false),
            ("[::1]:4711", false),
            ("[::ffff:127.0.0.1]:4711", false),
            ("evil.example", false),
            ("evil.example:4711", false),
            ("localhost.evil.example:4711", false),
            ("127.0.0.1.evil.example:4711", false),
            ("user@127.0.0.1:4711", false),
            ("127.0.0.1:4711@evil.example", false),
            (" 127.0.0.1:4711,evil.example", false),
            ("", false),
        ] {
            let passes = check("127.0.0.1:4711", "/x", &[("host", host)]) == Ok(());
            assert_eq!(passes, fits, "{host:?}");
        }
        assert_eq!(check("127.0.0.1:4711", "/x", &[]), Err(Refused::Host));
        let twice = [("host", "127.0.0.1:4711"), ("host", "127.0.0.1:4711")];
        assert_eq!(check("127.0.0.1:4711", "/x", &twice), Err(Refused::Host));
        let host = [("host", "127.0.0.1:4711")];
        assert_eq!(check("127.0.0.1:4711", "http://evil.example/x", &host), Err(Refused::Host));
        assert_eq!(check("127.0.0.1:4711", "http://127.0.0.1:4711/x", &host), Ok(()));
        for local in ["10.0.0.5:4711", "127.0.0.2:4711", "[::1]:4711"] {
            assert_eq!(check(local, "/x", &host), Err(Refused::Address), "{local}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_other_text_is_a_host_of_ours(host in "[ -~]{0,40}|(127.0.0.1|localhost)[ -~]{0,8}|[ -~]{0,8}:4711") {
            let ours = ["127.0.0.1:4711", "localhost:4711"].contains(&host.trim().to_ascii_lowercase().as_str());
            let passes = http::HeaderValue::from_str(&host).is_ok()
                && check("127.0.0.1:4711", "/x", &[("host", &host)]) == Ok(());
            proptest::prop_assert!(ours || !passes, "{:?}", host);
        }
    }

    #[test]
    fn only_pages_of_this_machine_pass() {
        for (origin, fits) in [
            ("http://localhost", true),
            ("http://localhost:3000", true),
            ("https://127.0.0.1:4711", true),
            ("http://[::1]:3", true),
            ("HTTP://LOCALHOST:3000", true),
            ("null", false),
            ("", false),
            ("http://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://evil.example#localhost", false),
            ("http://localhost@evil.example", false),
            ("http://evil.example@localhost", false),
            ("http://10.0.0.5", false),
            ("file://", false),
            ("file://localhost", false),
            ("chrome-extension://localhost", false),
            ("http://localhost/path", false),
        ] {
            let headers = [("host", "127.0.0.1:4711"), ("origin", origin)];
            assert_eq!(check("127.0.0.1:4711", "/x", &headers) == Ok(()), fits, "{origin:?}");
        }
        let twice =
            [("host", "localhost:4711"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(check("127.0.0.1:4711", "/x", &twice), Err(Refused::Origin));
    }
}
