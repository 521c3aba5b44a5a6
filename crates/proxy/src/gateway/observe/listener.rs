//! Owns the small HTTP server for metrics: one page, for this machine alone unless told otherwise. Knows no number.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ObserveError;
use super::metrics::Metrics;

/// A scrape takes no longer.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
const MAX_CONNECTIONS: usize = 16;
const PATH: &str = "/metrics";

/// Where metrics are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Other machines may read them too: without it, an address that they can reach is refused.
    pub open: bool,
}

/// Listens, and serves until the end. Returns the address with its port.
pub(super) fn start(
    config: &MetricsConfig,
    metrics: Arc<Metrics>,
    tasks: &TaskTracker,
    end: &CancellationToken,
) -> Result<SocketAddr, ObserveError> {
    let failed =
        |reason: String| ObserveError::new(format!("cannot serve metrics on {}", config.listen), &reason);
    if !config.open && !config.listen.ip().is_loopback() {
        return Err(failed("others could read them; give a loopback address, or allow it".to_owned()));
    }
    let bind = || -> io::Result<(TcpListener, SocketAddr)> {
        let listener = std::net::TcpListener::bind(config.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    };
    let (listener, address) = bind().map_err(|error| failed(error.to_string()))?;
    tasks.spawn(serve(listener, metrics, config.open, end.clone()));
    Ok(address)
}

async fn serve(listener: TcpListener, metrics: Arc<Metrics>, open: bool, end: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connection(stream, Arc::clone(&metrics), open);
                connections.spawn(async move { timeout(PATIENCE, connection).await.unwrap_or_default() });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for metrics");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, metrics: Arc<Metrics>, open: bool) {
    let service = service_fn(|request| {
        let answer = answer(&request, &metrics, open);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(16 << 10)
        .serve_connection(Socket(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection for metrics ended");
    }
}

fn answer(request: &Request<Incoming>, metrics: &Metrics, open: bool) -> Response<Page> {
    let page = |status: StatusCode, kind: &'static str, text: String| {
        let mut response = Response::new(Page(Some(text.into())));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    let plain = |status, text: &str| page(status, "text/plain; charset=utf-8", format!("{text}\n"));
    // A page of some web site that has its name point here must not read them.
    if !open && !is_local(request.headers().get(HOST)) {
        return plain(StatusCode::FORBIDDEN, "this host name is not allowed");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    if request.uri().path() != PATH {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics");
    }
    page(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics.text())
}

/// `localhost` or a loopback address, with or without a port.
fn is_local(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host.and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A text that is sent at once.
struct Page(Option<Bytes>);

impl Body for Page {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
    }
}

/// A TCP stream for hyper.
struct Socket(TcpStream);

impl hyper::rt::Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; 4096];
        let room = out.remaining().min(bytes.len());
        let mut buffer = ReadBuf::new(bytes.get_mut(..room).unwrap_or_default());
        let polled = Pin::new(&mut self.get_mut().0).poll_read(cx, &mut buffer);
        polled.map_ok(|()| out.put_slice(buffer.filled()))
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
