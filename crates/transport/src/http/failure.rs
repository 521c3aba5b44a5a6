//! The errors that a client reads when HTTP goes wrong: what happened, where, and what to do. It must never show
//! a secret or a query string.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};
use toolway_secret::{Redactor, Secret};
use toolway_wire::UPSTREAM_ERROR;

use super::challenge::{challenges, parameter, wants_scope};
use super::client::{CallError, seconds};
use super::config::HttpConfig;
use super::conn::Answer;
use super::target::Target;
use crate::authorizer::{SignInError, Signer};
use crate::limits::SNIPPET_CHARS;
use crate::transport::Failure;

/// What must not be shown, and what the user has set already.
#[derive(Debug)]
pub(crate) struct Texts {
    /// Known to every redactor as long as they are held here.
    pub(crate) _known: Vec<Secret>,
    pub(crate) has_authorization: bool,
    pub(crate) timeout: std::time::Duration,
    pub(crate) sse_read_timeout: std::time::Duration,
    pub(crate) advice: bool,
    /// Who signs: what it signed with is a secret, and it knows how to sign in.
    pub(crate) signer: Option<Signer>,
}

/// A failure with the code for upstream errors.
pub(crate) fn upstream(message: impl Into<String>) -> Failure {
    Failure { code: UPSTREAM_ERROR, message: message.into(), data: None }
}

impl Texts {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            _known: config.secret_texts(),
            has_authorization: config.has_authorization(),
            timeout: config.timeout,
            sse_read_timeout: config.sse_read_timeout,
            advice: config.advice,
            signer: config.signer(),
        }
    }

    /// `text` on one line, without secrets and control characters, and not longer than a snippet.
    pub(crate) fn safe(&self, text: &str) -> String {
        // What the signer signs with is known to it alone where it is no secret of a store.
        let mut text = Redactor::known().redact(text).into_owned();
        if let Some(signer) = &self.signer {
            signer.redact(&mut text);
        }
        let mut out = String::new();
        let mut count = 0;
        for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty())
        {
            if !out.is_empty() {
                out.push(' ');
            }
            for c in word.chars() {
                if count == SNIPPET_CHARS {
                    out.push('\u{2026}');
                    return out;
                }
                out.push(c);
                count += 1;
            }
        }
        out
    }

    /// How to wait longer, for those who have a command line.
    fn raise(&self, option: &str) -> String {
        if self.advice { format!(" (raise {option} to wait longer)") } else { String::new() }
    }

    /// There was no answer at all.
    pub(crate) fn call(&self, error: &CallError, target: &Target) -> Failure {
        match error {
            CallError::Connect { origin, reason } => {
                upstream(format!("cannot connect to {origin}: {reason}"))
            }
            CallError::Lost { reason } => upstream(format!(
                "{reason} before {target} answered; the request may have run and is not sent again"
            )),
            CallError::Silent => upstream(format!(
                "no answer from {target} within {}{}; the request may still run",
                seconds(self.timeout),
                self.raise("--timeout")
            )),
            CallError::Redirect { status, reason } => upstream(format!("HTTP {status}: {reason}")),
            CallError::SignIn(error) => {
                let (mut message, mut data) = (format!("cannot sign in to {}", target.origin), Map::new());
                self.sign_in(Some(error), &mut message, &mut data);
                Failure { code: UPSTREAM_ERROR, message, data: Some(Value::Object(data).to_string()) }
            }
        }
    }

    /// What an authorizer says of a failure: why nobody could sign in, whether a person has to, and how.
    fn sign_in(&self, error: Option<&SignInError>, message: &mut String, data: &mut Map<String, Value>) {
        let Some(signer) = &self.signer else { return };
        if let Some(error) = error {
            message.push_str(": ");
            message.push_str(&self.safe(&error.message));
        }
        let needs_login = error.is_none_or(|error| error.needs_login);
        data.insert("needs_auth".to_owned(), needs_login.into());
        let hint = error.and_then(|error| error.hint.clone());
        let hint = hint.or_else(|| needs_login.then(|| signer.hint()));
        if let Some(hint) = hint {
            if self.advice {
                message.push_str(". To sign in, ");
                message.push_str(&hint);
            }
            data.insert("hint".to_owned(), hint.into());
        }
    }

    /// An answer whose status says that the request was not served.
    pub(crate) fn refusal(&self, answer: &Answer, body: &[u8], at: &Target) -> Failure {
        self.refused(answer.status, &answer.headers, body, at, answer.sign_in.as_ref())
    }

    /// The status says that the request was not served.
    pub(crate) fn status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        at: &Target,
    ) -> Failure {
        self.refused(status, headers, body, at, None)
    }

    fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        at: &Target,
        sign_in: Option<&SignInError>,
    ) -> Failure {
        let mut data = Map::new();
        data.insert("status".to_owned(), status.as_u16().into());
        let mut message = format!("{} from {at}", status_text(status));
        if is_html(headers, body) {
            message.push_str(": answered HTML, not MCP");
        } else if let Some(reason) = self.body_reason(body, &mut data) {
            message.push_str(": ");
            message.push_str(&reason);
        }
        let challenges = challenges(headers);
        if let Some(scope) = parameter(&challenges, "scope") {
            data.insert("scope".to_owned(), self.safe(&scope).into());
        }
        if !challenges.is_empty() {
            let shown: Vec<String> = challenges.iter().map(|challenge| self.safe(challenge)).collect();
            let shown = shown.join(", ");
            message.push_str(" (WWW-Authenticate: ");
            message.push_str(&shown);
            message.push(')');
            data.insert("www_authenticate".to_owned(), shown.into());
        }
        if self.signer.is_some() && (status == StatusCode::UNAUTHORIZED || wants_scope(status, &challenges)) {
            self.sign_in(sign_in, &mut message, &mut data);
        } else if self.advice && self.signer.is_none() && matches!(status.as_u16(), 401 | 403) {
            message.push_str(if self.has_authorization {
                ". The configured Authorization header was not accepted: pass a valid token with --header Authorization=\"Bearer TOKEN\""
            } else {
                ". To log in, pass --oauth, or a token with --header Authorization=\"Bearer TOKEN\""
            });
        }
        Failure { code: UPSTREAM_ERROR, message, data: Some(Value::Object(data).to_string()) }
    }

    /// What the body of an error answer says: OAuth's and JSON-RPC's members, or the beginning of the text.
    fn body_reason(&self, body: &[u8], data: &mut Map<String, Value>) -> Option<String> {
        let text = String::from_utf8_lossy(body);
        let Ok(Value::Object(object)) = serde_json::from_slice::<Value>(body) else {
            let snippet = self.safe(&text);
            return (!snippet.is_empty()).then_some(snippet);
        };
        let mut parts = Vec::new();
        let error = object.get("error");
        let inner = error.and_then(|error| error.get("message"));
        for (name, value) in [
            ("error", inner.or(error)),
            ("error_description", object.get("error_description")),
            ("message", object.get("message")),
            ("detail", object.get("detail")),
        ] {
            if let Some(text) = value.and_then(Value::as_str) {
                let text = self.safe(text);
                data.insert(name.to_owned(), text.clone().into());
                parts.push(text);
            }
        }
        if parts.is_empty() { Some(self.safe(&text)) } else { Some(parts.join(": ")) }
    }

    /// A good status, and then something that is no answer.
    pub(crate) fn not_mcp(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        at: &Target,
    ) -> Failure {
        let status = status_text(status);
        if is_html(headers, body) {
            return upstream(format!("answered HTML, not MCP ({status} from {at})"));
        }
        let kind = headers.get(CONTENT_TYPE).map_or_else(
            || "no content type".to_owned(),
            |value| self.safe(&String::from_utf8_lossy(value.as_bytes())),
        );
        let snippet = self.safe(&String::from_utf8_lossy(body));
        if snippet.is_empty() {
            return upstream(format!("answered nothing ({status} with an empty body from {at})"));
        }
        upstream(format!("answered what is not MCP ({status} from {at}, {kind}): {snippet}"))
    }

    /// A JSON body stopped in its middle.
    pub(crate) fn cut(&self, bytes: u64, reason: &str, at: &Target) -> Failure {
        let Self { .. } = self;
        upstream(format!("the answer from {at} was cut short after {bytes} bytes: {reason}"))
    }

    /// Nothing came in the middle of a JSON body.
    pub(crate) fn body_silence(&self, at: &Target) -> Failure {
        upstream(format!(
            "{at} sent nothing for {} in the middle of its answer{}",
            seconds(self.timeout),
            self.raise("--timeout")
        ))
    }

    /// Nothing came on the event stream.
    pub(crate) fn stream_silence(&self, at: &Target) -> Failure {
        upstream(format!(
            "nothing came on the event stream from {at} for {}{}",
            seconds(self.sse_read_timeout),
            self.raise("--sse-read-timeout")
        ))
    }

    /// The event stream ended first.
    pub(crate) fn stream_lost(&self, reason: &str, at: &Target) -> Failure {
        let Self { .. } = self;
        upstream(format!(
            "the event stream from {at} ended before the answer: {reason}; the request may have run"
        ))
    }
}

/// `HTTP 404 Not Found`
pub(crate) fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
        None => format!("HTTP {}", status.as_u16()),
    }
}

/// The body is a web page, whatever the content type says.
pub(crate) fn is_html(headers: &HeaderMap, body: &[u8]) -> bool {
    let declared = media_type(headers).is_some_and(|kind| {
        kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
    });
    let head: Vec<u8> = body.trim_ascii_start().iter().take(14).map(u8::to_ascii_lowercase).collect();
    declared || head.starts_with(b"<!doctype html") || head.starts_with(b"<html")
}

/// The content type without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn texts(secrets: &[&str]) -> Texts {
        Texts {
            _known: secrets.iter().map(|text| Secret::in_use(*text)).collect(),
            has_authorization: false,
            timeout: Duration::from_mins(2),
            sse_read_timeout: Duration::from_millis(1500),
            advice: true,
            signer: None,
        }
    }

    fn target() -> Target {
        Target::new("https://h.example/mcp?key=hidden".parse().unwrap()).unwrap()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair =
            |(name, value): &(&'static str, &'static str)| (name.parse().unwrap(), value.parse().unwrap());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_refusal_names_status_reason_challenge_and_the_way_to_log_in() {
        let body = br#"{"error":"insufficient_scope","error_description":"need repo"}"#;
        let headers = headers(&[("www-authenticate", "Bearer scope=\"repo\"")]);
        let failure = texts(&[]).status(StatusCode::FORBIDDEN, &headers, body, &target());
        assert_eq!(
            failure.message,
            "HTTP 403 Forbidden from https://h.example/mcp: insufficient_scope: need repo \
             (WWW-Authenticate: Bearer scope=\"repo\"). To log in, pass --oauth, or a token with --header Authorization=\"Bearer TOKEN\""
        );
        let data: Value = serde_json::from_str(failure.data.as_deref().unwrap()).unwrap();
        assert_eq!((&data["status"], &data["error"]), (&403.into(), &"insufficient_scope".into()));
    }

    #[test]
    fn secrets_and_control_characters_are_taken_out_of_what_is_shown() {
        let texts = texts(&["Bearer tok-12345", "tok-12345"]);
        assert_eq!(texts.safe("bad\x1b[31m token\n tok-12345!"), "bad [31m token [redacted]!");
        let long = texts.safe(&"x".repeat(10_000));
        assert_eq!(long.chars().count(), SNIPPET_CHARS + 1);
    }

    #[test]
    fn a_web_page_is_named_as_such() {
        for (kind, body) in
            [("text/html; charset=utf-8", "hi"), ("application/json", " <!DOCTYPE html><p>"), ("", "<HTML>")]
        {
            let headers = headers(&[("content-type", kind)]);
            let failure = texts(&[]).not_mcp(StatusCode::OK, &headers, body.as_bytes(), &target());
            assert_eq!(failure.message, "answered HTML, not MCP (HTTP 200 OK from https://h.example/mcp)");
        }
    }

    #[test]
    fn time_limits_name_the_option_that_raises_them() {
        assert!(texts(&[]).call(&CallError::Silent, &target()).message.contains("120 s (raise --timeout"));
        assert!(texts(&[]).stream_silence(&target()).message.contains("1.5 s (raise --sse-read-timeout"));
    }
}
