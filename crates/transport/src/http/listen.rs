//! The legacy era's optional GET stream: opened once the client is initialized, opened again when it ends, given up
//! quietly when the server has none. It must not answer for any request.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode};
use tokio::time::sleep;
use toolway_wire::era::header;

use super::client::{Call, CallError, Signing};
use super::conn::Answer;
use super::failure::media_type;
use super::messages::Messages;
use super::session::{Snapshot, Stage};
use super::shared::Shared;
use super::stream::{EventStream, StreamEnd};
use super::target::Target;
use crate::limits::{RECONNECT_FIRST, RECONNECT_MAX, RETRY_MAX};

/// Listens for as long as the transport lives.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut stages = shared.session.stages();
    loop {
        let stage = *stages.borrow_and_update();
        let listening = async {
            if stage.initialized {
                listen_session(&shared, stage).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            changed = stages.changed() => if changed.is_err() { return },
            () = listening => {}
        }
    }
}

/// Listens until the server has no stream for this session.
async fn listen_session(shared: &Shared, stage: Stage) {
    let mut messages = Messages::new(shared.events.clone(), shared.stream(), Vec::new(), 0);
    let mut stream = EventStream::default();
    let mut delay = RECONNECT_FIRST;
    loop {
        let snapshot = shared.session.snapshot();
        if snapshot.generation != stage.generation {
            return;
        }
        let before = stream.events;
        match shared.open_stream(&snapshot, stream.last_id(), Signing::Quiet).await {
            Ok((mut answer, at)) if is_stream(&answer) => {
                stream.decoder.reset();
                let silence = Some(shared.texts.sse_read_timeout);
                let end = stream.read(&mut answer.body, &mut messages, silence, &mut |_, _| {}).await;
                tracing::debug!(?end, %at, "the server's own stream ended");
                // Silence is no fault: the stream may have died unseen, so it is opened again at once.
                if matches!(end, StreamEnd::Silent) {
                    delay = Duration::ZERO;
                }
            }
            Ok((answer, at)) if is_login(&answer) && shared.client.signer().is_some() => {
                tracing::debug!(status = %answer.status, %at, "the server's own stream waits until somebody signs in");
                drop(answer);
                shared.signed_in().await;
            }
            Err(CallError::SignIn(error)) if error.needs_login => {
                tracing::debug!(%error, "the server's own stream waits until somebody signs in");
                shared.signed_in().await;
            }
            Ok((answer, at)) if !matches!(answer.status.as_u16(), 500 | 502..=599) => {
                tracing::debug!(status = %answer.status, %at, "the server has no stream of its own");
                return;
            }
            Ok((answer, at)) => {
                tracing::debug!(status = %answer.status, %at, "the server's own stream failed");
            }
            Err(CallError::Redirect { reason, .. }) => {
                tracing::debug!(reason, "the server has no stream of its own");
                return;
            }
            Err(error) => tracing::debug!(?error, "the server's own stream failed"),
        }
        if stream.events > before {
            delay = RECONNECT_FIRST;
        }
        let retry = stream.decoder.retry_ms().map(|ms| Duration::from_millis(ms).min(RETRY_MAX));
        sleep(retry.unwrap_or_default().max(delay)).await;
        delay = if delay.is_zero() { RECONNECT_FIRST } else { (delay * 3 / 2).min(RECONNECT_MAX) };
    }
}

impl Shared {
    async fn signed_in(&self) {
        if let Some(signer) = self.client.signer() {
            signer.changed().await;
        }
    }

    /// Asks for an event stream: the server's own, or from `last` on the rest of a broken one.
    pub(crate) async fn open_stream(
        &self,
        snapshot: &Snapshot,
        last: Option<HeaderValue>,
        signing: Signing,
    ) -> Result<(Answer, Arc<Target>), CallError> {
        let mut headers = self.own_stream.clone();
        snapshot.bind(&self.target.origin, &mut headers);
        if let Some(last) = last.clone() {
            headers.insert(header::LAST_EVENT_ID, last);
        }
        let call = Call {
            method: Method::GET,
            message: None,
            repeatable: true,
            headers: &headers,
            public: &self.public_stream,
            bound: &|origin, headers| {
                snapshot.bind(origin, headers);
                if let Some(last) = last.clone() {
                    headers.insert(header::LAST_EVENT_ID, last);
                }
            },
            signing,
            flight: None,
        };
        self.client.send(&self.target, call).await
    }
}

fn is_login(answer: &Answer) -> bool {
    matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// The answer is an event stream.
pub(crate) fn is_stream(answer: &Answer) -> bool {
    answer.status == StatusCode::OK
        && media_type(&answer.headers).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}
