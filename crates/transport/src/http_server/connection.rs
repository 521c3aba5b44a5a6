//! Owns one served connection: HTTP/1.1 over it, and how long it may say nothing. Knows no paths and no messages.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::accept::Standing;
use super::io::{Clock, Io};

/// The longest head of a request.
const MAX_HEAD: usize = 64 << 10;

/// How long a connection may wait, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTimes {
    /// For its first request that is admitted.
    pub admission: Duration,
    /// For the head of the next request.
    pub idle: Duration,
    /// For its peer to take bytes of an answer.
    pub stall: Duration,
    /// A peer that ends its half of the connection still gets the answers to what it has asked. One that is gone altogether
    /// is noticed when it is sent something: who wants to know earlier watches the socket.
    pub half_open: bool,
}

/// Serves one connection to its end; the error is a fragment for a log. After `stop` the request at hand is finished.
pub async fn serve_http1<S, B, F>(
    stream: S,
    times: ConnectionTimes,
    stop: &CancellationToken,
    standing: &Standing,
    service: impl Fn(Request<Incoming>) -> F,
) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Future<Output = Response<B>>,
{
    let service = service_fn(|request| {
        let answer = service(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(Clock)
            .header_read_timeout(times.idle)
            .max_buf_size(MAX_HEAD)
            .half_close(times.half_open)
            .serve_connection(Io::new(stream, times.stall), service)
    );
    let unproven = async {
        tokio::select! {
            () = sleep(times.admission) => {}
            () = standing.evicted() => {}
        }
        if standing.is_admitted() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = unproven => return Err("no request that may come in came in time".to_owned()),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(|error| error.to_string())
}
