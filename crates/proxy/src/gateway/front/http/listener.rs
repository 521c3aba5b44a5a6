//! Owns the listening socket and its connections: each is a task of its own, their number is bounded, and none outlives
//! the front. Knows no protocol.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::io::{Clock, Io};
use super::{HttpFront, Shared, post};

/// How often sessions are looked through.
const SWEEP: Duration = Duration::from_secs(15);
/// Pause after a connection could not be accepted (no descriptors).
const PAUSE: Duration = Duration::from_millis(100);
/// What running answers get at the end.
const GRACE: Duration = Duration::from_secs(2);

impl HttpFront {
    /// Serves until `end`, or until the gateway has ended. Afterwards no connection is left.
    pub async fn serve(&self, listener: TcpListener, end: CancellationToken) {
        let shared = &self.shared;
        let room = Arc::new(Semaphore::new(shared.config.max_connections));
        let mut connections = JoinSet::new();
        let mut sweep = interval(SWEEP);
        let stop = CancellationToken::new();
        loop {
            let accepted = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (listener.accept().await, permit)
            };
            let (accepted, permit) = tokio::select! {
                biased;
                () = end.cancelled() => break,
                () = shared.gateway.ended() => break,
                _ = sweep.tick() => {
                    shared.sessions.sweep();
                    continue;
                }
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let connection = connection(Arc::clone(shared), stream, peer, stop.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
        drop(listener);
        stop.cancel();
        shared.sessions.close_all();
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// Serves one connection to its end.
async fn connection(shared: Arc<Shared>, stream: TcpStream, peer: SocketAddr, stop: CancellationToken) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Ok(local) = stream.local_addr() else { return };
    let served = match &shared.config.tls {
        None => serve(&shared, stream, local.ip(), &stop).await,
        Some(tls) => {
            let acceptor = TlsAcceptor::from(Arc::clone(&tls.0));
            match timeout(shared.config.stall, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => serve(&shared, stream, local.ip(), &stop).await,
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("the TLS handshake took too long".to_owned()),
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    shared: &Arc<Shared>,
    stream: S,
    local: IpAddr,
    stop: &CancellationToken,
) -> Result<(), String> {
    let stall = shared.config.stall;
    let service = service_fn(|request| {
        let shared = Arc::clone(shared);
        async move { Ok::<_, Infallible>(post::handle(&shared, local, request).await) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(Clock)
            .header_read_timeout(stall)
            .max_buf_size(64 << 10)
            .serve_connection(Io::new(stream, stall), service)
    );
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    ended.map_err(|error| error.to_string())
}
