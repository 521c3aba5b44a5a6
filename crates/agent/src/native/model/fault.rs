//! Owns what became of a request that failed: an error for the caller, and whether sending it again may help. No I/O.

use std::error::Error as _;
use std::time::Duration;

use genai::webc::StreamTimeout;
use reqwest::header::HeaderMap;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use toolway_secret::Redactor;

use super::service::Target;
use super::wire::ReadFault;
use crate::error::AgentError;

/// The most of a service's message that is told.
const TOLD: usize = 600;

/// A failed request.
#[derive(Debug)]
pub(super) struct Failure {
    /// What the caller is told in the end.
    pub(super) error: AgentError,
    /// Sending it again may help, if nothing of an answer came.
    pub(super) passing: bool,
    /// How long the service wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    fn lasting(error: AgentError) -> Self {
        Self { error, passing: false, retry_after: None }
    }

    fn passing(error: AgentError) -> Self {
        Self { error, passing: true, retry_after: None }
    }
}

/// Of what the library said.
pub(super) fn of_library(target: &Target, error: &genai::Error, begun: bool) -> Failure {
    if let (Some(status), genai::Error::HttpError { body, headers, .. }) = (error.status(), error) {
        return of_status(target, status.as_u16(), body, headers);
    }
    match error {
        genai::Error::WebStream { error, .. } => match error.downcast_ref::<genai::Error>() {
            Some(inner) => of_library(target, inner, begun),
            None => of_transport(target, error.as_ref(), begun),
        },
        genai::Error::ChatResponse { body, .. } => {
            let message = cleaned(target, &message_of(body));
            of_read(target, ReadFault::Service { message, passing: false })
        }
        genai::Error::StreamParse { serde_error, .. } => {
            of_read(target, ReadFault::Malformed(serde_error.to_string()))
        }
        other => {
            let message = format!("{}: {}", name(target), cleaned(target, &other.to_string()));
            Failure::lasting(AgentError::Model { message })
        }
    }
}

/// Of a frame that ends the reading.
pub(super) fn of_read(target: &Target, fault: ReadFault) -> Failure {
    match fault {
        ReadFault::Malformed(reason) => {
            let message =
                format!("{} answered what makes no sense: {}", name(target), cleaned(target, &reason));
            Failure::lasting(AgentError::Model { message })
        }
        ReadFault::Service { message, passing } => {
            let message = format!("{} failed in its answer: {}", name(target), cleaned(target, &message));
            if passing {
                Failure::passing(AgentError::Network { message })
            } else {
                Failure::lasting(AgentError::Model { message })
            }
        }
    }
}

/// Of a stream that ended before its answer did.
pub(super) fn of_cut(target: &Target) -> Failure {
    let message = format!("the stream of {} was cut: it ended before the answer did", name(target));
    Failure::passing(AgentError::Network { message })
}

/// Of a stream that brings more than an answer can be.
pub(super) fn of_flood(target: &Target, most: usize) -> Failure {
    let message = format!("{} sent more than {most} bytes for one answer", name(target));
    Failure::lasting(AgentError::Model { message })
}

/// Of a stream whose event grows and grows.
pub(super) fn of_endless(target: &Target) -> Failure {
    let message = format!("{} sends one event of its answer without an end", name(target));
    Failure::lasting(AgentError::Model { message })
}

/// Of a stream whose event comes in drops.
pub(super) fn of_late(target: &Target) -> Failure {
    let message = format!("{} did not send a whole event of its answer in time", name(target));
    Failure::passing(AgentError::Network { message })
}

fn of_status(target: &Target, status: u16, body: &str, headers: &HeaderMap) -> Failure {
    let told = cleaned(target, &body_message(body));
    let whom = name(target);
    let retry_after = retry_after(headers);
    let error = match status {
        401 | 403 => {
            let hint = match (target.key.is_some(), target.service.keys) {
                (true, _) => "check the key".to_owned(),
                (false, []) => "give apiKey".to_owned(),
                (false, keys) => format!("there is no key: set {} or give apiKey", keys.join(" or ")),
            };
            AgentError::Authentication { message: format!("{whom} refused ({status}): {told}; {hint}") }
        }
        429 if body.contains("insufficient_quota") => {
            AgentError::Model { message: format!("{whom} refused ({status}): {told}") }
        }
        429 => {
            let message = format!("{whom} gets too many requests ({status}): {told}");
            return Failure {
                error: AgentError::RateLimit { message, retry_after },
                passing: true,
                retry_after,
            };
        }
        408 | 409 | 425 | 500.. => {
            let lasting = matches!(status, 501 | 505);
            let message = format!("{whom} failed ({status}): {told}");
            let error = if lasting { AgentError::Model { message } } else { AgentError::Network { message } };
            return Failure { error, passing: !lasting, retry_after };
        }
        _ => AgentError::Model { message: format!("{whom} refused the request ({status}): {told}") },
    };
    Failure::lasting(error)
}

fn of_transport(
    target: &Target,
    error: &(dyn std::error::Error + Send + Sync + 'static),
    begun: bool,
) -> Failure {
    let whom = name(target);
    let message = match error.downcast_ref::<StreamTimeout>() {
        Some(StreamTimeout::Headers) => format!("{whom} did not answer in time"),
        Some(StreamTimeout::Read) => format!("{whom} fell silent in the middle of its answer"),
        None if begun => format!("the stream of {whom} was cut: {}", innermost(error)),
        None => {
            let port = target.base.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = target.base.host_str().unwrap_or_default();
            format!("{whom} cannot be reached at {host}{port}: {}", innermost(error))
        }
    };
    Failure::passing(AgentError::Network { message })
}

/// The cause of an error without what is around it, which may hold an address.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(error) if error.source().is_none() => "the request failed".to_owned(),
        _ => cause.to_string(),
    }
}

fn name(target: &Target) -> String {
    format!("{} of {}", target.model, target.service.name)
}

fn body_message(body: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => message_of(&value),
        Err(_) if body.trim().is_empty() => "it gave no reason".to_owned(),
        Err(_) => body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned(),
    }
}

fn message_of(value: &Value) -> String {
    let first = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let places = ["/error/message", "/error", "/message", "/detail"];
    let found = places.iter().find_map(|place| first.pointer(place)?.as_str());
    found.map_or_else(|| first.to_string(), str::to_owned)
}

/// A service's message for people: without the key, and not endless.
fn cleaned(target: &Target, text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(key) = &target.key {
        text = text.replace(key.expose(), "[redacted]");
    }
    let text = Redactor::known().redact(&text);
    let mut short: String =
        text.chars().take(TOLD).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(TOLD).is_some() {
        short.push_str("...");
    }
    short
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = OffsetDateTime::parse(&text.replace("GMT", "+0000"), &Rfc2822).ok()?;
    Some(Duration::try_from(date - OffsetDateTime::now_utc()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        retry_after(&headers)
    }

    #[test]
    fn a_rest_is_told_in_seconds_milliseconds_or_as_a_date() {
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after", " 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "40"), Some(Duration::from_millis(40)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let later = wait("retry-after", "Mon, 01 Jan 2120 00:00:00 GMT").unwrap();
        assert!(later > Duration::from_hours(24 * 365), "{later:?}");
        for odd in ["soon", "-1", "1e99", "NaN", ""] {
            assert_eq!(wait("retry-after", odd), None, "{odd}");
        }
    }
}
