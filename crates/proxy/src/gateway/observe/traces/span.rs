//! Owns one span and its JSON (OTLP 1.x, JSON Protobuf encoding; semantic conventions for MCP). Sends nothing.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolway_secret::Redactor;

use crate::gateway::observe::{CallRecord, Outcome};

/// `SPAN_KIND_SERVER`: the gateway is what the client calls.
const KIND: u8 = 2;
const STATUS_ERROR: u8 = 2;
const MAX_TEXT: usize = 256;

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span(Value);

impl Span {
    /// `None`: it is not among those that are kept.
    pub(super) fn new(
        call: &CallRecord<'_>,
        ended: SystemTime,
        ratio: f64,
        follow_parent: bool,
    ) -> Option<Self> {
        let parent = call.traceparent.and_then(parent);
        let mut random = [0_u8; 24];
        getrandom::fill(&mut random).ok()?;
        let (fresh, span) = random.split_at(16);
        let trace = parent.map_or_else(|| hex(fresh), |parent| parent.trace.to_owned());
        let kept = match parent {
            Some(parent) if follow_parent => parent.sampled,
            _ => is_kept(&trace, ratio),
        };
        if !kept {
            return None;
        }
        let started = ended.checked_sub(call.duration).unwrap_or(ended);
        let target: String = call.target.chars().take(MAX_TEXT).collect();
        let name =
            if target.is_empty() { call.method.to_owned() } else { format!("{} {target}", call.method) };
        let mut value = json!({
            "traceId": trace,
            "spanId": hex(span),
            "name": name,
            "kind": KIND,
            "startTimeUnixNano": nanos(started),
            "endTimeUnixNano": nanos(ended),
            "attributes": attributes(call, &target),
        });
        if let (Some(parent), Some(value)) = (parent, value.as_object_mut()) {
            value.insert("parentSpanId".to_owned(), parent.span.into());
        }
        if let (true, Some(value)) = (call.outcome != Outcome::OK, value.as_object_mut()) {
            value.insert("status".to_owned(), json!({"code": STATUS_ERROR, "message": call.outcome.name()}));
        }
        Some(Self(value))
    }
}

/// What stands before the spans of every request: resource and scope.
pub(super) fn head(service: &str, further: &[(String, String)]) -> String {
    let attributes: Vec<Value> = std::iter::once(text("service.name", service))
        .chain([text("service.version", env!("CARGO_PKG_VERSION"))])
        .chain(further.iter().map(|(name, value)| text(name, value)))
        .collect();
    let resource = json!({ "attributes": attributes });
    let scope = json!({"name": "toolway", "version": env!("CARGO_PKG_VERSION")});
    format!("{{\"resourceSpans\":[{{\"resource\":{resource},\"scopeSpans\":[{{\"scope\":{scope},\"spans\":[")
}

/// The body of one request.
pub(super) fn request(head: &str, spans: &[Span]) -> String {
    let mut out = head.to_owned();
    for (index, span) in spans.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&span.0.to_string());
    }
    out.push_str("]}]}]}");
    Redactor::known().redact_json(&out).into_owned()
}

fn attributes(call: &CallRecord<'_>, target: &str) -> Vec<Value> {
    let mut attributes = vec![
        text("mcp.method.name", call.method),
        text("toolway.server", call.server),
        text("mcp.session.id", &call.session.to_string()),
        number("toolway.request.bytes", call.request_bytes),
        number("toolway.response.bytes", call.response_bytes),
    ];
    match call.method {
        "tools/call" => attributes.push(text("gen_ai.tool.name", target)),
        "prompts/get" => attributes.push(text("gen_ai.prompt.name", target)),
        _ => {}
    }
    if let Some(code) = call.code {
        attributes.push(text("rpc.response.status_code", &code.to_string()));
    }
    if call.outcome != Outcome::OK {
        let code = call.code.map(|code| code.to_string());
        attributes.push(text("error.type", code.as_deref().unwrap_or(call.outcome.name())));
    }
    attributes
}

fn text(name: &str, value: &str) -> Value {
    // What is to be cut is looked through before that, since of a part of a secret nothing is known.
    let value: String = match value.char_indices().nth(MAX_TEXT) {
        Some(_) => Redactor::known().redact(value).chars().take(MAX_TEXT).collect(),
        None => value.to_owned(),
    };
    json!({"key": name, "value": {"stringValue": value}})
}

/// 64 bits are a string in this encoding.
fn number(name: &str, value: u64) -> Value {
    json!({"key": name, "value": {"intValue": value.to_string()}})
}

fn nanos(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos().to_string()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parent<'a> {
    trace: &'a str,
    span: &'a str,
    sampled: bool,
}

/// `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01` (W3C Trace Context, section 3.2).
fn parent(header: &str) -> Option<Parent<'_>> {
    let mut parts = header.trim().split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let fits = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let known = fits(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    if !known || !fits(trace, 32) || !fits(span, 16) || !fits(flags, 2) || zero(trace) || zero(span) {
        return None;
    }
    let flags = u8::from_str_radix(flags, 16).ok()?;
    Some(Parent { trace, span, sampled: flags & 1 == 1 })
}

/// The same verdict for every span of a trace: its last 56 bits against the ratio.
#[expect(clippy::cast_precision_loss, reason = "a share needs no more than 53 bits")]
fn is_kept(trace: &str, ratio: f64) -> bool {
    let tail = trace.get(18..).and_then(|tail| u64::from_str_radix(tail, 16).ok()).unwrap_or(0);
    ratio >= 1.0 || (tail as f64) < ratio * (1_u64 << 56) as f64
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn call() -> CallRecord<'static> {
        CallRecord {
            session: 3,
            client: "c",
            server: "s",
            method: "tools/call",
            target: "get",
            request_bytes: 10,
            response_bytes: 20,
            duration: Duration::from_millis(1500),
            outcome: Outcome::ERROR,
            code: Some(-32602),
            traceparent: Some(PARENT),
        }
    }

    #[test]
    fn a_span_continues_the_clients_trace() {
        let ended = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
        let span = Span::new(&call(), ended, 0.0, true).unwrap();
        let mut request: Value =
            serde_json::from_str(&request(&head("svc", &[]), &[span.clone(), span])).unwrap();
        let spans = &mut request["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!(spans.as_array().unwrap().len(), 2);
        let id = spans[0]["spanId"].take();
        assert_eq!(id.as_str().unwrap().len(), 16);
        assert_eq!(
            spans[0],
            json!({
                "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": null, "parentSpanId": "00f067aa0ba902b7",
                "name": "tools/call get", "kind": 2,
                "startTimeUnixNano": "8500000000", "endTimeUnixNano": "10000000000",
                "attributes": [
                    {"key": "mcp.method.name", "value": {"stringValue": "tools/call"}},
                    {"key": "toolway.server", "value": {"stringValue": "s"}},
                    {"key": "mcp.session.id", "value": {"stringValue": "3"}},
                    {"key": "toolway.request.bytes", "value": {"intValue": "10"}},
                    {"key": "toolway.response.bytes", "value": {"intValue": "20"}},
                    {"key": "gen_ai.tool.name", "value": {"stringValue": "get"}},
                    {"key": "rpc.response.status_code", "value": {"stringValue": "-32602"}},
                    {"key": "error.type", "value": {"stringValue": "-32602"}},
                ],
                "status": {"code": 2, "message": "error"},
            })
        );
        assert_eq!(
            request["resourceSpans"][0]["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "svc"}})
        );
    }

    #[test]
    fn parents_that_are_none_begin_a_new_trace() {
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(parent(bad), None, "{bad}");
        }
        assert!(
            parent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-x")
                .is_some_and(|one| !one.sampled)
        );
    }

    #[test]
    fn only_the_share_that_was_asked_for_is_kept() {
        let now = SystemTime::now();
        let fresh = CallRecord { traceparent: None, ..call() };
        assert!(Span::new(&fresh, now, 1.0, true).is_some());
        assert!(Span::new(&fresh, now, 0.0, true).is_none());
        let kept = (0..400).filter(|_| Span::new(&fresh, now, 0.5, true).is_some()).count();
        assert!((100..300).contains(&kept), "{kept}");
        let unsampled = CallRecord {
            traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"),
            ..call()
        };
        assert!(Span::new(&unsampled, now, 1.0, true).is_none());
        assert!(Span::new(&unsampled, now, 1.0, false).is_some());
    }
}
