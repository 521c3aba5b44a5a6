//! Reads the parameters of `WWW-Authenticate`, whatever scheme they belong to. It must not decide anything.
//!
//! RFC 9110, section 11.6.1; the parameters are those of RFC 6750, section 3.

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, StatusCode};

/// The values of all `WWW-Authenticate` headers.
pub(crate) fn challenges(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// The first value of the parameter `name`, in any of the challenges.
pub(crate) fn parameter(challenges: &[String], name: &str) -> Option<String> {
    challenges.iter().find_map(|challenge| {
        Parameters { rest: challenge.as_str() }
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    })
}

/// A request with more rights would be served (RFC 6750, section 3.1).
pub(crate) fn wants_scope(status: StatusCode, challenges: &[String]) -> bool {
    status == StatusCode::FORBIDDEN
        && parameter(challenges, "error").is_some_and(|error| error == "insufficient_scope")
}

/// The parameters of one header value, from left to right. What is none, such as a scheme, is passed over.
struct Parameters<'a> {
    rest: &'a str,
}

impl Iterator for Parameters<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| !is_token(c));
            let (name, rest) = split(self.rest, is_token);
            if name.is_empty() {
                return None;
            }
            self.rest = rest;
            // A scheme is followed by a space, a parameter's name by an equals sign, with or without spaces.
            let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else { continue };
            if let Some(quoted) = value.strip_prefix('"') {
                let (text, rest) = unquote(quoted);
                self.rest = rest;
                return Some((name.to_owned(), text));
            }
            let (text, rest) = split(value, is_token);
            self.rest = rest;
            if !text.is_empty() {
                return Some((name.to_owned(), text.to_owned()));
            }
        }
    }
}

/// What of `text` is `wanted`, and the rest.
fn split(text: &str, wanted: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !wanted(c)).unwrap_or(text.len()))
}

/// The text up to the closing quote, without its escapes, and what follows.
fn unquote(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    (out, chars.as_str())
}

/// A character of a token (RFC 9110, section 5.6.2).
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::parameter;

    fn of(challenge: &str, name: &str) -> Option<String> {
        parameter(&[challenge.to_owned()], name)
    }

    #[test]
    fn parameters_are_found_whatever_the_spelling() {
        for challenge in [
            r#"Bearer error="insufficient_scope", scope="a b""#,
            r#"Bearer realm="x, error=\"none\"",ERROR = insufficient_scope ,scope= "a b""#,
            r#"Basic realm="x", Bearer scope="a b" error="insufficient_scope""#,
            r#"Negotiate abc==, Bearer error=insufficient_scope, scope="a \b""#,
        ] {
            assert_eq!(of(challenge, "error").as_deref(), Some("insufficient_scope"), "{challenge}");
            assert_eq!(of(challenge, "scope").as_deref(), Some("a b"), "{challenge}");
        }
    }

    #[test]
    fn what_is_no_parameter_is_none() {
        for challenge in ["", "Bearer", "error", "Bearer error=", "\u{e9}=x", "Bearer realm=\"error=\\", "=x"]
        {
            assert_eq!(of(challenge, "error"), None, "{challenge}");
        }
        assert_eq!(of("Bearer error=\"cut", "error").as_deref(), Some("cut"));
    }
}
