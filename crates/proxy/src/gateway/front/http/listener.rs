//! Owns the front's way from a connection to its requests: TLS where it is served so, sessions that are looked through
//! from time to time. Knows no protocol.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use toolway_transport::http_server::{
    AcceptLimits, Accepted, ConnectionTimes, Standing, accept_all, serve_http1,
};

use super::{HttpFront, Shared, post};

/// How often sessions are looked through.
const SWEEP: Duration = Duration::from_secs(15);
/// What running answers get at the end.
const GRACE: Duration = Duration::from_secs(2);

impl HttpFront {
    /// Serves until `end`, or until the gateway has ended. Afterwards no connection is left.
    pub async fn serve(&self, listener: TcpListener, end: CancellationToken) {
        let shared = &self.shared;
        let limits = AcceptLimits { max_connections: shared.config.max_connections, grace: GRACE };
        let over = async {
            let mut sweep = interval(SWEEP);
            loop {
                tokio::select! {
                    () = end.cancelled() => break,
                    () = shared.gateway.ended() => break,
                    _ = sweep.tick() => shared.sessions.sweep(),
                }
            }
            shared.sessions.close_all();
        };
        accept_all(listener, limits, over, |accepted| connection(Arc::clone(shared), accepted)).await;
    }
}

/// Serves one connection to its end.
async fn connection(shared: Arc<Shared>, accepted: Accepted) {
    let Accepted { stream, peer, stop, standing } = accepted;
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let Ok(local) = stream.local_addr() else { return };
    let served = match &shared.config.tls {
        None => serve(&shared, stream, local.ip(), &stop, &standing).await,
        Some(tls) => {
            let acceptor = TlsAcceptor::from(Arc::clone(&tls.0));
            let shaken = tokio::select! {
                shaken = timeout(shared.config.stall, acceptor.accept(stream)) => shaken,
                () = standing.evicted() => return,
            };
            match shaken {
                Ok(Ok(stream)) => serve(&shared, stream, local.ip(), &stop, &standing).await,
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
    standing: &Standing,
) -> Result<(), String> {
    let stall = shared.config.stall;
    let times = ConnectionTimes { admission: stall, idle: stall, stall, half_open: false };
    serve_http1(stream, times, stop, standing, |request| {
        let (shared, standing) = (Arc::clone(shared), standing.clone());
        async move { post::handle(&shared, local, &standing, request).await }
    })
    .await
}
