//! Owns the reading of headers that decide before a body is looked at, and the headers that an event stream needs. Pure;
//! it decides nothing by itself.

use std::net::IpAddr;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// Makes the headers of an answer those of an event stream, which nobody on the way may hold back or keep.
pub fn set_event_stream(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
}

/// Which answers a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepts {
    /// `application/json`.
    pub json: bool,
    /// `text/event-stream`.
    pub events: bool,
}

impl Accepts {
    /// `None`: neither of ours. A client that says nothing reads both.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        if !headers.contains_key(ACCEPT) {
            return Some(Self { json: true, events: true });
        }
        let mut accepts = Self { json: false, events: false };
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let range = range.split(';').next().unwrap_or_default().trim();
            let is_any_of = |kinds: [&str; 3]| kinds.iter().any(|kind| range.eq_ignore_ascii_case(kind));
            accepts.json |= is_any_of(["application/json", "application/*", "*/*"]);
            accepts.events |= is_any_of(["text/event-stream", "text/*", "*/*"]);
        }
        (accepts.json || accepts.events).then_some(accepts)
    }
}

/// `Content-Type` stands once and says JSON, with any parameters.
pub fn is_json(headers: &HeaderMap) -> bool {
    let value = single(headers, &CONTENT_TYPE).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// What `Content-Length` says, where it can be read.
pub fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
}

/// Which web page calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// None: programs send no `Origin`.
    None,
    /// A page that this machine itself serves over its loopback address.
    Loopback(String),
    /// Another one, `null`, or what cannot be read.
    Foreign(String),
}

impl Origin {
    /// The text is in lower case.
    pub fn of(headers: &HeaderMap) -> Self {
        if !headers.contains_key(ORIGIN) {
            return Self::None;
        }
        let Some(origin) = single(headers, &ORIGIN) else { return Self::Foreign(String::new()) };
        let origin = origin.to_ascii_lowercase();
        let Ok(uri) = origin.parse::<Uri>() else { return Self::Foreign(origin) };
        let web = matches!(uri.scheme_str(), Some("http" | "https"))
            && matches!(uri.path(), "" | "/")
            && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        let loopback = uri
            .host()
            .is_some_and(|host| host == "localhost" || address(host).is_some_and(|ip| ip.is_loopback()));
        if web && loopback { Self::Loopback(origin) } else { Self::Foreign(origin) }
    }
}

/// The text of a header that stands once.
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

/// The address that a host is, brackets of IPv6 taken off.
pub fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    inner.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(values: &[&str]) -> Option<(bool, bool)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        Accepts::of(&headers).map(|accepts| (accepts.json, accepts.events))
    }

    #[test]
    fn what_a_client_reads_is_taken_from_its_words() {
        assert_eq!(accepts(&[]), Some((true, true)));
        assert_eq!(accepts(&["application/json, text/event-stream"]), Some((true, true)));
        assert_eq!(accepts(&["application/json", "Text/Event-Stream;q=0.9"]), Some((true, true)));
        assert_eq!(accepts(&["*/*"]), Some((true, true)));
        assert_eq!(accepts(&["application/json"]), Some((true, false)));
        assert_eq!(accepts(&["text/event-stream"]), Some((false, true)));
        assert_eq!(accepts(&["text/html"]), None);
    }

    #[test]
    fn only_json_is_json() {
        for (value, fits) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data", false),
            ("application/jsonp", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), fits, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
        let mut twice = HeaderMap::new();
        for value in ["application/json", "text/plain"] {
            twice.append(CONTENT_TYPE, value.parse().unwrap());
        }
        assert!(!is_json(&twice));
    }
}
