//! Sends one HTTP request and gives the head of its answer: connections, redirects, signatures, time limits. It decides
//! what may be sent twice, and which headers leave for another origin. It must not know sessions or eras.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use tokio::time::timeout;

use super::body::{Message, RequestBody};
use super::challenge::{challenges, wants_scope};
use super::config::HttpConfig;
use super::conn::{Answer, Conn};
use super::flight::Flight;
use super::heads::Heads;
use super::io::{Connector, SharedTls, connect};
use super::pool::Pool;
use super::target::{Origin, Target};
use super::tls::Tls;
use crate::authorizer::{Challenge, Retry, SignInError, Signer};
use crate::limits::{ERROR_BODY_TIME, MAX_ERROR_BODY, MAX_REDIRECTS};

/// What the answers of the endpoint may be.
pub(crate) const ACCEPT_ANSWER: &str = "application/json, text/event-stream";
/// What a stream may be.
pub(crate) const ACCEPT_STREAM: &str = "text/event-stream";

/// Connections to a server, and how to use them.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) pool: Arc<Pool>,
    connector: Connector,
    tls: SharedTls,
    pub(crate) timeout: Duration,
    pub(crate) heads: Heads,
    title_case: bool,
    /// Who signs what goes to `home`.
    signer: Option<Signer>,
    /// The configured origin.
    home: Arc<Origin>,
}

/// How much may be done so that a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signing {
    /// All.
    Full,
    /// All that disturbs nobody: nobody waits for the answer.
    Quiet,
    /// What is in memory is taken, and nothing is waited for.
    AtHand,
}

/// One request.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// `None`: no body.
    pub(crate) message: Option<&'a Message>,
    /// It does no harm when it is carried out twice.
    pub(crate) repeatable: bool,
    /// Complete headers for the first target; `Host` is added when it is missing.
    pub(crate) headers: &'a HeaderMap,
    /// Headers that other origins may see too.
    pub(crate) public: &'a HeaderMap,
    /// Adds to the headers what belongs to the origin, such as a session that it issued.
    pub(crate) bound: &'a (dyn Fn(&Origin, &mut HeaderMap) + Sync),
    pub(crate) signing: Signing,
    /// Told when the request is held back, and when it has been handed to the socket.
    pub(crate) flight: Option<&'a Flight>,
}

/// Why there is no answer. Texts are fragments without secrets.
#[derive(Debug)]
pub(crate) enum CallError {
    /// Nothing was sent.
    Connect { origin: String, reason: String },
    /// It was sent, and then the connection was lost: the server may have worked on it.
    Lost { reason: String },
    /// It was sent, and no head of an answer came in time.
    Silent,
    /// The answer cannot be followed.
    Redirect { status: u16, reason: String },
    /// Nothing was sent: there is nothing to sign it with.
    SignIn(SignInError),
}

impl Client {
    pub(crate) fn new(config: &HttpConfig, home: &Target) -> Self {
        Self {
            pool: Arc::new(Pool::default()),
            connector: config.connector.clone(),
            tls: Arc::new(Tls::new(config.roots.clone())),
            timeout: config.timeout,
            heads: Heads::default(),
            title_case: config.title_case,
            signer: config.signer(),
            home: Arc::clone(&home.origin),
        }
    }

    /// Who signs, where somebody does.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// Sends `call` to `target`, and to where the answers lead from there. A request that was refused for want of
    /// another signature was not served, so it is sent again with one: once for each kind of refusal.
    pub(crate) async fn send(
        &self,
        target: &Arc<Target>,
        call: Call<'_>,
    ) -> Result<(Answer, Arc<Target>), CallError> {
        let Some(signer) = self.signer.as_ref().filter(|_| *target.origin == *self.home) else {
            return self.send_signed(target, call, None).await;
        };
        let mut refusals = Vec::new();
        loop {
            let mut signature = signer.ready();
            if signature.is_none() && call.signing != Signing::AtHand {
                signature = held(call.flight, signer.authorize()).await.map_err(CallError::SignIn)?;
            }
            let (mut answer, at) = self.send_signed(target, call.clone(), signature.as_ref()).await?;
            // What another origin wants to be told is none of the authorizer's business.
            let wanted = wanted(&answer).filter(|_| *at.origin == *self.home);
            let Some(challenges) = wanted else { return Ok((answer, at)) };
            let status = answer.status.as_u16();
            signer.refused(signature.as_ref());
            if call.signing == Signing::AtHand || refusals.contains(&status) {
                return Ok((answer, at));
            }
            refusals.push(status);
            let waited = call.signing == Signing::Full;
            let challenge = Challenge { status, challenges, refused: signature, waited };
            answer.body.read_ahead(MAX_ERROR_BODY, ERROR_BODY_TIME).await;
            match held(call.flight, signer.challenged(challenge)).await {
                Ok(Retry::Again) => tracing::debug!(%at, status, "the request is signed and sent again"),
                Ok(Retry::No) => return Ok((answer, at)),
                Err(error) => {
                    answer.sign_in = Some(error);
                    return Ok((answer, at));
                }
            }
        }
    }

    async fn send_signed(
        &self,
        target: &Arc<Target>,
        call: Call<'_>,
        signature: Option<&HeaderValue>,
    ) -> Result<(Answer, Arc<Target>), CallError> {
        let answer = self.send_once(target, call.headers, &call, signature).await?;
        if !is_redirect(answer.status) {
            return Ok((answer, Arc::clone(target)));
        }
        self.follow(target, answer, call, signature).await
    }

    async fn follow(
        &self,
        first: &Arc<Target>,
        mut answer: Answer,
        mut call: Call<'_>,
        signature: Option<&HeaderValue>,
    ) -> Result<(Answer, Arc<Target>), CallError> {
        let mut at = Arc::clone(first);
        for _ in 0..MAX_REDIRECTS {
            let next = Arc::new(next_target(&at, &answer, &call.method)?);
            if answer.status == StatusCode::SEE_OTHER {
                call.method = Method::GET;
                call.message = None;
            }
            drop(answer);
            answer = if next.same_origin(first) {
                self.send_once(&next, call.headers, &call, signature).await?
            } else {
                let mut headers = call.public.clone();
                (call.bound)(&next.origin, &mut headers);
                self.send_once(&next, &headers, &call, signature).await?
            };
            if !is_redirect(answer.status) {
                return Ok((answer, next));
            }
            at = next;
        }
        let status = answer.status.as_u16();
        Err(CallError::Redirect {
            status,
            reason: format!("more than {MAX_REDIRECTS} redirects, the last from {at}"),
        })
    }

    async fn send_once(
        &self,
        target: &Target,
        headers: &HeaderMap,
        call: &Call<'_>,
        signature: Option<&HeaderValue>,
    ) -> Result<Answer, CallError> {
        let signature = signature.filter(|_| *target.origin == *self.home);
        let written = || {
            if let Some(flight) = call.flight {
                flight.mark_sent();
            }
        };
        let mut pooled = true;
        loop {
            let mut conn = self.connection(&target.origin, pooled).await?;
            let body = call.message.map_or_else(RequestBody::empty, Message::body);
            let mut request = Request::new(body);
            *request.method_mut() = call.method.clone();
            *request.uri_mut() = target.uri.clone();
            *request.headers_mut() = headers.clone();
            if !headers.contains_key(HOST) {
                request.headers_mut().insert(HOST, target.host.clone());
            }
            if let Some(signature) = signature {
                request.headers_mut().insert(AUTHORIZATION, signature.clone());
            }
            if call.message.is_none() {
                request.headers_mut().remove(CONTENT_TYPE);
            }
            let sent = timeout(self.timeout, conn.exchange(request, written)).await;
            match sent {
                Err(_elapsed) => {
                    // The way to the server may be dead: connections of the same age are not to be trusted.
                    self.pool.clear();
                    return Err(CallError::Silent);
                }
                Ok(Ok(response)) => {
                    self.heads.note(&call.method, target, response.status(), response.headers());
                    return Ok(Answer::new(conn, response, Arc::clone(&self.pool)));
                }
                Ok(Err(error)) => {
                    let unsent = error.message().is_some();
                    let error = error.into_error();
                    // A reused connection may have been closed by the server in this very moment. Certain that
                    // it never saw the request, or that it does not matter: once more, on a new connection.
                    if pooled && conn.reused && (unsent || call.repeatable) && !answered(&error) {
                        pooled = false;
                        continue;
                    }
                    return Err(CallError::Lost { reason: lost(&error) });
                }
            }
        }
    }

    async fn connection(&self, origin: &Arc<Origin>, pooled: bool) -> Result<Conn, CallError> {
        if pooled && let Some(conn) = self.pool.take(origin) {
            return Ok(conn);
        }
        let failed = |reason: String| CallError::Connect { origin: origin.to_string(), reason };
        let open = async {
            let io = connect(origin, &self.connector, &self.tls).await?;
            Conn::handshake(Arc::clone(origin), io, self.title_case).await.map_err(|error| error.to_string())
        };
        match timeout(self.timeout, open).await {
            Ok(opened) => opened.map_err(failed),
            Err(_elapsed) => Err(failed(format!("no connection within {}", seconds(self.timeout)))),
        }
    }
}

/// Waits with a request that nothing is known of at the server.
async fn held<T>(flight: Option<&Flight>, work: impl Future<Output = T>) -> T {
    let Some(flight) = flight else { return work.await };
    flight.hold();
    let done = work.await;
    if flight.release() { done } else { std::future::pending().await }
}

/// The challenges of an answer that wants the request signed, or signed otherwise (RFC 6750, section 3.1).
fn wanted(answer: &Answer) -> Option<Vec<String>> {
    if !matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return None;
    }
    let challenges = challenges(&answer.headers);
    let wanted = answer.status == StatusCode::UNAUTHORIZED || wants_scope(answer.status, &challenges);
    wanted.then_some(challenges)
}

/// The answer had begun, so the server saw the request.
fn answered(error: &hyper::Error) -> bool {
    error.is_parse()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where the redirect leads, if it may be followed.
fn next_target(at: &Target, answer: &Answer, method: &Method) -> Result<Target, CallError> {
    let status = answer.status.as_u16();
    let refuse = |reason: String| CallError::Redirect { status, reason };
    let location = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(location) = location else {
        return Err(refuse(format!("{at} redirects without saying where to")));
    };
    let next = at
        .join(location)
        .map_err(|error| refuse(format!("{at} redirects to where one cannot go: {error}")))?;
    if *method == Method::POST && matches!(status, 301..=303) {
        return Err(refuse(format!("{at} redirects to {next}; use that URL")));
    }
    if at.origin.tls && !next.origin.tls {
        return Err(refuse(format!("{at} redirects to {next}, which is not encrypted")));
    }
    Ok(next)
}

/// Why a connection was lost, as a fragment.
pub(crate) fn lost(error: &hyper::Error) -> String {
    if error.is_parse() {
        return format!("the answer is not HTTP: {error}");
    }
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return match io.kind() {
                std::io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
                std::io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
                _ => format!("the connection was lost: {io}"),
            };
        }
        source = inner.source();
    }
    "the connection was closed".to_owned()
}

/// `120 s`
pub(crate) fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// At most `limit` bytes of a body, within `time`. The second value says that it was all.
pub(crate) async fn read_bounded(answer: &mut Answer, limit: usize, time: Duration) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let whole = timeout(time, async {
        while let Some(piece) = answer.body.next().await {
            let piece: Bytes = match piece {
                Ok(piece) => piece,
                Err(_) => return false,
            };
            let room = limit.saturating_sub(body.len());
            body.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
            if piece.len() > room {
                return false;
            }
        }
        true
    });
    let whole = whole.await.unwrap_or(false);
    (body, whole)
}
