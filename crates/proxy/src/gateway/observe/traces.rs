//! Owns traces: one span for each call, sent in batches to a collector over OTLP/HTTP with JSON. A collector that does
//! not answer costs the spans and nothing else.

mod settings;
mod span;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_transport::{HttpConfig, JsonPost};

use super::{CallRecord, ObserveError};
use span::Span;

pub use settings::TracesConfig;

/// Spans that wait.
const QUEUE: usize = 2048;
/// Spans of one request.
const BATCH: usize = 512;
/// How long a span waits for others.
const DELAY: Duration = Duration::from_secs(5);
/// What the end waits for.
const CLOSING: Duration = Duration::from_secs(2);
/// Longest pause before the one repetition.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The way to the task that sends.
#[derive(Debug)]
pub(super) struct Traces {
    spans: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
    ratio: f64,
    follow_parent: bool,
}

impl Traces {
    pub(super) fn start(
        config: &TracesConfig,
        tasks: &TaskTracker,
        end: &CancellationToken,
    ) -> Result<Self, ObserveError> {
        let failed =
            |error: toolway_transport::TransportError| ObserveError::new("cannot send traces", &error);
        let mut http = HttpConfig::new(&config.url).map_err(failed)?;
        http.headers.clone_from(&config.headers);
        http.timeout = config.timeout;
        http.connector = config.connector.clone();
        let post = JsonPost::new(&http).map_err(failed)?;
        let (spans, received) = mpsc::channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let exporter = Exporter {
            post,
            head: span::head(&config.service, &config.attributes),
            dropped: Arc::clone(&dropped),
            failing: false,
            end: end.clone(),
        };
        tasks.spawn(exporter.run(received));
        Ok(Self { spans, dropped, ratio: config.ratio, follow_parent: config.follow_parent })
    }

    /// Spans that were not sent.
    pub(super) fn dropped(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped)
    }

    pub(super) fn call(&self, call: &CallRecord<'_>, now: SystemTime) {
        let Some(span) = Span::new(call, now, self.ratio, self.follow_parent) else { return };
        if self.spans.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends what comes.
#[derive(Debug)]
struct Exporter {
    post: JsonPost,
    head: String,
    dropped: Arc<AtomicU64>,
    failing: bool,
    end: CancellationToken,
}

impl Exporter {
    async fn run(mut self, mut spans: mpsc::Receiver<Span>) {
        let mut batch = Vec::new();
        loop {
            let first = tokio::select! {
                span = spans.recv() => span,
                () = self.end.cancelled() => None,
            };
            let Some(first) = first else { break };
            batch.push(first);
            let due = Instant::now() + DELAY;
            while batch.len() < BATCH && !self.end.is_cancelled() {
                let end = self.end.clone();
                let next = async {
                    tokio::select! {
                        span = spans.recv() => span,
                        () = end.cancelled() => None,
                    }
                };
                match timeout_at(due, next).await {
                    Ok(Some(span)) => batch.push(span),
                    Ok(None) | Err(_) => break,
                }
            }
            self.send(&mut batch).await;
        }
        spans.close();
        let last = async {
            while spans.recv_many(&mut batch, BATCH).await > 0 {
                self.send(&mut batch).await;
            }
        };
        if timeout(CLOSING, last).await.is_err() {
            let waiting = std::iter::from_fn(|| spans.try_recv().ok()).count();
            self.dropped.fetch_add((batch.len() + waiting) as u64, Ordering::Relaxed);
        }
    }

    /// Once, and once more where the collector asks for it.
    async fn send(&mut self, batch: &mut Vec<Span>) {
        let json = Bytes::from(span::request(&self.head, batch));
        let mut result = self.attempt(json.clone()).await;
        if let Err((_, Some(pause))) = &result {
            let pause = (*pause).min(MAX_PAUSE);
            tokio::select! {
                () = sleep(pause) => result = self.attempt(json).await,
                () = self.end.cancelled() => {}
            }
        }
        match result {
            Ok(()) => self.failing = false,
            Err((reason, _)) => {
                self.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
                if !self.failing {
                    tracing::warn!(%reason, "traces cannot be sent; said once until it works again");
                }
                self.failing = true;
            }
        }
        batch.clear();
    }

    /// The error says why, and when to repeat if that makes sense (OTLP, "Failures").
    async fn attempt(&self, json: Bytes) -> Result<(), (String, Option<Duration>)> {
        let ending = async {
            self.end.cancelled().await;
            sleep(CLOSING).await;
        };
        let answer = tokio::select! {
            answer = self.post.send(json) => answer,
            () = ending => return Err(("the collector did not answer before the end".to_owned(), None)),
        };
        let answer = answer.map_err(|reason| (reason, Some(Duration::from_secs(1))))?;
        match answer.status {
            200..=299 => Ok(()),
            status @ (429 | 502 | 503 | 504) => {
                Err((format!("HTTP {status}"), Some(answer.retry_after.unwrap_or(Duration::from_secs(1)))))
            }
            status => Err((format!("HTTP {status}"), None)),
        }
    }
}
