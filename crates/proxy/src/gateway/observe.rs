//! Owns what the gateway tells about itself: numbers for Prometheus, an audit log of calls, traces. Payloads are in
//! none of them. Nothing here holds a call up: what cannot be written in time is dropped and counted.

mod audit;
mod listener;
mod metrics;
mod traces;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use audit::AuditConfig;
pub use listener::MetricsConfig;
pub use traces::TracesConfig;

use audit::Audit;
use metrics::Metrics;
use traces::Traces;

/// What is told, and where. The default: nothing.
#[derive(Debug, Clone, Default)]
pub struct ObserveConfig {
    /// Numbers over HTTP.
    pub metrics: Option<MetricsConfig>,
    /// A file of calls.
    pub audit: Option<AuditConfig>,
    /// Spans to a collector.
    pub traces: Option<TracesConfig>,
}

/// Why something that was asked for cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct ObserveError {
    what: String,
    reason: String,
}

impl ObserveError {
    fn new(what: impl Into<String>, reason: &dyn std::fmt::Display) -> Self {
        Self { what: what.into(), reason: reason.to_string() }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Outcome(&'static str);

impl Outcome {
    /// It was answered.
    pub const OK: Self = Self("ok");
    /// It was answered, and the tool said `isError`.
    pub const TOOL_ERROR: Self = Self("tool_error");
    /// It was answered with a JSON-RPC error.
    pub const ERROR: Self = Self("error");
    /// The client gave it up.
    pub const CANCELLED: Self = Self("cancelled");
    /// No answer came in time.
    pub const TIMEOUT: Self = Self("timeout");
    /// The server was lost, or could not be reached.
    pub const LOST: Self = Self("lost");
    /// Every one.
    const ALL: [Self; 6] =
        [Self::OK, Self::TOOL_ERROR, Self::ERROR, Self::CANCELLED, Self::TIMEOUT, Self::LOST];

    /// The word used in every output.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// One request of a client that has ended.
#[derive(Debug, Clone, Copy)]
pub struct CallRecord<'a> {
    /// Which session.
    pub session: u64,
    /// Who: name and version that the client gave, or whatever its front knows of it.
    pub client: &'a str,
    /// The server that it went to.
    pub server: &'a str,
    /// `tools/call`, `prompts/get`, `resources/read`, ...
    pub method: &'a str,
    /// The server's own name of the tool or prompt; empty where there is none.
    pub target: &'a str,
    /// Size of the request in bytes.
    pub request_bytes: u64,
    /// Size of the answer in bytes, as the server gave it.
    pub response_bytes: u64,
    /// From its arrival to its end.
    pub duration: Duration,
    /// How it ended.
    pub outcome: Outcome,
    /// The code of a JSON-RPC error.
    pub code: Option<i64>,
    /// `params._meta.traceparent` of the request (W3C Trace Context).
    pub traceparent: Option<&'a str>,
}

/// Where the hub tells what happens. Cheap to clone; the default one hears nothing.
#[derive(Debug, Clone, Default)]
pub struct Observer(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    metrics: Option<Arc<Metrics>>,
    listening: Option<SocketAddr>,
    audit: Option<Audit>,
    traces: Option<Traces>,
}

impl Observer {
    /// Opens what is asked for; its tasks end with `end`.
    pub fn start(
        config: &ObserveConfig,
        tasks: &TaskTracker,
        end: &CancellationToken,
    ) -> Result<Self, ObserveError> {
        let audit = config.audit.as_ref().map(Audit::start).transpose()?;
        let traces = config.traces.as_ref().map(|traces| Traces::start(traces, tasks, end)).transpose()?;
        let metrics = config.metrics.as_ref().map(|_| Arc::new(Metrics::default()));
        if let Some(metrics) = &metrics {
            metrics.counts_also("toolway_audit_lines_dropped_total", audit.as_ref().map(Audit::dropped));
            metrics.counts_also("toolway_spans_dropped_total", traces.as_ref().map(Traces::dropped));
        }
        let mut listening = None;
        if let (Some(config), Some(metrics)) = (&config.metrics, &metrics) {
            listening = Some(listener::start(config, Arc::clone(metrics), tasks, end)?);
        }
        if metrics.is_none() && audit.is_none() && traces.is_none() {
            return Ok(Self(None));
        }
        Ok(Self(Some(Arc::new(Inner { metrics, listening, audit, traces }))))
    }

    /// Somebody listens: only then is it worth making a [`CallRecord`].
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Where metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.0.as_ref()?.listening
    }

    /// A request has ended.
    pub fn call_finished(&self, call: &CallRecord<'_>) {
        let Some(inner) = &self.0 else { return };
        if let Some(metrics) = &inner.metrics {
            metrics.call(call);
        }
        if inner.audit.is_none() && inner.traces.is_none() {
            return;
        }
        let now = SystemTime::now();
        if let Some(audit) = &inner.audit {
            audit.call(call, now);
        }
        if let Some(traces) = &inner.traces {
            traces.call(call, now);
        }
    }

    /// The state of every configured server, by [`super::ServerState::name`].
    pub fn server_states(&self, states: &[(&str, &'static str)]) {
        if let Some(metrics) = self.metrics() {
            metrics.server_states(states);
        }
    }

    /// Traces are sent: a client's `traceparent` is of use.
    pub fn follows_traces(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.traces.is_some())
    }

    /// A client has come.
    pub fn session_opened(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.session(true);
        }
    }

    /// A client has gone.
    pub fn session_closed(&self) {
        if let Some(metrics) = self.metrics() {
            metrics.session(false);
        }
    }

    /// Waits until what was told is written, two seconds at most. The tasks of metrics and traces end with their
    /// token.
    pub async fn close(&self) {
        if let Some(audit) = self.0.as_ref().and_then(|inner| inner.audit.as_ref()) {
            audit.close().await;
        }
    }

    #[cfg(test)]
    pub(super) fn metrics_text(&self) -> String {
        self.metrics().map(Metrics::text).unwrap_or_default()
    }

    fn metrics(&self) -> Option<&Metrics> {
        self.0.as_ref()?.metrics.as_deref()
    }
}

#[cfg(test)]
mod tests;
