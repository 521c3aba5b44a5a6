//! One HTTP/1.1 connection, driven by whoever uses it: no task of its own, so a round trip needs no hop.
//! It must not know MCP.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use tokio::time::{Instant, timeout};

use super::body::RequestBody;
use super::io::Io;
use super::pool::Pool;
use super::target::Origin;
use super::tcp::Tcp;
use crate::authorizer::SignInError;
use crate::limits::{KEEP_ALIVE_MARGIN, POOL_IDLE, READ_BUFFER};

/// A connection and the half that drives it.
pub(crate) struct Conn {
    pub(crate) origin: Arc<Origin>,
    /// It has carried an exchange before: the server may have closed it meanwhile.
    pub(crate) reused: bool,
    /// When it must not be used any more.
    pub(crate) expires: Instant,
    idle: Duration,
    sender: SendRequest<RequestBody>,
    driver: Option<Connection<Io, RequestBody>>,
    tcp: Option<Tcp>,
}

impl Conn {
    pub(crate) async fn handshake(origin: Arc<Origin>, io: Io, title_case: bool) -> hyper::Result<Self> {
        let tcp = io.tcp();
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(READ_BUFFER)
            .title_case_headers(title_case)
            .handshake(io)
            .await?;
        let driver = Some(driver);
        Ok(Self { origin, reused: false, expires: Instant::now(), idle: POOL_IDLE, sender, driver, tcp })
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && let Poll::Ready(end) = Pin::new(driver).poll(cx)
        {
            if let Err(error) = end {
                tracing::debug!(%error, origin = %self.origin, "connection ended");
            }
            self.driver = None;
        }
    }

    /// The connection is open and waits for a request. Looks at the socket, so a close by the server is seen.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }

    /// The connection can carry the next request, as far as the system knows at this moment.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.is_idle() && !self.tcp.as_ref().is_some_and(Tcp::is_closed)
    }

    /// Sends `request`, and waits for the head of the answer. An error that still holds the request says that
    /// no byte of it was written. `written` is called when the request has been handed to the socket.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<RequestBody>,
        mut written: impl FnMut(),
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            self.drive(cx);
            written();
            answer.as_mut().poll(cx)
        })
        .await
    }
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn")
            .field("origin", &self.origin)
            .field("reused", &self.reused)
            .finish_non_exhaustive()
    }
}

/// The head of an answer and its body, still on its connection.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: AnswerBody,
    /// Why nobody could sign in, after a refusal.
    pub(crate) sign_in: Option<SignInError>,
}

/// The body of an answer. When it was read to its end, the connection goes back to the pool.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    conn: Option<Conn>,
    body: Incoming,
    pool: Arc<Pool>,
    /// What was read already and not handed out yet.
    ahead: VecDeque<Bytes>,
}

impl Answer {
    pub(crate) fn new(mut conn: Conn, response: Response<Incoming>, pool: Arc<Pool>) -> Self {
        let (head, body) = response.into_parts();
        if let Some(idle) = keep_alive(&head.headers) {
            conn.idle = idle;
        }
        let body = AnswerBody { conn: Some(conn), body, pool, ahead: VecDeque::new() };
        Self { status: head.status, headers: head.headers, body, sign_in: None }
    }
}

impl AnswerBody {
    /// The next bytes; `None` at the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<hyper::Result<Bytes>> {
        let piece = std::future::poll_fn(|cx| self.poll_next(cx)).await;
        if piece.is_none() {
            self.recycle();
        }
        piece
    }

    /// Reads a body that is not larger than `limit` into memory, so that the connection is free while something else is
    /// waited for. What is larger, or takes longer than `time`, is left on its connection.
    pub(crate) async fn read_ahead(&mut self, limit: usize, time: Duration) {
        let mut ahead = VecDeque::new();
        let read = async {
            let mut length = 0;
            while let Some(Ok(bytes)) = self.next().await {
                length += bytes.len();
                ahead.push_back(bytes);
                if length > limit {
                    break;
                }
            }
        };
        if timeout(time, read).await.is_err() {
            tracing::debug!("the body of a refusal does not end");
        }
        self.ahead = ahead;
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        if let Some(bytes) = self.ahead.pop_front() {
            return Poll::Ready(Some(Ok(bytes)));
        }
        let mut driven = false;
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Poll::Ready(Some(Ok(bytes))),
                    Err(_trailers) => {}
                },
                Poll::Ready(Some(Err(error))) => {
                    self.conn = None;
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending if driven => return Poll::Pending,
                Poll::Pending => {
                    if let Some(conn) = &mut self.conn {
                        conn.drive(cx);
                    }
                    driven = true;
                }
            }
        }
    }

    /// Everything of the body was handed out, though its end was not asked for yet.
    pub(crate) fn is_end(&self) -> bool {
        self.ahead.is_empty() && self.body.is_end_stream()
    }

    /// The body was read: the connection is free for the next request.
    pub(crate) fn recycle(&mut self) {
        if let Some(mut conn) = self.conn.take()
            && conn.is_idle()
        {
            conn.reused = true;
            conn.expires = Instant::now() + conn.idle;
            self.pool.put(conn);
        }
    }
}

/// How long the server keeps an idle connection, less a margin.
fn keep_alive(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("keep-alive")?.to_str().ok()?;
    let seconds = value.split(',').find_map(|part| part.trim().strip_prefix("timeout="))?;
    let kept = Duration::from_secs(seconds.trim().parse().ok()?);
    Some(kept.saturating_sub(KEEP_ALIVE_MARGIN).min(POOL_IDLE))
}
