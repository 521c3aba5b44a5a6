//! A TCP stream that can also be looked at while hyper owns it: has the peer closed it meanwhile? It must not know what
//! the bytes mean.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[cfg(any(target_os = "linux", target_os = "macos"))]
use crate::limits::{KEEPALIVE_IDLE, KEEPALIVE_INTERVAL};

/// A handle on one stream; it is closed with the last one.
#[derive(Debug, Clone)]
pub(crate) struct Tcp(Arc<TcpStream>);

impl Tcp {
    pub(crate) fn new(stream: TcpStream) -> Self {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        keep_alive(&stream);
        Self(Arc::new(stream))
    }

    /// The peer has closed or reset the connection. Asks the system itself: the runtime learns of it only when it
    /// next waits, which may be after the next request.
    #[cfg(unix)]
    pub(crate) fn is_closed(&self) -> bool {
        use rustix::io::Errno;
        use rustix::net::{RecvFlags, recv};
        let mut byte = [0; 1];
        match recv(&*self.0, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, length)) => length == 0,
            Err(error) => !matches!(error, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Where the system cannot be asked, only the runtime knows.
    #[cfg(not(unix))]
    pub(crate) fn is_closed(&self) -> bool {
        let Self(_) = self;
        false
    }
}

/// A peer that is gone without a word (a router restarted, a machine slept) is found out in about two minutes,
/// however long the answer may take.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn keep_alive(stream: &TcpStream) {
    use rustix::net::sockopt;
    let set = sockopt::set_socket_keepalive(stream, true)
        .and_then(|()| sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE))
        .and_then(|()| sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL));
    if let Err(error) = set {
        tracing::debug!(%error, "TCP keep-alive could not be set");
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn keep_alive(_: &TcpStream) {}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        #[cfg(unix)]
        if let Err(error) = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write) {
            return Poll::Ready(match error {
                rustix::io::Errno::NOTCONN => Ok(()),
                error => Err(error.into()),
            });
        }
        Poll::Ready(Ok(()))
    }
}
