//! One message of the client: its POST, the answer whatever its shape, and what may be done when there is none. It
//! must not know other messages, except through the session.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use toolway_wire::find::{Step as Key, find};
use toolway_wire::{METHOD_NOT_FOUND, era};

use super::client::{Call, Signing, lost, read_bounded};
use super::conn::Answer;
use super::failure::{media_type, upstream};
use super::job::{Job, Role};
use super::messages::{Messages, Seen};
use super::observe::{ErrorBody, Observer, answer_in, error_of, looks_like_events, mentions_session};
use super::session::Snapshot;
use super::shared::Shared;
use super::stream::{EventStream, StreamEnd};
use super::target::Target;
use crate::limits::{
    ERROR_BODY_TIME, INITIALIZED_WAIT, MAX_ERROR_BODY, MAX_TOOLS_LIST, RECONNECT_FIRST, RETRY_MAX,
    STREAM_LINGER,
};
use crate::transport::{Failure, Inbound};

/// What one attempt led to.
enum Attempt {
    Done,
    /// The server does not know the session.
    SessionGone(Failure),
    /// The server misses headers that mirror parameters.
    HeaderMismatch(Failure),
}

/// Sends the message of `job`, and passes on what comes.
pub(crate) async fn run(shared: Arc<Shared>, mut job: Job) {
    if let Some(gate) = job.after.take() {
        gate.cancelled().await;
    }
    if let Some(flight) = job.behind.take()
        && timeout(INITIALIZED_WAIT, flight.sent()).await.is_err()
    {
        tracing::debug!("a cancellation goes out before its request");
    }
    let (ids, flight, opens) = (job.ids.clone(), Arc::clone(&job.flight), job.opens.take());
    let stream = shared.stream();
    let head =
        if job.modern.as_ref().is_some_and(|m| m.lists_tools) { MAX_TOOLS_LIST } else { MAX_ERROR_BODY };
    let messages = Messages::new(shared.events.clone(), stream, ids.clone(), head);
    let work = Exchange { shared: &shared, job, messages, opens: opens.clone() }.run();
    if ids.is_empty() {
        work.await;
    } else {
        tokio::select! {
            biased;
            () = flight.cancelled() => {
                // Dropping the work has closed the stream, which is how the modern era cancels. In the legacy one, the
                // server has not heard of the request.
                if shared.events.send(Inbound::Abort { stream }).await.is_err() {
                    tracing::trace!("the reader is gone");
                }
            }
            () = work => {}
        }
    }
    if let Some(gate) = opens {
        gate.cancel();
    }
    shared.land(&ids, &flight);
}

struct Exchange<'a> {
    shared: &'a Shared,
    job: Job,
    messages: Messages,
    opens: Option<CancellationToken>,
}

impl Exchange<'_> {
    async fn run(mut self) {
        if let Err(failure) = self.attempts().await {
            if self.job.ids.is_empty() {
                tracing::warn!(reason = %failure.message, "a message that needs no answer was not accepted");
            }
            self.messages.fail(failure).await;
        }
        self.release();
    }

    /// The message counts no longer as in flight.
    fn release(&mut self) {
        if self.job.slot.take().is_some() {
            self.shared.land(&self.job.ids, &self.job.flight);
        }
    }

    async fn attempts(&mut self) -> Result<(), Failure> {
        if self.job.modern.as_ref().is_some_and(|modern| modern.tool.is_some()) && !self.shared.tools.known()
        {
            self.shared.ask_tools(&self.job.message, false).await;
        }
        let (mut renewed, mut relearnt) = (false, false);
        loop {
            let snapshot = match self.job.role {
                Role::Initialize => self.shared.session.outside(),
                _ if self.job.modern.is_some() => self.shared.session.outside(),
                _ => self.shared.session.snapshot(),
            };
            match self.attempt(&snapshot).await? {
                Attempt::Done => return Ok(()),
                Attempt::SessionGone(_) if !renewed => {
                    self.shared.renew(snapshot.generation).await?;
                    renewed = true;
                    if self.job.role == Role::Initialized {
                        return Ok(());
                    }
                }
                Attempt::HeaderMismatch(failure) if !relearnt => {
                    relearnt = true;
                    if !self.shared.ask_tools(&self.job.message, true).await {
                        return Err(failure);
                    }
                }
                Attempt::SessionGone(failure) | Attempt::HeaderMismatch(failure) => return Err(failure),
            }
        }
    }

    /// Sends the message once.
    async fn attempt(&mut self, snapshot: &Snapshot) -> Result<Attempt, Failure> {
        let shared = self.shared;
        let extra = self.modern_headers();
        let mut own = None;
        if !extra.is_empty() {
            let mut headers = shared.session.base();
            headers.extend(extra.clone());
            own = Some(headers);
        }
        let call = Call {
            method: Method::POST,
            message: Some(&self.job.message),
            repeatable: self.job.repeatable,
            headers: own.as_ref().unwrap_or(&snapshot.headers),
            public: &shared.public,
            bound: &|origin, headers| {
                snapshot.bind(origin, headers);
                headers.extend(extra.clone());
            },
            signing: Signing::Full,
            flight: Some(&self.job.flight),
        };
        let sent = shared.client.send(&shared.target, call).await;
        let (answer, at) = sent.map_err(|error| shared.texts.call(&error, &shared.target))?;
        if answer.status.is_success() {
            return self.accepted(answer, &at, snapshot).await.map(|()| Attempt::Done);
        }
        self.refused(answer, &at, snapshot).await
    }

    fn modern_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(modern) = &self.job.modern {
            headers.extend(modern.headers.iter().cloned().map(|(name, value)| (Some(name), value)));
            if let Some(tool) = &modern.tool
                && self.shared.tools.mirrors(tool)
                && let Some(call) = self.job.message.bytes(crate::limits::MAX_PARAM_BODY)
            {
                self.shared.tools.mirror(tool, &call, &mut headers);
            }
        }
        headers
    }

    /// A status of success: the answer follows, in one of its shapes.
    async fn accepted(
        &mut self,
        mut answer: Answer,
        at: &Arc<Target>,
        snapshot: &Snapshot,
    ) -> Result<(), Failure> {
        if self.job.role == Role::Initialized {
            self.shared.session.initialized();
        }
        if let Some(coding) = answer.headers.get(http::header::CONTENT_ENCODING)
            && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
        {
            return Err(upstream(format!("{at} answered with a content encoding that was not asked for")));
        }
        let kind = media_type(&answer.headers).unwrap_or_default().to_ascii_lowercase();
        if kind == "text/event-stream" {
            return self.events(answer, None, at, snapshot).await;
        }
        if self.job.ids.is_empty() {
            read_bounded(&mut answer, MAX_ERROR_BODY, ERROR_BODY_TIME).await;
            return Ok(());
        }
        let first = match self.next(&mut answer, at).await? {
            Some(first) if kind != "application/json" && looks_like_events(&first) => {
                return self.events(answer, Some(first), at, snapshot).await;
            }
            first => first,
        };
        self.json(answer, first, at).await
    }

    /// The next bytes of a JSON body.
    async fn next(&self, answer: &mut Answer, at: &Target) -> Result<Option<Bytes>, Failure> {
        match timeout(self.shared.client.timeout, answer.body.next()).await {
            Err(_elapsed) => Err(self.shared.texts.body_silence(at)),
            Ok(Some(Err(error))) => Err(self.shared.texts.cut(self.messages.length(), &lost(&error), at)),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(None) => Ok(None),
        }
    }

    async fn json(
        &mut self,
        mut answer: Answer,
        first: Option<Bytes>,
        at: &Arc<Target>,
    ) -> Result<(), Failure> {
        let (status, headers) = (answer.status, answer.headers.clone());
        let mut piece = first;
        while let Some(bytes) = piece {
            if !self.messages.data(bytes).await {
                return Err(self.shared.texts.not_mcp(status, &headers, self.messages.head(), at));
            }
            piece = if answer.body.is_end() {
                answer.body.recycle();
                None
            } else {
                self.next(&mut answer, at).await?
            };
        }
        let seen = self.messages.finish();
        match &seen {
            Seen::Nothing => Err(self.shared.texts.not_mcp(status, &headers, b"", at)),
            Seen::NotJson(reason) => Err(self.shared.texts.cut(self.messages.length(), reason, at)),
            Seen::Garbage(_) => Err(self.shared.texts.not_mcp(status, &headers, self.messages.head(), at)),
            Seen::Other { nameless_error: true } if self.messages.pending.len() == 1 => {
                Err(error_of(self.messages.head()))
            }
            Seen::Other { .. } => {
                self.messages.commit().await;
                Err(upstream(format!("{at} answered, but not this request")))
            }
            Seen::Answer { .. } => {
                Observer::new(self.shared, &self.job, at, &headers).observe(&seen, &self.messages);
                self.messages.commit().await;
                if self.messages.pending.is_empty() {
                    return Ok(());
                }
                Err(upstream(format!("{at} answered the batch, but not this request of it")))
            }
        }
    }

    /// The answer is a stream of events: messages, and among them the answer.
    async fn events(
        &mut self,
        mut answer: Answer,
        first: Option<Bytes>,
        at: &Arc<Target>,
        snapshot: &Snapshot,
    ) -> Result<(), Failure> {
        let shared = self.shared;
        let silence = (!self.job.listens).then_some(shared.texts.sse_read_timeout);
        let waited = !self.messages.pending.is_empty();
        if !waited {
            // Nobody waits for it: what comes is passed on, and holds nobody up.
            if let Some(gate) = &self.opens {
                gate.cancel();
            }
            self.release();
        }
        let mut stream = EventStream::default();
        let headers = std::mem::take(&mut answer.headers);
        let mut end = {
            let mut observer = Observer::new(shared, &self.job, at, &headers);
            let mut observe = |seen: &Seen, messages: &Messages| observer.observe(seen, messages);
            if let Some(first) = first {
                stream.chunk(&first, &mut self.messages, &mut observe).await;
            }
            if waited && self.messages.pending.is_empty() {
                StreamEnd::Answered
            } else {
                stream.read(&mut answer.body, &mut self.messages, silence, &mut observe).await
            }
        };
        let mut resumed_at = None;
        while !self.messages.pending.is_empty() {
            let last = stream.last_id();
            let why = match &end {
                StreamEnd::Silent => return Err(shared.texts.stream_silence(at)),
                StreamEnd::Broken(reason) => reason.clone(),
                _ => "the server closed it".to_owned(),
            };
            // Once for each event id: a server that polls sends a new one each time.
            let again = self.job.modern.is_none() && last.is_some() && last != resumed_at;
            let Some(last) = last.filter(|_| again) else {
                return Err(shared.texts.stream_lost(&why, at));
            };
            resumed_at = Some(last.clone());
            answer = self.resume(&mut stream, last, &why, at, snapshot).await?;
            let mut observer = Observer::new(shared, &self.job, at, &headers);
            let mut observe = |seen: &Seen, messages: &Messages| observer.observe(seen, messages);
            end = stream.read(&mut answer.body, &mut self.messages, silence, &mut observe).await;
        }
        if waited && matches!(end, StreamEnd::Answered) {
            if let Some(gate) = &self.opens {
                gate.cancel();
            }
            self.release();
            let mut ignore = |_: &Seen, _: &Messages| {};
            let rest = stream.read(&mut answer.body, &mut self.messages, None, &mut ignore);
            if timeout(STREAM_LINGER, rest).await.is_err() {
                tracing::debug!(%at, "the stream of an answered request was not ended by the server");
                self.messages.abort().await;
            }
        }
        Ok(())
    }

    /// Asks for the rest of a broken stream (specification 2025-11-25, "Resumability and Redelivery").
    async fn resume(
        &self,
        stream: &mut EventStream,
        last: HeaderValue,
        why: &str,
        at: &Target,
        snapshot: &Snapshot,
    ) -> Result<Answer, Failure> {
        let retry = stream.decoder.retry_ms().map(std::time::Duration::from_millis);
        sleep(retry.unwrap_or(RECONNECT_FIRST).min(RETRY_MAX)).await;
        stream.decoder.reset();
        let failed = |reason: &str| self.shared.texts.stream_lost(&format!("{why}, and {reason}"), at);
        match self.shared.open_stream(snapshot, Some(last), Signing::Full).await {
            Ok((answer, _)) if super::listen::is_stream(&answer) => Ok(answer),
            Ok((answer, _)) => {
                Err(failed(&format!("it was not resumed ({})", super::failure::status_text(answer.status))))
            }
            Err(error) => Err(failed(&self.shared.texts.call(&error, at).message)),
        }
    }

    /// A status of refusal: the session may be gone, the body may hold the answer all the same.
    async fn refused(
        &mut self,
        mut answer: Answer,
        at: &Arc<Target>,
        snapshot: &Snapshot,
    ) -> Result<Attempt, Failure> {
        let (body, whole) = read_bounded(&mut answer, MAX_ERROR_BODY, ERROR_BODY_TIME).await;
        let status = answer.status;
        let failure = self.shared.texts.refusal(&answer, &body, at);
        let code = find(&body, &[Key::Key("error"), Key::Key("code")])
            .and_then(|code| std::str::from_utf8(body.get(code)?).ok()?.parse::<i64>().ok());
        let gone = match status.as_u16() {
            404 => code != Some(METHOD_NOT_FOUND),
            400 => mentions_session(&body),
            _ => false,
        };
        if gone && snapshot.id.is_some() {
            return Ok(Attempt::SessionGone(failure));
        }
        let tool = self.job.modern.as_ref().is_some_and(|modern| modern.tool.is_some());
        if matches!(status.as_u16(), 401 | 403) || !whole {
            return Err(failure);
        }
        if tool && code == Some(era::code::HEADER_MISMATCH) {
            let failure = if self.messages.pending.len() == 1 { error_of(&body) } else { failure };
            return Ok(Attempt::HeaderMismatch(failure));
        }
        match answer_in(&body, &self.messages.pending) {
            ErrorBody::Answer => {
                self.messages.data(body.into()).await;
                self.messages.finish();
                self.messages.commit().await;
            }
            ErrorBody::Nameless if self.messages.pending.len() == 1 => return Err(error_of(&body)),
            ErrorBody::Nameless | ErrorBody::Other => return Err(failure),
        }
        if self.messages.pending.is_empty() { Ok(Attempt::Done) } else { Err(failure) }
    }
}
