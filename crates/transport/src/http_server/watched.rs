//! Owns a socket that is served and watched at once: whoever works on an answer learns that its reader sends no more.
//! Knows no HTTP.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// How often a peer is looked at that has sent its next request already: what lies before the end hides it from a peek.
const AHEAD: Duration = Duration::from_millis(100);

/// A TCP stream that can be watched while it is served. All clones are the same stream.
#[derive(Debug, Clone)]
pub struct Watched(Arc<TcpStream>);

impl Watched {
    /// The stream, to be served and watched.
    pub fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    /// Our end of it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Resolves when the peer sends no more. Whether it has closed the connection or only its half of it cannot be
    /// told: a peer that is gone refuses what it is sent then. Takes nothing of what the peer sends.
    pub async fn ended(&self) {
        while let Ok(1..) = self.0.peek(&mut [0]).await {
            match self.0.ready(Interest::READABLE).await {
                Ok(ready) if !ready.is_read_closed() => sleep(AHEAD).await,
                _ => return,
            }
        }
    }

    /// Does it as soon as the socket is ready for it.
    fn when_ready<T>(
        &self,
        cx: &mut Context<'_>,
        ready: impl Fn(&TcpStream, &mut Context<'_>) -> Poll<io::Result<()>>,
        mut act: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(ready(&self.0, cx))?;
            match act(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// Reads what is there. Fewer bytes than there is room for are all that there are: the next read waits for the socket
/// instead of asking it in vain.
#[cfg(target_os = "linux")]
fn read(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut all = None;
    let room = buffer.len();
    let read = stream.try_io(Interest::READABLE, || {
        match rustix::io::retry_on_intr(|| rustix::io::read(stream, &mut *buffer))? {
            count if count > 0 && count < room => {
                all = Some(count);
                Err(io::ErrorKind::WouldBlock.into())
            }
            count => Ok(count),
        }
    });
    all.map_or(read, Ok)
}

#[cfg(not(target_os = "linux"))]
fn read(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    stream.try_read(buffer)
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self
            .when_ready(cx, TcpStream::poll_read_ready, |stream| read(stream, buffer.initialize_unfilled()));
        read.map_ok(|count| buffer.advance(count))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.when_ready(cx, TcpStream::poll_write_ready, |stream| stream.try_write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Elsewhere the socket ends with the last clone, which is right afterwards.
        #[cfg(unix)]
        rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write)?;
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.when_ready(cx, TcpStream::poll_write_ready, |stream| stream.try_write_vectored(parts))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    async fn pair() -> (Watched, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Watched::new(listener.accept().await.unwrap().0), client)
    }

    #[tokio::test]
    async fn bytes_go_both_ways_and_a_closed_half_leaves_the_other() {
        let (mut served, mut client) = pair().await;
        client.write_all(b"ask").await.unwrap();
        client.shutdown().await.unwrap();
        let mut asked = Vec::new();
        served.read_to_end(&mut asked).await.unwrap();
        assert_eq!(asked, b"ask");
        let large = vec![7; 8 << 20];
        let (written, read) = tokio::join!(
            async {
                served.write_all(&large).await.unwrap();
                served.shutdown().await
            },
            async {
                let mut read = Vec::new();
                client.read_to_end(&mut read).await.unwrap();
                read.len()
            }
        );
        assert_eq!((written.is_ok(), read), (true, 8 << 20));
    }

    #[tokio::test]
    async fn the_end_is_seen_also_behind_bytes_that_nobody_has_read() {
        for ahead in [&b""[..], b"the next request"] {
            let (served, mut client) = pair().await;
            client.write_all(ahead).await.unwrap();
            assert!(timeout(3 * AHEAD, served.ended()).await.is_err(), "it is there still");
            drop(client);
            timeout(LONG, served.ended()).await.unwrap();
            let mut left = Vec::new();
            served.clone().read_to_end(&mut left).await.unwrap();
            assert_eq!(left, ahead, "watching takes nothing");
        }
    }
}
